"""Boot a host into another kernel: by kexec, or once by an entry of its boot loader.

No way changes the default entry, so a reset ends a kernel that hangs.
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
from iodelta.probe.sysfs import attribute, attribute_text

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
        return self._read_only(place)

    def _read_only(self, place: str) -> str:
        """Return why GRUB could not clear next_entry when it boots; empty if it can, or if grub-probe is not installed."""
        probe = self._program("probe")
        if not probe:
            return ""
        # GRUB cannot write through an abstraction (LVM, RAID), nor to a copy-on-write filesystem.
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


def _snippets(machine: Machine) -> list[tuple[str, str]]:
    """Return the same for the files that GRUB's ``blscfg`` reads."""
    entries: list[tuple[str, str]] = []
    for path in machine.glob("/boot/loader/entries/*.conf"):
        text = attribute_text(machine, path)
        image = re.search(r"^linux\s+(\S+)", text, re.MULTILINE)
        if image:
            entry = os.path.basename(path).removesuffix(".conf")
            entries.append((entry, image[1]))
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
