"""The kernel of a host over SSH. Setting it is a reboot, and so is restoring it."""

from __future__ import annotations

import os
import posixpath
import re
import shlex
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import msgspec

from iodelta.decoding import converted, from_json
from iodelta.errors import KnobError, MachineError, MeasureError
from iodelta.knob.base import EMPTY, Knob, Saved
from iodelta.knob.command import machine_id, stored_commands
from iodelta.knob.shell import Line, NoScript
from iodelta.machine import Machine
from iodelta.machine.ssh import SshMachine
from iodelta.probe.sysfs import attribute, attribute_text, boot_id, is_root
from iodelta.probe.topology import Target
from iodelta.vm import kernels

LOADED = "/sys/kernel/kexec_loaded"

GRUB = ("/boot/grub", "/boot/grub2")

MENU = r"(?:submenu|menuentry)\s+(?:'([^']*)'|\"([^\"]*)\"|(\S+))(.*)\{$"
"""The line of a grub.cfg that opens a submenu or an entry: its title in single, double or no quotes, and the rest."""

IDENTIFIER = r"(?:\$\{?menuentry_id_option\}?|--id)[\s=]+['\"]?([^'\"\s]+)"
"""The identifier of an entry, in that rest."""

SYSTEMD = "if [ -d /run/systemd/system ]; then exec systemctl {verb}; fi"


class Image(msgspec.Struct, frozen=True):
    """A kernel on a host."""

    release: str
    image: str
    initrd: str = ""
    build: str = ""
    """What ``uname -v`` prints under it; empty where that is not known."""


