"""A throw-away guest as a machine: booted on entry, gone on exit, however that happens.

The line to it is a virtio-serial device: each channel is a sh in the guest on a pair of its ports, one for input and
output, one for errors. A guest that panics, hangs or floods its console is a LostError with the console's last lines.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Sequence
from itertools import chain, product
from pathlib import Path

from iodelta.errors import LostError, MachineError, MeasureError
from iodelta.experiment.io_uring import IO_URING
from iodelta.machine.channel import Channel
from iodelta.machine.local import LocalLock, LocalMachine
from iodelta.machine.shell import ShellMachine
from iodelta.vm import acpi, boot, guest, kernels
from iodelta.vm import disks as guest_disks
from iodelta.vm import targets as guest_targets
from iodelta.vm.cpio import Entry
from iodelta.vm.spec import Spec, parse

CHANNELS = 8
"""Most shells in the guest; each has two of the 31 ports that a virtio-serial device can have."""

CALM = "no_timer_check tsc=nowatchdog"
"""Boot parameters for a busy machine without KVM. Without them the kernel finds its timers too slow and panics, or
replaces the TSC by a slower clock."""

BOOT = 180.0
"""Seconds within which a guest of one CPU must reach a shell on a machine at rest: without KVM it takes 10."""

BEAT, PATIENCE = 3.0, 90.0
"""Seconds between beats to the guest, and seconds without an answer after which such a guest is given up."""

ALIVE = 2
"""A guest is given up only after it had as much CPU time as it may wait, or after this multiple of that time."""

LONGEST = 900.0
"""Seconds of the longest wait."""

BOOTS = 3
"""Boots of a guest that panics before its first trial. Emulated guests with many CPUs panic in one boot of three."""

SOCKET = 107
"""Bytes that the path of a socket may have (sun_path of unix(7), and a NUL)."""

SCHEDULERS = ("mq-deadline", "kyber-iosched", "bfq")
GOVERNORS = ("cpufreq_powersave", "cpufreq_ondemand", "cpufreq_conservative")
"""Modules that a kernel may have or lack."""

PROGRAMS = tuple(
    "sh fio base64 cat chmod date dd env head id ln ls mkdir mktemp readlink rm stat sync tee timeout tr truncate "
    "uname flock setsid mount umount".split()
)
"""Programs of this machine that a guest gets: busybox's versions differ in output and options."""
WELCOME = tuple("taskset blkid blockdev numactl findmnt lsblk fallocate".split())
"""Programs that a guest gets only if this machine has them."""

SHELLS = b"""export HOME=/ PATH
while :; do
    for last in /dev/vport*p16; do [ ! -c "$last" ] || break 2; done
    sleep 0.1
done
first=${last%16}
number=1
while [ $number -lt 16 ]; do
    /bin/sh 0<>"$first$number" 1>&0 2>"$first$((number + 1))" &
    number=$((number + 2))
done
wait
"""
"""The init script: a sh on each pair of ports. Not busybox's sh, which would run its own dd regardless of PATH."""


