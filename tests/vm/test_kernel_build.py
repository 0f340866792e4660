"""``iodelta kernel build``: what is built, what is kept, how it is named, and what is said of a source that fails."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from bisection.toy import Toy
from click.testing import CliRunner

from iodelta.cli.main import cli
from iodelta.errors import IodeltaError, MeasureError
from iodelta.machine import vm
from iodelta.vm import builds, disks, kernels, targets
from iodelta.vm.modules import Modules
from iodelta.vm.spec import Disk, parse

HEADER = f"{'':514}HdrS{'':8}\\0\\3{'':752}"
"""Of a bzImage, up to its release (Documentation/arch/x86/boot.rst), as printf takes it."""

MAKEFILE = f"""\
image = $(O)/arch/x86/boot/bzImage
tinyconfig: ; echo CONFIG_TINY=y >$(O)/.config
olddefconfig: ; grep -v NO_SUCH $(O)/.config >$(O)/.new; mv $(O)/.new $(O)/.config
bzImage:
\t@for n in `seq 60`; do echo "  CC      part$$n.o"; done; echo made >>@LOG@
\t@if grep -q broken speed; then echo "speed.c:7:1: error: no such speed" >&2; exit 1; fi
\tmkdir -p $(dir $(image))
\tprintf '{HEADER}6.12.9$(LOCALVERSION) x\\0' >$(image); cat speed >>$(image)
"""


def test_a_kernel_that_is_built_has_what_a_guest_with_a_clock_and_a_disk_needs() -> None:
    """It had no virtio, so that it booted for counted instructions alone."""
    options = dict(re.findall(r"^CONFIG_(\w+)=(.*)$", builds.BASE.read_text(), re.MULTILINE))
    loadable = Modules("", options)
    console = ("virtio_pci", "virtio_console")
    for needed in (console, (*console, *disks.modules([Disk()])), (*console, *targets.find("null_blk").modules)):
        assert loadable.needed(needed).missing == {}
    assert loadable.needed(["nvme"]).missing == {"nvme": "needs nvme: kernel has no CONFIG_BLK_DEV_NVME"}
    # Each is asked for only below others (Kconfig of drivers/virtio, drivers/block and drivers/char).
    for name in ("PCI", "TTY", "BLK_DEV", "VIRTIO_MENU", "VIRTIO", "VIRTIO_PCI", "VIRTIO_CONSOLE", "VIRTIO_BLK"):
        assert options[name] == "y"


def test_a_kernel_that_is_built_has_the_cpus_nodes_and_ublk_of_a_guest() -> None:
    """It had one CPU whatever the guest had, so that jobs, queues and NUMA nodes could not be compared."""
    options = dict(re.findall(r"^CONFIG_(\w+)=(.*)$", builds.BASE.read_text(), re.MULTILINE))
    assert (options["SMP"], options["NUMA"], options["X86_64_ACPI_NUMA"]) == ("y", "y", "y")
    assert int(options["NR_CPUS"]) >= parse("6.12,cpus=64").cpus
    assert 1 << int(options["NODES_SHIFT"]) >= parse("6.12,cpus=64,nodes=64").nodes
    assert Modules("", options).needed(targets.find("ublk-null").modules).missing == {}


def test_a_guest_of_more_cpus_or_nodes_than_its_kernel_sees_is_refused_before_it_boots(tmp_path: Path) -> None:
    """It came up with one CPU, and said nothing."""
    config = tmp_path / "config"
    config.write_text("# CONFIG_SMP is not set\nCONFIG_ACPI=y\nCONFIG_VIRTIO_PCI=y\nCONFIG_VIRTIO_CONSOLE=y\n")
    alone = kernels.Kernel("6.12.9", "6.12.9", str(tmp_path / "bzImage"), config=str(config))
    assert alone.lacks(1, 1) == []
    assert alone.lacks(4, 2) == [
        "needs cpus=4: kernel has no CONFIG_SMP",
        "needs nodes=2: kernel has no CONFIG_ACPI_NUMA",
    ]
    with pytest.raises(MeasureError, match="needs cpus=4: kernel has no CONFIG_SMP"):
        vm._base(parse("6.12,cpus=4"), alone)
    config.write_text("CONFIG_SMP=y\nCONFIG_ACPI_NUMA=y\n")
    assert alone.lacks(4, 2) == []


class Tree(Toy):
    """A repository that is made as a kernel is, in no time."""

    def __init__(self, path: Path, log: Path) -> None:
        super().__init__(path)
        self._log = log
        (path / "Makefile").write_text(MAKEFILE.replace("@LOG@", str(log)))

    @property
    def builds(self) -> int:
        """How often the kernel was compiled."""
        return len(self._log.read_text().splitlines()) if self._log.exists() else 0


class Done(NamedTuple):
    """A finished command: its exit code, and what it said."""

    exit_code: int
    stdout: str
    stderr: str


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    monkeypatch.setenv("IODELTA_CACHE", str(tmp_path / "cache"))
    return Tree(tmp_path / "linux", tmp_path / "compiled")


@pytest.fixture
def build(tree: Tree) -> Callable[..., Done]:
    def run(*words: str) -> Done:
        done = CliRunner().invoke(cli, ["kernel", "build", str(tree.path), *words])
        error = done.exception
        if error is not None and not isinstance(error, IodeltaError | SystemExit):
            raise error
        if isinstance(error, IodeltaError):
            return Done(error.exit_code, done.stdout, f"{done.stderr}{error}")
        return Done(done.exit_code, done.stdout, done.stderr)

    return run


def test_a_kernel_is_known_by_the_name_that_is_printed_and_is_built_once(
    tree: Tree, build: Callable[..., Done]
) -> None:
    commit = tree.commit("fast")
    before = tree.untouched()
    done = build()
    assert done.exit_code == 0, done.stderr
    name = done.stdout.strip()
    assert name.startswith(f"6.12.9-g{commit[:12]}.")
    assert kernels.find(name).release == name
    assert kernels.find(name).options()["BLK_DEV_NULL_BLK"] == "y"
    assert name in CliRunner().invoke(cli, ["kernel", "list"]).stdout
    assert build("--rev", "HEAD").stdout.strip() == name
    assert (tree.builds, tree.untouched()) == (1, before)


def test_a_series_never_means_a_kernel_that_was_built_here(tree: Tree, build: Callable[..., Done]) -> None:
    tree.commit("fast")
    assert build().exit_code == 0
    with pytest.raises(MeasureError, match=r"no kernel '6\.12'"):
        kernels.find("6.12")


def test_another_commit_configuration_or_compiler_is_another_kernel(
    tree: Tree, build: Callable[..., Done], tmp_path: Path
) -> None:
    tree.commit("fast")
    tree.commit("slow")
    (tmp_path / "more.config").write_text("CONFIG_MORE=y\n")
    more = ("--config", str(tmp_path / "more.config"))
    names = [build(*words).stdout.strip() for words in ((), ("--rev", "HEAD~1"), more, ("--compiler", "cc"))]
    assert len(set(names)) == len([name for name in names if name]) == 4
    assert kernels.find(names[2]).options()["MORE"] == "y"
    images = [Path(kernels.find(name).image).read_bytes() for name in names]
    assert [image[-5:] for image in images] == [b"slow\n", b"fast\n", b"slow\n", b"slow\n"]


def test_both_ends_of_a_range_are_built_and_one_that_fails_is_named_with_the_compilers_error(
    tree: Tree, build: Callable[..., Done]
) -> None:
    commits = [tree.commit(speed) for speed in ("older", "first", "broken", "last")]
    done = build("--rev", "HEAD~2..HEAD")
    assert [name.partition("-g")[2][:12] for name in done.stdout.split()] == [commits[1][:12], commits[3][:12]]
    assert done.exit_code == 2
    assert f"{commits[2][:12]} does not build" in done.stderr
    assert "speed.c:7:1: error: no such speed" in done.stderr
    assert "kernel 1 of 3: compiling" in done.stderr
    assert len(done.stderr.splitlines()) < 30, "a line for each step, not for each file"


def test_what_is_not_committed_is_built_each_time_and_named_so(tree: Tree, build: Callable[..., Done]) -> None:
    tree.commit("fast")
    (tree.path / "speed").write_text("changed\n")
    name = build().stdout.strip()
    assert "-local." in name
    assert Path(kernels.find(name).image).read_bytes().endswith(b"changed\n")
    (tree.path / "speed").write_text("again\n")
    assert build().stdout.strip() == name
    assert Path(kernels.find(name).image).read_bytes().endswith(b"again\n")


def test_an_option_that_the_kernel_does_not_take_is_said(
    tree: Tree, build: Callable[..., Done], tmp_path: Path
) -> None:
    tree.commit("fast")
    (tmp_path / "more.config").write_text("CONFIG_NO_SUCH=y\n# CONFIG_IO_URING is not set\nCONFIG_TINY=y\n")
    for _ in range(2):  # also of a kernel from the cache
        done = build("--config", str(tmp_path / "more.config"))
        assert "CONFIG_NO_SUCH=y" in done.stderr
        assert "CONFIG_TINY" not in done.stderr


def test_a_tree_that_was_built_in_is_refused_and_a_worktree_of_it_is_built(
    tree: Tree, build: Callable[..., Done]
) -> None:
    tree.commit("fast")
    (tree.path / ".config").write_text("CONFIG_OWN=y\n")
    done = build()
    assert done.exit_code == 2
    assert "--rev HEAD" in done.stderr
    assert build("--rev", "HEAD").exit_code == 0


def test_a_directory_that_holds_something_else_is_not_replaced(
    tree: Tree, build: Callable[..., Done], tmp_path: Path
) -> None:
    tree.commit("fast")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "thesis.tex").write_text("all of it")
    assert build("--into", str(tmp_path / "own")).exit_code == 2
    assert (tmp_path / "own" / "thesis.tex").read_text() == "all of it"
    tree.commit("slow")
    done = build("--rev", "HEAD~1..HEAD", "--into", str(tmp_path / "put"))
    assert (done.exit_code, "--rev names 2 commits, and one kernel goes there" in done.stderr) == (2, True)
    assert tree.builds == 0, "a build takes half an hour: what cannot be put is refused before"
    for _ in range(2):
        assert build("--into", str(tmp_path / "put")).exit_code == 0
    assert kernels.find(str(tmp_path / "put")).release.startswith("6.12.9-g")


def test_names_are_also_a_document(tree: Tree, build: Callable[..., Done]) -> None:
    tree.commit("fast")
    told = json.loads(build("--format", "json").stdout)
    listed = json.loads(CliRunner().invoke(cli, ["kernel", "list", "--format", "json"]).stdout)
    assert told["built"] == listed["built"]
    assert len(told["built"]) == 1


def test_a_compiler_that_is_missing_is_named_with_everything_else_that_is(
    tree: Tree, build: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = tree.commit("fast")
    known = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, **more: None if name in ("gcc", "make") else known(name, **more))
    for words in ((), ("--rev", commit)):
        done = build(*words)
        assert done.exit_code == 4
        assert "programs that are missing: make, gcc" in done.stderr
        assert "apt-get install make gcc" in done.stderr
