"""A static fio and t/io_uring from source: what is asked of apt, what is missing, what is kept."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from iodelta.cli.main import cli
from iodelta.errors import MeasureError
from iodelta.tools import fio
from iodelta.tools.debian import as_sources
from iodelta.tools.fio import build_fio, built_fio

PROGRAM = """
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "--version")) puts("fio-9.9");
    else if (argc > 1 && !strcmp(argv[1], "--enghelp")) puts("libaio io_uring psync mmap null");
    else puts("\\"io_bytes\\" : 1048576,");
    return 0;
}
"""
MAKEFILE = """
all: fio t/io_uring
fio t/io_uring: main.c
\t@echo '    CC' $@; $(CC) -static -o $@ main.c
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IODELTA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree that is made as fio's is, in a second."""
    place = tmp_path / "fio-9.9"
    (place / "t").mkdir(parents=True)
    (place / "main.c").write_text(PROGRAM)
    (place / "Makefile").write_text(MAKEFILE)
    (place / "configure").write_text("#!/bin/sh\necho 'Linux AIO support             yes'\n")
    (place / "configure").chmod(0o755)
    return place


def test_every_configured_archive_is_asked_for_sources() -> None:
    one_line = "# deb http://a/ x main\ndeb [signed-by=/k] http://a/debian x main contrib\ndeb-src http://b/ x main\n"
    assert as_sources(one_line, stanzas=False) == (
        "deb-src [signed-by=/k] http://a/debian x main contrib\ndeb-src http://b/ x main\n"
    )
    stanzas = "Types: deb\n# a comment\nURIs: http://a/debian\nSuites: x\nComponents: main\nSigned-By: /k\n"
    assert as_sources(stanzas, stanzas=True) == stanzas.replace("Types: deb", "Types: deb-src").replace(
        "# a comment\n", ""
    )


@pytest.mark.parametrize("said", ["no", "No", "false", "0"])
def test_a_disabled_archive_is_not_asked(said: str) -> None:
    assert as_sources(f"Enabled: {said}\nTypes: deb\nURIs: http://a/\nSuites: x\n", stanzas=True) == ""


def test_a_build_is_whole_or_not_there(cache: Path, tree: Path) -> None:
    told: list[str] = []
    made = build_fio(source=tree, on_step=lambda text, share: told.append(text))
    assert built_fio() == made
    assert made.version == "9.9"
    assert made.fio.parent == cache / "fio/9.9"
    assert told[0] == "configuring"
    assert "compiling" in told
    made.io_uring.write_bytes(made.io_uring.read_bytes()[:1000])
    assert built_fio() is None


def test_a_build_waits_for_another_one_and_is_then_made(cache: Path, tree: Path) -> None:
    making = cache / "fio/.making"
    making.mkdir(parents=True)
    other = os.open(making, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    steps: list[str] = []

    def on_step(text: str, share: float | None) -> None:
        steps.append(text)
        if text.startswith("waiting"):
            os.close(other)  # the other build ends

    assert build_fio(source=tree, on_step=on_step) == built_fio()
    assert steps[:2] == [f"waiting for another build in {making}", "configuring"]


def test_a_tree_that_does_not_compile_is_told_with_the_compilers_words(cache: Path, tree: Path) -> None:
    (tree / "main.c").write_text("no program\n")
    with pytest.raises(MeasureError, match=r"(?s)`make -j\d+` ended with 2.*error") as raised:
        build_fio(source=tree)
    assert Path(raised.value.place).is_file()
    assert built_fio() is None


def test_a_fio_without_libaio_is_refused(cache: Path, tree: Path) -> None:
    (tree / "configure").write_text("#!/bin/sh\necho 'Linux AIO support             no'\n")
    with pytest.raises(MeasureError, match="libaio") as raised:
        build_fio(source=tree)
    assert "libaio-dev" in raised.value.remedy


def test_a_dynamic_program_is_refused(cache: Path, tree: Path) -> None:
    (tree / "Makefile").write_text(MAKEFILE.replace("-static ", ""))
    with pytest.raises(MeasureError, match="not linked statically"):
        build_fio(source=tree)


@pytest.mark.parametrize("compiles", [False, True], ids=["without a compiler", "with one"])
def test_all_that_is_missing_is_named_at_once(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiles: bool
) -> None:
    monkeypatch.setattr(fio, "_is_installed", lambda name: False)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/apt-get").symlink_to("/bin/true")
    if compiles:
        (tmp_path / "bin/cc").symlink_to("/bin/false")  # finds no header
    done = CliRunner(env={"PATH": str(tmp_path / "bin"), "IODELTA_CACHE": str(cache)}).invoke(cli, ["fio", "build"])
    assert isinstance(done.exception, MeasureError)
    assert done.exception.exit_code == 4
    for word in ("make", "dpkg-dev", "libaio-dev", *(() if compiles else ("gcc",))):
        assert word in done.exception.what
        assert word in done.exception.remedy


def test_no_archive_for_apt_is_said_with_what_to_add(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "etc/sources.list.d").mkdir(parents=True)
    (tmp_path / "apt.conf").write_text(f'Dir::Etc "{tmp_path}/etc";\n')
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    with pytest.raises(MeasureError, match="no archive is configured"):
        build_fio()


def test_an_archive_that_cannot_be_reached_is_told_in_apts_words(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/sources.list").write_text(f"deb [trusted=yes] file:{tmp_path}/nothing x main\n")
    (tmp_path / "apt.conf").write_text(f'Dir::Etc "{tmp_path}/etc";\n')
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    with pytest.raises(MeasureError, match="nothing") as raised:
        build_fio()
    assert "reachable" in raised.value.remedy


def test_the_build_of_this_machine_is_static_and_does_io(tmp_path: Path) -> None:
    built = built_fio()
    if built is None:
        pytest.skip("needs `iodelta fio build`, which scripts/setup runs for CI")
    (tmp_path / "data").write_bytes(os.urandom(1 << 20))
    job = "--name=a --ioengine=libaio --rw=read --direct=0 --size=1m --output-format=json --eta=never --thread"
    done = subprocess.run(
        [built.fio, *job.split(), f"--filename={tmp_path}/data"], env={}, capture_output=True, check=True
    )
    assert json.loads(done.stdout)["jobs"][0]["read"]["io_bytes"] == 1 << 20
    usage = subprocess.run([built.io_uring], env={}, capture_output=True, text=True, check=False)
    assert "Use registered ring" in usage.stdout + usage.stderr