class GuestLine:
    """One boot, and its ports."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self._ports: list[int] = []
        self._sockets: dict[str, socket.socket] = {}
        self._reason = ""
        self._console: tuple[str, ...] = ()
        self._closing = threading.Event()
        self._heart = threading.Thread(target=self._beat, name="guest", daemon=True)
        self._ahead = 0.0
        self._directory: Path | None = None
        self._held: LocalLock | None = None
        self._guest: boot.Guest | None = None
        self._beats: Channel | None = None
        self._looking = threading.Lock()
        self.kernel: kernels.Kernel | None = None
        self.panicked = False

    def open(self) -> None:
        """Boot it. Raises RequestError, MeasureError for what is missing, LostError for a guest that does not start."""
        guest.check_present(_programs(self.spec), (self.spec.kernel,))
        self.kernel = kernel = kernel_of(self.spec)
        # Remove the directories that killed processes left behind
        for left_over in Path(tempfile.gettempdir()).glob("iodelta-vm-*-*"):
            owner = left_over.name.split("-")[2]
            if not owner.isdigit() or Path(f"/proc/{owner}").exists():
                continue
            # Gone meanwhile, or no directory.
            with contextlib.suppress(FileNotFoundError, MachineError):
                if left_over.lstat().st_uid == os.geteuid() and (
                    held := LocalMachine().lock(str(left_over))
                ):
                    shutil.rmtree(left_over, ignore_errors=True)
                    held.release()
        try:
            place, self._held = _workplace()
            self._directory = place
            if (
                len(os.fsencode(longest := f"{place}/{max(self._names(), key=len)}"))
                > SOCKET
            ):
                raise MachineError(
                    f"this path is too long for a socket: {len(os.fsencode(longest))} bytes, {SOCKET} are the most",
                    place=longest,
                    remedy="set TMPDIR to a directory with a shorter name",
                )
            initrd = place / "initrd"
            base = _base(self.spec, kernel)
            initrd.write_bytes(
                Path(base.path).read_bytes() + guest.job({guest.JOB: Entry(SHELLS)})
            )
            asked = boot.Boot(
                kernel.image,
                str(initrd),
                cmdline=_cmdline(self.spec),
                memory=self.spec.memory,
                cpus=self.spec.cpus,
                nodes=self.spec.nodes,
                kvm=not boot.why_no_kvm(),
                clocks=bool(self.spec.cpufreq),
                devices=(
                    *self._port_words(place),
                    *guest_disks.words(self.spec.disks, place),
                    *self._clocks(place),
                ),
            )
            self._guest = boot.Guest(
                asked, str(place), boot.Limits(seconds=float("inf"))
            )
            # Open every port before the guest does: the guest reads end of file from a port without a peer
            end = time.monotonic() + 30
            for name in self._names():
                connection = self._sockets[name] = socket.socket(socket.AF_UNIX)
                while connection.connect_ex(f"{place}/{name}") != 0:
                    if time.monotonic() > end or (
                        self._guest is not None and self._guest.poll() is not None
                    ):
                        words = (
                            (place / "qemu")
                            .read_text(errors="replace")
                            .strip()
                            .splitlines()
                        )
                        raise MachineError(
                            f"qemu does not start: {words[-1] if words else 'it says nothing'}",
                            place=self.place,
                        )
                    time.sleep(0.02)
            self._ports = list(range(1, CHANNELS))
            self._beats = self._greeted(0, BOOT)
            self._heart.start()
        except OSError as error:
            self.close(clean=False)
            raise MachineError(
                f"cannot make the guest: {error.strerror or error}",
                place=str(error.filename or self._directory),
                remedy="free some space there",
            ) from error
        except BaseException:
            self.close(clean=False)
            raise

    def close(self, *, clean: bool) -> None:
        """End it: a guest is thrown away as it is."""
        self._closing.set()
        if self._guest is not None:
            self._guest.stop()
        if self._heart.is_alive():
            self._heart.join(5)
        for unix_socket in self._sockets.values():
            unix_socket.close()
        if self._beats is not None:
            self._beats.close()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
        if self._held is not None:
            self._held.release()

    @property
    def ahead(self) -> float:
        return self._ahead

    @property
    def patience(self) -> float:
        return 0.0

    def channel(self) -> Channel:
        if self._reason:
            raise self.lost()
        if not self._ports:
            raise MachineError("all shells of the guest are in use", place=self.place)
        return self._greeted(self._ports.pop(0), PATIENCE)

    def lost(self, said: str = "") -> LostError:
        """Return the error to raise when the guest has ended, or was given up."""
        self._look(wait=2.0)
        console = "".join(f"\n  | {line}" for line in self._console)
        return LostError(
            (self._reason or "the guest closed its connection")
            + (f"; its console ended with:{console}" if console else ""),
            place=self.place,
            remedy="the same command boots a new guest",
        )

    # ------------------------------------------------------------------------------------------------ the boot

    @property
    def place(self) -> str:
        """Its name in messages."""
        return f"guest {self.kernel.release if self.kernel else self.spec.kernel}"

    def _port_words(self, place: Path) -> tuple[str, ...]:
        ports = ["-device", "virtio-serial-pci,id=serial,max_ports=31"]
        for number, name in enumerate(self._names(), 1):
            ports += [
                "-chardev",
                f"socket,id={name},path={place}/{name},server=on,wait=off",
            ]
            ports += [
                "-device",
                f"virtserialport,bus=serial.0,nr={number},chardev={name}",
            ]
        return tuple(ports)

    def _clocks(self, place: Path) -> tuple[str, ...]:
        if not self.spec.cpufreq:
            return ()
        table = place / "clocks"
        table.write_bytes(acpi.clocks(self.spec.cpufreq, self.spec.cpus))
        return ("-acpitable", f"file={table}")

    def _names(self) -> list[str]:
        return [
            f"{kind}.{number}"
            for number, kind in product(range(CHANNELS), ("in", "err"))
        ]

    def _greeted(self, number: int, limit: float) -> Channel:
        line, errors = (
            self._sockets.pop(f"in.{number}"),
            self._sockets.pop(f"err.{number}"),
        )
        channel = Channel((line.dup(), line, errors), self.lost)
        wait = self._wait(limit)
        channel.begin(":")
        while not wait.over:
            with contextlib.suppress(LostError):
                if channel.greeted(1.0):
                    return channel
            if self._look() or self._reason:
                break
        channel.close()
        self._give_up(f"the guest did not start a shell within {wait}")
        raise self.lost()

    # --------------------------------------------------------------------------------------------- its health

    def _wait(self, seconds: float) -> boot.Wait:
        return boot.Wait(self._guest, patience(self.spec, seconds), ALIVE)

    def _look(self, wait: float = 0.0) -> bool:
        """Return whether it has ended; then the reason is known."""
        end = time.monotonic() + wait
        while self._guest is not None and not self._closing.is_set():
            with self._looking:
                ended = self._guest.poll()
            if ended is not None:
                self._reason = (
                    self._reason or ended.problem or "the guest ended by itself"
                )
                self.panicked = self.panicked or ended.panicked
                self._console = (
                    self._console
                    or ended.console
                    or boot.last_lines(self._guest.console)
                )
                return True
            if time.monotonic() >= end:
                break
            time.sleep(0.05)
        return False

    def _give_up(self, reason: str) -> None:
        if self._guest is not None and not self._reason:
            self._console = boot.last_lines(self._guest.console)
            self._reason = reason
            self._guest.stop()

    def _beat(self) -> None:
        """The thread: a guest that does not answer, has panicked or floods its console is ended."""
        while not self._closing.wait(BEAT):
            try:
                self._exchange_beat()
            except (OSError, ValueError, LostError):
                self._look(wait=2.0)
                return

    def _exchange_beat(self) -> None:
        if self._beats is None:
            return None
        begun, sent, wait = time.monotonic(), time.time(), self._wait(PATIENCE)
        self._beats.send("date +%s.%N; iodelta_end 0")
        while (reply := self._beats.receive(1.0)) is None:
            if self._closing.is_set() or self._look():
                return None
            if wait.over:
                return self._give_up(f"the guest hangs: no answer for {wait}")
        clock = re.fullmatch(rb"(\d+\.\d+)\n", reply.stdout)
        if clock:
            self._ahead = float(clock[1]) - (sent + (time.monotonic() - begun) / 2)
        self._look()


class VmMachine(ShellMachine):
    """``text`` is the text after ``vm:`` (``iodelta.vm.spec``)."""

    def __init__(self, text: str = "", *, spec: Spec | None = None) -> None:
        self.spec = spec or parse(text)
        self._line = GuestLine(self.spec)
        self.told: tuple[str, ...] = ()
        """Panics before this guest came up."""
        super().__init__(f"vm:{text}" if text else "vm", self._line)

    def __enter__(self) -> VmMachine:
        for left in reversed(range(BOOTS)):
            try:
                super().__enter__()
                break
            except LostError as error:
                if not left or not self._line.panicked:
                    tries = f" in each of {BOOTS} boots" if self._line.panicked else ""
                    raise LostError(
                        error.what + tries, place=error.place, remedy=error.remedy
                    ) from error
                self.told += (
                    f"{error.what.partition(chr(10))[0]}; it is booted again",
                )
                self._line = GuestLine(self.spec)
                learned, told = self._learned, self.told
                ShellMachine.__init__(self, self.name, self._line)
                self._learned, self.told = learned, told
        try:
            self.directory = self._wait_for_disks() or self.directory
            if self.spec.target:
                code = guest_targets.script(self.spec.target, dict(self.spec.options))
                done = self.run(["sh", "-c", code], timeout=patience(self.spec, 120.0))
                if done.returncode:
                    why = done.error_text.splitlines()
                    raise MeasureError(
                        f"cannot make {self.spec.target}: {why[-1] if why else 'it does not say why'}",
                        place=self._line.place,
                    )
                self.directory = guest_targets.PLACE
        except BaseException:
            self.__exit__()
            raise
        return self

    def other(self, spec: Spec) -> VmMachine:
        """Another guest, not yet booted, that gets much the same questions: it reads ahead what this one has learned."""
        made = VmMachine(self.name.partition(":")[2], spec=spec)
        made._learned = self._learned
        return made

    @property
    def release(self) -> str:
        """Of the kernel that was booted, by its image."""
        return self._line.kernel.release if self._line.kernel else ""

    def _wait_for_disks(self) -> str:
        """Return the first disk's device, once all are there. Raises MeasureError."""
        nodes = guest_disks.nodes(self.spec.disks)
        end = time.monotonic() + patience(self.spec, PATIENCE)
        while absent := [node for node in nodes if not self.glob(node)]:
            if time.monotonic() > end:
                raise MeasureError(
                    f"the guest does not see its disk {absent[0]}",
                    place=self._line.place,
                )
            time.sleep(0.2)
        if not nodes:
            return ""
        return nodes[0]


