"""qemu: its command line, one running guest, and how it ended.

A guest has ended well only if it wrote ``END`` to its second serial port: a panicking kernel ends qemu with exit code 0
(measured with qemu 7.2, ``panic=-1 -no-reboot``).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from iodelta.errors import MeasureError

QEMU = "qemu-system-x86_64"
END = b"iodelta-end\n"
"""What a guest writes last to its second serial port."""

TAIL = 20
"""Last lines of the console that are kept of a guest that failed."""

CODE = 64
"""MiB for the code that qemu translates."""

DETERMINISTIC = (
    *(
        "-accel",
        f"tcg,thread=single,tb-size={CODE}",
        "-icount",
        "shift=0,sleep=off",
        "-rtc",
        "base=2026-01-01,clock=vm",
    ),
)
"""One instruction is one nanosecond of the guest's time, and idle time is skipped."""

EMULATED = "QEMU TCG CPU"
"""The model name of an emulated CPU. It is not ``max``: under qemu 7.2 that made two of some eighty guests with two
CPUs panic with corrupt flags (its AVX and BMI were new then)."""

QUIET = "console=ttyS0 quiet panic=-1 oops=panic nokaslr randomize_kstack_offset=off mitigations=off"
"""Boot parameters without which two boots may differ."""


class Boot(msgspec.Struct, frozen=True):
    """What qemu runs."""

    image: str
    initrd: str
    cmdline: str = QUIET
    memory: int = 256
    """MiB."""
    cpus: int = 1
    nodes: int = 1
    """NUMA nodes, each with as many of the CPUs and as much of the memory; described to the kernel by ACPI."""
    clock: Literal["instructions", "wall"] = "wall"
    kvm: bool = False
    """Only with the wall clock, and only where ``why_no_kvm`` has no reason."""
    clocks: bool = False
    """Whether ``devices`` has a table of frequencies. The CPU is then an Intel one: acpi-cpufreq rejects a K8, TCG's
    default, and its notifier marks the TSC as unstable unless the CPU is known for a constant one."""
    seed: int = 0
    """With the instruction clock: 0 for none, else the guest has RDRAND and draws from this seed."""
    devices: tuple[str, ...] = ()
    """Further words for qemu."""
    code: int = CODE
    """With the instruction clock: MiB for the code that qemu translates."""


class Limits(msgspec.Struct, frozen=True):
    """Limits at which a guest is given up."""

    seconds: float = 180.0
    """Wall time."""
    cpu: float = 0.0
    """Seconds of qemu's CPU time; 0: no limit. Unlike wall time, it does not run out sooner on a busy host."""
    console: int = 2 << 20
    """Bytes."""
    output: int = 128 << 20
    """Bytes on its second serial port."""
    silent: float = 0.0
    """Seconds of qemu's CPU time without a new byte in its directory; 0: no limit. Time of the CPU, so that a busy
    host is not taken for a guest that hangs."""


class Ended(msgspec.Struct, frozen=True):
    """How a guest ended. ``problem`` is empty when it came to its own end."""

    problem: str
    seconds: float
    console: tuple[str, ...] = ()
    """The last lines of its console, when there was a problem."""
    panicked: bool = False


def command(boot: Boot, *, console: str, out: str) -> list[str]:
    """qemu's words for ``boot``; ``console`` and ``out`` are character devices as qemu spells them."""
    cpu = "host" if boot.kvm else "qemu64,+rdrand" if boot.seed else "qemu64"
    if boot.clock == "instructions":
        words = (word.replace(f"={CODE}", f"={boot.code}") for word in DETERMINISTIC)
        clock = [*words, "-seed", str(boot.seed or 1)]
    else:
        clock = ["-accel", "kvm" if boot.kvm else "tcg"]
        cpu = (
            "host"
            if boot.kvm
            else f"qemu64,model-id={EMULATED}{',vendor=GenuineIntel' * boot.clocks}"
        )
    return [
        *(
            QEMU,
            "-machine",
            "q35",
            "-cpu",
            cpu,
            "-m",
            str(boot.memory),
            "-smp",
            str(boot.cpus),
            *clock,
        ),
        *("-display", "none", "-nodefaults", "-no-user-config", "-no-reboot"),
        *("-kernel", boot.image, "-initrd", boot.initrd, "-append", boot.cmdline),
        *("-serial", console, "-serial", out, *_nodes(boot), *boot.devices),
    ]


