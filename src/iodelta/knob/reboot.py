"""How a host is started into another kernel: by kexec, or once by an entry of its boot loader.

Every way leaves the default entry as it is, so that a reset ends a kernel that hangs.
"""

from __future__ import annotations

import os
import re
import shlex
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import msgspec

from iodelta.decoding import from_json
from iodelta.errors import KnobError, MachineError
from iodelta.machine import Machine
from iodelta.probe.sysfs import attribute

LOADED = "/sys/kernel/kexec_loaded"

GRUB = ("/boot/grub", "/boot/grub2")

MENU = r"(?:submenu|menuentry)\s+(?:'([^']*)'|\"([^\"]*)\"|(\S+))(.*)\{$"
"""The line of a grub.cfg that opens a menu or an entry: its title in either quotes or none, and the rest."""

IDENTIFIER = r"(?:\$\{?menuentry_id_option\}?|--id)[\s=]+['\"]?([^'\"\s]+)"
"""Where that rest names the entry."""

SYSTEMD = "if [ -d /run/systemd/system ]; then exec systemctl {verb}; fi"


class Image(msgspec.Struct, frozen=True):
    """A kernel on a host."""

    release: str
    image: str
    initrd: str = ""
    build: str = ""
    """What its image says of its build, ``uname -v`` in it; empty where it was not asked."""


class Way(ABC):
    """One way of starting a machine into a kernel of choice."""

    name: ClassVar[str]
    cmdline: ClassVar[bool] = False
    """Whether the kernel's command line can be chosen too."""
    go: ClassVar[str]
    """Code for sh that reboots the machine, after ``choose``."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    @abstractmethod
    def missing(self) -> str:
        """Why it does not work here; empty if it does."""

    @abstractmethod
    def choose(self, image: Image, cmdline: str) -> tuple[str, ...]:
        """The command that chooses a kernel for the next boot. Raises KnobError for one that it cannot boot."""

    @abstractmethod
    def chosen(self) -> bool:
        """Whether a kernel is chosen for the next boot."""

    @abstractmethod
    def forget(self) -> None:
        """Take back a choice whose boot did not happen. Raises KnobError."""

    def script(self, image: Image, cmdline: str) -> str:
        """Code for sh that starts ``image``, unless it runs. Raises KnobError."""
        choose = shlex.join(self.choose(image, cmdline))
        return f'[ "$(uname -r)" = {shlex.quote(image.release)} ] || {{ {choose} && {{ {self.go}; }}; }}'

    def prepare(self, image: Image, cmdline: str) -> None:
        """Choose a kernel for the next boot. Raises KnobError."""
        words = self.choose(image, cmdline)
        _run(self.machine, words)
        if not self.chosen():
            raise KnobError(
                f"{words[0]} says nothing, and has not chosen {image.release}",
                place=self.machine.name,
            )


class Kexec(Way):
    """The running kernel starts the other one: quick, no firmware in between."""

    name = "kexec"
    cmdline = True
    # Without systemd nothing unmounts filesystems: it is made read-only, which is on disk then.
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
    """GRUB's next_entry, which it forgets when it boots it."""

    name = "grub-reboot"

    def missing(self) -> str:
        place, text = self._configuration()
        if not place:
            return "no GRUB there"
        if not self._program("reboot"):
            return "needs grub-reboot (package grub2-common)"
        if "next_entry" not in text:
            return "its grub.cfg does not use next_entry (set GRUB_DEFAULT=saved and regenerate it)"
        return self._read_only(place)

    def _read_only(self, place: str) -> str:
        """Why GRUB could not forget an entry when it boots it; empty if it can, or if nothing here can tell."""
        probe = self._program("probe")
        if not probe:
            return ""
        # GRUB writes on no abstraction (LVM, RAID) and on no copy-on-write filesystem.
        for target, refused in (("abstraction", "."), ("fs", "btrfs|zfs")):
            done = self.machine.run([probe, f"--target={target}", place])
            kind = done.text.strip()
            if re.match(refused, kind):
                return f"GRUB cannot write on {kind}, so the entry would stay"
        return ""

    def choose(self, image: Image, cmdline: str) -> tuple[str, ...]:
        _, text = self._configuration()
        entries = grub_entries(text)
        if "blscfg" in text:
            entries += _snippets(self.machine)
        for entry, path in entries:
            if _same_image(path, image):
                return (self._program("reboot"), entry)
        what = f"GRUB has no entry that boots {image.image}"
        raise KnobError(what, place=self.machine.name, remedy="update-grub")

    def chosen(self) -> bool:
        environment = self._environment("list")
        return re.search("^next_entry=.", environment, re.MULTILINE) is not None

    def forget(self) -> None:
        if self.chosen():
            self._environment("unset", "next_entry")

    def _environment(self, *words: str) -> str:
        return _run(self.machine, [self._program("editenv"), "-", *words])

    def _program(self, what: str) -> str:
        """The name of a program of GRUB: Fedora and openSUSE say grub2; empty where it is not installed."""
        for name in (f"grub-{what}", f"grub2-{what}"):
            if _has(self.machine, name):
                return name
        return ""

    def _configuration(self) -> tuple[str, str]:
        for place in GRUB:
            text = attribute(self.machine, f"{place}/grub.cfg")
            if text is not None:
                return place, text
        return "", ""