def patience(spec: Spec, seconds: float) -> float:
    """Return how long a guest may take for what takes ``seconds`` at most with one CPU on a machine at rest: its
    ``wait``, or more for many emulated CPUs and a busy machine."""
    if spec.wait:
        return float(spec.wait)
    most = max(60.0, spec.budget) if spec.budget else LONGEST
    if boot.why_no_kvm():
        seconds *= 1 + spec.cpus / 8
    return min(most, seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))


def check_guests(specs: Sequence[Spec], *, tool: str = "") -> None:
    """Raises one MeasureError with everything that guests of these specs lack on this machine, including a ``tool`` that
    runs in them. A missing kernel does not count if another one is here."""
    programs = dict.fromkeys(chain.from_iterable(map(_programs, specs)))
    if tool == IO_URING:
        programs[tool] = None
    guest.check_first(tuple(programs), [spec.kernel for spec in specs])


def _programs(spec: Spec) -> tuple[str, ...]:
    """Programs of this machine that a guest has."""
    kind = guest_targets.find(spec.target) if spec.target else None
    return (*PROGRAMS, *(kind.programs if kind else ()), *spec.programs)


def kernel_of(spec: Spec) -> kernels.Kernel:
    """Return the kernel that is booted: the named one, or the newest here. Raises MeasureError, RequestError."""
    if spec.kernel:
        return kernels.find(spec.kernel)
    known = kernels.here()
    if not known:
        raise MeasureError(
            "there is no kernel to boot",
            place='machine = "vm"',
            remedy="`iodelta kernel fetch 6.12` gets one; or name a bzImage: vm:PATH",
        )
    return known[-1]