def _nodes(boot: Boot) -> Iterator[str]:
    """CPUs and memory by node; nothing for one node. The last node gets what does not divide evenly."""
    each, memory = boot.cpus // boot.nodes, boot.memory // boot.nodes
    for node in range(boot.nodes if boot.nodes > 1 else 0):
        last = node == boot.nodes - 1
        size = boot.memory - node * memory if last else memory
        highest = boot.cpus - 1 if last else (node + 1) * each - 1
        yield from ("-object", f"memory-backend-ram,id=node{node},size={size}M")
        yield from (
            "-numa",
            f"node,nodeid={node},cpus={node * each}-{highest},memdev=node{node}",
        )


class Guest:
    """One running qemu. Its process dies with the thread that made it, also by SIGKILL: start it from a thread that
    lives as long as the guest is to live."""

    def __init__(
        self, boot: Boot, directory: str, limits: Limits | None = None, *, out: str = ""
    ) -> None:
        """Start it in ``directory``, which takes ``console``, ``out`` and ``qemu`` (its own words); paths in ``boot``
        are absolute or below it. ``out`` replaces the file for the second serial port by another character device.
        Raises MeasureError."""
        available()
        enough_memory(boot.memory)
        self._directory, self._limits = Path(directory), limits or Limits()
        args = command(boot, console="file:console", out=out or "file:out")
        self._begun = time.monotonic()
        with open(self._directory / "qemu", "wb") as words:
            # Names relative to it: qemu gives commas in a path a meaning.
            self._process = subprocess.Popen(
                _bound(args),
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                start_new_session=True,
            )
        self.pid = self._process.pid
        self._written, self._heard = 0, 0.0

    @property
    def output(self) -> bytes:
        """Return the output on its second serial port so far, up to the limit."""
        return _read(self._directory / "out", self._limits.output)

    @property
    def console(self) -> bytes:
        """Return the end of its console, up to the limit."""
        return _read(self._directory / "console", -self._limits.console)

    def poll(self) -> Ended | None:
        """Return how it ended; None while it runs. Ends one that is over its limits or has panicked. Never blocks long."""
        over = self._process.poll() is not None
        console = self.console
        problem = self._trouble(console, over=over)
        if problem:
            self.stop()
            return Ended(
                problem, self._seconds, last_lines(console), b"Kernel panic" in console
            )
        if not over:
            return None
        return Ended("", self._seconds)

    def wait(self, interval: float = 0.05) -> Ended:
        """Until it has ended."""
        while (ended := self.poll()) is None:
            time.sleep(interval)
        return ended

    def stop(self) -> None:
        """End it now."""
        if self._process.poll() is None:
            self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(30)

    @property
    def cpu(self) -> float:
        """Seconds of CPU time so far."""
        return _cpu_seconds(self.pid)

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._begun

    def _trouble(self, console: bytes, *, over: bool) -> str:
        if b"Kernel panic" in console:
            line = console[console.rfind(b"Kernel panic") :].split(b"\n")[0]
            return f"the guest's kernel panicked: {''.join(last_lines(line, 1))}"
        if _size(self._directory / "console") > self._limits.console:
            return f"the guest flooded its console with more than {self._limits.console >> 10} KiB"
        if _size(self._directory / "out") > self._limits.output:
            return (
                f"the guest wrote more than {self._limits.output >> 20} MiB of results"
            )
        if over:
            if self.output.endswith(END) or not (self._directory / "out").exists():
                return ""
            lines = (
                _read(self._directory / "qemu", -1 << 16)
                .decode("utf-8", "replace")
                .strip()
                .splitlines()
            )
            words = f"; qemu says: {lines[-1]}" if lines else ""
            return f"the guest ended before its output was complete (qemu's exit code {self._process.returncode}){words}"
        if _cpu_seconds(self.pid) > self._limits.cpu > 0:
            return f"the guest did not end within {self._limits.cpu:.0f} s of CPU time"
        # Seconds of CPU time since qemu last wrote something.
        spent, written = (
            _cpu_seconds(self.pid),
            sum(map(_size, self._directory.iterdir())),
        )
        if written != self._written:
            self._written, self._heard = written, spent
        if spent - self._heard > self._limits.silent > 0:
            return f"the guest hangs: no sign of progress in {self._limits.silent:.0f} s of CPU time"
        if self._seconds > self._limits.seconds:
            return f"the guest did not end within {self._limits.seconds:.0f} s"
        return ""

    def __enter__(self) -> Guest:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Wait:
    """A wait for a guest: over after ``seconds`` in which it had that much CPU time, or after a multiple of them."""

    def __init__(self, guest: Guest | None, seconds: float, most: int) -> None:
        self._guest, self._seconds, self._most = guest, seconds, most
        self._begun, self._cpu = time.monotonic(), guest.cpu if guest else 0.0

    @property
    def over(self) -> bool:
        passed = time.monotonic() - self._begun
        starved = (
            self._guest is not None and self._guest.cpu - self._cpu < self._seconds
        )
        return passed > self._seconds * (self._most if starved else 1)

    def __str__(self) -> str:
        spent = self._guest.cpu - self._cpu if self._guest else 0.0
        return f"{time.monotonic() - self._begun:.0f} s ({spent:.0f} s of CPU time)"


