"""A page holds everything once: a family's specification, the names of its data, and only the first rows of long
tables stand open."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from browsers import PATIENCE
from msgspec.structs import replace
from playwright.sync_api import Browser
from prepared_disk import disk
from test_charts import source

from iodelta.report.formats.charts import Figure, figures
from iodelta.report.formats.charts.specs import filled
from iodelta.report.formats.charts.times import rounds_of
from iodelta.report.formats.html.page import LONG, SHOWN
from iodelta.report.formats.html.page import page as page_of
from iodelta.report.formats.html.write import report
from iodelta.report.stories.preparation import of_preparation
from iodelta.study.preparation import PrepareAnswer

WATCH = """
window.given = {};
let drawer;
Object.defineProperty(window, "vegaEmbed", {
  set: (value) => { drawer = value; },
  get: () => (plot, spec, options) => {
    window.given[plot.id.replace("plot-", "")] = structuredClone(spec);
    return drawer(plot, spec, options);
  },
});
"""
"""What the page's script gives to Vega, by the names of the charts."""

OWN = ("config", "autosize", "legend")
"""Parts of a specification to which the script adds what depends on the width of the screen."""


def story(values: int) -> Any:
    return of_preparation(PrepareAnswer("one", disk(tuple(1000.0 + at for at in range(values))), "1"))


def charts() -> list[Figure]:
    made = [figure for _, own in figures(source(-0.05)) for figure in own]
    return [*made, rounds_of(disk())]


def page(own: list[Figure], values: int = 5) -> bytes:
    return report(page_of(story(values), None, (("Charts", tuple(own)),)))


def without(part: Any) -> Any:
    """A specification but for what the script adds."""
    if isinstance(part, dict):
        return {key: without(value) for key, value in part.items() if key not in OWN}
    return [without(value) for value in part] if isinstance(part, list) else part


def test_the_page_draws_what_the_pictures_draw(browser: Browser, tmp_path: Path) -> None:
    """The page's script fills specifications by itself; pictures are filled by Python."""
    own = charts()
    odd = replace(own[0], name="odd", alt="@alt", title="@title")
    own.append(odd)
    path = tmp_path / "page.html"
    path.write_bytes(page(own))
    opened = browser.new_page()
    opened.set_default_timeout(PATIENCE)
    opened.add_init_script(WATCH)
    opened.goto(path.as_uri())
    opened.wait_for_selector("html[data-charts=drawn]")
    given = opened.evaluate("window.given")
    opened.close()
    assert len({figure.spec for figure in own}) >= 4
    asked = msgspec.json.decode(msgspec.json.encode({one.name: filled(one) for one in own}))
    assert without(given) == without(asked)


def test_a_specification_is_in_the_page_once_for_all_charts_of_its_family() -> None:
    one = charts()[0]
    many = [replace(one, name=f"one-{at}") for at in range(20)]
    assert page(many).count(b'id="spec-one-') == 20
    assert page(many).count(f'id="family-{one.spec}"'.encode()) == 1
    assert page(many).count(b'"$schema"') == 1


@pytest.mark.parametrize(
    ("count", "parts"), [(LONG, (LONG,)), (LONG + 1, (SHOWN, LONG + 1 - SHOWN)), (500, (SHOWN, 500 - SHOWN))]
)
def test_only_the_first_rows_of_a_long_table_stand_open_and_none_is_lost(count: int, parts: tuple[int, ...]) -> None:
    text = page([], count).decode().partition('id="numbers"')[2].partition("</section>")[0]
    tables = [re.findall(r'<tr><th scope="row">(\d+)</th>', one) for one in text.split("<table")[1:]]
    assert tuple(map(len, tables)) == parts
    assert [int(row) for one in tables for row in one] == list(range(1, count + 1))
    assert len(re.findall("<details", text)) == len(parts) - 1
