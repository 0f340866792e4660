"""``python -m benchmarks.kernel_bisect.history SOURCE``: make a kernel source tree a git repository with a history.

The tree becomes the first commit; on top come commits of which two make the block layer slower, some do not build, one
panics at boot, one hangs there and one boots without its block device. What they change is put beside anchors (the end
of a file, its last #include, the opening of a function), so it goes onto any kernel of about these years.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

BULKY = ("gpu", "net", "media", "scsi", "staging", "accel", "infiniband", "iio", "usb", "video", "pinctrl", "clk",
         "crypto", "sound", "phy", "soc", "mmc", "mtd", "hid", "input", "hwmon")  # fmt: skip
"""Directories of drivers whose sources are left out of the repository: the configuration builds none of them."""

LEFT_OUT = (
    *(f"/drivers/{name}/**/*.[chS]" for name in BULKY),
    *(f"/{name}/**/*.[chS]" for name in ("net", "sound", "samples", "tools/testing", "tools/perf")),
    "/Documentation/devicetree/",
    "/arch/[!x]*/**/*.[chS]",
    "/arch/*/boot/dts/",
)
"""As in .gitignore."""

Edit = Callable[[str], str]


@dataclass(frozen=True)
class Change:
    """One commit: its message and what it does to which files; or the subject of the earlier one that it reverts."""

    subject: str
    edits: tuple[tuple[str, Edit], ...] = ()
    reverts: str = ""


def at_end(text: str) -> Edit:
    """Put ``text`` at the end of a file."""
    return lambda old: f"{old.rstrip()}\n\n{text}"


def after_includes(text: str) -> Edit:
    """Put ``text`` behind a file's last #include."""

    def edit(old: str) -> str:
        last = [match.end() for match in re.finditer(r"^#include .*\n", old, re.MULTILINE)][-1]
        return f"{old[:last]}\n{text}{old[last:]}"

    return edit


def opening(function: str, text: str) -> Edit:
    """Put ``text`` first into a function, named by the line that defines it."""

    def edit(old: str) -> str:
        anchor = f"\n{function}\n{{\n"
        if old.count(anchor) != 1:
            raise SystemExit(f"{function!r} is there {old.count(anchor)} times: this kernel needs another anchor")
        return old.replace(anchor, anchor + text)

    return edit


def slower(subject: str, path: str, function: str, name: str, count: int) -> Change:
    """A culprit: every bio that comes by costs another ``count`` turns of a loop of four instructions."""
    helper = f"""\
static noinline u32 {name}(const struct bio *bio)
{{
	const u8 *byte = (const u8 *)bio;
	u32 digest = 2166136261u;
	int i;

	for (i = 0; i < {count}; i++)
		digest = (digest ^ READ_ONCE(byte[i])) * 16777619u;
	return digest;
}}

"""
    call = f"\tu32 digest __maybe_unused = {name}(bio);\n"
    return Change(subject, ((path, after_includes(helper)), (path, opening(function, call))))


def at_boot(subject: str, path: str, name: str, *body: str) -> Change:
    """A commit that does something once, at boot."""
    lines = "".join(f"\t{line}\n" for line in body)
    text = f"static int __init {name}(void)\n{{\n{lines}\treturn 0;\n}}\nlate_initcall({name});\n"
    return Change(subject, ((path, at_end(text)),))


def unbuildable(subject: str, path: str, statement: str) -> Change:
    """A commit that no compiler takes."""
    text = f"static int __used {Path(path).stem.replace('-', '_')}_next(void)\n{{\n\t{statement}\n}}\n"
    return Change(subject, ((path, at_end(text)),))


def comment(path: str, text: str) -> Change:
    """A commit that changes no instruction."""
    name = Path(path)
    text = f"{text}\n" if name.suffix == ".rst" else f"/* {text} */\n"
    return Change(f"{name.parent.name}: {name.stem}: say more", ((path, at_end(text)),))