def available() -> str:
    """qemu's version. Raises MeasureError saying how to get it."""
    if shutil.which(QEMU) is None or shutil.which("setpriv") is None:
        raise MeasureError(
            f"{QEMU if shutil.which(QEMU) is None else 'setpriv'} is not on this machine",
            place='machine = "vm"',
            remedy="install it (Debian: apt-get install qemu-system-x86 util-linux; Fedora: dnf install qemu-kvm)",
        )
    done = subprocess.run(
        [QEMU, "--version"], capture_output=True, text=True, timeout=30, check=False
    )
    return done.stdout.partition("\n")[0].strip()


def enough_memory(guest: int) -> None:
    """Raise MeasureError when this machine has not ``guest`` MiB and what qemu takes itself."""
    wanted = guest + 160
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:") and int(line.split()[1]) < wanted * 1024:
            raise MeasureError(
                f"a guest needs {wanted} MiB of memory, and {int(line.split()[1]) >> 10} MiB are available",
                place='machine = "vm"',
                remedy="free some memory, or use a larger machine",
            )


def why_no_kvm() -> str:
    """Return why KVM cannot be used here; empty when it can.

    On a PVM host (module kvm_pvm) /dev/kvm opens, but a bzImage hangs in its decompressor (measured), so it does not
    count.
    """
    if os.path.exists("/sys/module/kvm_pvm"):
        return "this machine's KVM is PVM (module kvm_pvm), which cannot boot the kernels of distributions"
    if not os.path.exists("/dev/kvm"):
        return "there is no /dev/kvm"
    if os.access("/dev/kvm", os.R_OK | os.W_OK):
        return ""
    return "/dev/kvm may not be opened by this user"


def last_lines(console: bytes, count: int = TAIL) -> tuple[str, ...]:
    """Return the last lines of a console, without control characters that a terminal would obey."""
    text = console[-16384:].decode("utf-8", "replace").replace("\r", "")
    lines = text.splitlines()[-count:]
    return tuple(
        "".join(letter if letter.isprintable() else "?" for letter in line)[:400]
        for line in lines
    )


def _cpu_seconds(pid: int) -> float:
    """CPU time of a process so far; 0 where it has ended (proc(5): utime and stime)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _read(path: Path, most: int) -> bytes:
    """Return the first ``most`` bytes of a file, or the last ``-most``: who writes to it may write without end."""
    try:
        with open(path, "rb") as file:
            if most < 0:
                file.seek(max(0, _size(path) + most))
            return file.read(abs(most))
    except OSError:
        return b""


def _bound(args: Sequence[str]) -> list[str]:
    """Return a command that the kernel kills when we end, however we end (prctl PR_SET_PDEATHSIG, kept over exec).

    The shell checks that we did not end before the signal was set: then its parent is another process.
    """
    check = '[ "$PPID" = "$0" ] && exec "$@"'
    return [
        "setpriv",
        "--pdeathsig",
        "KILL",
        "--",
        "sh",
        "-c",
        check,
        str(os.getpid()),
        *args,
    ]