def _cmdline(spec: Spec) -> str:
    """Boot parameters; those of the user are the last."""
    target = (
        guest_targets.boot_parameters(spec.target, dict(spec.options))
        if spec.target
        else ""
    )
    return " ".join(filter(None, (boot.QUIET, CALM, target, spec.cmdline)))


def _base(spec: Spec, kernel: kernels.Kernel) -> guest.Base:
    """Its initramfs. Raises MeasureError for what the kernel lacks and programs that this machine lacks."""
    kind = guest_targets.find(spec.target) if spec.target else None
    clocks = ("acpi-cpufreq",) if spec.cpufreq else ()
    needs = (
        "virtio_pci",
        "virtio_console",
        *guest_disks.modules(spec.disks),
        *(kind.modules if kind else ()),
    )
    needs = (*needs, *spec.modules, *clocks)
    modules = kernel.loadable().needed(
        [*needs, *SCHEDULERS, *(GOVERNORS if clocks else ())]
    )
    missing = [reason for name, reason in modules.missing.items() if name in needs]
    missing = [*missing, *kernel.lacks(spec.cpus, spec.nodes)]
    if missing:
        raise MeasureError(
            "; ".join(missing),
            place=f"kernel {kernel.release}",
            remedy="take a kernel that has it (`iodelta kernel fetch`), or another guest, target or disk",
        )
    welcome = [
        name
        for name in WELCOME
        if shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    ]
    return guest.base(
        modules=modules.load,
        parameters=guest_targets.parameters(spec.target, dict(spec.options))
        if kind
        else {},
        programs=(*_programs(spec), *welcome),
    )


def _workplace() -> tuple[Path, LocalLock]:
    """Return a directory for a guest, locked while the guest lives: a process's number says nothing in another
    container.
    """
    while True:  # another run may sweep it between its making and the lock
        made = tempfile.mkdtemp(prefix=f"iodelta-vm-{os.getpid()}-")
        held = LocalMachine().lock(made)
        if held:
            return Path(made), held
