"""Experiments that start from a page: the plan first, by the user's own hand, and never more than a page may."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest
from browsers import PATIENCE
from carried import carried
from nights import filled, stepping
from playwright.sync_api import Browser, Page, Route
from processes import paused
from waiting import journals, until

from iodelta.history.log import Confirmed, Confirming, Log
from iodelta.web.asked import Place
from iodelta.web.launching import writer_of

from .servers import Answer, Server, Visit, check_described, check_for_all, followed, loaded, serving, violations

pytestmark = pytest.mark.xdist_group("web")

TOKENS = {role: f"{role}-" + "t" * 24 for role in ("read", "triage", "run")}

SOUND = {
    "question": "Is a deeper queue faster?",
    "size": "8m",
    "rw": "randread",
    "bs": "4k",
    "ioengine": "psync",
    "setting-1": "fio.rate_iops",
    "value-1-1": "500",
    "value-1-2": "400",
    "margin": "1%",
    "trial": "250ms",
    "ramp": "0",
    "budget": "60s",
}
"""A form that can be planned, but for its place."""

REFUSED = {
    "options": [
        "exec_prerun=touch /tmp/x",
        "mem=mmap:/etc/passwd",
        "filesize=900g",
        "include=/etc/shadow",
        "include /etc/shadow",
        "rw=randwrite",
        "readwrite=randwrite",
        "exec_prer=touch /tmp/x",
        "read_iolog=/tmp/x",
        "write_bw_log=/etc/x",
        "job_file=/etc/shadow",
        "command=rm -rf /",
        "opendir=/etc",
        "allow_mounted_write=1",
        "unlink=1",
        "filename=/dev/vda",
    ],
    "ioengine": ["external:/tmp/x.so"],
    "target": ["/etc/shadow", "/etc", "", "class:nvme"],
    "rw": ["trim"],
    "budget": ["40d"],
    "name-1": ["../../x"],
    "question": ['x"\n[prepare]\nfill = 1'],
    "load-1": [
        "dd if=/dev/zero of=/dev/vda",
        "rw=read exec_prerun=/tmp/x",
        "rw=read filename=/dev/vda",
        "rw=read ioengine=external:/tmp/x.so",
        "rw=trim",
        "rw=write size=900g",
        "rw=read write_bw_log=/etc/x",
    ],
    "load-2": ["rw=read readwrite=write"],
    "load-3": ["bs=4k"],
    "held-1": [
        "kernel=6.1",
        "sysctl.kernel.core_pattern=|/tmp/x",
        "command={apply=[],restore=[]}",
        "fio.filename=/dev/vda",
    ],
    "condition-1": ["../../x"],
}
KNOBS = {
    "command": '{apply=["touch", "/tmp/x"], restore=[]}',
    "sysctl.kernel.core_pattern": "|/tmp/x",
    "sysfs:/sys/power/state": "mem",
    "kernel": "6.1",
    "mirror.read_policy": "queue /dev/sda /dev/sdb",
    "fio.exec_prerun": "touch /tmp/x",
    "fio.ioengine": "external:/tmp/x.so",
    "fio.filename": "/dev/vda",
    "fio.filesize": "900g",
}
DANGEROUS = [
    *(({field: value}, field) for field, values in REFUSED.items() for value in values),
    *(({"setting-1": name, "value-1-1": value}, "setting-1") for name, value in KNOBS.items()),
    ({"setting-1": "fio.rate_iops", "value-1-1": "500\n[x]\nfilename=/etc/x\nrw=write"}, "form"),
    ({"condition-1": "x", "condition-2": "x"}, "condition-2"),
    *(({name: most}, name) for name, most in (("numjobs", "257"), ("iodepth", "4097"), ("iodepth", "1 ٣"))),
    *(({"options": option}, "options") for option in ("numjobs=999", "iodepth=99999", "numjobs=9k")),
    *(({"setting-1": name, "value-1-1": "99999"}, "setting-1") for name in ("fio.numjobs", "fio.iodepth")),
    ({"load-2": "rw=read numjobs=9999"}, "load-2"),
]
"""Fields that a page refuses, and the field that says so."""


def token_of(page: str) -> str:
    found = re.search(r'name="csrf" value="([0-9a-f]+)"', page)
    assert found is not None
    return found[1]


def post(server: Server, path: str, fields: dict[str, str], **headers: str) -> Answer:
    kind = {"Content_Type": "application/x-www-form-urlencoded", **headers}
    return server.ask(path, "POST", urlencode(fields).encode(), **kind)


def proposed(server: Server, place: Path, changed: dict[str, str]) -> Answer:
    """What the server says of a form with these fields."""
    token = token_of(server.ask("/measure").text)
    fields = {"csrf": token, "target": str(place / "runs"), **SOUND, **changed}
    return post(server, "/measure", fields, Accept="application/json")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("starting")
    (place / "runs").mkdir()
    return place


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[Server]:
    with serving("--folders", "runs", "--write", cwd=place) as running:
        yield running


@pytest.mark.parametrize(("changed", "field"), DANGEROUS, ids=[str(number) for number in range(len(DANGEROUS))])
def test_what_does_more_than_io_is_refused_at_its_field(
    server: Server, place: Path, changed: dict[str, str], field: str
) -> None:
    answer = proposed(server, place, changed)
    assert answer.status == 422
    assert field in answer.json["problems"]
    assert "root:" not in answer.text
    assert list((place / "runs").iterdir()) == []


BEYOND = [
    {"setting-1": "fio.offset", "value-1-1": "4m", "value-1-2": "0"},
    {"setting-1": "fio.size", "value-1-1": "16m", "value-1-2": "8m"},
    {"numjobs": "4", "options": "offset_increment=4m"},
]
"""What leads past the end of the scratch file."""


@pytest.mark.fio
@pytest.mark.beside
def test_what_writes_past_the_end_of_the_place_has_no_plan(server: Server, place: Path) -> None:
    for changed in BEYOND:
        refused = proposed(server, place, {**changed, "rw": "randwrite"})
        assert refused.status == 422, changed
        assert "may write past its 8388608 bytes" in refused.json["problems"].get("size", refused.text)
    shorter = {"setting-1": "fio.size", "value-1-1": "4m", "value-1-2": "8m"}
    inside = proposed(server, place, {"rw": "randwrite", **shorter})
    assert inside.status in (200, 303), inside.text


def test_a_form_that_is_shown_again_keeps_its_lines(server: Server, place: Path) -> None:
    token = token_of(server.ask("/measure").text)
    fields = {"csrf": token, "target": str(place / "runs"), **SOUND, "options": "rwmixread=70\r\nnorandommap=1\x1b"}
    again = post(server, "/measure", {**fields, "trial": "soon"})
    assert again.status == 422
    assert ">rwmixread=70\nnorandommap=1\\x1b</textarea>" in again.text


def test_a_page_never_writes_to_a_disk() -> None:
    from iodelta.web.asked import composed

    disk = (Place("/dev/vdz", "/dev/vdz", True),)
    fields = {**SOUND, "target": "/dev/vdz"}
    assert composed(fields, disk).problems == {}
    for mode in ("write", "randwrite", "randrw", "readwrite"):
        assert set(composed({**fields, "rw": mode}, disk).problems) == {"rw"}
        assert set(composed({**fields, "load-1": f"rw={mode}"}, disk).problems) == {"load-1"}
    assert 'rw = "randread"' in composed({**fields, "load-1": "rw=randread rate=1m"}, disk).text


@pytest.mark.fio
@pytest.mark.beside
def test_a_variant_that_writes_is_seen_where_only_reading_is_allowed(tmp_path: Path) -> None:
    """By the functions of the run itself, whatever the form let through."""
    from iodelta.errors import RefusedError, RequestError
    from iodelta.experiment import toml_text
    from iodelta.web.starting import plan_of

    disk = tmp_path / "disk.img"
    disk.write_bytes(bytes(1 << 20))
    asked: dict[str, Any] = {
        "target": {"path": str(disk)},
        "workload": {"rw": "randread", "bs": "4k", "ioengine": "psync"},
        "variant": {"a": {}, "b": {"fio.rw": "randwrite"}},
    }
    with pytest.raises(RefusedError):
        plan_of(toml_text(asked))
    asked["variant"]["b"] = {"fio.bs": "8k"}
    for load, refusal in (
        ({"rw": "randwrite"}, RefusedError),
        ({"rw": "read", "exec_prerun": "/tmp/x"}, RequestError),
        ("dd if=/dev/zero of=/dev/vda", RequestError),
    ):
        with pytest.raises(refusal):
            plan_of(toml_text({**asked, "condition": {"busy": {"background": load}}}))
    assert "seed = " in plan_of(toml_text(asked))[0]


def test_only_who_may_run_starts_anything(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    file = tmp_path / "tokens"
    file.write_text("".join(f"{role} {role}er {secret}\n" for role, secret in TOKENS.items()))
    file.chmod(0o600)
    fields = {"target": str(tmp_path / "runs"), **SOUND, "trial": "no"}
    words = ("--folders", "runs", "--token-file", str(file))
    paths = ("/measure", "/measure/x", "/experiment/x/cancel", "/alert/x/confirm", "/compare")
    with serving(*words, cwd=tmp_path) as reading:
        run = {"Authorization": f"Bearer {TOKENS['run']}"}
        assert reading.ask("/measure", "GET", None, **run).status == 403
        assert post(reading, "/measure", fields, **run).status == 403
    filled(tmp_path / "history", [])
    with serving(*words, "--history", "history", "--write", cwd=tmp_path) as server:
        for role in ("read", "triage"):
            user = {"Authorization": f"Bearer {TOKENS[role]}"}
            assert server.ask("/measure", "GET", None, **user).status == 403
            assert "/measure" not in server.ask("/", "GET", None, **user).text
            for path in paths:
                assert post(server, path, fields, **user).status == 403
        assert post(server, "/measure", fields).status == 401
        user = {"Authorization": f"Bearer {TOKENS['run']}", "Accept": "application/json"}
        assert post(server, "/measure", fields, **user).json["problems"].keys() == {"trial"}
        assert "/measure" in server.ask("/", "GET", None, **run).text
    assert list((tmp_path / "runs").iterdir()) == []


def test_another_site_and_a_page_without_its_token_start_nothing(server: Server, place: Path) -> None:
    fields = {"target": str(place / "runs"), **SOUND}
    assert post(server, "/measure", fields).status == 403
    assert post(server, "/measure", {**fields, "csrf": "0" * 64}).status == 403
    sound = {**fields, "csrf": token_of(server.ask("/measure").text)}
    assert post(server, "/measure", sound, Origin="http://evil.example").status == 403
    assert post(server, "/measure", sound, Sec_Fetch_Site="cross-site").status == 403
    token = {"csrf": sound["csrf"]}
    assert post(server, "/measure/unknown", token).status == 404
    assert post(server, "/experiment/unknown/cancel", token).status == 404


ANOTHER = """
import os, re, sys, urllib.error, urllib.request
url, form = sys.argv[1:]
page = urllib.request.urlopen(url + "measure").read().decode()
token = re.search(r'name="csrf" value="([0-9a-f]+)"', page)[1]
for user in (0, 65534):  # the first one also loads what the second one may not read
    os.setuid(user)
    try:
        urllib.request.urlopen(url + "measure", (form + "&csrf=" + token).encode())
    except urllib.error.HTTPError as error:
        print(error.code, error.read().decode())