class Way(ABC):
    """One way to boot a machine into a chosen kernel."""

    name: ClassVar[str]
    cmdline: ClassVar[bool] = False
    """Whether the kernel's command line can be chosen too."""
    go: ClassVar[str]
    """Shell code that reboots the machine after ``choose``."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    @abstractmethod
    def missing(self) -> str:
        """Why it does not work here; empty if it does."""

    @abstractmethod
    def choose(self, image: Image, cmdline: str) -> tuple[str, ...]:
        """The command that chooses a kernel for the next boot. Raises KnobError for a kernel that it cannot boot."""

    @abstractmethod
    def chosen(self) -> bool:
        """Whether a kernel is chosen for the next boot."""

    @abstractmethod
    def forget(self) -> None:
        """Withdraw a choice that was not booted. Raises KnobError."""

    def script(self, image: Image, cmdline: str) -> str:
        """Shell code that boots ``image`` unless it runs already. Raises KnobError."""
        choose = shlex.join(self.choose(image, cmdline))
        return f'[ "$(uname -r)" = {shlex.quote(image.release)} ] || {{ {choose} && {{ {self.go}; }}; }}'

    def prepare(self, image: Image, cmdline: str) -> None:
        """Choose a kernel for the next boot. Raises KnobError."""
        words = self.choose(image, cmdline)
        _run(self.machine, words)
        if not self.chosen():
            raise KnobError(
                f"{words[0]} reports no error, but has not chosen {image.release}",
                place=self.machine.name,
            )


class Kexec(Way):
    """The running kernel starts the other one: fast, since the firmware is not involved."""

    name = "kexec"
    cmdline = True
    # Without systemd nothing unmounts filesystems, so sysrq remounts them read-only: then all data is on disk.
    go = f"{SYSTEMD.format(verb='kexec')}; sync; echo u >/proc/sysrq-trigger; sleep 1; exec kexec -e"

    def missing(self) -> str:
        if not _has(self.machine, "kexec"):
            return "needs kexec (package kexec-tools)"
        if attribute(self.machine, LOADED) is None:
            return "the running kernel has no kexec (CONFIG_KEXEC_FILE)"
        if attribute(self.machine, "/proc/sys/kernel/kexec_load_disabled") == "1":
            return "it is switched off there until the next boot (sysctl kernel.kexec_load_disabled)"
        return ""

    def choose(self, image: Image, cmdline: str) -> tuple[str, ...]:
        initrd = (f"--initrd={image.initrd}",) if image.initrd else ()
        return ("kexec", "-a", "-l", image.image, *initrd, f"--command-line={cmdline}")

    def chosen(self) -> bool:
        return attribute(self.machine, LOADED) == "1"

    def forget(self) -> None:
        if self.chosen():
            _run(self.machine, ["kexec", "-u"])


class _OneShot(Way):
    go = f"{SYSTEMD.format(verb='reboot')}; sync; exec reboot"


class Grub(_OneShot):
    """GRUB's next_entry, which GRUB clears when it boots the entry."""

    name = "grub-reboot"

    def missing(self) -> str:
        place, text = self._configuration()
        if not place:
            return "no GRUB there"
        if not self._program("reboot"):
            return "needs grub-reboot (package grub2-common)"
        if "next_entry" not in text:
            return "its grub.cfg does not use next_entry (set GRUB_DEFAULT=saved and regenerate it)"
        probe = self._program("probe")
        if not probe:
            return ""
        # GRUB cannot write through an abstraction (LVM, RAID), nor to a copy-on-write filesystem.
        for target, refused in (("abstraction", "."), ("fs", "btrfs|zfs")):
            kind = self.machine.run([probe, f"--target={target}", place]).text.strip()
            if re.match(refused, kind):
                return f"GRUB cannot write on {kind}, so the entry would stay"
        return ""

    def choose(self, image: Image, cmdline: str) -> tuple[str, ...]:
        _, text = self._configuration()
        entries = grub_entries(text)
        if "blscfg" in text:
            # The same for the files that GRUB's `blscfg` reads
            snippets: list[tuple[str, str]] = []
            for path in self.machine.glob("/boot/loader/entries/*.conf"):
                text = attribute_text(self.machine, path)
                boots = re.search(r"^linux\s+(\S+)", text, re.MULTILINE)
                if boots:
                    entry = os.path.basename(path).removesuffix(".conf")
                    snippets.append((entry, boots[1]))
            entries += snippets
        for entry, path in entries:
            if _same_image(path, image):
                return (self._program("reboot"), entry)
        what = f"GRUB has no entry that boots {image.image}"
        raise KnobError(what, place=self.machine.name, remedy="update-grub")

    def chosen(self) -> bool:
        return (
            re.search("^next_entry=.", self._environment("list"), re.MULTILINE)
            is not None
        )

    def forget(self) -> None:
        if self.chosen():
            self._environment("unset", "next_entry")

    def _environment(self, *words: str) -> str:
        return _run(self.machine, [self._program("editenv"), "-", *words])

    def _program(self, what: str) -> str:
        """Return the name of a GRUB program (on Fedora and openSUSE it begins with grub2); empty if it is not
        installed.
        """
        for name in (f"grub-{what}", f"grub2-{what}"):
            if _has(self.machine, name):
                return name
        return ""

    def _configuration(self) -> tuple[str, str]:
        """GRUB's directory and its grub.cfg; both empty without GRUB."""
        for place in GRUB:
            text = attribute(self.machine, f"{place}/grub.cfg")
            if text is not None:
                return place, text
        return "", ""


class SystemdBoot(_OneShot):
    """systemd-boot's one-shot entry, a variable of the firmware."""

    name = "bootctl set-oneshot"

    def missing(self) -> str:
        has_bootctl = _has(self.machine, "bootctl")
        if has_bootctl and not self.machine.run(["bootctl", "is-installed"]).returncode:
            return ""
        return "no systemd-boot there"

    def choose(self, image: Image, cmdline: str) -> tuple[str, ...]:
        text = _run(self.machine, ["bootctl", "list", "--json=short"])
        try:
            entries = from_json(text, list[_Entry])
        except msgspec.MsgspecError as error:
            raise KnobError(
                f"the output of bootctl list is not a list: {error}",
                place=self.machine.name,
            ) from error
        for entry in entries:
            if entry.boots(image):
                return ("bootctl", "set-oneshot", entry.id)
        raise KnobError(
            f"systemd-boot has no entry that boots {image.release}",
            place=self.machine.name,
            remedy="kernel-install add",
        )

    def chosen(self) -> bool:
        return bool(self.machine.glob("/sys/firmware/efi/efivars/LoaderEntryOneShot-*"))

    def forget(self) -> None:
        if self.chosen():
            _run(self.machine, ["bootctl", "set-oneshot", ""])


