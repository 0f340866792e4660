"""``iodelta serve``: results and histories in a browser."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from iodelta.cli.commands import Asked, declared
from iodelta.errors import RequestError, needs_extra


@declared(
    "serve",
    "",
    """
--folders DIR*        Serve the experiment folders, bundles, searches and fleets below DIR (default: the current
                      directory).
--history DIRECTORY|URL
                      Serve this history too.
--log
--host ADDRESS [127.0.0.1]
                      The address to listen on, such as :: or 0.0.0.0.
--port NUMBER:0..65535 [8765]
                      The port to listen on; 0 means any free one.
--name HOST*          A host name under which you reach the server.
--token-file FILE     Ask for a token. FILE has a role (read, triage or run), a name and a token on each line.
--trusted-proxy-header NAME
                      The header in which your proxy names the user.
--proxy ADDRESS*      Where that proxy is (default: this machine).
--proxy-role read|triage|run [read]
                      The role of users that the proxy names.
--prefix PATH         The path under which a proxy shows the site: /iodelta.
--write               Allow changes, as far as the role of each user permits (default: read only).
--format
""",
    """
  iodelta serve
  iodelta serve --folders runs --history iodelta-history
  iodelta serve --host :: --port 8080 --token-file tokens --name results.example.org
  iodelta serve --prefix /iodelta --trusted-proxy-header X-Forwarded-User
""",
)
def command(asked: Asked) -> None:
    """Show results in a browser: experiments with every block and trial, as pages and as JSON.

    Without options only this machine can connect, and needs no login. On another address it starts only with
    --token-file or --trusted-proxy-header. It needs the extra iodelta[web].
    """
    with needs_extra("web", "the server"):
        from iodelta.web.serving import bound, serve, share_heap, url_of
    from iodelta.report.answers import ServeAnswer
    from iodelta.web.app import make_app
    from iodelta.web.folders import Folders
    from iodelta.web.results import Results
    from iodelta.web.security import rules_of, tokens_in
    from iodelta.web.site import Site

    share_heap()
    rules = rules_of(
        asked.host,
        asked.name,
        tokens_in(asked.token_file) if asked.token_file is not None else (),
        asked.trusted_proxy_header,
        asked.proxy,
        asked.proxy_role,
        write=asked.write,
        prefix=_prefix(asked.prefix),
    )
    roots = asked.folders or (Path(),)
    for root in roots:
        if not root.is_dir():
            raise RequestError(
                "not a directory", place=str(root), remedy="name one with --folders"
            )
    history = None
    if asked.history:
        from iodelta.api.confirming import confirmations
        from iodelta.cli.history import opened
        from iodelta.web.histories import Histories

        store, written = opened(asked.history, asked.log)
        if not store.exists:
            raise RequestError(
                "there is no history",
                place=asked.history,
                remedy="`iodelta history add FOLDER` makes one",
            )
        history = Histories(store, written)
        threading.Thread(target=history.warm, daemon=True).start()
        # Alerts are confirmed in a directory that may lie elsewhere.
        place = confirmations(written)
        if not any(place.is_relative_to(root.absolute()) for root in roots):
            roots = (*roots, place)
    made = make_app(Site(Folders(roots), Results(), rules, history))
    listening = bound(asked.host, asked.port)
    url = url_of(listening, rules.prefix)

    def ready() -> None:
        asked.answer(ServeAnswer(url, write=rules.write), [f"{url}  (Ctrl-C ends it)"])
        sys.stdout.flush()

    serve(made.app, listening, made.end, ready)


def _prefix(text: str) -> str:
    """With one slash before it and none behind."""
    words = text.strip("/")
    letters = words.translate({ord(mark): None for mark in "-_."}).split("/")
    if words and not all(part.isalnum() for part in letters):
        raise RequestError(
            f"not a path: {text!r}", place="--prefix", remedy="write it as /iodelta"
        )
    return f"/{words}" if words else ""
