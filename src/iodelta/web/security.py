"""Who may ask what: host names, tokens, roles, cross-site requests, rates and sizes, before any page is made."""

from __future__ import annotations

import asyncio
import base64
import contextlib
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
    tokens: dict[str, Token] = {}
    problem, place = "", str(path)
    roles: dict[str, Role] = {role: role for role in ROLES}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or line[0] == "#":
            continue
        if len(words) != 3 or words[0] not in roles:
            problem = "not a role (read, triage or run), a name and a token"
        elif len(words[2]) < SHORTEST or not words[2].isascii():
            problem = f"a token has at least {SHORTEST} ASCII characters"
        elif words[1] in tokens:
            problem = "two lines have the same name"
        if problem:
            place = f"{path}:{number}"
            break
        tokens[words[1]] = Token(roles[words[0]], words[1], words[2])
    if problem or not tokens:
        raise RequestError(
            problem or "this file has no token",
            place=place,
            remedy=f"write lines such as: triage ada {secrets.token_urlsafe(24)}",
        )
    return tuple(tokens.values())


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
    loopback = host == "localhost"
    with contextlib.suppress(ValueError):
        loopback |= ipaddress.ip_address(host).is_loopback
    if not loopback and not tokens and not proxy_header:
        raise RequestError(
            f"everyone who reaches {host} could read your results",
            place="--host",
            remedy="give --token-file, or --trusted-proxy-header behind a proxy that logs users in",
        )
    own = {"localhost"} if loopback else {"localhost", socket.gethostname(), host}
    return Rules(
        frozenset(name.lower() for name in own | set(names)),
        loopback,
        tokens,
        proxy_header.lower(),
        frozenset(proxies or ("127.0.0.1", "::1")),
        proxy_role,
        write,
        prefix,
    )


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
        # The path as the pages know it, whether a proxy took the prefix away or not.
        path, prefix = scope["path"], self._rules.prefix
        if prefix and f"{path}/".startswith(f"{prefix}/"):
            scope["path"] = path[len(prefix) :] or "/"
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
        # Another site's page may send its reader's cookie, except for links.
        site, origin = (
            request.headers.get(name) for name in ("sec-fetch-site", "origin")
        )
        is_link = (
            request.method == "GET"
            and request.headers.get("sec-fetch-mode") == "navigate"
        )
        if site in ("cross-site", "same-site") and not is_link:
            raise DeniedError(403, "another site asked for this")
        if (
            request.method == "POST"
            and origin is not None
            and urlsplit(origin).netloc != request.headers.get("host")
        ):
            raise DeniedError(403, "another site sent this")
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
                # Without --write everyone only reads.
                return User(
                    name, rules.proxy_role if rules.write else "read", self._local.key
                )
        if not rules.tokens:
            return None if rules.proxy_header else self._local
        given = request.headers.get("authorization", "")
        if given.lower().startswith("bearer "):
            return self.login(given[7:].strip(), client)
        cookie = request.cookies.get(COOKIE, "")
        try:
            name, end, _ = (
                base64.urlsafe_b64decode(cookie.encode()).decode().rsplit("\0", 2)
            )
        except ValueError:
            return None
        if not DIGITS.fullmatch(end) or int(end) < time.time():
            return None
        for token in rules.tokens:
            if token.name == name and hmac.compare_digest(
                cookie.encode(), cookie_of(token, int(end)).encode()
            ):
                return self._named(token, logged_in=True)
        return None

    def login(self, secret: str, client: str) -> User | None:
        """Return the user of this token; None for an unknown one. Raises DeniedError after too many unknown ones."""
        matching = [
            token
            for token in self._rules.tokens
            if hmac.compare_digest(token.secret.encode(), secret.encode())
        ]
        if matching:
            return self._named(matching[0])
        # The right token always passes: others may share its address, and 120 bits are not guessed.
        if not self._tries.take(client):
            raise DeniedError(
                429,
                "too many wrong tokens; wait a minute",
                headers={"Retry-After": "60"},
            )
        return None

    def _named(self, token: Token, *, logged_in: bool = False) -> User:
        return User(
            token.name,
            token.role if self._rules.write else "read",
            _key(token),
            logged_in,
        )

    def cookie(self, user: User) -> str:
        """Return the cookie that keeps this user logged in."""
        token = next(token for token in self._rules.tokens if token.name == user.name)
        return cookie_of(token, int(time.time()) + SESSION)


def _key(token: Token) -> bytes:
    return hashlib.sha256(b"iodelta session " + token.secret.encode()).digest()


def cookie_of(token: Token, until: int) -> str:
    """Name and end of a login, signed with the token: it holds across restarts, and ends when the token is removed."""
    payload = f"{token.name}\0{until}"
    sign = hmac.new(_key(token), payload.encode(), hashlib.sha256).hexdigest()
    return base64.urlsafe_b64encode(f"{payload}\0{sign}".encode()).decode()


def check_host(host: str, rules: Rules) -> None:
    """Raises DeniedError for a host name that is not ours: a stranger may point a name at this address (DNS
    rebinding)."""
    try:
        name = (urlsplit(f"//{host}").hostname or "").lower()
        if name in rules.names:
            return
        address = ipaddress.ip_address(name)
    except ValueError:
        raise DeniedError(
            421, "not a name of this server; --name HOST adds one"
        ) from None
    if rules.loopback and not address.is_loopback:
        raise DeniedError(421, "not an address of this server")


def check_form(user: User, headers: Headers, given: str) -> None:
    """Raises DeniedError for a change without the CSRF token that our pages give this user.

    A program that sends its token in ``Authorization`` needs none: a browser never sends that header by itself.
    """
    if headers.get("authorization"):
        return
    if not hmac.compare_digest(given or headers.get("x-csrf-token", ""), user.csrf):
        raise DeniedError(403, "this page is too old; load it again")


def limited(request: Request, receive: Receive) -> Receive:
    """``receive`` with a limit of the body's size, and of the time that its next part takes."""
    limit = LARGE if request.url.path.startswith(SENDING) else SMALL
    too_large = DeniedError(413, f"more than {limit >> 10} KiB")
    length = request.headers.get("content-length", "")
    if length.strip("0123456789") or len(length) > 18 or int(length or 0) > limit:
        raise too_large
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
            raise too_large
        return message

    return receiving


class Buckets:
    """Token buckets: each client may take ``burst`` at once, and ``rate`` a second."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst = rate, burst
        self._clients: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str) -> bool:
        """Take one; false where none is left."""
        now = time.monotonic()
        level, then = self._clients.get(client, (self._burst, now))
        level = min(self._burst, level + self._rate * (now - then))
        passes = level >= 1.0
        self._clients[client] = (level - passes, now)
        self._clients.move_to_end(client)
        while len(self._clients) > CLIENTS:
            self._clients.popitem(last=False)
        return passes
