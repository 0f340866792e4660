"""Who may ask what: host names, tokens, roles, cross-site requests, rates and sizes, before any page is made."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import ipaddress
import logging
import re
import secrets
import socket
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from iodelta.errors import RequestError

Role = Literal["read", "triage", "run"]
ROLES: tuple[Role, ...] = ("read", "triage", "run")
"""Each role includes those before it."""

POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

COOKIE = "iodelta"
SESSION = 30 * 86400
"""Seconds that a login holds."""

SHORTEST = 20
"""Characters of a token at least: 20 of base64 are 120 bits."""

SMALL, LARGE = 64 << 10, 64 << 20
"""Bytes of a form, and of an upload."""

PATIENCE = 30.0
"""Seconds that the next part of a body may take."""

UPLOAD = 600.0
"""Seconds that all of an upload may take; a form has ``PATIENCE``."""

DIGITS = re.compile("[0-9]{1,15}")
"""What is read as a number: ``isdigit`` also accepts what ``int`` refuses, and so many digits that it fails."""

RATE, BURST = 50.0, 400.0
"""Requests a second of one address, and how many at once; a page with its parts is some ten."""

TRIES = 10
"""Wrong tokens a minute of one address."""

LONGEST = 1000
"""Characters of an address."""

CLIENTS = 10_000
"""Addresses that are remembered."""

SENDING = ("/upload", "/history/add")
"""Where results are sent."""

OPEN = ("/favicon.ico", "/login", "/static/")
"""What is answered without a login."""


class Token(msgspec.Struct, frozen=True):
    """One line of the token file."""

    role: Role
    name: str
    secret: str


class User(msgspec.Struct, frozen=True):
    """The user who sends a request. ``key`` signs the forms of this user's pages."""

    name: str
    role: Role
    key: bytes
    logged_in: bool = False
    """Whether by a cookie: browsers send it by themselves, so a change needs the CSRF token, too."""

    def may(self, role: Role) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)

    @property
    def csrf(self) -> str:
        """Return the token that forms carry."""
        return hmac.new(
            self.key, b"csrf " + self.name.encode(), hashlib.sha256
        ).hexdigest()


class Rules(msgspec.Struct, frozen=True):
    """How a server is protected."""

    names: frozenset[str]
    """Host names under which it is reached, in lower case; addresses are checked by kind."""
    loopback: bool
    """Whether only this machine reaches it."""
    tokens: tuple[Token, ...] = ()
    proxy_header: str = ""
    """The header in which a proxy names the user; empty: none is believed."""
    proxies: frozenset[str] = frozenset()
    """Addresses of the proxies that are believed."""
    proxy_role: Role = "read"
    write: bool = False
    """Whether requests may change anything."""
    prefix: str = ""


def tokens_in(path: Path) -> tuple[Token, ...]:
    """Return the token file: a role, a name and a token on each line. Raises RequestError."""
    try:
        text, mode = path.read_text(encoding="utf-8"), path.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not text in UTF-8"
        raise RequestError(
            f"cannot read the token file: {why}", place=str(path)
        ) from error
    if mode & 0o077:
        raise RequestError(
            "other users can read this token file",
            place=str(path),
            remedy=f"chmod 600 {path}",
        )
    lines = enumerate(text.splitlines(), 1)
    tokens = tuple(
        _token(line, f"{path}:{number}")
        for number, line in lines
        if line.strip() and line[0] != "#"
    )
    names = [token.name for token in tokens]
    problem = ""
    if not tokens:
        problem = "this file has no token"
    elif len(set(names)) < len(names):
        problem = "two lines have the same name"
    if problem:
        remedy = f"write lines such as: triage ada {secrets.token_urlsafe(24)}"
        raise RequestError(problem, place=str(path), remedy=remedy)
    return tokens


def _token(line: str, place: str) -> Token:
    words = line.split()
    known: dict[str, Role] = {role: role for role in ROLES}
    if len(words) != 3 or words[0] not in known:
        raise RequestError(
            "not a role (read, triage or run), a name and a token", place=place
        )
    role, name, secret = words
    if len(secret) < SHORTEST or not secret.isascii():
        raise RequestError(f"a token has at least {SHORTEST} ASCII characters", place=place,
                           remedy="python3 -c 'import secrets; print(secrets.token_urlsafe(24))'")  # fmt: skip
    return Token(known[role], name, secret)


