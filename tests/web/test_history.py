"""The pages of a history: the matrix, a series, alerts and what people say of them, two points side by side."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from browsers import PATIENCE
from nights import filled, stepping
from playwright.sync_api import Browser

from iodelta.history.log import Log

from .servers import Server, Visit, check_for_all, followed, loaded, serving

pytestmark = pytest.mark.xdist_group("web")

STEP = 40
"""The first night of the slower build, of 60."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty nights with a step of 3 %."""
    place = tmp_path_factory.mktemp("nights")
    filled(place / "history", stepping(0.03, at=STEP, count=60))
    Log(place / "history" / "decisions.jsonl")
    return place


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[Server]:
    with serving("--history", "history", "--write", cwd=place) as running:
        yield running


@pytest.fixture
def visit(browser: Browser, server: Server) -> Iterator[Visit]:
    visit = Visit(browser.new_page(viewport={"width": 1280, "height": 900}), server.url)
    yield visit
    assert visit.wrong == []
    visit.page.close()


def board(server: Server) -> Any:
    return server.json("/matrix")


def test_from_the_matrix_to_a_series_and_its_step(visit: Visit, server: Server) -> None:
    page = visit.open("/matrix")
    followed(page, page.locator("td.regression a"))
    page.wait_for_selector("html[data-courses=drawn]")
    assert page.locator(".course canvas").count() == page.locator(".course").count() == 2
    assert "-3" in page.locator("main").inner_text()
    (line,) = board(server)["series"]
    assert (line["last"], line["steps"], line["nights"]) == ("worse", 1, 60)
    found = server.json(f"/series/{line['id']}")
    (step,) = found["steps"]
    assert step["last_good"]["t"] < 1.7e9 + 86400 * STEP <= step["first_bad"]["t"] + 86400
    assert found["series"]["points"][STEP]["experiment"] == f"experiment-{STEP}"