class SystemdBoot(_OneShot):
    """systemd-boot's one-shot entry, a variable of the firmware."""

    name = "bootctl set-oneshot"

    def missing(self) -> str:
        if not _has(self.machine, "bootctl"):
            return "no systemd-boot there"
        if self.machine.run(["bootctl", "is-installed"]).returncode:
            return "no systemd-boot there"
        return ""

    def choose(self, image: Image, cmdline: str) -> tuple[str, ...]:
        text = _run(self.machine, ["bootctl", "list", "--json=short"])
        try:
            entries = from_json(text, list[_Entry])
        except msgspec.MsgspecError as error:
            raise KnobError(
                f"the output of bootctl list is not a list: {error}",
                place=self.machine.name,
            ) from error
        entry = next(
            (candidate.id for candidate in entries if candidate.boots(image)), None
        )
        if entry is None:
            raise KnobError(
                f"systemd-boot has no entry that boots {image.release}",
                place=self.machine.name,
                remedy="kernel-install add",
            )
        return ("bootctl", "set-oneshot", entry)

    def chosen(self) -> bool:
        return bool(self.machine.glob("/sys/firmware/efi/efivars/LoaderEntryOneShot-*"))

    def forget(self) -> None:
        if self.chosen():
            _run(self.machine, ["bootctl", "set-oneshot", ""])


class _Entry(msgspec.Struct):
    """One of ``bootctl list``."""

    id: str
    version: str | None = None
    linux: str | None = None

    def boots(self, image: Image) -> bool:
        path = self.linux or ""
        if self.version == image.release:
            return True
        # kernel-install puts an image below a directory of its release.
        if image.release in path.split("/"):
            return True
        return _same_image(path, image)


WAYS: tuple[type[Way], ...] = (Kexec, Grub, SystemdBoot)
"""The quickest first."""


def ways(machine: Machine) -> tuple[list[Way], list[str]]:
    """The ways that work on a machine, and why the others do not."""
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
    """Its identifier, else its title, which is quoted in either way or not at all."""
    single_quoted, double_quoted, plain, rest = menu.groups()
    identifier = re.search(IDENTIFIER, rest)
    if identifier:
        return identifier[1]
    return str(single_quoted or double_quoted or plain)


def grub_entries(text: str) -> list[tuple[str, str]]:
    """What ``grub-reboot`` calls each entry of a grub.cfg, and the image that it boots; in their order."""
    entries: list[tuple[str, str]] = []
    # The menus that are open at a line, from the outermost; an empty name for a block that is no menu.
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


def _snippets(machine: Machine) -> list[tuple[str, str]]:
    """The same of the files that GRUB's ``blscfg`` reads."""
    entries: list[tuple[str, str]] = []
    for path in machine.glob("/boot/loader/entries/*.conf"):
        text = attribute(machine, path) or ""
        image = re.search(r"^linux\s+(\S+)", text, re.MULTILINE)
        if image:
            entry = os.path.basename(path).removesuffix(".conf")
            entries.append((entry, image[1]))
    return entries


def _same_image(path: str, image: Image) -> bool:
    """Whether a boot loader's path is that image; its root may be /boot, or another name for it."""
    if not path or os.path.basename(path) != os.path.basename(image.image):
        return False
    return image.image.endswith(path)


def _has(machine: Machine, name: str) -> bool:
    return machine.run(["sh", "-c", 'command -v "$0"', name]).returncode == 0


def _run(machine: Machine, words: Sequence[str]) -> str:
    """What a command printed. Raises KnobError when it fails."""
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