def rules_of(
    host: str,
    names: tuple[str, ...],
    tokens: tuple[Token, ...],
    proxy_header: str,
    proxies: tuple[str, ...],
    proxy_role: Role,
    *,
    write: bool,
    prefix: str,
) -> Rules:
    """Raises RequestError where others could reach the server without a login."""
    loopback = is_loopback(host)
    if not loopback and not tokens and not proxy_header:
        raise RequestError(
            f"everyone who reaches {host} could read your results",
            place="--host",
            remedy="give --token-file, or --trusted-proxy-header behind a proxy that logs users in",
        )
    own = {"localhost"} if loopback else {"localhost", socket.gethostname(), host}
    believed = frozenset(proxies) or frozenset({"127.0.0.1", "::1"})
    return Rules(
        frozenset(name.lower() for name in own | set(names)),
        loopback,
        tokens,
        proxy_header.lower(),
        believed,
        proxy_role,
        write,
        prefix,
    )


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class DeniedError(Exception):
    """A request that is not answered, with its reason."""

    def __init__(
        self, status: int, why: str, *, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(why)
        self.status, self.why, self.headers = status, why, dict(headers or {})


class Guard:
    """Checks every request before the pages see it, and adds the headers of every answer."""

    def __init__(
        self,
        app: ASGIApp,
        rules: Rules,
        deny: Callable[[Request, DeniedError], Response],
    ) -> None:
        self._app, self._rules, self._deny = app, rules, deny
        self._local = User(
            "", "run" if rules.write else "read", secrets.token_bytes(32)
        )
        self._rates = Buckets(RATE, BURST)
        self._tries = Buckets(TRIES / 60, TRIES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        scope["path"] = without(scope["path"], self._rules.prefix)
        scope["root_path"] = ""
        request = Request(scope, receive)
        begun = False

        async def sent(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "private, no-cache")
            await send(message)

        try:
            self._check(request)
            await self._app(scope, limited(request, receive), sent)
        except ClientDisconnect:
            logging.getLogger("uvicorn.error").warning(
                "%s went away in the middle of a request", request.url.path
            )
        except DeniedError as denied:
            if not begun:
                scope["app"] = self._app
                await self._deny(request, denied)(scope, receive, sent)

    def _check(self, request: Request) -> None:
        """Raises DeniedError."""
        client = request.client.host if request.client else ""
        if not self._rates.take(client):
            raise DeniedError(
                429, "too many requests; wait a second", headers={"Retry-After": "1"}
            )
        if len(request.scope["path"]) > LONGEST:
            raise DeniedError(414, "no address here is so long")
        check_host(request.headers.get("host", ""), self._rules)
        check_site(request)
        user = self._user(request, client)
        request.scope["user"] = user
        if user is None and not request.url.path.startswith(OPEN):
            raise DeniedError(
                401, "log in with a token", headers={"WWW-Authenticate": "Bearer"}
            )
        if request.method not in ("GET", "HEAD", "POST"):
            raise DeniedError(
                405,
                "only GET, HEAD and POST are answered",
                headers={"Allow": "GET, HEAD, POST"},
            )

    def _user(self, request: Request, client: str) -> User | None:
        rules = self._rules
        if rules.proxy_header:
            name = request.headers.get(rules.proxy_header, "")
            if name and client in rules.proxies:
                return User(name, self._bounded(rules.proxy_role), self._local.key)
        if not rules.tokens:
            return None if rules.proxy_header else self._local
        given = request.headers.get("authorization", "")
        if given.lower().startswith("bearer "):
            return self.login(given[7:].strip(), client)
        return self._of_cookie(request.cookies.get(COOKIE, ""))

    def login(self, secret: str, client: str) -> User | None:
        """Return the user of this token; None for an unknown one. Raises DeniedError after too many unknown ones."""
        matching = [
            token
            for token in self._rules.tokens
            if hmac.compare_digest(token.secret.encode(), secret.encode())
        ]
        # The right token always passes: others may share its address, and 120 bits are not guessed.
        if not matching and not self._tries.take(client):
            raise DeniedError(
                429,
                "too many wrong tokens; wait a minute",
                headers={"Retry-After": "60"},
            )
        if not matching:
            return None
        return User(
            matching[0].name, self._bounded(matching[0].role), _key(matching[0])
        )

    def _bounded(self, role: Role) -> Role:
        """Without ``--write`` everyone only reads."""
        return role if self._rules.write else "read"

    def _of_cookie(self, cookie: str) -> User | None:
        name, _, rest = _decoded(cookie).rpartition("\0")[0].rpartition("\0")
        token = self._token(name)
        if token is None or not DIGITS.fullmatch(rest) or int(rest) < time.time():
            return None
        if not hmac.compare_digest(cookie, cookie_of(token, int(rest))):
            return None
        return User(token.name, self._bounded(token.role), _key(token), logged_in=True)

    def cookie(self, user: User) -> str:
        """Return the cookie that keeps this user logged in."""
        token = self._token(user.name)
        assert token is not None, user.name
        return cookie_of(token, int(time.time()) + SESSION)

    def _token(self, name: str) -> Token | None:
        by_name = {token.name: token for token in self._rules.tokens}
        return by_name.get(name)


def _key(token: Token) -> bytes:
    return hashlib.sha256(b"iodelta session " + token.secret.encode()).digest()


def cookie_of(token: Token, until: int) -> str:
    """Name and end of a login, signed with the token: it holds across restarts, and ends when the token is removed."""
    payload = f"{token.name}\0{until}"
    sign = hmac.new(_key(token), payload.encode(), hashlib.sha256).hexdigest()
    return base64.urlsafe_b64encode(f"{payload}\0{sign}".encode()).decode()


def _decoded(cookie: str) -> str:
    try:
        return base64.urlsafe_b64decode(cookie.encode()).decode()
    except ValueError:
        return ""


def check_host(host: str, rules: Rules) -> None:
    """Raises DeniedError for a host name that is not ours: a stranger may point a name at this address (DNS
    rebinding)."""
    try:
        name = (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        name = ""
    if name in rules.names:
        return
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        raise DeniedError(
            421, "not a name of this server; --name HOST adds one"
        ) from None
    if rules.loopback and not address.is_loopback:
        raise DeniedError(421, "not an address of this server")


def check_site(request: Request) -> None:
    """Raises DeniedError for requests that another site's page makes with its reader's cookie, except for links."""
    site = request.headers.get("sec-fetch-site", "")
    is_link = (
        request.method == "GET"
        and request.headers.get("sec-fetch-mode", "") == "navigate"
    )
    if site in ("cross-site", "same-site") and not is_link:
        raise DeniedError(403, "another site asked for this")
    origin = request.headers.get("origin")
    if (
        request.method == "POST"
        and origin is not None
        and urlsplit(origin).netloc != request.headers.get("host")
    ):
        raise DeniedError(403, "another site sent this")


def check_form(user: User, headers: Headers, given: str) -> None:
    """Raises DeniedError for a change without the CSRF token that our pages give this user.

    A program that sends its token in ``Authorization`` needs none: a browser never sends that header by itself.
    """
    if headers.get("authorization"):
        return
    if not hmac.compare_digest(given or headers.get("x-csrf-token", ""), user.csrf):
        raise DeniedError(403, "this page is too old; load it again")


def without(path: str, prefix: str) -> str:
    """Return the path as the pages know it, whether a proxy took the prefix away or not."""
    if prefix and (path == prefix or path.startswith(f"{prefix}/")):
        return path[len(prefix) :] or "/"
    return path


def limited(request: Request, receive: Receive) -> Receive:
    """``receive`` with a limit of the body's size, and of the time that its next part takes."""
    limit = LARGE if request.url.path.startswith(SENDING) else SMALL
    length = request.headers.get("content-length", "")
    if length.strip("0123456789") or len(length) > 18 or int(length or 0) > limit:
        raise DeniedError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {limit >> 10} KiB"
        )
    left, more = limit, request.method == "POST"
    end = time.monotonic() + (UPLOAD if limit == LARGE else PATIENCE)

    async def receiving() -> Message:
        nonlocal left, more
        if not more:
            return await receive()
        try:
            message = await asyncio.wait_for(
                receive(), min(PATIENCE, max(0.0, end - time.monotonic()))
            )
        except TimeoutError:
            raise DeniedError(408, "the request did not arrive in time") from None
        left -= len(message.get("body", b""))
        more = bool(message.get("more_body"))
        if left < 0:
            raise DeniedError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {limit >> 10} KiB"
            )
        return message

    return receiving


class Buckets:
    """Token buckets: each client may take ``burst`` at once, and ``rate`` a second."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst = rate, burst
        self._clients: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def left(self, client: str) -> bool:
        """Return whether one more would pass."""
        return self._level(client) >= 1.0

    def take(self, client: str) -> bool:
        """Take one; false where none is left."""
        level = self._level(client)
        passes = level >= 1.0
        self._clients[client] = (level - passes, time.monotonic())
        self._clients.move_to_end(client)
        while len(self._clients) > CLIENTS:
            self._clients.popitem(last=False)
        return passes

    def _level(self, client: str) -> float:
        now = time.monotonic()
        level, then = self._clients.get(client, (self._burst, now))
        return min(self._burst, level + self._rate * (now - then))
