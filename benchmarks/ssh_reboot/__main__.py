"""``python -m benchmarks.ssh_reboot``: two kernels compared on a host that really reboots, by kexec, over SSH.

The host is a guest under qemu (``benchmarks.ssh_reboot.guest``), so the times say nothing about the kernels; that it
comes back each time, is measured, and ends on its first kernel is what is shown. Then iodelta is killed in the middle
of a reboot and ``iodelta restore`` puts the kernel back, and a kernel that panics is ended by its own reset. Needs root
(a tap device), qemu, busybox, kexec-tools, OpenSSH's sshd, two kernels (``iodelta kernel fetch 6.1 6.12``) and a static
fio (``iodelta fio build``). Prints a transcript; exit code 1 when something of it did not happen.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.ssh_reboot.guest import Host

IODELTA = str(Path(sys.executable).with_name("iodelta"))

QUESTION = """machine = "ssh:guest"
[target]
path = "/dev/vdb"
[workload]
rw = "randread"
bs = ["4k", "16k"]
ioengine = "libaio"
direct = 1
iodepth = 4
[variant."{old}"]
kernel = "{old}"
[variant."{new}"]
kernel = "{new}"
{more}
[design]
trial = "1s"
ramp = "300ms"
blocks = {blocks}
budget = "3h"
boot = "{boot}"
seed = 1
"""


class Show:
    """Commands, and what they said, as a reader would have typed them."""

    def __init__(self, host: Host, place: Path) -> None:
        self._host = host
        self._place = place
        self._failed = 0

    def run(self, *words: str, code: int | None = None) -> str:
        """A command to its end; ``code``: how it has to end."""
        print(f"\n$ {' '.join(words)}", flush=True)
        begun = time.monotonic()
        made = [IODELTA, *words[1:]] if words[0] == "iodelta" else list(words)
        done = subprocess.run(
            made,
            env=self._host.env,
            cwd=self._place,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        print(f"{done.stdout.rstrip()}\n[exit {done.returncode}, {time.monotonic() - begun:.0f} s]", flush=True)
        self.check("it ended so", code is None or done.returncode == code)
        return done.stdout

    def check(self, what: str, held: bool) -> None:
        """Say when something that must hold does not."""
        if not held:
            self._failed = 1
            print(f"NOT SO: {what}", flush=True)

    def running(self) -> str:
        """The release that the host runs."""
        return self.run("ssh", "guest", "uname -r; cat /proc/cmdline", code=0).splitlines()[0]

    @property
    def code(self) -> int:
        """1 when something did not hold."""
        return self._failed


def main() -> int:
    """Boot the host, and show what is to be shown."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ssh_reboot", description=__doc__)
    parser.add_argument("--kernels", nargs=2, default=("6.1", "6.12"), help="the first is the default entry")
    parser.add_argument("--blocks", type=int, default=6, help="boots of each kernel")
    parser.add_argument("--boot", default="5m", help="how long a reboot may take")
    parser.add_argument("--place", type=Path, default=Path("ssh-reboot"), help="where the folders are made")
    chosen = parser.parse_args()
    chosen.place.mkdir(parents=True)
    old, new = chosen.kernels
    with Host(chosen.kernels, iops=200) as host:
        show = Show(host, chosen.place)
        question = QUESTION.format(old=old, new=new, blocks=chosen.blocks, boot=chosen.boot, more="")
        (chosen.place / "kernels.toml").write_text(question)
        panics = '"kernel.cmdline" = "init=/none rdinit=/none panic=5"'
        short = QUESTION.format(old=old, new=new, blocks=1, boot=chosen.boot, more=panics)
        (chosen.place / "panics.toml").write_text(short)
        first = show.running()
        compared(show, chosen.place)
        show.check("the host is back on its first kernel", show.running() == first)
        killed(show, host, chosen.place)
        show.check("the host is back on its first kernel", show.running() == first)
        told = show.run("iodelta", "run", "panics.toml", "--folder", "panics", code=4)
        show.check("the kernel that did not come up is named", "did not come up" in told)
        show.check("its panic was ended by a reset", "Kernel panic" in host.console)
        show.run("iodelta", "restore", "--machine", "ssh:guest", code=0)
        show.check("the host is back on its first kernel", show.running() == first)
        return show.code


def compared(show: Show, place: Path) -> None:
    """Two kernels, several boots of each."""
    show.run("iodelta", "knobs", "--machine", "ssh:guest", "--target", "/dev/vdb", code=0)
    show.run("iodelta", "run", "kernels.toml", "--folder", "kernels")
    boots = [one for one in journal(place / "kernels") if one["type"] == "rebooted"]
    for one in boots:
        print(f"{one['variant']:<6} {one['release']:<28} {one['boot_id']}  {one['way']} {one['seconds']:.1f} s")
    show.check("every boot is another", len({one["boot_id"] for one in boots}) == len(boots) > 2)


def killed(show: Show, host: Host, place: Path) -> None:
    """``kill -9`` of iodelta when the host goes down."""
    words = ("run", "kernels.toml", "--folder", "killed")
    print(f"\n$ iodelta {' '.join(words)} &", flush=True)
    ups = host.console.count("guest is up with")
    running = subprocess.Popen(
        [IODELTA, *words], env=host.env, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    goes = "Emergency Remount"  # of the second reboot, which is into the other kernel or out of it
    downs = host.console.count(goes)
    host.wait_for(goes, downs + 2, seconds=1200)
    running.kill()
    running.wait()
    print("[kill -9 of it as the host goes down for the second time]", flush=True)
    host.wait_for("guest is up with", ups + 2, seconds=600)
    show.running()
    show.run("ssh", "guest", "cat /var/lib/iodelta/pending/*.sh", code=0)
    show.run("iodelta", "restore", "--machine", "ssh:guest", code=0)


def journal(folder: Path) -> list[dict[str, str | float]]:
    """The journal's events."""
    return [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]


if __name__ == "__main__":
    sys.exit(main())