class _Entry(msgspec.Struct):
    """An entry in the output of ``bootctl list``."""

    id: str
    version: str | None = None
    linux: str | None = None

    def boots(self, image: Image) -> bool:
        path = self.linux or ""
        if self.version == image.release:
            return True
        # kernel-install puts an image below a directory named by its release.
        if image.release in path.split("/"):
            return True
        return _same_image(path, image)


WAYS: tuple[type[Way], ...] = (Kexec, Grub, SystemdBoot)
"""The fastest first."""


def ways(machine: Machine) -> tuple[list[Way], list[str]]:
    """Return the ways that work on a machine, and why the others do not."""
    open_ways: list[Way] = []
    reasons: list[str] = []
    for kind in WAYS:
        way = kind(machine)
        missing = way.missing()
        if missing:
            reasons.append(f"{way.name}: {missing}")
        else:
            open_ways.append(way)
    return open_ways, reasons


def _entry_name(menu: re.Match[str]) -> str:
    """Return the identifier of an entry, else its title, which is in single, double or no quotes."""
    single_quoted, double_quoted, plain, rest = menu.groups()
    identifier = re.search(IDENTIFIER, rest)
    if identifier:
        return identifier[1]
    return str(single_quoted or double_quoted or plain)


def grub_entries(text: str) -> list[tuple[str, str]]:
    """Return the name of each entry of a grub.cfg for ``grub-reboot``, and the image that the entry boots; in order."""
    entries: list[tuple[str, str]] = []
    # The menus that are open at a line, outermost first; the name of a block that is not a menu is empty.
    menus: list[str] = []
    for line in map(str.strip, text.splitlines()):
        menu = re.match(MENU, line)
        boots = re.match(r"linux(?:16|efi)?\s+(\S+)", line)
        if menu:
            menus.append(_entry_name(menu))
        elif line.endswith("{"):
            # A function or a condition.
            menus.append("")
        elif line == "}" and menus:
            menus.pop()
        elif boots and menus and all(menus):
            entries.append((">".join(menus), boots[1]))
    return entries


def _same_image(path: str, image: Image) -> bool:
    """Return whether a boot loader's path is that image; the path may be relative to /boot."""
    same_name = os.path.basename(path) == os.path.basename(image.image)
    return same_name and image.image.endswith(path)


def _has(machine: Machine, name: str) -> bool:
    return machine.run(["sh", "-c", 'command -v "$0"', name]).returncode == 0


def _run(machine: Machine, words: Sequence[str]) -> str:
    """Return what a command printed. Raises KnobError when it fails."""
    try:
        done = machine.run(words, timeout=120)
    except MachineError as error:
        raise KnobError(error.what, place=error.place, remedy=error.remedy) from error
    if done.returncode != 0:
        message = " ".join(done.error_text.split())
        message = message or f"ended with {done.returncode}"
        raise KnobError(
            f"{shlex.join(words)}: {message[-300:]}",
            place=machine.name,
            remedy="run it there to see why",
        )
    return done.text


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
        # The kind of filesystem that holds iodelta's state directory, which may not exist yet
        path = self.machine.state
        done = self.machine.run([*KIND_OF_FILESYSTEM, path])
        while done.returncode and path != "/":
            path = posixpath.dirname(path)
            done = self.machine.run([*KIND_OF_FILESYSTEM, path])
        kind = done.text.strip()
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
            # The newest installed kernel whose release begins with `value`
            images = installed(self.machine)
            matching = [
                release for release in images if kernels.matches(value, release)
            ]
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
        original = converted(
            {name: values[name] for name in Image.__struct_fields__}, Image
        )
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
        # The initrd of a release among `files`, as Debian, Fedora or openSUSE names it
        names = (
            f"/boot/initrd.img-{release}",
            f"/boot/initramfs-{release}.img",
            f"/boot/initrd-{release}",
        )
        present = (name for name in names if name in initrds)
        images[release] = Image(release, paths[release], next(present, ""))
    return images


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
