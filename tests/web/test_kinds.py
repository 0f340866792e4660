"""Fleets and searches as pages; the description of all documents; names, folders and series that mean harm."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest
from bisection.toy import READ, Toy, bisect
from carried import BY_ID, ENVIRONMENT, QUESTION, carried
from jsonschema import Draft202012Validator
from nights import filled, having, key, night, stepping
from playwright.sync_api import Browser

from iodelta.bundle.packing import pack
from iodelta.fleet.events import Joined
from iodelta.fleet.folder import FleetFolder, question
from iodelta.fleet.host import FleetHost
from iodelta.lab.folder import Folder, now
from iodelta.web.triage import WORDS

from .servers import Server, Visit, check_described, check_for_all, followed, serving, violations
from .test_uploads import result, sent
from .test_uploads import upload as uploaded

pytestmark = pytest.mark.xdist_group("web")

HOSTS = ("stor1", "stor2", "stor3")
ATTACK = "<img src=x onerror=alert(1)>\u202e'\"</script><script>alert(2)</script>{{7*7}}"


def asked(name: str = "Is slow slower?") -> str:
    text = QUESTION.format(path=BY_ID, blocks=12).replace("iodepth = [1, 4]", "iodepth = 1")
    return text.replace("Is slow slower?", name)


def fleet_at(path: Path, *names: str) -> FleetFolder:
    """A fleet of which the first hosts were measured."""
    (path.parent / "question.toml").write_text(asked().replace(BY_ID, "class:nvme"))
    folder = FleetFolder(path)
    folder.make()
    with folder.journal.held():
        folder.fix(question(path.parent / "question.toml"))
        for name in (*HOSTS, "lost"):
            folder.journal.append(Joined(now(), FleetHost(name, f"root@{name}", (), {"nvme": BY_ID})))
    for seed, name in enumerate(names, 1):
        host = {**ENVIRONMENT, "host": {"name": name, "machine_id": f"id of {name}"}}
        carried(path / "hosts" / name, -0.2, text=asked(), seed=seed, environment=host, secret=False)
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("kinds")
    (place / "runs").mkdir()
    fleet_at(place / "runs" / "rack", *HOSTS)
    fleet_at(place / "runs" / "new-rack")
    toy = Toy(place / "toy")
    commits = toy.commits(100, 100, 90, 90)
    done = bisect(
        "--repo", toy.path, "--good", commits[0], "--bad", commits[-1], *READ, "--folder", place / "runs/hunt"
    )
    assert done.code in (0, 1), done.err
    hostile = asked("x").replace('question = "x"', f"question = {msgspec.json.encode(ATTACK).decode()}")
    carried(place / "runs" / "a<b>&'\"", -0.2, text=hostile, secret=False)
    linked = carried(place / "runs" / "linked", -0.2, text=asked(), secret=False)
    secret = place / "secret"
    secret.write_text("a secret of the server's")
    (linked.path / "verdict.json").unlink(missing_ok=True)
    (linked.path / "notes.json").symlink_to(secret)
    (place / "runs" / "outside").symlink_to(place / "toy")
    (place / "runs" / "torn").mkdir()
    (place / "runs" / "torn" / "experiment.toml").write_text("not toml [")
    (place / "runs" / "torn" / "journal.jsonl").write_bytes(b"\xff\x00{")
    (place / "runs" / "bad.iodelta.tar.zst").write_bytes(b"(\xb5/\xfd" + b"\x00" * 100)
    named, *steps = stepping(0.03)
    filled(place / "history", [having(named, cell=ATTACK, variant=ATTACK), *steps])
    return place


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[Server]:
    with serving("--folders", "runs", "--history", "history", "--write", cwd=place) as running:
        yield running


@pytest.fixture
def visit(browser: Browser, server: Server) -> Iterator[Visit]:
    visit = Visit(browser.new_page(viewport={"width": 390, "height": 900}, color_scheme="dark"), server.url)
    yield visit
    assert visit.wrong == []
    visit.page.close()


def found(server: Server) -> dict[str, Any]:
    return {one["name"]: one for one in server.json("/")["results"]}


def test_a_fleet_shows_every_host_and_what_they_say_together(visit: Visit, server: Server) -> None:
    own = found(server)["rack"]
    assert own["kind"] == "fleet"
    page = visit.open(f"/experiment/{own['id']}")
    text = page.locator("main").inner_text()
    assert "on these hosts" in text
    assert all(name in page.locator("#hosts").inner_text() for name in (*HOSTS, "lost"))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    followed(page, page.get_by_role("link", name="stor2").first)
    page.wait_for_selector("html[data-charts=drawn]")
    assert page.locator(".path").inner_text() == "rack/hosts/stor2"


def test_a_fleet_before_its_first_host_was_measured(visit: Visit, server: Server) -> None:
    page = visit.open(f"/fleet/{found(server)['new-rack']['id']}")
    assert "no host of this fleet has been measured yet" in page.locator("main").inner_text()
    assert "waiting" in page.locator("#hosts").inner_text()
    assert violations(page) == []


def test_a_search_names_its_culprit(visit: Visit, server: Server) -> None:
    own = found(server)["hunt"]
    assert own["kind"] == "search"
    page = visit.open(f"/experiment/{own['id']}")
    assert "change 2: speed 90" in page.locator("main").inner_text()
    assert server.json(f"/experiment/{own['id']}")["schema"] == "iodelta.bisect/2"
    check_for_all(visit, f"/experiment/{own['id']}", opened=True)


WITH_A_PLAN = {"/measure/{id}", "/experiment/{id}/now"}
"""Addresses that are asked here for what is not there; `test_starting.py` and `test_live.py` ask for what is."""


def test_every_address_and_method_answers_as_described(server: Server, place: Path) -> None:
    described = server.json("/openapi.json")
    assert described["openapi"] == "3.1.0"
    listed, board = found(server), server.json("/matrix")
    rack, experiment, hunt = (listed[name]["id"] for name in ("rack", "a<b>&'\"", "hunt"))
    (alert,) = (one["id"] for one in server.json("/triage")["alerts"])
    series = max(board["series"], key=lambda line: line["nights"])["id"]
    two = f"a={series}-experiment-1&b={series}-experiment-2"
    upload = sent(server, ("a.json", result(5000)), ("b.json", result(4000)))
    identifier = upload.rpartition("/")[2]
    asked = {
        "/": ["/"],
        "/login": ["/login"],
        "/static/{name}": ["/static/site.css"],
        "/favicon.ico": ["/favicon.ico"],
        "/experiment/{id}": [f"/experiment/{experiment}", f"/experiment/{hunt}"],
        "/experiment/{id}/row": [f"/experiment/{experiment}/row"],
        "/experiment/{id}/now": [f"/experiment/{hunt}/now"],
        "/experiment/{id}/cell/{number}": [f"/experiment/{experiment}/cell/1"],
        "/experiment/{id}/trials": [f"/experiment/{experiment}/trials", f"/experiment/{hunt}/trials"],
        "/experiment/{id}/trial/{number}": [f"/experiment/{experiment}/trial/{number}" for number in (1, 10_000)],
        "/experiment/{id}/trial/{number}/output": [f"/experiment/{experiment}/trial/1/output"],
        "/pair": [f"/pair?a={experiment}&b={listed['rack/hosts/stor2']['id']}", "/pair"],
        "/fleet/{id}": [f"/fleet/{rack}", f"/fleet/{hunt}"],
        "/fleet/{id}/hosts": [f"/fleet/{rack}/hosts"],
        "/openapi.json": ["/openapi.json"],
        "/upload/{id}": [upload],
        "/upload/{id}/{what}": [f"{upload}/{what}" for what in ("compare", "show", "audit", "report")],
        "/measure": ["/measure"],
        "/measure/{id}": ["/measure/nothing"],
        "/matrix": ["/matrix"],
        "/graph": ["/graph"],
        "/metrics": ["/metrics"],
        "/series/{number}": [f"/series/{series}", "/series/1"],
        "/series/{number}/chart.svg": [f"/series/{series}/chart.svg"],
        "/compare": [f"/compare?{two}", "/compare"],
        "/triage": ["/triage"],
        "/alert/{id}": [f"/alert/{alert}", "/alert/nothing"],
        "/history/lines": ["/history/lines", "/history/lines?metric=read.iops"],
        "/history/candidates": ["/history/candidates"],
        "/history/access": ["/history/access"],
    }
    for path, addresses in asked.items():
        for address in addresses:
            check_described(described, "GET", path, server.ask(address, Accept="application/json"))
        first = server.ask(addresses[0], Accept="application/json")
        assert first.status in ((422, 404) if path in WITH_A_PLAN else (200, 303)), path
    csrf = server.json("/history/access")["csrf"]
    sound = {"csrf": csrf}
    posts: dict[str, list[tuple[str, dict[str, str], int]]] = {
        "/login": [("/login", {"token": "x"}, 401), ("/login", {}, 400)],
        "/measure": [("/measure", {**sound, "target": "x"}, 422), ("/measure", sound, 400)],
        "/measure/{id}": [("/measure/nothing", sound, 404), ("/measure/nothing", {}, 403)],
        "/experiment/{id}/cancel": [(f"/experiment/{experiment}/cancel", sound, 409)],
        "/compare": [("/compare", sound, 400), ("/compare", {**sound, "a": "1-x", "b": "2-y"}, 404)],
        "/alert/{id}/confirm": [(f"/alert/{alert}/confirm", {**sound, "why": "unknown here"}, 400)],
        "/alert/{id}/decide": [
            (f"/alert/{alert}/decide", {**sound, "word": "expected"}, 200),
            (f"/alert/{alert}/decide", {**sound, "word": "gone"}, 400),
        ],
        "/notes": [("/notes", {**sound, "text": "x"}, 303), ("/notes", {**sound, "text": "x", "at": "no"}, 400)],
    }
    form = {"Content_Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    for path, tries in posts.items():
        for address, fields, status in tries:
            answer = server.ask(address, "POST", urlencode(fields).encode(), **form)
            assert answer.status == status, (path, answer)
            check_described(described, "POST", path, answer)
    bundle = pack(Folder.open(place / "runs" / "rack" / "hosts" / "stor1")).data
    given = {"Accept": "application/json", "X_CSRF_Token": csrf}
    for body, status in ((bundle, 200), (b"no bundle", 404)):
        answer = server.ask("/history/add", "POST", body, **given)
        assert answer.status == status, answer
        check_described(described, "POST", "/history/add", answer)
    check_described(described, "POST", "/upload", uploaded(server, [("a.json", result(1))], **{"with": identifier}))
    answered = {("get", path) for path in asked} | {("post", path) for path in posts}
    answered |= {("post", "/history/add"), ("post", "/upload")}
    assert answered == {(method, path) for path, methods in described["paths"].items() for method in methods}


def test_forms_have_the_fields_that_are_described(server: Server) -> None:
    described = server.json("/openapi.json")["components"]["schemas"]
    page = server.ask("/measure").text
    token = re.search(r'name="csrf" value="([0-9a-f]+)"', page)
    assert token is not None
    form = {"Content_Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    refused = server.ask("/measure", "POST", f"csrf={token[1]}&target=nowhere".encode(), **form)
    assert refused.status == 422
    Draft202012Validator(described["FormAnswer"]).validate(refused.json)
    fields = set(re.findall(r'<(?:input|select|textarea|button)[^>]* name="([^"]+)"', page))
    assert set(described["ExperimentForm"]["properties"]) == fields
    words = {word for word, _, _ in WORDS}
    assert set(described["DecisionForm"]["properties"]["word"]["enum"]) == words


def test_hostile_names_are_text_everywhere(visit: Visit, server: Server) -> None:
    own = found(server)["a<b>&'\""]["id"]
    series = [one["id"] for one in server.json("/matrix")["series"]]
    addresses = ["/", "/matrix", "/triage", *(f"/series/{one}" for one in series)]
    for path in (*addresses, *(f"/experiment/{own}{rest}" for rest in ("", "/cell/1", "/trials", "/trial/1"))):
        page = visit.open(path)
        page.wait_for_load_state("networkidle")
        assert page.locator("img:not(.drawing)").count() == 0, path
        assert "49" not in page.title()
        assert visit.wrong == [], path
    assert ATTACK[:20] in visit.open(f"/experiment/{own}").locator("h1").inner_text()


def test_what_cannot_be_read_is_said_and_shows_nothing_of_other_files(server: Server) -> None:
    listed = found(server)
    assert "outside" not in {name.split("/")[0] for name in listed}
    for name, said in (("linked", "symbolic link"), ("torn", ""), ("bad.iodelta.tar.zst", "")):
        assert listed[name]["problem"], name
        assert said in listed[name]["problem"]
        answer = server.ask(f"/experiment/{listed[name]['id']}")
        assert answer.status in (404, 422)
        assert "Traceback" not in answer.text
        assert "a secret" not in answer.text


@pytest.mark.night
def test_ten_thousand_points_are_drawn(browser: Browser, place: Path) -> None:
    filled(place / "many", [night(number, epoch=f"e{number // 500}") for number in range(10_000)])
    with serving("--history", "many", cwd=place) as many:
        visit = Visit(browser.new_page(viewport={"width": 1280, "height": 900}), many.url)
        page = visit.open(f"/series/{key().number}")
        page.wait_for_selector("html:not(:has(.course:not([data-drawn])))")
        assert page.locator(".course").count() == 2
        assert page.get_by_role("row").count() == 101
        assert visit.wrong == []
        visit.page.close()
