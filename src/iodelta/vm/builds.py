"""A kernel built from a source tree, outside of the tree, and kept by commit, configuration and compiler.

``make`` runs in a build directory of its own for each source, configuration and compiler, so another revision of the
same source compiles only what it changes. What was built is named by its release, which holds the commit and a digest
of the rest: ``6.12.117-g0123456789ab.4f2a1c``.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

import msgspec

from iodelta.decoding import from_json
from iodelta.errors import MeasureError, RequestError
from iodelta.tools.cache import cache, held
from iodelta.tools.steps import step
from iodelta.vm import kernels

BASE = Path(__file__).with_name("guest.config")
"""The options of every kernel that is built, on top of ``make tinyconfig``."""

WORK = "kernel-work"
"""Build directories, in the cache."""

NEEDS = {
    "scripts/kconfig/lexer.l": ("flex", "flex"),
    "scripts/kconfig/parser.y": ("bison", "bison"),
    "kernel/time/timeconst.bc": ("bc", "bc"),
}
"""File of a source tree -> the program that the build needs for it, and that program's package."""

IMAGE = "arch/x86/boot/bzImage"
STEPS = 1600
"""Files that a first build of Linux 6.12 compiles, links and writes, about."""

ROOM = 1 << 30
"""Bytes that a first build takes, with some to spare."""

ERRORS = 3
"""Compiler errors that are shown before the last lines of a log."""

SOME = 100
"""Files between progress messages of a build whose length is not known."""

OnStep = Callable[[str, float | None], None]


class Recipe(msgspec.Struct, frozen=True):
    """How a kernel is built."""

    config: str = ""
    """Lines of a kernel configuration; they win over those of ``BASE``."""
    compiler: str = "gcc"
    jobs: int = 1

    def digest(self, tree: str = "") -> str:
        """Six digits for configuration and compiler, and for the tree if no commit describes it."""
        whole = "\0".join(
            (BASE.read_text(), self.config, compiler_version(self.compiler), tree)
        )
        return hashlib.sha256(whole.encode()).hexdigest()[:6]


class Source(msgspec.Struct, frozen=True):
    """Where a kernel is built from."""

    tree: str
    """An absolute path. Nothing is written to it."""
    commit: str = ""
    """Full hash of the tree's commit; empty if it has uncommitted changes or is not in git."""


class Build(msgspec.Struct, frozen=True):
    """The record of a kernel that was built."""

    commit: str
    tree: str
    compiler: str
    sha256: str
    """Of the image."""
    steps: int
    """Lines in make's output that name a file."""
    seconds: float


class BuildError(RequestError):
    """The source does not build. Exit 2."""


def build(
    source: Source,
    recipe: Recipe,
    on_step: OnStep,
    *,
    reach: Callable[[], None] = lambda: None,
    again: bool = False,
) -> tuple[kernels.Kernel, list[str]]:
    """Return the kernel, from the cache or built now, and the requested options that it does not have.

    A tree with uncommitted changes is passed to ``make`` each time. ``reach`` brings the tree to the commit. Raises
    BuildError, RequestError for a tree that cannot be built outside of itself, MeasureError for missing tools.
    """
    if shutil.which(recipe.compiler) is None:
        # Its version is part of the kernel's name, so stop here, and name all missing tools at once.
        reach()
        _check_tools(Path(source.tree), recipe.compiler)
    revision = f"g{source.commit[:12]}" if source.commit else "local"
    suffix = f"-{revision}.{recipe.digest('' if source.commit else source.tree)}"
    if source.commit and not again:
        for kernel in kernels.built():
            if kernel.name.endswith(suffix):
                return kernel, unmet(recipe.config, kernel.options())
    reach()
    _check_tree(source.tree)
    _check_tools(Path(source.tree), recipe.compiler)
    work = cache(
        WORK,
        hashlib.sha256(f"{source.tree}\0{recipe.digest()}".encode()).hexdigest()[:16],
    )
    try:
        work.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(work).free < ROOM:
            raise MeasureError(
                "No space left on device: a build takes 1 GiB",
                place=str(work),
                remedy="free some space",
            )
        with held(work, lambda text: on_step(text, None)):
            return _made(source, recipe, suffix, work, on_step)
    except OSError as error:
        raise MeasureError(
            f"cannot build: {error.strerror}", place=str(error.filename or work)
        ) from error


