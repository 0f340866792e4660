"""The kernel of a host over SSH. Setting it is a reboot, and so is restoring it."""

from __future__ import annotations

import posixpath
import re
import time
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from iodelta.decoding import converted
from iodelta.errors import KnobError, MachineError, MeasureError
from iodelta.knob.base import EMPTY, Knob, Saved
from iodelta.knob.command import machine_id, stored_commands
from iodelta.knob.reboot import WAYS, Image, Way, ways
from iodelta.knob.shell import Line, NoScript
from iodelta.machine import Machine
from iodelta.machine.ssh import SshMachine
from iodelta.probe.sysfs import attribute_text, boot_id, is_root
from iodelta.probe.topology import Target
from iodelta.vm import kernels

LIMIT = 900.0
"""Default seconds within which a host must be back after a reboot: large servers test their memory first."""

PANIC = "panic=30"
"""Added to the command line of a kernel that kexec starts, unless it has one: after a panic the machine resets."""

HEADER = 66048
"""Bytes at the start of a bzImage that contain its version."""

KIND_OF_FILESYSTEM = ("stat", "-f", "-c", "%T", "--")
"""Prints the kind of the filesystem that holds the path after it."""

INITRD_SIZE = slice(0x21C, 0x220)
"""Where ``ramdisk_size`` is in x86's boot parameters (Documentation/arch/x86/boot.rst)."""


class Started(msgspec.Struct, frozen=True):
    """A boot that came up as requested."""

    boot_id: str
    release: str
    cmdline: str
    way: str
    seconds: float


