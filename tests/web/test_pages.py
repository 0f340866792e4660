"""The site as a person opens it: in a real browser, at a real server, over real folders."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from carried import carried
from playwright.sync_api import Browser

from iodelta.web.experiments import EACH

from .servers import Server, Visit, check_for_all, followed, serving

pytestmark = pytest.mark.xdist_group("web")  # one server, one browser


@pytest.fixture(scope="module")
def visit(browser: Browser, server: Server) -> Iterator[Visit]:
    visit = Visit(browser.new_page(viewport={"width": 1280, "height": 900}), server.url)
    yield visit
    visit.page.close()


def identifier(server: Server, name: str) -> str:
    found = server.json("/")["results"]
    return str(next(one["id"] for one in found if one["name"] == name))


def test_the_first_page_says_what_was_found_and_leads_to_the_raw_trial(visit: Visit, server: Server) -> None:
    page = visit.open("/")
    slower = page.locator(".result", has_text="Is slow slower?").filter(has_not_text="bundle")
    slower.get_by_text("regression").wait_for()
    assert "slow is slower than fast" in slower.inner_text()
    followed(page, slower.get_by_role("link"))
    page.wait_for_selector("html[data-charts=drawn]")
    assert page.locator("h1").inner_text() == "Is slow slower?"
    assert page.locator(".plot").count() == page.locator(".plot.drawn svg").count() >= 1
    followed(page, page.get_by_role("link", name="iodepth=1", exact=True))
    assert "12" in page.locator("pre").inner_text()
    followed(page, page.get_by_role("link", name="All trials"))
    followed(page, page.get_by_role("link", name="7", exact=True))
    followed(page, page.get_by_role("link", name="What was printed"))
    printed = json.loads(page.locator("body").inner_text())
    assert printed["jobs"][0]["read"]["iops"] > 3000
    assert visit.wrong == []


def test_a_page_and_its_document_say_the_same(server: Server, runs: Path) -> None:
    slower = identifier(server, "slower")
    document = server.json(f"/experiment/{slower}")
    verdict = json.loads((runs / "slower" / "verdict.json").read_text())
    assert document["headline"] == verdict["headline"]
    assert document["account"]["judgement"] == verdict["account"]["judgement"]
    assert document["headline"] in server.ask(f"/experiment/{slower}").text.replace("\u00a0", " ")
    trials = server.json(f"/experiment/{slower}/trials")["trials"]
    assert [one["number"] for one in trials] == list(range(1, len(trials) + 1))
    trial = server.json(f"/experiment/{slower}/trial/1")["trial"]
    printed = server.ask(f"/experiment/{slower}/trial/1/output").json
    assert trial["directions"][0]["ios"] == printed["jobs"][0]["read"]["total_ios"]


def test_many_trials_have_several_pages_and_one_document(browser: Browser, tmp_path: Path) -> None:
    carried(tmp_path / "runs" / "long", -0.2, blocks=60, secret=False)
    with serving("--folders", "runs", cwd=tmp_path) as server:
        address = f"{server.address('long')}/trials"
        numbers = [one["number"] for one in server.json(address)["trials"]]
        described = server.json("/openapi.json")["paths"]["/experiment/{id}/trials"]["get"]
        assert "page" in {one["name"] for one in described["parameters"]}
        assert server.json(f"{address}?page=2") == server.json(address)
        assert f"{len(numbers)} trials" in server.ask(address).text
        shown: list[int] = []
        for number in range(1, -(-len(numbers) // EACH) + 1):
            found = re.findall(r"/trial/(\d+)\"", server.ask(f"{address}?page={number}").text)
            assert len(found) <= EACH
            shown += map(int, found)
        assert shown == numbers
        assert len(numbers) > EACH
        for odd in ("0", "-1", "x", "9" * 30, "\u0663"):
            assert server.ask(f"{address}?page={quote(odd)}").status == 200
        own = Visit(browser.new_page(), server.url)
        page = own.open(address)
        followed(page, page.get_by_role("link", name="Later"))
        assert "page 2 of" in page.locator(".pager").inner_text()
        check_for_all(own, "", opened=True)
        assert own.wrong == []
        own.page.close()


def test_an_experiment_that_goes_on_a_bundle_and_a_folder_below_are_listed(server: Server) -> None:
    found = {one["name"]: one for one in server.json("/")["results"]}
    assert set(found) == {"slower", "nightly/same", "going-on", "theirs.iodelta.tar.zst"}
    assert found["going-on"]["state"] == "running"
    assert found["theirs.iodelta.tar.zst"]["kind"] == "bundle"
    assert found["theirs.iodelta.tar.zst"]["words"] == found["slower"]["words"] == {"regression": 4}


def test_any_two_results_are_compared(visit: Visit, server: Server) -> None:
    page = visit.open("/")
    page.get_by_label("Baseline").select_option(label="nightly/same")
    page.get_by_label("Against it").select_option(label="slower")
    followed(page, page.get_by_role("button", name="Compare", exact=True))
    page.wait_for_selector("html[data-charts=drawn]")
    assert page.locator(".path").inner_text() == "nightly/same, then slower"
    asked = page.url.removeprefix(visit.url)
    document = server.json(asked)
    assert document["schema"].startswith("iodelta.compare/")
    assert server.ask("/pair?a=x&b=..%2f").status == 404
    assert visit.wrong == []


@pytest.mark.night
def test_no_page_breaks_a_rule_of_accessibility_or_runs_off_the_screen(browser: Browser, server: Server) -> None:
    visit = Visit(browser.new_page(), server.url)
    slower, same = identifier(server, "slower"), identifier(server, "nightly/same")
    parts = ("/cell/1", "/trials", "/trial/1")
    for path in ("/", f"/pair?a={same}&b={slower}", *(f"/experiment/{slower}{part}" for part in parts)):
        check_for_all(visit, path)
    check_for_all(visit, f"/experiment/{slower}", axe=False)  # the report's own tests have that
    assert visit.wrong == []
    check_for_all(visit, "/nowhere")
    assert [said for said in visit.wrong if "404" not in said] == []
    visit.page.close()
