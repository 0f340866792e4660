"""``python -m benchmarks.kernel_bisect``: bisect real kernels with planted slow-downs, by real builds and real boots.

Needs a kernel source as a distribution packs it (``/usr/src/linux-source-*.tar.*``, or --source), what a kernel's build
takes, qemu, busybox and fio; 4 GB of disk. The first commit builds all of the kernel, seven minutes of a core; later
ones take what they change. Given again it goes on.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from benchmarks.kernel_bisect.history import LARGE, SMALL, Git, make

IODELTA = str(Path(sys.executable).with_name("iodelta"))
WORKLOAD = ("--rw=randread", "--bs=4k", "--ioengine=io_uring", "--direct=1", "--iodepth=1")


def main() -> int:
    """Unpack, make the history, search it, and say whether both culprits were found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernel_bisect", description=__doc__)
    parser.add_argument("--place", type=Path, default=Path("kernel-bisect"), help="where all of it is made")
    parser.add_argument("--source", type=Path, help="the source as an archive; the newest of /usr/src when left out")
    chosen = parser.parse_args()
    tree, search = chosen.place / "linux", chosen.place / "search"
    if not search.is_dir():
        if not (tree / ".git").is_dir():
            unpack(chosen.source or found(), tree)
            make(tree)
        first, last = (Git(tree)("rev-list", *words, "main") for words in (("--max-parents=0",), ("--max-count=1",)))
        asked = ["--repo", str(tree), "--good", first, "--bad", last, "--paths", "block drivers/block"]
        asked += ["--build", f"{IODELTA} kernel build . --into .kernel", "--artifact", ".kernel"]
        asked += ["--machine", "vm", "--clock", "instructions", "--set", "kernel={built}/.kernel", "--seed", "1"]
        subprocess.run([IODELTA, "bisect", *asked, "--folder", str(search), "--", *WORKLOAD], check=False)
    else:
        subprocess.run([IODELTA, "bisect", str(search)], check=False)
    told = subprocess.run([IODELTA, "report", str(search)], capture_output=True, text=True, check=False).stdout
    missing = [subject for subject in (SMALL, LARGE) if f'("{subject}")' not in " ".join(told.split())]
    print(told, *(f"not found: {subject}" for subject in missing), sep="\n")
    return 1 if missing else 0


def found() -> Path:
    """The newest source package. Raises SystemExit saying how to get one."""
    archives = sorted(Path("/usr/src").glob("linux-source-*.tar.*"))
    if not archives:
        raise SystemExit("no kernel source: apt-get install linux-source, or --source ARCHIVE")
    return archives[-1]


def unpack(archive: Path, tree: Path) -> None:
    """Unpack a source without the directory that all of it is in."""
    tree.mkdir(parents=True)
    subprocess.run(["tar", "-xf", str(archive), "-C", str(tree), "--strip-components=1"], check=True)


if __name__ == "__main__":
    sys.exit(main())
