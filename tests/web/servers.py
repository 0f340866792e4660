"""A real ``iodelta serve``, and a browser that notes what a page must never do."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from browsers import PATIENCE, is_wrong, resize
from jsonschema import Draft202012Validator
from playwright.sync_api import Dialog, Locator, Page

SELECT_BROKEN = """
async () => {
  const found = await axe.run({ exclude: [".plot svg", ".uplot"] }, { resultTypes: ["violations"] });
  return found.violations.map((one) => `${one.id}: ${one.help}: ${one.nodes[0].html.slice(0, 160)}`);
}
"""


class Answer(NamedTuple):
    """What a server said."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Server:
    """A running one."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process, self.url = process, url
        self.host, self.port = urlsplit(url).hostname or "", urlsplit(url).port or 0

    def ask(self, path: str, method: str = "GET", body: bytes | None = None, **headers: str) -> Answer:
        """A request without a browser; ``_`` in the name of a header is ``-``."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=240)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, body, named)
            answer = connection.getresponse()
            return Answer(answer.status, {name.lower(): value for name, value in answer.headers.items()}, answer.read())
        finally:
            connection.close()

    def address(self, name: str) -> str:
        """The path of the result with this name."""
        return next(f"/experiment/{one['id']}" for one in self.json("/")["results"] if one["name"] == name)

    def json(self, path: str, **headers: str) -> Any:
        """The document at an address."""
        answer = self.ask(path, "GET", None, Accept="application/json", **headers)
        assert answer.status == 200, answer
        return answer.json


def uploads_of(cwd: Path) -> Path:
    """Where a server that was started in ``cwd`` keeps what it is sent: outside of what it serves."""
    return cwd.with_name(f"{cwd.name}-temporary")


@contextlib.contextmanager
def serving(*words: str, cwd: Path) -> Iterator[Server]:
    """``iodelta serve`` on a free port."""
    code = "from iodelta.cli.main import main; main()"
    command = [sys.executable, "-c", code, "serve", "--port", "0", *words]
    # Uploads of servers in one directory would be counted, and swept away, by the tests of another process.
    temporary = uploads_of(cwd)
    temporary.mkdir(exist_ok=True)
    env = {**os.environ, "IODELTA_STATE": str(cwd / "state"), "TMPDIR": str(temporary)}
    process = subprocess.Popen(command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("http://"), line + process.stderr.read()
        yield Server(process, line.split()[0])
    finally:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=240)
        assert "Traceback" not in said, said


def check_described(described: Any, method: str, path: str, answer: Answer) -> None:
    """The answer of an address is what ``/openapi.json`` says of it: status, media type, and the document."""
    responses = described["paths"][path][method.lower()]["responses"]
    said = responses.get(str(answer.status), responses["default"])
    if answer.status < 400:
        assert str(answer.status) in responses, (method, path, answer.status)
    if answer.status in (303, 307):
        assert answer.headers["location"], (method, path)
        return
    ((media, content),) = said["content"].items()
    sent = answer.headers["content-type"]
    assert media == "*/*" or sent.partition(";")[0] == media.partition(";")[0], (method, path, sent)
    if "schema" in content:
        schema = {**content["schema"], "components": described["components"]}
        Draft202012Validator(schema).validate(answer.json)


class Visit:
    """A page in a browser, with everything that was wrong on the way."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url.rstrip("/")
        self.wrong: list[str] = []
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda said: self.wrong.append(said.text) if is_wrong(said) else None)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("request", lambda asked: self._check(asked.url))
        page.on("dialog", self._spoken)
        page.on("popup", lambda _: self.wrong.append("popup"))

    def open(self, path: str) -> Page:
        self.page.goto(self.url + path)
        if self.page.locator(".plot").count():
            self.page.wait_for_selector("html[data-charts=drawn]", timeout=PATIENCE)
        return self.page

    def _spoken(self, dialog: Dialog) -> None:
        self.wrong.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def _check(self, url: str) -> None:
        if not url.startswith((f"{self.url}/", "data:")):
            self.wrong.append(f"outside: {url}")


@contextlib.contextmanager
def loaded(page: Page) -> Iterator[None]:
    """What is done inside this leads to another page, which is there afterwards: until then the old one answers, or a
    part of the new one without its styles."""
    with page.expect_navigation(timeout=PATIENCE):
        yield


def followed(page: Page, link: Locator) -> None:
    """Click on what leads to another page."""
    with loaded(page):
        link.click()


WIDTHS = {320: True, 390: False, 1440: True, 1920: False}
"""Pixels of a small telephone, of a telephone, and of desks; and whether axe looks: it is what takes time."""


def check_for_all(visit: Visit, path: str, *, axe: bool = True, opened: bool = False) -> None:
    """A page at every width, light and dark: it fits, and axe has nothing to say of it. One that was ``opened`` is
    taken as it is."""
    page = visit.page
    if not opened:
        page = visit.open(path)
        page.wait_for_load_state("networkidle")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for width, is_told in WIDTHS.items():
            resize(page, width)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (path, scheme, width)
            if axe and is_told:
                assert violations(page) == [], (path, scheme, width)


def violations(page: Page) -> list[str]:
    """What axe says of the page as it is. Its script is put in by the browser, past the policy of the page."""
    from importlib.resources import files

    if not page.evaluate("'axe' in window"):
        page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text())
    found: list[str] = page.evaluate(SELECT_BROKEN)
    return found
