"""A static fio and ``t/io_uring``, from the distribution's source of fio, in the cache.

Static, and for no CPU in particular, so that the same file runs in a guest that has nothing else. No distribution's
fio package has ``t/io_uring``. An interrupted build continues; one that is whole is kept with its files' sums.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from iodelta.decoding import from_json
from iodelta.errors import MeasureError
from iodelta.tools.cache import cache, held
from iodelta.tools.debian import fetch_source, source_version, unpack_source
from iodelta.tools.steps import step

REMEDY = "`iodelta fio build` makes it, in about a minute"
"""What to say where it is missing."""

ENGINES = ("libaio", "io_uring", "psync", "mmap", "null")
"""Engines that a build must have."""

PROGRAMS = {"fio": "fio", "io_uring": "t/io_uring"}
"""File in the cache -> file in fio's tree."""

_RECORD = "built.json"
_ROOM = 200 << 20


class BuiltFio(msgspec.Struct, frozen=True):
    """A whole build."""

    fio: Path
    """The static fio."""
    io_uring: Path
    """The static ``t/io_uring``."""
    version: str
    """Version of the source it was made from, as the distribution counts: ``3.33-3``."""


class _Record(msgspec.Struct, frozen=True):
    version: str
    compiler: str
    made: float
    sha256: dict[str, str]


def built_fio() -> BuiltFio | None:
    """Return the newest build in the cache whose files are as they were made; None when there is none."""
    builds = []
    for record in cache("fio").glob(f"[!.]*/{_RECORD}"):
        with contextlib.suppress(OSError, msgspec.DecodeError):
            record_read = from_json(record.read_bytes(), _Record)
            if all(
                record_read.sha256.get(name) == _sha256(record.parent / name)
                for name in PROGRAMS
            ):
                place = record.parent
                builds.append(
                    (
                        record_read.made,
                        BuiltFio(
                            place / "fio", place / "io_uring", record_read.version
                        ),
                    )
                )
    if not builds:
        return None
    return max(builds, key=lambda pair: pair[0])[1]


def build_fio(
    *,
    source: Path | None = None,
    on_step: Callable[[str, float | None], None] = lambda text, share: None,
) -> BuiltFio:
    """Make them, or finish what an interrupted build began; a build of the same version is replaced.

    ``source`` is an unpacked tree of fio; without one the distribution's source package is fetched. ``on_step`` is told
    what is being done, and the share of it that is done where that can be known. Raises MeasureError for what is
    missing, with how to get it.
    """
    fetching = source is None
    wanted = {
        "cc": "gcc",
        "make": "make",
        **({"dpkg-source": "dpkg-dev"} if fetching else {}),
    }
    if fetching and shutil.which("apt-get") is None:
        # Said better, with the way around it, when apt-get is missed.
        del wanted["dpkg-source"]
    missing = {
        package: f"{tool} ({package})"
        for tool, package in wanted.items()
        if shutil.which(tool) is None
    }
    compiler = "gcc" not in missing
    for header, package in (
        ("libaio.h", "libaio-dev"),
        ("linux/io_uring.h", "linux-libc-dev"),
    ):
        if not (_has_header(header) if compiler else _is_installed(header)):
            missing[package] = f"{header} ({package})"
    if missing:
        raise MeasureError(
            f"to build fio there is missing: {', '.join(missing.values())}",
            place="fio build",
            remedy=f"apt-get install {' '.join(missing)}, or what your distribution calls it",
        )
    place = cache("fio")
    try:
        making = place / ".making"
        making.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(making).free < _ROOM:
            raise MeasureError(
                f"less than {_ROOM >> 20} MiB are free",
                place=str(place),
                remedy="free some space, or set IODELTA_CACHE to another place",
            )
        with held(making, lambda text: on_step(text, None)) as waited:
            if waited and source is None and (built := built_fio()):
                return built
            log = making / "log"
            log.write_text("")
            if source is None:
                on_step("fetching the distribution's source of fio", None)
                dsc = fetch_source("fio", making, log)
                version, tree = source_version(dsc).replace(":", "_"), making / "tree"
                if _unpacked(tree) != dsc.name:
                    on_step(f"unpacking {dsc.name}", None)
                    unpack_source(dsc, tree, log)
                    (tree / ".iodelta").write_text(dsc.name)
            else:
                tree = making / "given"
                shutil.rmtree(tree, ignore_errors=True)
                shutil.copytree(source, tree, symlinks=True)
                version = ""
            on_step("configuring", None)
            static = [
                "./configure",
                "--build-static",
                "--disable-native",
                "--disable-numa",
                "--disable-rdma",
                "--disable-http",
            ]
            output = step(static, tree, log, remedy=f"see {log}")
            if not re.search(r"^Linux AIO support\s+yes", output, re.MULTILINE):
                raise MeasureError(
                    "fio's configure finds no libaio",
                    place=str(log),
                    remedy="apt-get install libaio-dev",
                )
            _make(tree, log, on_step)
            on_step("verifying", None)
            version_built = _verified(tree, log)
            return _kept(place, making, tree, version or version_built)
    except OSError as error:
        raise MeasureError(
            f"cannot build: {error.strerror}",
            place=str(error.filename or place),
            remedy="is there room, and may you write?",
        ) from error


