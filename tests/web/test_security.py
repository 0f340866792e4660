"""Who may read, and what a stranger, another site or a wrong address gets."""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from browsers import PATIENCE
from playwright.sync_api import Browser
from waiting import LIMIT

from .servers import Server, Visit, check_described, check_for_all, followed, loaded, serving

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
        timeout=LIMIT,
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
        *("/static//etc/passwd", "/static/%2fetc%2fpasswd", "/static/vendor/javascript.json", "/static/site.css%00.js"),
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


def test_the_answer_to_a_right_token_is_as_described(guarded: Server) -> None:
    described = guarded.json("/bench/iodelta/openapi.json", Authorization=f"Bearer {READ}")
    form = {"Content_Type": "application/x-www-form-urlencoded"}
    for accept in ("text/html", "application/json"):
        answer = guarded.ask("/bench/iodelta/login", "POST", f"token={READ}".encode(), Accept=accept, **form)
        assert (answer.status, answer.headers["location"]) == (303, "/bench/iodelta/")
        assert "set-cookie" in answer.headers
        check_described(described, "POST", "/login", answer)


def test_a_person_logs_in_once_and_follows_links_from_a_mail(browser: Browser, guarded: Server) -> None:
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    visit = Visit(context.new_page(), guarded.url)
    page = visit.open("/")
    assert page.url.endswith("/bench/iodelta/login")
    page.get_by_label("Token").fill("x" * 24)
    with loaded(page):
        page.keyboard.press("Enter")
    page.get_by_text("Nobody has this token").wait_for()
    check_for_all(visit, "", opened=True)
    page.get_by_label("Token").focus()
    page.get_by_label("Token").fill(READ)
    with loaded(page):
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
    strange = [base64.urlsafe_b64encode(f"ada\0{end}\0sign".encode()).decode() for end in ("9" * 5000, "²", "-1", "")]
    for cookie in (forged, expired, other, "", "x", "\xff", sound[:-4], *strange):
        assert guarded.ask("/", Accept="application/json", Cookie=f"iodelta={cookie}").status == 401, cookie
    assert guarded.ask("/", Accept="application/json", Cookie=f"iodelta={sound}").status == 200


def test_wrong_tokens_do_not_lock_out_who_has_the_right_one(guarded: Server) -> None:
    def answer(token: str) -> int:
        return guarded.ask("/", Accept="application/json", Authorization=f"Bearer {token}").status

    assert {answer("x" * 24 + str(number)) for number in range(30)} == {401, 429}
    assert answer(READ) == 200


def test_a_proxy_names_the_user_and_nobody_else_does(runs: Path) -> None:
    with serving("--folders", str(runs), "--trusted-proxy-header", "X-User", cwd=runs.parent) as own:
        assert own.ask("/", Accept="application/json").status == 401
        assert "grace (read)" in own.ask("/", X_User="grace").text
    words = ("--folders", str(runs), "--trusted-proxy-header", "X-User", "--proxy", "192.0.2.1")
    with serving(*words, cwd=runs.parent) as other:
        assert other.ask("/", Accept="application/json", X_User="grace").status == 401


class Hop(BaseHTTPRequestHandler):
    """A proxy: it passes everything on, with what proxies add. The outer one also says who asks."""

    server: Proxy

    def do_GET(self) -> None:
        self._pass_on(None)

    def do_POST(self) -> None:
        self._pass_on(self.rfile.read(int(self.headers["Content-Length"])))

    def _pass_on(self, body: bytes | None) -> None:
        headers = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
        before = headers.get("X-Forwarded-For")
        peer = self.client_address[0]
        headers["X-Forwarded-For"] = f"{before}, {peer}" if before else peer
        if self.server.user is not None:
            headers |= {"X-User": self.server.user, "X-Forwarded-Proto": "https", "X-Forwarded-Prefix": "/bench"}
        else:
            headers["X-Forwarded-Proto"] += ", http"
        connection = http.client.HTTPConnection(*self.server.following, timeout=LIMIT)
        connection.request(self.command, self.path, body, headers)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


class Proxy(ThreadingHTTPServer):
    def __init__(self, following: tuple[str, int], user: str | None) -> None:
        super().__init__(("127.0.0.1", 0), Hop)
        self.following, self.user = following, user