def test_prometheus_reads_the_newest_values(server: Server) -> None:
    answer = server.ask("/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.count("iodelta_nights{") == 1
    assert answer.text.endswith(" 60\n# EOF\n")


def test_a_series_by_keyboard(visit: Visit, server: Server) -> None:
    (line,) = board(server)["series"]
    page = visit.open(f"/series/{line['id']}")
    page.wait_for_selector("html[data-courses=drawn]")
    page.locator(".course").first.focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    assert "v6.58" in page.locator("#said").inner_text()
    page.keyboard.press("Enter")
    assert page.locator("tr.chosen").get_attribute("id") == "night-experiment-58"


def test_two_nights_are_not_interleaved_and_the_page_says_what_would_measure_them(visit: Visit, server: Server) -> None:
    (line,) = board(server)["series"]
    page = visit.open(f"/series/{line['id']}")
    page.get_by_role("radio", name=re.compile("^a: 2023-12-1")).first.check()
    followed(page, page.get_by_role("button", name="Compare a and b"))
    assert "Not interleaved" in page.locator("h1").inner_text()
    assert "not a verdict" in page.locator("h1").inner_text()
    alert = server.json("/triage")["alerts"][0]["id"]
    assert page.locator("pre").inner_text().strip().startswith(f"iodelta history confirm {alert} --history ")


def test_an_alert_is_decided_by_keyboard_and_the_log_keeps_who_and_when(
    visit: Visit, server: Server, place: Path
) -> None:
    page = visit.open("/triage")
    assert "1 alert waits for you" in page.locator("h1").inner_text()
    page.keyboard.press("j")
    page.locator(".alert").get_by_label("Why").fill("<b>meant</b> & known")
    page.keyboard.press("Escape")
    with loaded(page):
        page.keyboard.press("e")
    page.get_by_text("No alerts wait for you").wait_for()
    assert "<b>meant</b> & known" in page.locator("#others + ul").inner_text()
    decided = [
        entry
        for entry in Log(place / "history" / "decisions.jsonl").entries()[0]
        if entry.__class__.__name__ == "Decided"
    ]
    assert [(entry.word, entry.why) for entry in decided] == [("expected", "<b>meant</b> & known")]  # type: ignore[union-attr]
    followed(page, page.locator("#others + ul a"))
    followed(page, page.get_by_role("button", name="new"))
    page.goto(f"{visit.url}/triage")
    assert "1 alert waits for you" in page.locator("h1").inner_text()


def test_a_note_stands_in_the_course(visit: Visit, server: Server) -> None:
    (line,) = board(server)["series"]
    page = visit.open(f"/series/{line['id']}")
    page.get_by_label("What happened").fill("new firmware </script><script>alert(1)</script>")
    page.get_by_label("When, in UTC").fill("2023-12-01T00:00")
    followed(page, page.get_by_role("button", name="Note it"))
    page.get_by_text("note 1, 2023-12-01 00:00: new firmware </script>").wait_for()
    assert server.json(f"/series/{line['id']}")["notes"][0]["text"].startswith("new firmware")


def test_alerts_are_filtered_and_several_are_decided_at_once_with_owner_and_bug(server: Server) -> None:
    name = server.json("/triage")["alerts"][0]["id"]
    csrf = server.json("/history/access")["csrf"]
    form = {"Content_Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    fields = {"csrf": csrf, "word": "investigating", "owner": "ada", "bug": "https://bugs.example/1", "also": name}
    answer = server.ask(f"/alert/{name}/decide", "POST", urlencode(fields).encode(), **form)
    assert (answer.json["owner"], answer.json["bug"], answer.json["triage"]) == ("ada", fields["bug"], "investigating")
    assert [one["id"] for one in server.json("/triage?only=ada+read.iops")["alerts"]] == [name]
    assert server.json("/triage?only=grace")["alerts"] == []
    for changed, status in ({"bug": "javascript:alert(1)"}, 400), ({"also": "gone"}, 404):
        body = urlencode({**fields, **changed}).encode()
        assert server.ask(f"/alert/{name}/decide", "POST", body, **form).status == status
    server.ask(f"/alert/{name}/decide", "POST", urlencode({"csrf": csrf, "word": "new"}).encode(), **form)


def test_a_graph_has_its_series_measure_variant_and_range_in_its_address(server: Server) -> None:
    (line,) = board(server)["series"]
    page = server.ask(f"/graph?only=stor3&measure={line['metric']}&variant={line['variant']}&from=2023-11-20").text
    (points,) = re.findall(r'<polyline class="curve-1" points="([^"]+)"', page)
    assert 0 < len(points.split()) < line["nights"]
    assert 'value="2023-11-20"' in page
    assert "No series has nights like that" in server.ask("/graph?measure=nothing").text
    assert server.ask("/graph?from=yesterday").status == 400


def test_nothing_is_changed_by_another_site_or_without_the_page(server: Server) -> None:
    alert = server.json("/triage")["alerts"][0]["id"]
    form = {"Content_Type": "application/x-www-form-urlencoded"}
    for body in (b"word=expected", b"word=expected&csrf=", b"word=expected&csrf=" + b"0" * 64):
        assert server.ask(f"/alert/{alert}/decide", "POST", body, **form).status == 403
    token = re.findall(r'name="csrf" value="([0-9a-f]+)"', server.ask("/triage").text)[0].encode()
    sound = b"word=noise&csrf=" + token
    for headers in ({"Origin": "http://evil.example"}, {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}):
        assert server.ask(f"/alert/{alert}/decide", "POST", sound, **headers, **form).status == 403
    assert server.ask(f"/alert/{alert}/decide", "POST", b"word=gone&csrf=" + token, **form).status == 400
    assert server.ask("/alert/../decide", "POST", sound, **form).status == 404
    back = server.ask("/notes", "POST", b"text=x&back=//evil.example&csrf=" + token, **form)
    assert (back.status, back.headers["location"]) == (303, "/triage")
    assert server.json("/triage")["alerts"][0]["triage"] == "new"


def test_without_write_there_is_no_form_and_no_way(place: Path) -> None:
    with serving("--history", "history", cwd=place) as server:
        page = server.ask("/triage").text
        assert 'method="post"' not in page
        alert = server.json("/triage")["alerts"][0]["id"]
        assert server.ask(f"/alert/{alert}/decide", "POST", b"word=noise").status == 403


NOWHERE = (
    *("/series/0", "/series/9223372036854775808", "/series/" + "9" * 900, "/series/-1", "/alert/x"),
    *("/compare", "/compare?a=1-x&b=2-y", "/compare?a=%00&b=-"),
)


@pytest.mark.parametrize("path", NOWHERE)
def test_what_is_not_there_is_said_to_be_not_there(server: Server, path: str) -> None:
    assert server.ask(path).status == 404


@pytest.mark.night
def test_the_pages_of_a_history_fit_and_can_be_read_by_all(browser: Browser, server: Server) -> None:
    visit = Visit(browser.new_page(), server.url)
    (line,) = board(server)["series"]
    alert = server.json("/triage")["alerts"][0]["id"]
    two = "&".join(f"{side}={line['id']}-experiment-{at}" for side, at in (("a", 1), ("b", 50)))
    for path in ("/matrix", f"/series/{line['id']}", "/graph", "/triage", f"/alert/{alert}", f"/compare?{two}"):
        check_for_all(visit, path)
    assert visit.wrong == []
    visit.page.close()


def test_without_javascript_the_server_draws(browser: Browser, server: Server) -> None:
    (line,) = board(server)["series"]
    context = browser.new_context(java_script_enabled=False)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(f"{server.url}series/{line['id']}")
    page.wait_for_load_state("load")
    assert page.locator("img.drawing").evaluate("one => one.naturalWidth") > 300
    assert page.get_by_role("row").count() == 61
    assert not page.get_by_text("Arrow keys").is_visible()
    for course in page.locator(".course").all():
        assert not course.is_visible(), "a place that only a script draws in"
    context.close()