class Kernel(Knob):
    """``kernel``: a release installed on the host (``6.12``: the newest 6.12), or paths there, ``IMAGE:INITRD``.

    iodelta boots the kernel anew for every block, by kexec, else by the boot loader's entry for one boot
    (``grub-reboot``, ``bootctl set-oneshot``), and verifies release, boot id and command line. The default entry stays
    as it is, so a reset (by hand, or by a watchdog) ends a kernel that hangs; kexec adds ``panic=30``. At the end,
    ``iodelta run`` or ``iodelta restore`` boots the kernel that ran before. ``kernel.cmdline`` adds boot parameters
    where kexec works. For ``iodelta run`` over SSH; a guest (``vm``) boots a kernel of this machine.
    """

    names = ("kernel",)

    limit = LIMIT

    def __init__(self, machine: Machine, target: Target, name: str) -> None:
        super().__init__(machine, target, name)
        self._cmdline = ""
        self._original: Image | None = None

    def available(self) -> str | None:
        if not isinstance(self.machine, SshMachine):
            return "a reboot: of a host over SSH (--machine ssh:HOST), or in a throw-away guest (--machine vm)"
        if not is_root(self.machine):
            return "needs root there"
        commands, reasons = ways(self.machine)
        if commands:
            return None
        return f"there is no way to start another kernel there: {'; '.join(reasons)}"

    def allowed(self) -> tuple[str, ...]:
        return tuple(installed(self.machine))

    def read(self) -> str:
        return _uname(self.machine)[0]

    def check(self, value: str, beside: Mapping[str, str] = EMPTY) -> None:
        self.image(value)

    def save(self, values: Sequence[str] = ()) -> Saved:
        reason = self.available()
        if reason:
            raise KnobError(
                reason,
                place=f"{self.machine.name}: kernel",
                remedy="see `iodelta knobs` there",
            )
        kind = self._medium()
        if kind in ("tmpfs", "ramfs"):
            raise KnobError(
                f"a reboot would lose the record of the first kernel: it is kept on {kind}",
                place=f"{self.machine.name}: {self.machine.state}",
                remedy="set IODELTA_STATE there to a directory on a disk",
            )
        for value in values:
            self.image(value)
        way, original, cmdline = self.way, self.image(""), _cmdline(self.machine)
        self._original, self._cmdline = original, cmdline
        undo = ["sh", "-c", way.script(original, cmdline)]
        record = (
            ("way", way.name),
            *msgspec.structs.asdict(original).items(),
            ("cmdline", cmdline),
            ("limit", f"{self.limit:g}"),
            ("machine", machine_id(self.machine)),
            ("restore", msgspec.json.encode(undo).decode()),
        )
        return self.record(record, volatile=False)

    def apply(self, value: str) -> None:
        self.boot(value)

    def verify(self, value: str) -> None:
        _verify(self.machine, self.image(value), "")

    def boot(self, value: str, more: str = "") -> Started:
        """Boot the machine into ``value``, with ``more`` appended to the command line that ``save`` recorded.

        Raises KnobError if the kernel cannot be booted or another one came up, LostError if the machine does not come
        back.
        """
        image, way = self.image(value, more), self.way
        cmdline = _for_another(self._cmdline, more) if way.cmdline else ""
        begun = time.monotonic()
        _reboot(self.machine, way, image, cmdline, self.limit)
        boot, seconds = boot_id(self.machine), time.monotonic() - begun
        return Started(boot, image.release, _cmdline(self.machine), way.name, seconds)

    def image(self, value: str, more: str = "") -> Image:
        """Return the kernel called ``value``; for an empty text the one that ran at ``save``, or else the running one.

        Raises MeasureError, also if ``more`` cannot be added to its command line.
        """
        if more and not self.way.cmdline:
            raise MeasureError(
                f"{self.way.name} boots an entry as it is",
                place=f"{self.machine.name}: kernel.cmdline",
                remedy="install kexec-tools there",
            )
        if "/" in value:
            return self._at(value)
        if value:
            return self._installed(value)
        return self._original or self._running()

    @classmethod
    def script(cls, name: str, values: Sequence[str]) -> NoScript:
        return NoScript("every trial has its own boot")

    @classmethod
    def undo_lines(cls, saved: Saved) -> Iterator[Line]:
        yield from stored_commands(saved)

    @property
    def way(self) -> Way:
        """Return how to reboot the machine. Only valid if ``available`` says so."""
        return ways(self.machine)[0][0]

    def _medium(self) -> str:
        """Return the kind of filesystem that holds iodelta's state directory, which may not exist yet."""
        path = self.machine.state
        done = self.machine.run([*KIND_OF_FILESYSTEM, path])
        while done.returncode and path != "/":
            path = posixpath.dirname(path)
            done = self.machine.run([*KIND_OF_FILESYSTEM, path])
        return done.text.strip()

    def _running(self) -> Image:
        """Return the kernel that runs now. Raises MeasureError if it could not be booted again."""
        release, build = _uname(self.machine)
        image = installed(self.machine).get(release)
        if image is None:
            raise self._not_bootable("image", release)
        if not image.initrd and not _began_without_initrd(self.machine):
            raise self._not_bootable("initrd", release)
        return msgspec.structs.replace(image, build=build)

    def _not_bootable(self, missing: str, release: str) -> MeasureError:
        return MeasureError(
            f"there is no {missing} of the running kernel {release}, so it could not be booted again",
            place=self.machine.name,
            remedy=f"they should be /boot/vmlinuz-{release} and /boot/initrd.img-{release}; a link will do",
        )

    def _installed(self, value: str) -> Image:
        """Return the newest installed kernel whose release begins with ``value``. Raises MeasureError."""
        images = installed(self.machine)
        matching = [release for release in images if kernels.matches(value, release)]
        if not matching:
            raise MeasureError(
                f"there is no kernel {value!r} on {self.machine.name}; there are: {', '.join(images) or 'none'}",
                remedy="install it there, with its modules; or give the path of its image there, IMAGE:INITRD",
            )
        newest = images[max(matching, key=kernels.order)]
        if not newest.initrd:
            raise MeasureError(
                f"kernel {newest.release} has no initrd next to it",
                place=f"{self.machine.name}: {newest.image}",
                remedy="make one; for a kernel that needs none give the path of its image as the value",
            )
        return newest

    def _readable(self, file: str) -> bool:
        """Return whether the host has a readable file at this absolute path."""
        if not file.startswith("/"):
            return False
        return self.machine.run(["test", "-r", file]).returncode == 0

    def _at(self, value: str) -> Image:
        """Return the kernel in the files ``IMAGE[:INITRD]`` of the host. Raises MeasureError."""
        path, _, initrd = value.partition(":")
        for file in (path, initrd or path):
            if not self._readable(file):
                raise MeasureError(
                    f"there is no {file!r}",
                    place=self.machine.name,
                    remedy="give IMAGE:INITRD, absolute paths there",
                )
        text = kernels.version(
            self.machine.run(["head", "-c", str(HEADER), path]).stdout, path
        )
        return Image(text.partition(" ")[0], path, initrd, text.partition(") ")[2])

    @classmethod
    def restore(cls, machine: Machine, saved: Saved) -> str:
        values = dict(saved.values)
        if values["machine"] != machine_id(machine):
            return "nothing to do: another machine was rebooted"
        way = next(way for way in WAYS if way.name == values["way"])(machine)
        fields = {name: values[name] for name in Image.__struct_fields__}
        original = converted(fields, Image)
        way.forget()
        if _runs(machine, original, values["cmdline"]):
            return f"nothing to do: {original.release} runs"
        # The way that was used may no longer work; if none works, its own error says why.
        if way.missing():
            open_ways, _ = ways(machine)
            way = next(iter(open_ways), way)
        cmdline = values["cmdline"] if way.cmdline else ""
        _reboot(machine, way, original, cmdline, float(values["limit"]))
        return f"{original.release} was started again by {way.name}"