def _make(tree: Path, log: Path, on_step: Callable[[str, float | None], None]) -> None:
    targets = list(PROGRAMS.values())
    planned = step(["make", "-n", *targets], tree, log, remedy=f"see {log}").count(
        "echo '  "
    )
    done = 0

    def line(text: str) -> None:
        nonlocal done
        if re.match(r"\s+(CC|LINK|AR)\s", text):
            done += 1
            on_step("compiling", min(1.0, done / max(1, planned)))

    jobs = len(os.sched_getaffinity(0))
    step(["make", f"-j{jobs}", *targets], tree, log, remedy=f"see {log}", on_line=line)


def _verified(tree: Path, log: Path) -> str:
    """Return the version that the new fio gives itself, which does I/O, as does the new t/io_uring. Raises
    MeasureError.
    """
    for built in PROGRAMS.values():
        headers = (tree / built).read_bytes()[:4096]
        if headers[:4] != b"\x7fELF" or b"ld-linux" in headers or b"ld-musl" in headers:
            raise MeasureError(
                f"{built} was not linked statically",
                place=str(log),
                remedy="is libc6-dev whole?",
            )
    version = step(["./fio", "--version"], tree, log, remedy=f"see {log}").strip()
    engines = step(["./fio", "--enghelp"], tree, log, remedy=f"see {log}").split()
    lacking = [engine for engine in ENGINES if engine not in engines]
    if lacking:
        raise MeasureError(
            f"the new fio has no engine {', '.join(lacking)}", place=str(log)
        )
    job = "--name=try --ioengine=null --rw=read --size=1m --thread --output-format=json --eta=never"
    if '"io_bytes" : 1048576' not in step(
        ["./fio", *job.split()], tree, log, remedy=f"see {log}"
    ):
        raise MeasureError("the new fio does not do a job's I/O", place=str(log))
    return version.removeprefix("fio-")


def _kept(place: Path, making: Path, tree: Path, version: str) -> BuiltFio:
    """Put the programs into the cache, all at once."""
    with tempfile.TemporaryDirectory(dir=making) as draft:
        sums = {}
        for name, built in PROGRAMS.items():
            shutil.copy2(tree / built, Path(draft, name))
            subprocess.run(
                ["strip", str(Path(draft, name))], check=False, capture_output=True
            )
            sums[name] = _sha256(Path(draft, name))
        compiler = subprocess.run(
            ["cc", "--version"], capture_output=True, text=True, check=False
        ).stdout.split("\n")[0]
        record = _Record(version, compiler, Path(draft, "fio").stat().st_mtime, sums)
        Path(draft, _RECORD).write_bytes(msgspec.json.encode(record))
        final = place / version
        shutil.rmtree(final, ignore_errors=True)
        shutil.copytree(draft, making / "whole", dirs_exist_ok=True)
        (making / "whole").rename(final)
    for scrap in ("tree", "given", "apt"):
        shutil.rmtree(making / scrap, ignore_errors=True)
    return BuiltFio(final / "fio", final / "io_uring", version)


def _has_header(name: str) -> bool:
    words = ["cc", "-E", "-x", "c", "-"]
    done = subprocess.run(
        words, input=f"#include <{name}>\n".encode(), capture_output=True, check=False
    )
    return done.returncode == 0


def _is_installed(name: str) -> bool:
    """Return whether a header is where distributions put it: nothing can be compiled without a compiler."""
    places = (Path("/usr/include"), *Path("/usr/include").glob("*-linux-gnu"))
    return any((place / name).is_file() for place in places)


def _unpacked(tree: Path) -> str:
    try:
        return (tree / ".iodelta").read_text()
    except OSError:
        return ""


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