def unused(path: str, name: str) -> Change:
    """A commit with code that is never run."""
    text = f"static int __maybe_unused {name}(int depth)\n{{\n\treturn depth > 0 ? depth - 1 : 0;\n}}\n"
    return Change(f"{Path(path).parent.name}: {Path(path).stem}: add a helper", ((path, at_end(text)),))


def revert(subject: str) -> Change:
    """The commit that takes an earlier one back."""
    return Change(f'Revert "{subject}"', reverts=subject)


SMALL = "block: keep a digest of completed bios"
LARGE = "blk-mq: keep a digest of submitted bios"
"""Subjects of the two culprits."""

PANICS = "block: name the first disk at boot"
HANGS = "block: wait for the disks at boot"
NO_DISK = "null_blk: check the platform first"
"""Subjects of those that build and cannot be measured."""


def changes() -> Iterator[Change]:
    """The history, oldest first. What is broken lies where a bisection looks first: the middle, the quarters."""
    yield comment("Documentation/block/null_blk.rst", "Devices can also be made one by one, through configfs.")
    yield unused("block/genhd.c", "genhd_depth_below")
    yield comment("block/blk-settings.c", "Limits are stacked from the lowest device up.")
    yield comment("fs/aio.c", "Completions are read from the ring without a system call.")
    yield at_boot("block: elevator: say a word at boot", "block/elevator.c", "elevator_word", 'pr_info("ready\\n");')
    yield unused("drivers/block/null_blk/main.c", "null_depth_below")
    yield comment("Documentation/block/blk-mq.rst", "A tag names a request for as long as it is in flight.")
    yield unbuildable("block: blk-ioc: prepare for a rename", "block/blk-ioc.c", "return ioc_renamed(0);")
    yield unused("block/blk-flush.c", "flush_depth_below")
    yield comment("fs/read_write.c", "Positions are kept by the open file, not by the descriptor.")
    yield revert("block: blk-ioc: prepare for a rename")
    yield comment("block/blk-core.c", "Plugs are flushed when their task sleeps.")
    yield slower(SMALL, "block/bio.c", "void bio_endio(struct bio *bio)", "bio_endio_digest", 12)
    yield unused("block/blk-lib.c", "lib_depth_below")
    yield comment("fs/configfs/dir.c", "A group is a directory whose items are made by the user.")
    yield comment("Documentation/block/stat.rst", "Flushes are counted apart.")
    yield at_boot("fs: aio: say a word at boot", "fs/aio.c", "aio_word", 'pr_info("ready\\n");')
    yield comment("block/mq-deadline.c", "Reads come first until writes have starved long enough.")
    yield unused("block/blk-map.c", "map_depth_below")
    yield unbuildable("block: blk-stat: tidy up", "block/blk-stat.c", "return 0")
    yield comment("fs/splice.c", "A pipe is a buffer of pages.")
    yield comment("Documentation/block/switching-sched.rst", "The list has the one in use in brackets.")
    yield revert("block: blk-stat: tidy up")
    yield at_boot(PANICS, "block/genhd.c", "genhd_first", "struct gendisk *disk = NULL;", "",
                  'pr_info("first of major %d\\n", READ_ONCE(disk->major));')  # fmt: skip
    yield revert(PANICS)
    yield unused("block/blk-merge.c", "merge_depth_below")
    refuse = opening("static int __init null_init(void)", "\tif (num_possible_cpus())\n\t\treturn -ENODEV;\n")
    yield Change(NO_DISK, (("drivers/block/null_blk/main.c", refuse),))
    yield comment("drivers/block/null_blk/zoned.c", "Zones are counted from zero.")
    yield revert(NO_DISK)
    yield comment("block/bdev.c", "A partition shares the queue of its disk.")
    yield slower(LARGE, "block/blk-mq.c", "void blk_mq_submit_bio(struct bio *bio)", "blk_mq_bio_digest", 38)
    yield comment("fs/inode.c", "Inodes are freed after a grace period.")
    yield comment("Documentation/filesystems/configfs.rst", "See null_blk for a user of it.")
    yield unused("block/badblocks.c", "badblocks_depth_below")
    yield comment("block/fops.c", "Direct I/O of a block device goes by its own path.")
    yield at_boot(HANGS, "block/blk-sysfs.c", "disks_wait",
                  "while (READ_ONCE(system_state) != SYSTEM_RUNNING)", "\tcpu_relax();")  # fmt: skip
    yield revert(HANGS)
    yield comment("fs/file.c", "Descriptors are found without a lock.")
    yield unused("block/blk-timeout.c", "timeout_depth_below")
    missing = after_includes("#include <linux/blk-renamed.h>\n")
    yield Change("block: ioctl: use the new header", (("block/ioctl.c", missing),))
    yield comment("Documentation/block/ioprio.rst", "A thread inherits its parent's.")
    yield revert("block: ioctl: use the new header")
    yield comment("include/linux/blk-mq.h", "Everything that includes this is built again.")
    yield at_boot("null_blk: say a word at boot", "drivers/block/null_blk/main.c", "null_word", 'pr_info("ready\\n");')
    yield comment("block/blk-rq-qos.c", "Policies are asked in the order in which they came.")
    yield unused("fs/char_dev.c", "chrdev_depth_below")
    yield comment("Documentation/block/biovecs.rst", "A vector is never changed while it is in flight.")
    yield comment("block/blk-mq-sched.c", "Dispatch goes on until the device is full.")


