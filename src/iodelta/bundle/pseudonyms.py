"""One placeholder for each identity, the same wherever it stands, so that relations survive the removal.

Placeholders are plain words (``host-1``), so a text stays as valid (JSON, TOML, an option of fio) as it was.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any

from iodelta.bundle.identity import kind_of, of_document

ORDINARY = frozenset(
    "root nobody localhost local host user users admin test tests testing linux debian ubuntu fedora centos arch "
    "alpine suse opensuse rhel rocky alma fio iodelta kernel data disk disks home raw read write trim randread "
    "randwrite none mq-deadline bfq kyber old new base baseline variant plan block blocks cell cells true false null "
    "default server client storage loop nvme node numa".split()
)
"""Words that mean something else nearly everywhere: such a name is replaced only where it stands as a name."""

SHORTEST = 4
"""Letters of a name that may be replaced wherever it stands; ``vm`` would be found in ``vm.dirty_ratio``."""

VERSIONS = frozenset("firmware bios microcode version package release product model board".split())

_HEX = "0-9A-Fa-f"
_END = r"(?![\w:.])"
_PATH = r"(?:[^\s\"',\\]|\\\\)+"

PATTERNS: tuple[tuple[str, str], ...] = (
    ("disk name", rf"(?<=/dev/disk/by-id/){_PATH}"),
    ("serial", rf"(?<=/dev/disk/by-uuid/){_PATH}|(?<=/dev/disk/by-partuuid/){_PATH}"),
    ("label", rf"(?<=/dev/disk/by-label/){_PATH}|(?<=/dev/disk/by-partlabel/){_PATH}"),
    ("label", r"(?<=\bLABEL=)[^\s\"',]+|(?<=\bPARTLABEL=)[^\s\"',]+"),
    ("serial", r"(?<=\bUUID=)[^\s\"',]+|(?<=\bPARTUUID=)[^\s\"',]+"),
    ("host name", r"(?<=\bhostname=)[\w.-]+"),
    ("host name", r"(?<=\"hostname\" : \")[^\"]+|(?<=\"hostname\":\")[^\"]+"),
    ("home", r"/(?:home|Users)/[^\s\"',;\\]+|/run/media/[^\s\"',;\\]+|/media/[^\s\"',;\\]+|/run/user/\d+[^\s\"',;\\]*"),
    ("home", r"(?<![\w.-])/root(?=[/\"'\s,;])[^\s\"',;\\]*"),
    ("address", r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*"),
    ("serial", rf"\b[{_HEX}]{{8}}-[{_HEX}]{{4}}-[{_HEX}]{{4}}-[{_HEX}]{{4}}-[{_HEX}]{{12}}\b"),
    ("serial", rf"\b(?:naa\.|eui\.|wwn-0x|uuid\.|0x5)[{_HEX}-]{{12,36}}\b|\b(?:nqn|iqn)\.[^\s\"',]+|\bt10\.[^\s\"',]+"),
    ("serial", rf"\bnvme\.[{_HEX}]{{4}}-[{_HEX}-]{{8,}}"),
    ("serial", r"\bLVM-[A-Za-z0-9]{32,64}\b"),
    ("machine id", r"\b[0-9a-f]{32}\b"),
    ("MAC address", rf"(?<![\w:])(?:[{_HEX}]{{2}}:){{5}}[{_HEX}]{{2}}{_END}"),
    ("IP address", rf"(?<![\w.])(?:\d{{1,3}}\.){{3}}\d{{1,3}}{_END}"),
    ("IP address", rf"(?<![\w:.])(?:[{_HEX}]{{0,4}}:){{2,7}}[{_HEX}]{{0,4}}{_END}"),
)
"""Kind, and how such an identity looks wherever it stands."""

_PLACEHOLDER = re.compile(r"\b(host|user|disk|serial|label|home|address|machine|mac|ip)-\d+(-part\d+)?\b", re.ASCII)
_WORDS = {
    "host name": "host",
    "user name": "user",
    "disk name": "disk",
    "machine id": "machine",
    "MAC address": "mac",
    "IP address": "ip",
    "home": "home",
}


class Pseudonyms:
    """Replaces identities in texts and documents; ``given`` tells afterwards what became what."""

    def __init__(self, literals: Mapping[str, str], vocabulary: Collection[str] = ()) -> None:
        """``literals`` are identities by kind; those that are also in the ``vocabulary`` of the experiment, or ordinary
        words, are replaced only as whole values."""
        self._kinds = dict(literals)
        self.given: dict[str, tuple[str, str]] = {}
        """Identity -> kind and placeholder."""
        self.places: Counter[str] = Counter()
        """Kind -> replacements made."""
        self._next: Counter[str] = Counter()
        apart = {word for word in literals if _is_ordinary(word, vocabulary)}
        self.only_as_names = tuple(sorted(apart))
        """Names that are words as well: where such a word stands in a text, it stays."""
        free = sorted((word for word in literals if word not in apart), key=lambda word: (-len(word), word))
        self._steps: list[tuple[re.Pattern[str], Callable[[re.Match[str]], str], str]] = []
        if free:
            anywhere = "|".join(map(re.escape, free))
            # A serial number is a part of a disk's name, after an underscore.
            self._steps.append((re.compile(rf"(?<![A-Za-z0-9])(?:{anywhere})(?![A-Za-z0-9])"), self._literal, ""))
        self._steps += [(re.compile(pattern), self._looks(kind), kind) for kind, pattern in PATTERNS]
        # By-id names before the serial numbers in them, everything else after.
        self._steps.sort(key=lambda step: 0 if "by-id" in step[0].pattern else 1)

    def name(self, identity: str, kind: str) -> str:
        """The placeholder of an identity; the same for the same one."""
        if _PLACEHOLDER.fullmatch(identity):
            return identity
        stem, part = identity, ""
        if kind == "disk name":
            stem, part = re.fullmatch(r"(.*?)(-part\d+)?", identity, re.DOTALL).groups(default="")  # type: ignore[union-attr]
        if stem not in self.given:
            word = _WORDS.get(kind, kind)
            self._next[word] += 1
            self.given[stem] = (kind, f"{word}-{self._next[word]}")
        self.places[kind] += 1
        return self.given[stem][1] + part

    def text(self, text: str, *, versions: bool = False) -> str:
        """A text without identities. ``versions``: it is a version number, which may look like an address."""
        for pattern, replace, kind in self._steps:
            if not (versions and kind == "IP address"):
                text = pattern.sub(replace, text)
        return text

    def document(self, value: Any, path: tuple[str, ...] = ()) -> Any:
        """Plain data (of JSON) without identities, in keys and values; numbers are left alone."""
        if isinstance(value, dict):
            return {self.text(key): self.document(inner, (*path, key)) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.document(inner, path) for inner in value]
        if not isinstance(value, str):
            return value
        whole = self._kinds.get(value)
        if whole is not None and (kind_of(path, value) or value not in self.only_as_names):
            return self._named(value, whole)
        return self.text(value, versions=bool(path) and path[-1] in VERSIONS)

    def _literal(self, found: re.Match[str]) -> str:
        return self._named(found[0], self._kinds[found[0]])

    def _named(self, text: str, kind: str) -> str:
        return f"/{self.name(text.rstrip('/'), kind)}" if kind == "home" else self.name(text, kind)

    def _looks(self, kind: str) -> Callable[[re.Match[str]], str]:
        def replace(found: re.Match[str]) -> str:
            text = found[0]
            if kind == "IP address" and not _is_address(text):
                return text
            return self._named(text, self._kinds.get(text, kind))

        return replace


def nameless(document: Any) -> Any:
    """A document in which every identity of a kind is the same word: names never are a difference between machines."""
    named = Pseudonyms(of_document(document)).document(document)
    return _numberless(named)


def is_nameless(value: Any) -> bool:
    """Whether placeholders stand in a document: its machine has no names."""
    if isinstance(value, dict):
        return any(map(is_nameless, value.values()))
    if isinstance(value, list):
        return any(map(is_nameless, value))
    return isinstance(value, str) and _PLACEHOLDER.search(value) is not None


def _numberless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _numberless(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_numberless(inner) for inner in value]
    return _PLACEHOLDER.sub(lambda found: found[1], value) if isinstance(value, str) else value


def _is_ordinary(word: str, vocabulary: Collection[str]) -> bool:
    """Too short, a plain number, or a word that means something in the experiment."""
    return len(word) < SHORTEST or word.isdecimal() or word.casefold() in ORDINARY or word in vocabulary


def _is_address(text: str) -> bool:
    """Of somebody in particular: not everybody's own, not the address of nothing."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified)