"""


@pytest.mark.root
@pytest.mark.beside
def test_another_user_of_this_machine_starts_nothing_without_a_login(server: Server, place: Path) -> None:
    form = urlencode({**SOUND, "target": str(place / "runs"), "trial": "no"})
    done = subprocess.run(
        [sys.executable, "-c", ANOTHER, server.url, form], capture_output=True, text=True, timeout=240, check=True
    )
    own, _, others = done.stdout.partition("403 ")
    assert own.startswith("422 "), done
    assert "only the user who runs this server" in others


def fill(page: Page, **fields: str) -> None:
    labels = {
        "size": "How much of it",
        "depth": "Queue depth",
        "setting": "Setting 1",
        "a": "Setting 1 of variant 1",
        "b": "Setting 1 of variant 2",
        "budget": "Time in all",
        "trial": "One trial",
        "ramp": "Warm-up",
    }
    for name, value in fields.items():
        page.get_by_label(labels[name], exact=name in ("setting", "a", "b")).fill(value)


@pytest.mark.fio
@pytest.mark.beside
def test_without_scripts_an_experiment_is_composed_planned_started_and_ended(browser: Browser, tmp_path: Path) -> None:
    """The server is killed meanwhile, and another one ends what the first one started."""
    (tmp_path / "runs").mkdir()
    context = browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 900})
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    with serving("--folders", "runs", "--write", cwd=tmp_path) as server:
        page.goto(server.url)
        followed(page, page.get_by_role("link", name="Measure"))
        fill(page, size="4m", depth="", setting="block.nope", a="1", budget="soon", trial="250ms", ramp="0")
        followed(page, page.get_by_role("button", name="Show the plan"))
        assert page.get_by_role("alert").inner_text().startswith("2 things are wrong")
        assert page.locator("[aria-invalid]").count() == 2
        assert "500ms, 5s, 30m" in page.locator("#wrong-budget").inner_text()
        fill(page, setting="fio.rate_iops", a="500", b="400", budget="10m")
        page.get_by_label("Name of condition 1").fill("busy")
        page.get_by_label("Load of condition 1").fill("rw=read bs=64k rate=1m")
        followed(page, page.get_by_role("button", name="Show the plan"))
        plan = page.locator("main").inner_text().replace("\u00a0", " ")
        assert "1 cell, 2 variants, at most" in plan
        assert "Nothing was measured or changed." in plan
        assert "a scratch file of 4 MiB" in plan
        assert "fio rate_iops = 400" in plan
        assert "busy: in the background fio --rw=read --bs=64k --rate=1m" in plan
        assert not (tmp_path / "runs" / "started").exists()
        followed(page, page.get_by_role("link", name="Change it"))
        assert page.get_by_label("Setting 1 of variant 2", exact=True).input_value() == "400"
        followed(page, page.get_by_role("button", name="Show the plan"))
        followed(page, page.get_by_role("button", name="Start measuring"))
        until(lambda: journals(tmp_path / "runs" / "started"))
        (journal,) = journals(tmp_path / "runs" / "started")
        until(lambda: b'"finished"' in journal.read_bytes())
        run = writer_of(journal)
        assert run is not None
        with paused(run):  # else it may be over before the page shows it
            page.wait_for_url("**/experiment/*", timeout=PATIENCE)
            server.process.kill()
            server.process.wait()
            lines = journal.read_bytes().count(b"\n")
    until(lambda: journal.read_bytes().count(b"\n") > lines + 1)
    with paused(run), serving("--folders", "runs", "--write", cwd=tmp_path) as again:
        (one,) = again.json("/")["results"]
        assert one["state"] == "running"
        page = context.new_page()  # the other one still loads itself again
        page.goto(f"{again.url}experiment/{one['id']}")
        page.get_by_role("button", name="End it now").click()
        os.kill(run, signal.SIGCONT)
        until(lambda: b'"interrupted"' in journal.read_bytes())
        token = token_of(again.ask("/measure").text)
        until(lambda: post(again, f"/experiment/{one['id']}/cancel", {"csrf": token}).status == 409)
    context.close()
    assert len(journals(tmp_path / "runs" / "started")) == 1


@pytest.mark.fio
@pytest.mark.beside
def test_a_plan_is_its_owners_starts_once_and_says_why_it_could_not(server: Server, place: Path) -> None:
    answer = proposed(server, place, {"question": "<script>alert(1)</script>"})
    assert answer.status == 303
    path = answer.headers["location"]
    described = server.json("/openapi.json")
    check_described(described, "POST", "/measure", answer)
    check_described(described, "GET", "/measure/{id}", server.ask(path, Accept="application/json"))
    plan = server.json(path)
    assert plan["plan"]["experiment"]["variants"][1]["options"] == [["rate_iops", "400"]]
    page = server.ask(path).text
    assert "<script>alert" not in page
    assert re.search(r'\[variant\..*\]\n"fio.rate_iops" = ', page.replace("&#34;", '"')), page
    token = {"csrf": token_of(page)}
    (place / "runs" / "iodelta-scratch").write_text("somebody else's")
    try:
        assert post(server, path, token).status == 303
        assert post(server, path, token).status == 303
        until(lambda: not server.json(path)["running"])
        check_described(described, "GET", "/measure/{id}", server.ask(path, Accept="application/json"))
    finally:
        (place / "runs" / "iodelta-scratch").unlink()
    failed = server.ask(path)
    assert failed.status == 422
    assert "where iodelta makes a directory\n  delete it" in failed.text
    assert len(list((place / "runs" / "started").glob("*.toml"))) == 1
    seed = plan["plan"]["seed"]
    (file,) = (place / "runs" / "started").glob("*.toml")
    assert f"seed = {seed}" in file.read_text()


WAITS = """
import pathlib, sys, time
if "run" in sys.orig_argv:
    while not pathlib.Path({go!r}).exists():
        time.sleep(0.05)
    raise SystemExit("told to end")