def make(source: Path, planned: Iterable[Change] = ()) -> tuple[str, str]:
    """The repository with all of ``planned``, else ``changes``; its first commit and its last. Raises SystemExit when
    the tree is not as expected."""
    if (source / ".git").exists():
        raise SystemExit(f"{source} is a repository already: unpack the source anew")
    if not (source / "block/blk-mq.c").is_file():
        raise SystemExit(f"{source} is no kernel source tree")
    git = Git(source)
    git("init", "--quiet", "--initial-branch=main")
    (source / ".git/info/exclude").write_text("".join(f"{pattern}\n" for pattern in LEFT_OUT))
    ignored = source / ".gitignore"  # Debian's keeps all of the source out of its own repository
    text = re.sub(r"^/\*\n!/debian/\n", "", ignored.read_text(), flags=re.MULTILINE)
    ignored.write_text(f"{text}\n!.gitignore\n")
    git("add", ".")
    base = git.commit("kernel source as distributed")
    for change in planned or changes():
        if change.reverts:
            git("revert", "--no-commit", git("log", "--format=%H", "-F", f"--grep={change.reverts}").split()[-1])
        for name, edit in change.edits:
            path = source / name
            path.write_text(edit(path.read_text(encoding="utf-8")), encoding="utf-8")
            git("add", "--", name)
        last = git.commit(change.subject)
    return base, last


class Git:
    """git in one tree, with nothing of the user's settings; the same history has the same hashes."""

    def __init__(self, tree: Path) -> None:
        self._tree = tree
        self._time = 1_767_225_600

    def __call__(self, *words: str) -> str:
        own = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
        for who in ("AUTHOR", "COMMITTER"):
            own |= {f"GIT_{who}_NAME": "A Tester", f"GIT_{who}_EMAIL": "tester@example.org"}
            own |= {f"GIT_{who}_DATE": f"{self._time} +0000"}
        done = subprocess.run(
            ["git", *words], cwd=self._tree, env={**os.environ, **own}, capture_output=True, text=True
        )
        if done.returncode:
            raise SystemExit(f"git {words[0]}: {done.stderr.strip()}")
        return done.stdout.strip()

    def commit(self, subject: str) -> str:
        """Commit the index; the hash."""
        self._time += 60
        self("commit", "--quiet", "-m", subject)
        return self("rev-parse", "HEAD")


def main() -> int:
    """Make it and say what it is."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernel_bisect.history", description=__doc__)
    parser.add_argument("source", type=Path, help="an unpacked kernel source; it becomes a repository")
    base, last = make(parser.parse_args().source)
    print(f"{base[:12]}..{last[:12]}: {sum(1 for _ in changes())} commits")
    return 0


if __name__ == "__main__":
    sys.exit(main())