def unmet(config: str, options: dict[str, str]) -> list[str]:
    """Return the lines of ``config`` that a kernel's configuration does not follow."""
    wanted: dict[str, str] = {}
    for match in re.finditer(
        r"^CONFIG_(\w+)=(.*)$|^# CONFIG_(\w+) is not set$", config, re.MULTILINE
    ):
        wanted[match[1] or match[3]] = match[2] or "n"
    return [
        f"CONFIG_{name}={value}"
        for name, value in wanted.items()
        if options.get(name, "n") != value
    ]


def compiler_version(compiler: str) -> str:
    """Return the first line of its ``--version``. Raises MeasureError."""
    try:
        done = subprocess.run(
            [compiler, "--version"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise MeasureError(
            "the compiler does not run",
            place=compiler,
            remedy="install it again, or name another one by --compiler",
        ) from error
    return done.stdout.partition("\n")[0]


def _made(
    source: Source, recipe: Recipe, suffix: str, work: Path, on_step: OnStep
) -> tuple[kernels.Kernel, list[str]]:
    log = work / "log"
    log.write_text("")
    make = _make(source, recipe, suffix, work)
    began = time.monotonic()
    on_step("configuring", None)
    _run([*make, "tinyconfig"], source, log)
    with (work / ".config").open("a", encoding="utf-8") as configuration:
        configuration.write(f"\n{BASE.read_text()}\n{recipe.config}\n")
    _run([*make, "olddefconfig"], source, log)
    modules = "\nCONFIG_MODULES=y" in (work / ".config").read_text()
    steps = _compiled(
        [*make, "bzImage", *(["modules"] if modules else [])],
        source,
        work,
        log,
        on_step,
    )
    draft = work / "whole"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    if modules:
        on_step("installing modules", None)
        install = [
            f"INSTALL_MOD_PATH={draft}",
            "INSTALL_MOD_STRIP=1",
            "DEPMOD=true",
            "modules_install",
        ]
        _run([*make, *install], source, log)
        for link in (
            *draft.glob("lib/modules/*/build"),
            *draft.glob("lib/modules/*/source"),
        ):
            link.unlink()  # they point into the source tree, which may change
    kernel = _kept(source, recipe, suffix, work, steps, time.monotonic() - began)
    return kernel, unmet(recipe.config, kernel.options())


def _make(source: Source, recipe: Recipe, suffix: str, work: Path) -> list[str]:
    """make, with fixed values for what would come from the environment, the clock and the host's name: the same source
    then gives the same kernel."""
    alone = chain.from_iterable(
        ("-u", name) for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "KCFLAGS", "LLVM")
    )
    stamps = ("TIMESTAMP=2026-01-01", "VERSION=1", "USER=iodelta", "HOST=iodelta")
    return [
        *(
            "env",
            *alone,
            "make",
            "-C",
            source.tree,
            f"O={work}",
            "ARCH=x86_64",
            f"-j{recipe.jobs}",
        ),
        *(
            f"CC={recipe.compiler}",
            f"HOSTCC={recipe.compiler}",
            f"LOCALVERSION={suffix}",
        ),
        *(f"KBUILD_BUILD_{stamp}" for stamp in stamps),
    ]


def _run(
    words: Sequence[str],
    source: Source,
    log: Path,
    on_line: Callable[[str], None] = lambda line: None,
) -> None:
    """One command of a build. Raises BuildError with the compiler's first errors and the last lines of the log."""
    try:
        step(words, Path(source.tree), log, remedy="", on_line=on_line)
    except MeasureError as error:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        errors = [line for line in lines if re.search(r"\b(fatal )?error: ", line)][
            :ERRORS
        ]
        last = [line for line in lines[-12:] if line not in errors]
        raise BuildError(
            "\n  ".join(
                (f"{source.commit[:12] or source.tree} does not build", *errors, *last)
            ),
            place=str(log),
            remedy="the log contains the whole output of make; its first lines give the command that repeats the build",
        ) from error


def _compiled(
    words: Sequence[str], source: Source, work: Path, log: Path, on_step: OnStep
) -> int:
    """Build, and count the lines of make that name a file. Their number is known in advance for a first build only."""
    first = not (work / IMAGE).exists()
    expected = max((one.steps for one in _records()), default=STEPS)
    done = 0

    def line(text: str) -> None:
        nonlocal done
        if re.match(r"\s+[A-Z][A-Z0-9_-]+\s+(\[M\]\s+)?\S", text):
            done += 1
            if first:
                some = (
                    f", {done - done % SOME} of about {expected} files"
                    if done >= SOME
                    else ""
                )
                on_step(f"compiling{some}", min(0.99, done / expected))
            elif done % SOME == 1:
                on_step(
                    f"compiling, {done} files"
                    if done > 1
                    else "compiling what changed",
                    None,
                )

    _run(words, source, log, line)
    return done


def _records() -> list[Build]:
    """Of all kernels in the cache; a damaged one is left out."""
    builds = []
    for path in cache(kernels.BUILDS).glob("*/built.json"):
        try:
            builds.append(from_json(path.read_bytes(), Build))
        except (OSError, msgspec.DecodeError):
            continue
    return builds


def _kept(
    source: Source, recipe: Recipe, suffix: str, work: Path, steps: int, seconds: float
) -> kernels.Kernel:
    """Put image, configuration and modules into the cache, all at once."""
    place, draft, image = cache(kernels.BUILDS), work / "whole", work / IMAGE
    if not image.is_file():
        raise BuildError(
            f"make succeeded, but did not make {IMAGE}",
            place=source.tree,
            remedy="is this a Linux source tree?",
        )
    shutil.copyfile(image, draft / "bzImage")
    shutil.copyfile(work / ".config", draft / "config")
    release = kernels.version(image.read_bytes(), str(image)).partition(" ")[0]
    digest = kernels.digest(str(image))
    record = Build(
        source.commit,
        source.tree,
        compiler_version(recipe.compiler),
        digest,
        steps,
        seconds,
    )
    (draft / "built.json").write_bytes(msgspec.json.encode(record))
    name = release if release.endswith(suffix) else f"{release}{suffix}"
    final = place / name
    place.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(final, ignore_errors=True)
    draft.rename(final)
    return kernels.find(name)


def _check_tree(tree: str) -> None:
    """Raises RequestError unless it is a kernel source that was not built in place."""
    if not Path(tree, "Makefile").is_file():
        raise RequestError("no Makefile here: not a source tree of Linux", place=tree)
    if Path(tree, ".config").exists() or Path(tree, "include/config").is_dir():
        raise RequestError(
            "a kernel was configured or built in this tree, so none can be built outside of it",
            place=tree,
            remedy="`--rev HEAD` builds what is committed, in a worktree; or copy .config and `make mrproper`",
        )


def _check_tools(tree: Path, compiler: str) -> None:
    """Raises MeasureError that names all that is missing to build this tree."""
    wanted = {"make": "make", compiler: os.path.basename(compiler)}
    wanted |= {
        program: package
        for path, (program, package) in NEEDS.items()
        if (tree / path).exists()
    }
    missing = {
        program: package
        for program, package in wanted.items()
        if shutil.which(program) is None
    }
    if (tree / "tools/objtool").is_dir() and not any(
        Path("/usr/include").glob("**/libelf.h")
    ):
        missing["libelf.h"] = "libelf-dev"
    if missing:
        packages = " ".join(dict.fromkeys(missing.values()))
        raise MeasureError(
            f"building a kernel needs programs that are missing: {', '.join(missing)}",
            place="iodelta kernel build",
            remedy=f"apt-get install {packages}, or what your distribution calls it",
        )
