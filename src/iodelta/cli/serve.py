"""``iodelta serve``: results and histories in a browser."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from iodelta.cli.files import print_document
from iodelta.cli.histories import FORMAT, LOG
from iodelta.errors import RequestError, needs_extra

if TYPE_CHECKING:
    from iodelta.web.histories import Histories
    from iodelta.web.security import Rules

EXAMPLES = """
\b
Examples:
  iodelta serve
  iodelta serve --folders runs --history iodelta-history
  iodelta serve --host :: --port 8080 --token-file tokens --name results.example.org
  iodelta serve --prefix /iodelta --trusted-proxy-header X-Forwarded-User
"""


@click.command("serve", epilog=EXAMPLES)
@click.option(
    "--folders",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Serve the experiment folders, bundles, searches and fleets below DIR (default: the current directory).",
)
@click.option(
    "--history", "place", metavar="DIRECTORY|URL", help="Serve this history too."
)
@LOG
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on, such as :: or 0.0.0.0.",
)
@click.option(
    "--port",
    default=8765,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port to listen on; 0 means any free one.",
)
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="HOST",
    help="A host name under which you reach the server.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Ask for a token. FILE has a role (read, triage or run), a name and a token on each line.",
)
@click.option(
    "--trusted-proxy-header",
    default="",
    metavar="NAME",
    help="The header in which your proxy names the user.",
)
@click.option(
    "--proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    help="Where that proxy is (default: this machine).",
)
@click.option(
    "--proxy-role",
    type=click.Choice(["read", "triage", "run"]),
    default="read",
    show_default=True,
    help="The role of users that the proxy names.",
)
@click.option(
    "--prefix",
    default="",
    metavar="PATH",
    help="The path under which a proxy shows the site: /iodelta.",
)
@click.option(
    "--write",
    is_flag=True,
    help="Allow changes, as far as the role of each user permits (default: read only).",
)
@FORMAT
def command(
    folders: tuple[Path, ...],
    place: str | None,
    log: Path | None,
    host: str,
    port: int,
    names: tuple[str, ...],
    token_file: Path | None,
    trusted_proxy_header: str,
    proxies: tuple[str, ...],
    proxy_role: Literal["read", "triage", "run"],
    prefix: str,
    write: bool,
    format_: str,
) -> None:
    """Show results in a browser: experiments with every block and trial, as pages and as JSON.

    Without options only this machine can connect, and needs no login. On another address it starts only with
    --token-file or --trusted-proxy-header. It needs the extra iodelta[web].
    """
    _check_extra()
    from iodelta.web.security import rules_of, tokens_in
    from iodelta.web.serving import share_heap

    share_heap()
    tokens = tokens_in(token_file) if token_file is not None else ()
    given = (host, names, tokens, trusted_proxy_header, proxies, proxy_role)
    rules = rules_of(*given, write=write, prefix=_prefix(prefix))
    roots = folders or (Path(),)
    for root in roots:
        if not root.is_dir():
            raise RequestError(
                "not a directory", place=str(root), remedy="name one with --folders"
            )
    _serve(roots, _history(place, log), rules, host, port, format_)


def _serve(
    roots: tuple[Path, ...],
    history: Histories | None,
    rules: Rules,
    host: str,
    port: int,
    format_: str,
) -> None:
    from iodelta.report.answers import ServeAnswer
    from iodelta.web.app import make_app
    from iodelta.web.folders import Folders
    from iodelta.web.results import Results
    from iodelta.web.serving import bound, serve, url_of
    from iodelta.web.site import Site

    made = make_app(
        Site(Folders(_with_confirmations(roots, history)), Results(), rules, history)
    )
    listening = bound(host, port)
    url = url_of(listening, rules.prefix)

    def ready() -> None:
        if format_ == "json":
            print_document(ServeAnswer(url, write=rules.write))
        else:
            click.echo(f"{url}  (Ctrl-C ends it)")
        sys.stdout.flush()

    serve(made.app, listening, made.end, ready)


def _with_confirmations(
    roots: tuple[Path, ...], history: Histories | None
) -> tuple[Path, ...]:
    """Return the directories that are served, and the one in which alerts are confirmed, where that lies elsewhere."""
    if history is None:
        return roots
    from iodelta.api.confirming import confirmations

    place = confirmations(history.log)
    is_within = any(place.is_relative_to(root.absolute()) for root in roots)
    if is_within:
        return roots
    return (*roots, place)


def _history(place: str | None, log: Path | None) -> Histories | None:
    if place is None:
        return None
    from iodelta.cli.histories import opened

    store, written = opened(place, log)
    if not store.exists:
        raise RequestError(
            "there is no history",
            place=place,
            remedy="`iodelta history add FOLDER` makes one",
        )
    from iodelta.web.histories import Histories

    histories = Histories(store, written)
    threading.Thread(target=histories.warm, daemon=True).start()
    return histories


def _prefix(text: str) -> str:
    """With one slash before it and none behind."""
    words = text.strip("/")
    if not words:
        return ""
    if not all(
        part.replace("-", "").replace("_", "").replace(".", "").isalnum()
        for part in words.split("/")
    ):
        raise RequestError(
            f"not a path: {text!r}", place="--prefix", remedy="write it as /iodelta"
        )
    return f"/{words}"


def _check_extra() -> None:
    """Raises RequestError where the extra is not installed."""
    with needs_extra("web", "the server"):
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