@contextlib.contextmanager
def proxy(following: tuple[str, int], user: str | None = None) -> Iterator[tuple[str, int]]:
    with Proxy(following, user) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        try:
            yield "127.0.0.1", running.server_address[1]
        finally:
            running.shutdown()
            thread.join()


def asked(hop: tuple[str, int], path: str, headers: dict[str, str], body: bytes | None = None) -> tuple[int, str, str]:
    """Status, cookie and text of an answer at that end of the chain."""
    connection = http.client.HTTPConnection(*hop, timeout=LIMIT)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("GET" if body is None else "POST", path, body, {"Host": "results.example", **named})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.headers.get("Set-Cookie", ""), text


def test_behind_two_proxies_the_last_hop_alone_is_believed(runs: Path, tmp_path: Path) -> None:
    words = ("--folders", str(runs), "--host", "::1", "--prefix", "/bench", "--name", "results.example")
    named = ("--trusted-proxy-header", "X-User")
    forged = {"X_User": "root", "X_Forwarded_For": "::1", "X_Forwarded_Prefix": "//evil.example"}
    with (
        serving(*words, *named, "--proxy", "::1", cwd=runs.parent) as server,
        proxy((server.host, server.port)) as inner,
        proxy(inner, "grace") as outer,
    ):
        status, _, text = asked(outer, "/bench/", forged)
        assert (status, "grace (read)" in text, "root" in text, "evil" in text) == (200, True, False, False)
        assert 'href="/bench/static/' in text
        assert asked(outer, "/bench/", {"Host": "evil.example"})[0] == 421
        assert asked(outer, "/bench/", {"X_Forwarded_Host": "evil.example", **forged})[0] == 200
    file = tmp_path / "tokens"
    file.write_text(f"read ada {READ}\n")
    file.chmod(0o600)
    with (
        serving(*words, *named, "--proxy", "192.0.2.1", "--token-file", str(file), cwd=runs.parent) as server,
        proxy((server.host, server.port)) as inner,
        proxy(inner, "grace") as outer,
    ):
        far = {**forged, "X_Forwarded_For": "192.0.2.1", "Accept": "application/json"}
        assert asked(outer, "/bench/", far)[0] == 401  # only the connection says who a proxy is
        assert asked((server.host, server.port), "/bench/", far)[0] == 401
        form = {"Content_Type": "application/x-www-form-urlencoded"}
        status, cookie, _ = asked(outer, "/bench/login", form, f"token={READ}".encode())
        assert (status, "Secure" in cookie, "Path=/bench/" in cookie) == (303, True, True)
        status, cookie, _ = asked((server.host, server.port), "/bench/login", form, f"token={READ}".encode())
        assert (status, "Secure" in cookie) == (303, False)


def test_too_much_at_once_is_refused(server: Server) -> None:
    huge = b"token=" + b"x" * 100_000
    form = {"Content_Type": "application/x-www-form-urlencoded"}
    with contextlib.suppress(ConnectionError, http.client.HTTPException):  # it need not wait for the rest
        assert server.ask("/login", "POST", huge, **form).status == 413
    said = b""
    # It may close the connection before all has come, which is an answer as well.
    with socket.create_connection((server.host, server.port)) as slow, contextlib.suppress(ConnectionError):
        slow.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 100_000)
        said = slow.recv(1000)
    assert b"200 OK" not in said
    assert server.ask("/").status == 200


def test_a_head_that_does_not_end_is_given_up(server: Server) -> None:
    from iodelta.web.serving import HEAD

    begun = time.monotonic()
    with socket.create_connection((server.host, server.port)) as slow, contextlib.suppress(ConnectionError):
        slow.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        while slow.recv(1000) if time.monotonic() > begun + HEAD else True:
            slow.sendall(b"X: y\r\n")
            time.sleep(0.5)
    assert server.ask("/").status == 200


@pytest.mark.parametrize("length", ["9" * 5000, "\u00b2".encode("latin-1").decode("latin-1"), "-1"])
def test_a_length_that_is_none_is_refused(server: Server, length: str) -> None:
    with socket.create_connection((server.host, server.port)) as other:
        other.sendall(f"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n".encode("latin-1"))
        assert other.recv(100).split(b" ")[1] in (b"400", b"413")
