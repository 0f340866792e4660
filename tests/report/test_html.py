"""The HTML report as a browser shows it: legible, complete, alone with its file, and inert whatever names it holds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsers import PATIENCE, is_wrong, point_at
from msgspec.structs import replace
from playwright.sync_api import Browser, Dialog, Page, Request
from test_charts import source
from test_console import account, experiment
from test_inert import ATTACKS, hostile_account, hostile_runs
from tiers import one_at_push
from waiting import until

from iodelta.report.formats.charts import figures
from iodelta.report.formats.charts.model import Charts
from iodelta.report.formats.charts.sources import of_account, verdicts_of
from iodelta.report.formats.html.pages import html_of
from iodelta.study.experiment import Account

MORE_ATTACKS = {
    "end of a script": "</script><script>document.title='owned'</script>",
    "end of JSON in a script": "</ScRiPt ><img src=http://evil.example/x onerror=\"document.title='owned'\">",
    "comment in a script": "<!--<script>",
    "end of a style": "</style><style>@import url(http://evil.example/x.css);",
    "attribute": '" onmouseover="document.title=\'owned\'" x="',
    "attribute, single quotes": "' onfocus='document.title=1' autofocus='",
    "template": "{{ 7*7 }}{% raw %}${7*7}#{7*7}",
    "place of a specification": "@rows",
    "field of a datum": "datum['x'] = 1",
    "prototype": "__proto__",
    "svg": "<svg onload=document.title='owned'>",
    "link": "javascript:document.title='owned'",
    "meta": "<meta http-equiv=refresh content='0;url=http://evil.example'>",
    "base": "<base href=http://evil.example/>",
    "form": "<form action=http://evil.example><input autofocus onfocus=document.title='owned'>",
    "byte order": "\ufeff\ufffe\u2028\u2029",
    "date": "2020-01-01T00:00:00Z",
    "huge": "x" * 100_000,
    "huge without end": "<" * 5000,
    "many diacritics": "z" + "\u0301" * 500,
}

REACHES_OUT = (
    "img, iframe, object, embed, form:not(.vega-bindings), input, base, link:not([rel=icon]), script[src], "
    "a:not([href^='#'])"
)


def outward(page: Page) -> list[str]:
    """Elements of a page that could ask something of somebody."""
    found: list[str] = page.locator(REACHES_OUT).evaluate_all("all => all.map(one => one.outerHTML.slice(0, 200))")
    return found


class Watched:
    """A page, and everything on it that a report must never do."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.wrong: list[str] = []
        page.set_default_timeout(PATIENCE)
        page.on("dialog", self._spoken)
        page.on("console", lambda said: self.wrong.append(said.text) if is_wrong(said) else None)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("request", self._asked)
        page.on("popup", lambda _: self.wrong.append("popup"))

    def _spoken(self, dialog: Dialog) -> None:
        self.wrong.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def _asked(self, request: Request) -> None:
        if not request.url.startswith(("file:", "data:")):
            self.wrong.append(request.url)

    def open(self, path: Path) -> Page:
        """The page with all charts drawn."""
        self.page.goto(path.as_uri())
        if self.page.locator(".plot").count():
            self.page.wait_for_selector("html[data-charts=drawn]", timeout=PATIENCE)
        return self.page


def html(told: Account, charts: Charts = ()) -> bytes:
    return html_of(told, charts)


@pytest.fixture(scope="module")
def told() -> tuple[Account, Charts]:
    depths = (1, 2, 4, 8, 16, 32)
    found = account(experiment(depths), {("iodepth=32", "new"): -0.05, ("iodepth=2", "new"): 0.05}, sd=0.004)
    question = replace(found.plan.experiment, question="Is new slower than old?")
    found = replace(found, plan=replace(found.plan, experiment=question))
    drawn = replace(source(), effects=of_account(found, (), {}).effects)
    return found, tuple((title, own[:2]) for title, own in figures(drawn))


