"""A source package of the distribution, by apt: from its configured archives, with nothing changed under /etc.

What is configured for binaries (``deb``) is asked for sources (``deb-src``) by a list of our own, with package lists
and a cache of our own, so neither root nor a change of the system is needed. apt verifies the archive's signature and
with it every sum down to the source's files.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from itertools import chain
from pathlib import Path

from iodelta.errors import MeasureError
from iodelta.tools.steps import step

TIMEOUT = 30
"""Seconds without an answer after which apt gives an archive up."""


def fetch_source(
    package: str,
    place: Path,
    log: Path,
    on_line: Callable[[str], None] = lambda line: None,
) -> Path:
    """Return the ``.dsc`` of the newest source of ``package``, with its files, in ``place``; files that are there
    already are kept.

    Raises MeasureError for what is missing, and what apt says when it cannot.
    """
    if shutil.which("apt-get") is None:
        raise MeasureError(
            "this system has no apt-get, by which the source package is fetched",
            place=f"source of {package}",
            remedy="unpack the source package yourself, and give its directory by --source",
        )
    own = place / "apt"
    (own / "parts").mkdir(parents=True, exist_ok=True)
    for name in ("lists/partial", "cache/archives/partial"):
        (own / name).mkdir(parents=True, exist_ok=True)
    # The configured archives as archives of sources.
    parts = own / "parts"
    shell = "SOURCES Dir::Etc::sourcelist/f PARTS Dir::Etc::sourceparts/d"
    done = subprocess.run(
        ["apt-config", "shell", *shell.split()],
        capture_output=True,
        text=True,
        check=False,
    )
    places = dict(word.split("=", 1) for word in shlex.split(done.stdout))
    directory = Path(places.get("PARTS", "/etc/apt/sources.list.d"))
    files = [Path(places.get("SOURCES", "/etc/apt/sources.list"))]
    files += sorted([*directory.glob("*.list"), *directory.glob("*.sources")])
    for old in parts.iterdir():
        old.unlink()
    for number, file in enumerate(files):
        if file.is_file() and (
            text := as_sources(
                file.read_text(errors="replace"), file.suffix == ".sources"
            )
        ):
            (
                parts
                / f"{number:03d}{'.sources' if file.suffix == '.sources' else '.list'}"
            ).write_text(text)
    if not any(parts.iterdir()):
        raise MeasureError(
            "no archive is configured for apt",
            place=str(files[0]),
            remedy="add one (see sources.list(5)), or give an unpacked source by --source",
        )
    settings = {
        "Dir::Etc::SourceList": "/dev/null",
        "Dir::Etc::SourceParts": str(own / "parts"),
        "Dir::State::Lists": str(own / "lists"),
        "Dir::Cache": str(own / "cache"),
        "Acquire::Retries": "2",
        "Acquire::http::Timeout": str(TIMEOUT),
        "Acquire::https::Timeout": str(TIMEOUT),
        **({"APT::Sandbox::User": "root"} if os.geteuid() == 0 else {}),
    }
    apt = [
        "apt-get",
        *(
            list(
                chain.from_iterable(
                    ("-o", f"{name}={value}") for name, value in settings.items()
                )
            )
        ),
    ]
    network = "are the archives of /etc/apt reachable from here? the same command continues where this one stopped"
    step([*apt, "update"], place, log, remedy=network, on_line=on_line)
    step(
        [*apt, "source", "--download-only", package],
        place,
        log,
        remedy=network,
        on_line=on_line,
    )
    descriptions = sorted(
        place.glob(f"{package}_*.dsc"), key=lambda path: path.stat().st_mtime
    )
    if not descriptions:
        raise MeasureError(f"apt-get fetched no source of {package}", place=str(log))
    return descriptions[-1]


def unpack_source(dsc: Path, place: Path, log: Path) -> Path:
    """Return the tree in ``dsc``, patched as the distribution patches it, as ``place``. Raises MeasureError."""
    shutil.rmtree(place, ignore_errors=True)
    # apt has verified the .dsc; its own signature is by a key that need not be on this machine.
    words = ["dpkg-source", "--no-check", "-x", dsc.name, str(place)]
    step(words, dsc.parent, log, remedy="install dpkg-dev")
    return place


def source_version(dsc: Path) -> str:
    """Return the version that a ``.dsc`` is of. Raises MeasureError."""
    match = re.search(
        r"^Version: ([A-Za-z0-9.+~:-]+)$",
        dsc.read_text(encoding="utf-8", errors="replace"),
        re.MULTILINE,
    )
    if match is None:
        raise MeasureError(
            "says no version", place=str(dsc), remedy="remove it, and try again"
        )
    return match[1]


def as_sources(text: str, stanzas: bool) -> str:
    """Return what a list of apt's (``stanzas``: one in the deb822 form) configures, as archives of sources alone.

    Source: sources.list(5). Empty when it configures nothing, or nothing that is enabled.
    """
    if not stanzas:
        entries = (
            re.sub(r"^deb(-src)?(?=\s)", "deb-src", line.strip())
            for line in text.splitlines()
        )
        return "".join(
            f"{entry}\n"
            for entry in dict.fromkeys(entries)
            if entry.startswith("deb-src")
        )
    kept = []
    for stanza in re.split(r"\n\s*\n", text):
        lines = [line for line in stanza.splitlines() if not line.startswith("#")]
        types = [line for line in lines if re.match(r"(?i)types:.*\bdeb\b", line)]
        disabled = any(
            re.match(r"(?i)enabled:\s*(no|false|0|off|disable|without)\b", line)
            for line in lines
        )
        if types and not disabled:
            kept.append(
                "\n".join(
                    re.sub(r"(?i)^types:.*", "Types: deb-src", line) for line in lines
                )
                + "\n"
            )
    return "\n".join(kept)
