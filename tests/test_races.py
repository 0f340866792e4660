"""Tests do not read what changes under them, nor give up while a loaded machine works: each of these failed once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
RACES = {
    r"""Path\(["']/proc["']\)\.r?glob""": "a process that ends meanwhile raises ProcessLookupError: processes.alive",
    r"""glob\(["']\*/journal\.jsonl["']\)""": "a folder that is just being made changes its name: waiting.journals",
    r"""/fd["']\)\.iterdir""": "a descriptor that is closed meanwhile raises FileNotFoundError: processes.descriptors",
    r"""glob\(["']loop\*/loop/""": "a device that is detached meanwhile has no file: workshop.backing_files",
    r"""["']losetup["'], node\b""": "another test's file may be attached to it meanwhile: workshop.attach",
    r"assert .*\.wait\((?:\d{1,2}|1\d\d|2[0-3]\d)\)": "a loaded machine takes longer: no limit but that of pytest",
    r"\btimeout=(?:[1-9]\d|1\d\d|2[0-3]\d)\b": "a loaded machine takes longer: waiting.LIMIT",
    r"mark\.timeout\(\d{1,2}\)": "a loaded machine takes longer: no limit but that of pytest",
    r"\.hover\(": "an event of before may hide what a pointer showed: browsers.point_at",
    r"\bpage\.set_viewport_size\(": "what follows the size of a page is drawn with its next frame: browsers.resize",
    r"\broute\.fetch\(\)": "a loaded machine takes longer than its 30 s: browsers.PATIENCE",
    r"""\n( *)page\.keyboard\.press\([^\n]*\n\1page\.get_by""": "the next page may have no styles yet: servers.loaded",
    r"""has_text=["']Copied""": "a label that goes again may be gone before it is seen: keep all that it gets",
    r"""\.bind\(\(["'][\d.]+["'], 0\)\)""": "a port that is given back is taken by others: let who listens choose it",
}


@pytest.mark.parametrize("race", RACES)
def test_no_test_walks_what_changes_meanwhile(race: str) -> None:
    texts = {str(path.relative_to(HERE)): path.read_text() for path in sorted(HERE.rglob("*.py"))}
    racing = [name for name, text in texts.items() if name != Path(__file__).name and re.search(race, text)]
    assert racing == [], RACES[race]


@pytest.mark.parametrize(
    "line",
    [
        'Path("/proc").glob("[0-9]*/cmdline")',
        'until(lambda: list(runs.glob("*/journal.jsonl")))',
        'for path in Path(f"/proc/{pid}/fd").iterdir():',
        'Path("/sys/block").glob("loop*/loop/backing_file")',
        'workshop.run("losetup", node, other)',
        "assert load.wait(10) == 0",
        "subprocess.run(words, timeout=120)",
        "    timeout=60,",
        "@pytest.mark.timeout(60)",
        'taken.bind(("127.0.0.1", 0))',
        "    mark.hover(force=True)",
        'page.set_viewport_size({"width": width, "height": 900})',
        "response = route.fetch()",
        '\n    page.keyboard.press("Enter")\n    page.get_by_text("Nobody").wait_for()',
        'page.locator("button", has_text="Copied").wait_for()',
    ],
)
def test_the_races_that_failed_are_seen(line: str) -> None:
    assert any(re.search(race, line) for race in RACES)


@pytest.mark.parametrize(
    "line",
    [
        'run("losetup", "--detach", node)',
        "assert load.wait() == 0",
        '\n    with loaded(page):\n        page.keyboard.press("Enter")\n    page.get_by_text("Nobody").wait_for()',
        "assert process.wait(timeout=LIMIT)",
        "process.communicate(timeout=240)",
        "pytest.mark.timeout(3000)",
        'HERE.run(["sleep", "97"], timeout=0.2)',
    ],
)
def test_what_is_no_race_is_left_alone(line: str) -> None:
    assert not any(re.search(race, line) for race in RACES)
