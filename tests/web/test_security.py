"""Who may read, and what a stranger, another site or a wrong address gets."""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsers import PATIENCE
from playwright.sync_api import Browser

from .servers import Server, Visit, followed, serving

pytestmark = pytest.mark.xdist_group("web")

READ, RUN = "read-" + "a" * 24, "run-" + "b" * 24


@pytest.fixture(scope="module")
def guarded(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with tokens, under a prefix, on IPv6."""
    file = tmp_path_factory.mktemp("tokens") / "tokens"
    file.write_text(f"# people\nread ada {READ}\nrun grace {RUN}\n")
    file.chmod(0o600)
    words = ("--folders", str(runs), "--token-file", str(file), "--prefix", "/bench/iodelta", "--host", "::1")
    with serving(*words, cwd=runs.parent) as running:
        yield running


def refused(*words: str, cwd: Path) -> str:
    code = "from iodelta.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "serve", "--port", "0", *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert (done.returncode, done.stdout, "Traceback" in done.stderr) == (2, "", False), done
    return done.stderr


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_elsewhere_it_does_not_start_without_a_login(host: str, tmp_path: Path) -> None:
    assert "everyone who reaches" in refused("--host", host, cwd=tmp_path)


def test_a_token_file_that_others_can_read_or_that_is_wrong_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"read ada {READ}\n")
    file.chmod(0o644)
    assert "other users can read" in refused("--token-file", "tokens", cwd=tmp_path)
    file.chmod(0o600)
    for text, said in (("", "no token"), ("admin ada x\n", ":1"), ("read ada short\n", "20"), ("read ada\n", ":1")):
        file.write_text(text)
        assert said in refused("--token-file", "tokens", cwd=tmp_path)


def test_every_answer_forbids_what_a_page_does_not_need(server: Server) -> None:
    for path in ("/", "/nowhere", "/static/site.css", "/login"):
        headers = server.ask(path).headers
        assert "default-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
    assert "<script>" not in server.ask("/").text
    assert not re.search(r"\son\w+=|style=", server.ask("/").text)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "203.0.113.7", "localhost.evil.example", "[", ""]
)
def test_a_name_that_points_here_is_not_a_name_of_the_server(server: Server, host: str) -> None:
    answer = server.ask("/", Host=host)
    assert answer.status == 421
    assert "slow" not in answer.text


def test_another_site_gets_nothing(server: Server) -> None:
    assert server.ask("/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors").status == 403
    assert server.ask("/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate").status == 200
    posted = {"body": b"token=x", "Content_Type": "application/x-www-form-urlencoded"}
    assert server.ask("/login", "POST", Origin="http://evil.example", **posted).status == 403  # type: ignore[arg-type]
    assert server.ask("/login", "POST", Origin="null", **posted).status == 403  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/static/../app.py",
            "/static/%2e%2e/app.py",
            "/static/..%2fapp.py",
            "/static/%2e%2e%2f%2e%2e%2fcli/serve.py",
        ),
        *("/static//etc/passwd", "/static/%2fetc%2fpasswd", "/static/vendor/README.md", "/static/site.css%00.js"),
        *("/experiment/..%2f..%2fetc", "/experiment/slower", "/experiment/%00", "/experiment//row"),
    ],
)
def test_no_address_leads_out_of_what_is_served(server: Server, path: str) -> None:
    answer = server.ask(path)
    assert answer.status == 404
    assert "root:" not in answer.text
    assert "import" not in answer.text


def test_a_program_shows_its_token(guarded: Server) -> None:
    at = "/bench/iodelta/"
    assert guarded.ask(at, Accept="application/json").status == 401
    assert guarded.ask(at, Accept="application/json", Authorization=f"Bearer {RUN[:-1]}c").status == 401
    assert guarded.json(at, Authorization=f"Bearer {READ}")["total"] == 4
    assert guarded.json("/", Authorization=f"Bearer {READ}")["total"] == 4  # a proxy that takes the prefix away


def test_a_person_logs_in_once_and_follows_links_from_a_mail(browser: Browser, guarded: Server) -> None:
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    visit = Visit(context.new_page(), guarded.url)
    page = visit.open("/")
    assert page.url.endswith("/bench/iodelta/login")
    page.get_by_label("Token").fill("x" * 24)
    page.keyboard.press("Enter")
    page.get_by_text("Nobody has this token").wait_for()
    page.get_by_label("Token").fill(READ)
    page.keyboard.press("Enter")
    page.get_by_text("ada (read)").wait_for()
    (cookie,) = context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/bench/iodelta/")
    assert READ not in cookie["value"]
    mail = context.new_page()
    mail.set_content(f"<a href='{guarded.url}'>alert</a>")
    followed(mail, mail.get_by_role("link"))
    mail.get_by_text("ada (read)").wait_for()
    wrong = [said for said in visit.wrong if "401" not in said]
    assert wrong == []
    context.close()


def test_a_cookie_that_was_changed_is_nobodys(guarded: Server) -> None:
    import base64

    from iodelta.web.security import Token, cookie_of

    forged = cookie_of(Token("run", "grace", "another secret of mine"), 2_000_000_000)
    expired = cookie_of(Token("run", "grace", RUN), 1_000_000_000)
    sound = cookie_of(Token("read", "ada", READ), 4_000_000_000)
    other = base64.urlsafe_b64encode(base64.urlsafe_b64decode(sound).replace(b"ada", b"grace")).decode()
    for cookie in (forged, expired, other, "", "x", "\xff", sound[:-4]):
        assert guarded.ask("/", Accept="application/json", Cookie=f"iodelta={cookie}").status == 401, cookie
    assert guarded.ask("/", Accept="application/json", Cookie=f"iodelta={sound}").status == 200


def test_a_proxy_names_the_user_and_nobody_else_does(runs: Path) -> None:
    with serving("--folders", str(runs), "--trusted-proxy-header", "X-User", cwd=runs.parent) as own:
        assert own.ask("/", Accept="application/json").status == 401
        assert "grace (read)" in own.ask("/", X_User="grace").text
    words = ("--folders", str(runs), "--trusted-proxy-header", "X-User", "--proxy", "192.0.2.1")
    with serving(*words, cwd=runs.parent) as other:
        assert other.ask("/", Accept="application/json", X_User="grace").status == 401


def test_too_much_at_once_is_refused(server: Server) -> None:
    huge = b"token=" + b"x" * 100_000
    form = {"Content_Type": "application/x-www-form-urlencoded"}
    with contextlib.suppress(ConnectionError, http.client.HTTPException):  # it need not wait for the rest
        assert server.ask("/login", "POST", huge, **form).status == 413
    with socket.create_connection((server.host, server.port)) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 100_000)
        assert b"200 OK" not in slow.recv(1000)
    assert server.ask("/").status == 200


def test_vendored_scripts_are_those_that_were_released() -> None:
    import hashlib

    place = Path(__file__).parents[2] / "src/iodelta/web/static/vendor"
    listed = dict(re.findall(r"\| `(\S+)` \|.*`([0-9a-f]{64})`", (place / "README.md").read_text()))
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in place.iterdir()}
    del found["README.md"]
    assert found == listed