"""
"""Loaded by every Python that the server starts: a run waits before its first line, then ends."""


@pytest.mark.night
@pytest.mark.fio
@pytest.mark.beside
def test_the_form_its_plan_and_its_start_fit_and_can_be_read_by_all(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = tmp_path / "go"
    (tmp_path / "sitecustomize.py").write_text(WAITS.format(go=str(go)))
    (tmp_path / "runs").mkdir()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with serving("--folders", "runs", "--write", cwd=tmp_path) as server:
        visit = Visit(browser.new_page(), server.url)
        page = visit.page
        # A page that loads itself again every second would be gone under the eyes of axe.
        still = re.compile(r'<meta http-equiv="refresh"[^>]*>')

        def answered(route: Route) -> None:
            response = route.fetch(timeout=PATIENCE)
            route.fulfill(response=response, body=still.sub("", response.text()))

        page.route("**/measure/*", answered)
        check_for_all(visit, "/measure")
        page.locator("details summary").click()
        assert page.get_by_text("fio.NAME").is_visible()
        assert violations(page) == []
        planned = proposed(server, tmp_path, {"load-2": "rw=read rate=1m"}).headers["location"]
        check_for_all(visit, planned)
        assert visit.wrong == []
        assert post(server, planned, {"csrf": token_of(server.ask(planned).text)}).status == 303
        try:
            check_for_all(visit, planned)
            assert page.locator(".kicker").text_content() == "Starting"
        finally:
            go.touch()
        until(lambda: not server.json(planned)["running"])
        check_for_all(visit, planned)
        assert page.locator(".kicker").text_content() == "Not started"
        assert "told to end" in page.locator("main").inner_text()
        visit.open("/measure")
        page.get_by_label("Time in all").fill("soon")
        with loaded(page):
            page.keyboard.press("Enter")
        page.get_by_role("alert").wait_for()
        assert violations(page) == []
        assert [said for said in visit.wrong if "422" not in said] == []
        page.close()


NIGHTLY = """
margin = "5%"
[target]
size = "4m"
[workload]
rw = "randread"
bs = "4k"
ioengine = "psync"
[variant.old]
role = "reference"
"fio.rate_iops" = "500"
[variant.new]
"fio.rate_iops" = "{rate}"
[design]
trial = "0.2s"
ramp = "0s"
blocks = 2
budget = "60s"
metrics = ["read.iops"]
[subject]
commit = "{commit}"
"""


def make_nights(place: Path, head: str = "") -> Path:
    """A history of 40 nights with a step, whose 20th and 21st have folders; ``head`` stands above their texts."""
    for number, rate in ((19, 500), (20, 400)):
        text = head + NIGHTLY.format(rate=rate, commit=f"{number:040x}")
        carried(place / "nights" / f"v6.{number}", -0.2, text=text, blocks=2, secret=False)
    (place / "runs").mkdir()
    nights = [
        msgspec.structs.replace(one, folder=str(place / "nights" / one.subject.describe)) for one in stepping(0.2)
    ]
    filled(place / "history", nights)
    return place


@pytest.mark.night
@pytest.mark.fio
@pytest.mark.beside
def test_an_alert_is_confirmed_and_two_nights_are_measured_from_their_pages(browser: Browser, tmp_path: Path) -> None:
    nights = make_nights(tmp_path)
    with serving("--folders", "runs", "--history", "history", "--write", cwd=nights) as server:
        visit = Visit(browser.new_page(color_scheme="dark"), server.url)
        (alert,) = server.json("/triage")["alerts"]
        page = visit.open(f"/alert/{alert['id']}")
        followed(page, page.get_by_role("button", name="Plan the confirmation"))
        assert f"Alert {alert['id']}" in page.locator("h1").inner_text()
        assert "good (baseline), bad" in page.locator("main").inner_text()
        assert violations(page) == []
        followed(page, page.get_by_role("button", name="Start measuring"))
        folder = nights / "history" / "confirmations" / f"{alert['id']}-1"
        journal = folder / "journal.jsonl"
        until(lambda: journal.exists() and b'"finished"' in journal.read_bytes())
        run = writer_of(journal)
        assert run is not None
        with paused(run):  # else it may be over before the page shows it
            page.get_by_role("button", name="End it now").wait_for()
        log = Log(nights / "history" / "decisions.jsonl")
        until(lambda: any(isinstance(entry, Confirmed) for entry in log.entries()[0]))
        page.wait_for_selector("html[data-charts=drawn]")  # the report, at the same address
        written = log.entries()[0]
        assert [entry.folder for entry in written if isinstance(entry, Confirming)] == [str(folder)]
        (confirmed,) = (entry for entry in written if isinstance(entry, Confirmed))
        assert confirmed.word in page.locator("main").inner_text()
        told = visit.open(f"/alert/{alert['id']}").locator("main").inner_text()
        assert f"{confirmed.word}: {folder}" in told
        (line,) = server.json("/matrix")["series"]
        page = visit.open(f"/compare?a={line['id']}-experiment-19&b={line['id']}-experiment-20")
        followed(page, page.get_by_role("button", name="Measure these two"))
        assert "differ between a and b?" in page.locator("h1").inner_text()
        assert "a (baseline), b" in page.locator("main").inner_text()
        assert visit.wrong == []
        page.close()


def test_nights_that_a_page_may_not_repeat_are_left_to_the_command_line(tmp_path: Path) -> None:
    nights = make_nights(tmp_path, 'machine = "ssh:elsewhere"\n')
    with serving("--folders", "runs", "--history", "history", "--write", cwd=nights) as server:
        (alert,) = server.json("/triage")["alerts"]
        token = {"csrf": token_of(server.ask("/measure").text)}
        answer = post(server, f"/alert/{alert['id']}/confirm", token, Accept="application/json")
        assert answer.status == 404
        assert f"iodelta history confirm {alert['id']} --history history" in answer.json["remedy"]
    assert not (nights / "history" / "confirmations").exists()
