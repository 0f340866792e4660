"""What a command waits for before it starts: modules are counted, since times depend on the machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fio_files import write

LOADED = "import sys\n{}\nprint(*(name for name in sys.modules if name.split('.')[0] == 'iodelta'), file=sys.stderr)"
REPORT = "import iodelta.cli.report, iodelta.report.derived, iodelta.report.formats.console"
SHOW = """
from iodelta.cli.main import main
sys.argv = ["iodelta", "show", "{}"]
try:
    main()
except SystemExit as end:
    assert not end.code
"""


@pytest.mark.parametrize(("code", "most"), [(REPORT, 215), (SHOW, 150)])
def test_reading_results_does_not_wait_for_what_measures_them(code: str, most: int, tmp_path: Path) -> None:
    code = code.format(write(tmp_path / "result.json", 1000))
    done = subprocess.run([sys.executable, "-c", LOADED.format(code)], capture_output=True, text=True, check=True)
    loaded = done.stderr.split()
    assert len(loaded) <= most
    rooms = {name.split(".")[1] for name in loaded if "." in name}
    assert rooms.isdisjoint({"knob", "vm", "tools", "fleet", "history", "web", "bisect", "path"})
    assert rooms >= {"study", "report"}
    assert not {"iodelta.lab.bench", "iodelta.lab.runner", "iodelta.lab.setup", "iodelta.machine.ssh"} & set(loaded)