def installed(machine: Machine) -> dict[str, Image]:
    """Release -> kernel, of those in /boot and in the directories of their modules, oldest release first."""
    initrds = set(machine.glob("/boot/init*"))
    paths: dict[str, str] = {}
    for path in machine.glob("/lib/modules/*/vmlinuz"):
        paths[path.split("/")[3]] = path
    # /boot last: a boot loader has entries for the images there.
    for path in machine.glob("/boot/vmlinuz-*"):
        paths[path.removeprefix("/boot/vmlinuz-")] = path
    # `vmlinuz-linux` and other names of a distribution do not contain the release.
    releases = [release for release in paths if release[:1].isdigit()]
    images: dict[str, Image] = {}
    for release in sorted(releases, key=kernels.order):
        images[release] = Image(release, paths[release], _initrd(release, initrds))
    return images


def _initrd(release: str, files: set[str]) -> str:
    """Return the initrd of a release among ``files``, as Debian, Fedora or openSUSE names it; empty without one."""
    names = (
        f"/boot/initrd.img-{release}",
        f"/boot/initramfs-{release}.img",
        f"/boot/initrd-{release}",
    )
    present = (name for name in names if name in files)
    return next(present, "")


def _runs(machine: Machine, image: Image, cmdline: str) -> bool:
    """Return whether a machine runs this kernel with this command line, whichever boot loader started it."""
    if _uname(machine) != (image.release, image.build):
        return False
    return _plain(_cmdline(machine)) == _plain(cmdline)


def _reboot(
    machine: Machine, way: Way, image: Image, cmdline: str, limit: float
) -> None:
    """Reboot a machine and verify the result. Raises KnobError, LostError."""
    if not isinstance(machine, SshMachine):
        raise KnobError(
            f"{_uname(machine)[0]} runs, and {image.release} did before a run rebooted this machine",
            place="kernel",
            remedy="run the script next to the undo log (in pending/), which reboots; or reboot and try again",
        )
    way.prepare(image, cmdline)
    try:
        machine.reboot(["sh", "-c", way.go], limit=limit)
    except MachineError as error:
        way.forget()
        raise KnobError(error.what, place=error.place, remedy=error.remedy) from error
    # A boot loader that cannot write to its disk has not cleared the choice itself.
    way.forget()
    _verify(machine, image, cmdline)


def _verify(machine: Machine, image: Image, cmdline: str) -> None:
    release, build = _uname(machine)
    # Without a recorded build, any build of the release is right.
    right_build = not image.build or build in image.build
    if release != image.release or not right_build:
        wanted = f"{image.release} {image.build}".strip()
        raise KnobError(
            f"{release} {build} runs, and {wanted} was to be started: it did not come up and a reset (panic, watchdog, "
            "a hand) brought the default entry back, or the boot loader passed over it",
            place=f"{machine.name}: kernel",
            remedy="see its console, or /sys/fs/pstore there",
        )
    present = _cmdline(machine)
    missing = [word for word in cmdline.split() if word not in present.split()]
    if missing:
        raise KnobError(
            f"{release} runs, without {' '.join(missing)}: it did not come up as it was started, and a reset brought "
            f"the default entry back, or what starts kernels there knows better; its command line is: {present}",
            place=f"{machine.name}: kernel",
            remedy="see its console, or /sys/fs/pstore there",
        )


def _began_without_initrd(machine: Machine) -> bool:
    """Return whether the running kernel was booted without an initrd; False if the kernel does not say."""
    try:
        parameters = machine.read_bytes("/sys/kernel/boot_params/data")
    except MachineError:
        return False
    return parameters[INITRD_SIZE] == bytes(4)


def _uname(machine: Machine) -> tuple[str, str]:
    """Release and build of the running kernel. Raises KnobError."""
    texts = [machine.run(["uname", option]).text.strip() for option in ("-r", "-v")]
    if not all(texts):
        raise KnobError("uname prints no release or no build", place=machine.name)
    return texts[0], texts[1]


def _cmdline(machine: Machine) -> str:
    return attribute_text(machine, "/proc/cmdline")


def _plain(cmdline: str) -> str:
    """Return a command line without the parameters that a boot loader adds."""
    return re.sub(r"(?<!\S)(BOOT_IMAGE|initrd)=\S*\s*", "", cmdline).strip()


def _for_another(cmdline: str, more: str) -> str:
    """Return the command line for another kernel: that of the present one with ``more``, and ``PANIC`` unless it has
    one.
    """
    words = f"{_plain(cmdline)} {more}".strip()
    if re.search(r"(?<!\S)panic=", words):
        return words
    return f"{words} {PANIC}".strip()