@pytest.fixture(scope="module")
def opened(browser: Browser, file: Path) -> Iterator[Watched]:
    """The report in light colours on a wide screen, all charts drawn."""
    watched = Watched(browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light"))
    watched.open(file)
    yield watched
    watched.page.close()


@pytest.fixture(scope="module")
def file(told: tuple[Account, Charts], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("html") / "report.html"
    path.write_bytes(html(*told))
    return path


def test_it_opens_alone_and_draws_every_chart(opened: Watched) -> None:
    page = opened.page
    assert page.locator(".plot").count() >= 12
    assert page.locator(".plot.drawn > svg, .plot.drawn svg.marks").count() == page.locator(".plot").count()
    assert opened.wrong == []


def test_the_first_screen_has_question_answer_and_verdicts(opened: Watched) -> None:
    page = opened.page
    bottom = page.evaluate("scrollTo(0, 0), document.querySelector('.matrix tbody tr').getBoundingClientRect().bottom")
    assert page.locator("h1").inner_text() == "Is new slower than old?"
    assert "slower than old in 1 of 6 cells" in page.locator(".lead").first.inner_text().replace("\u00a0", " ")
    assert bottom < 900
    words = page.locator(".matrix td .vh").all_text_contents()  # what a screen reader says of a mark
    assert words.count("regression") >= 1


def test_text_and_numbers_need_no_javascript(browser: Browser, file: Path, told: tuple[Account, Charts]) -> None:
    context = browser.new_context(java_script_enabled=False)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(file.as_uri())
    text = page.locator("main").text_content() or ""
    for expected in ("Is new slower", "regression", "Smallest change this could have seen", "iodepth=16", "seed 1"):
        assert expected in text
    tables = page.locator("figure table").count()
    assert tables == sum(bool(figure.table) for _, own in told[1] for figure in own)
    context.close()


def test_every_part_can_be_reached_by_keyboard_and_shows_that_it_is_reached(opened: Watched) -> None:
    page = opened.page
    expected = page.locator("a, summary, .plot, pre, .scroll").evaluate_all(
        "all => all.filter(one => one.checkVisibility()).length"
    )
    reached = []
    for _ in range(expected + 10):
        page.keyboard.press("Tab")
        now = page.evaluate(
            "(() => { const one = document.activeElement; const style = getComputedStyle(one);"
            " return [one.tagName, one.className, style.outlineStyle, style.outlineWidth] })()"
        )
        if now[0] == "BODY":
            break
        reached.append(now)
    assert len(reached) >= expected
    assert {outline for _, _, outline, _ in reached} == {"solid"}


CONTRAST = """
(selectors) => {
  const channel = (value) => (value / 255 <= 0.04 ? value / 3294.6 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const luminance = (color, below) => {
    canvas.fillStyle = below; canvas.fillRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue] = canvas.getImageData(0, 0, 1, 1).data;
    return 0.2126 * channel(red) + 0.7152 * channel(green) + 0.0722 * channel(blue);
  };
  const paper = getComputedStyle(document.body).backgroundColor;
  return selectors.map((selector) => {
    const one = document.querySelector(selector);
    if (!one) return [selector, null];
    const style = getComputedStyle(one);
    const color = one.closest("svg") ? style.fill : style.color;
    const own = one.closest("svg") ? paper : style.backgroundColor;
    const [high, low] = [luminance(color, paper), luminance(own, paper)].sort((a, b) => b - a);
    return [selector, (high + 0.05) / (low + 0.05)];
  });
}
"""


@pytest.mark.parametrize("scheme", one_at_push(["light", "dark"]))
def test_words_and_axes_can_be_read_in_light_and_dark(browser: Browser, file: Path, scheme: str) -> None:
    page = browser.new_page(color_scheme="dark" if scheme == "dark" else "light")
    Watched(page).open(file)
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (int(re.findall(r"\d+", paper)[0]) < 60) == (scheme == "dark")
    parts = ["h1", ".lead", ".soft", "td.regression", "td.improvement", "td.equivalent", "nav a", "figcaption p"]
    for selector, ratio in page.evaluate(CONTRAST, [*parts, ".plot svg .role-axis-label text"]):
        assert ratio is not None, selector
        assert ratio >= 4.5, (selector, ratio)
    page.close()


@pytest.mark.night
def test_paper_is_white_even_in_the_dark(browser: Browser, file: Path) -> None:
    page = browser.new_page(color_scheme="dark")
    Watched(page).open(file)
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate(CONTRAST, [".plot svg .role-axis-label text", "h1"])[0][1] >= 4.5
    assert page.locator("nav").is_hidden()
    page.close()


def test_variants_and_words_differ_by_more_than_colour(opened: Watched) -> None:
    page = opened.page
    marks = page.locator("#plot-change-read\\.iops .role-legend-symbol path").evaluate_all(
        "all => all.map(one => one.getAttribute('d'))"
    )
    variants = page.locator("#plot-order-read\\.iops .role-legend-symbol path").evaluate_all(
        "all => all.map(one => one.getAttribute('d'))"
    )
    dashes = page.locator("[id^=plot-distribution] .role-legend-symbol path").evaluate_all(
        "all => all.slice(0, 2).map(one => one.getAttribute('stroke-dasharray'))"
    )
    assert len(set(marks)) == len(marks) >= 3
    assert len(set(variants)) == len(variants) == 2
    assert len(set(dashes)) == 2


def test_a_pointer_is_told_the_number_under_it(opened: Watched) -> None:
    page = opened.page
    mark = page.locator("#plot-change-read\\.iops .mark-symbol.role-mark path").first
    point_at(mark, page.locator(".tip"))
    assert "change" in page.locator(".tip").inner_text()


def test_attacks_in_names_come_out_as_letters(browser: Browser, tmp_path: Path) -> None:
    """Every name and text of an experiment is the attack."""
    watched = Watched(browser.new_page())
    path = tmp_path / "evil.html"
    for name, evil in {**ATTACKS, **MORE_ATTACKS}.items():
        found = hostile_account(evil)
        path.write_bytes(html(found))
        page = watched.open(path)
        assert watched.wrong == [], name
        assert outward(page) == [], name
        assert page.locator("script:not([type])").count() == 0, name
        assert page.title() != "owned", name
        assert page.evaluate("document.querySelectorAll('[onerror],[onload],[onmouseover],[onfocus]').length") == 0
    watched.page.close()


def test_attacks_in_charts_come_out_as_letters(browser: Browser, tmp_path: Path) -> None:
    """Every cell, variant and background of the charts is another attack, and the page has no script but its two."""
    attacks = [evil for evil in (*ATTACKS.values(), *MORE_ATTACKS.values()) if len(evil) < 2000]
    plain = source()
    cells = dict(zip(plain.cells, attacks[: len(plain.cells)], strict=True))
    rest = attacks[len(plain.cells) :]
    variants = {"old": MORE_ATTACKS["end of JSON in a script"], "new": MORE_ATTACKS["attribute"]}
    effects = [replace(one, cell=cells[one.cell], variant=variants[one.variant]) for one in plain.effects]
    effects += [replace(effects[0], cell=evil, says=evil, counted=evil) for evil in rest]
    evil_source = replace(
        plain,
        baseline=variants["old"],
        variants=tuple(variants.values()),
        cells=(*cells.values(), *rest),
        effects=tuple(effects),
        trials=tuple(replace(one, cell=cells[one.cell], variant=variants[one.variant]) for one in plain.trials),
        backgrounds=dict.fromkeys(cells.values(), MORE_ATTACKS["end of a style"]),
    )
    path = tmp_path / "evil.html"
    drawn = tuple((title, own[:1]) for title, own in figures(evil_source))
    path.write_bytes(html(hostile_account(MORE_ATTACKS["end of a script"]), drawn))
    watched = Watched(browser.new_page())
    page = watched.open(path)
    assert page.locator(".plot").count() > 5
    assert page.locator(".plot svg").count() == page.locator(".plot").count()
    assert watched.wrong == []
    assert outward(page) == []
    assert page.locator("script:not([type])").count() == 2
    assert page.title() != "owned"
    page.close()


def test_attacks_in_results_come_out_as_letters(browser: Browser, tmp_path: Path) -> None:
    watched = Watched(browser.new_page())
    path = tmp_path / "evil.html"
    names = ("end of a script", "attribute", "place of a specification", "meta", "many diacritics")
    for number, evil in enumerate(MORE_ATTACKS[name] for name in names):
        compared, shown = hostile_runs(tmp_path / str(number), evil)
        for made in (html_of(compared, tuple(figures(verdicts_of(compared)))), html_of(shown, ())):
            path.write_bytes(made)
            page = watched.open(path)
            assert watched.wrong == [], evil
            assert outward(page) == [], evil
    watched.page.close()


def test_the_policy_allows_our_scripts_and_nothing_else(browser: Browser, file: Path) -> None:
    watched = Watched(browser.new_page())
    page = watched.open(file)
    page.evaluate(
        "() => { const one = document.createElement('script'); one.textContent = 'document.title = \"owned\"';"
        " document.body.append(one); const two = document.createElement('img'); two.src = 'http://evil.example/x';"
        " document.body.append(two); }"
    )

    def both_refused() -> bool:
        page.wait_for_timeout(50)  # in which the browser says what it has to say
        return sum("Content Security Policy" in said for said in watched.wrong) >= 2

    until(both_refused)
    refused = [said for said in watched.wrong if "Content Security Policy" in said]
    assert page.title() != "owned"
    assert any("script-src" in said for said in refused)
    assert any("img-src" in said for said in refused)
    page.close()


@pytest.mark.night
def test_five_hundred_cells_of_five_variants_are_all_there_and_small(browser: Browser, tmp_path: Path) -> None:
    depths = tuple(range(1, 501))
    big = account(experiment(depths, ("a", "b", "c", "d", "e")), {}, blocks=2)
    made = html(big, tuple(figures(of_account(big, (), {}))))
    assert len(made) < 8e6
    path = tmp_path / "big.html"
    path.write_bytes(made)
    watched = Watched(browser.new_page())
    page = watched.open(path)
    assert page.locator(".matrix tbody tr").count() == 500
    assert page.locator(".matrix td").count() == 2000
    assert watched.wrong == []
    page.close()
