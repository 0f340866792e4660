"""Replace each identity by one placeholder, the same everywhere, so that relations remain visible.

Placeholders are plain words (``host-1``), so a text stays as valid (JSON, TOML, an option of fio) as it was.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any

from iodelta.bundle.identity import (
    SYSTEM,
    USUAL,
    kind_of,
    of_document,
    reduced,
    without_count,
)

ORDINARY = frozenset(
    "root nobody localhost local host user users admin test tests testing linux debian ubuntu fedora centos arch "
    "alpine suse opensuse rhel rocky alma fio iodelta kernel data disk disks home raw read write trim randread "
    "randwrite none mq-deadline bfq kyber old new base baseline variant plan block blocks cell cells true false null "
    "default server client storage loop nvme node numa".split()
)
"""Words with another meaning in most texts: such a name is replaced only where a name belongs."""

SHORTEST = 4
"""Fewest letters of a name that is replaced everywhere; ``vm`` would match in ``vm.dirty_ratio``."""

LONG = 24
"""Fewest letters of a command line that is replaced in texts; a shorter one is not specific to a machine."""

VERSIONS = frozenset(
    "firmware bios microcode version package release product model board".split()
)

_FIELDS = {
    "HEX": "0-9A-Fa-f",
    "PATH": r"(?:[^\s\"',\\]|\\\\)+",
    # Quotes around a value, escaped if the text is inside JSON.
    "QUOTED": r"\\*[\"']?",
    "VALUE": r"(?P<id>[^\s\"'\\&,;)]+)",
    # Characters between a name and its value in options, shells, YAML and JSON.
    "TO": r"\\*[\"']?\s*[=:]\s*\\*[\"']?",
    "DASH": r"(?:-|_|\\+x2d)",
    "TLD": "com|org|net|edu|gov|mil|int|biz|local|localdomain|lan|internal|intranet|corp|home|arpa|example|invalid|"
    "cloud|de|uk|fr|nl|eu|ch|us|ca|au|jp|cn|kr|se|dk|pl|cz|ru|br",
    # Between an option and its value: the next word of a line, or the next element of a list.
    "NEXT": r"(?:\\*[\"']\s*,\s*\\*[\"']|\s+\\*[\"']?)",
    # Ends of public names that are also words of programs: alone they tell nothing, after three labels or a digit they do.
    "SUFFIX": "academy|agency|ai|app|at|be|bg|bio|blog|center|chat|club|co|company|computer|cool|dev|digital|ee|email|energy|engineering|es|"
    "fi|fm|fun|global|gmbh|gr|group|hk|host|hosting|hr|hu|id|ie|il|in|info|ink|institute|io|is|it|lab|life|link|live|lt|lu|lv|me|"
    "mobi|money|mx|name|network|news|ngo|ninja|no|nu|nz|one|online|ovh|page|pro|pt|ro|rocks|rs|run|school|science|services|sg|sh|"
    "shop|si|site|sk|so|social|software|solutions|space|store|studio|su|support|systems|team|tech|tel|to|today|tools|top|tr|tv|"
    "tw|ua|university|vip|website|wiki|work|works|world|ws|xyz|za|zone",
    "SYSTEM": "|".join(SYSTEM),
}
"""What ``<NAME>`` stands for in the table."""

PATTERNS: tuple[tuple[str, str, str], ...] = tuple(
    (kind, re.sub("<([A-Z]+)>", lambda field: _FIELDS[field[1]], pattern), words)
    for kind, words, pattern in re.findall(
        r"(.+?): ?(.*)\n    (.+)",
        r"""
secret: pass pwd secret token cred auth key
    (?i)(?<![\w-])--?(?:pass(?:word|wd|phrase)?|pwd|secret|token|credentials?|auth|(?:api|access|secret|private)[_-]?key)<NEXT>(?P<id>[^\s\"'\\,;&)\]-][^\s\"'\\,;&)\]]*)
secret: -u --user --proxy
    (?<![\w-])(?:-u|--user|--proxy-user)(?:<NEXT>|=)?(?P<id>[^\s:\"'\\/]+:[^\s\"'\\,]+)
secret: sshpass
    \bsshpass<NEXT>-p(?:<NEXT>)?(?P<id>[^\s\"'\\,]+)
secret: mysql mariadb 7z zip smbclient ipmitool kinit ldap
    \b(?:mysql\w*|mariadb\S*|7z\w*|unzip|zip|smbclient|ipmitool|kinit|ldap\w+)\b[^\n]{0,200}?(?<=[\s\"'])-[pPw](?:<NEXT>)?(?P<id>[^\s\"'\\,-][^\s\"'\\,]*)
secret: password
    \blogin\s+\S+\s+password\s+(?P<id>[^\s\"'\\]+)
user name: login
    \blogin\s+(?P<id>[^\s\"'\\]+)(?=\s+(?:account\s+\S+\s+)?password\s)
host name: machine
    \bmachine\s+(?P<id>[^\s\"'\\]+)(?=\s+login\s)
secret: /services/ hook
    (?i)/(?:services|web-?hooks?|hooks?)/(?P<id>[\w-]+(?:/[\w-]+)*)(?<=[\w-]{8})
user name: -by: -to: cc: author: committer: from:
    (?i)\b(?:[a-z]+-(?:by|to)|cc|author|committer|from):\s*(?P<id>[^\s<>\"\\][^<>\"\\\n]{1,60}?)(?=\s*<)
user name: ~
    (?<![\w~/.])~(?P<id>[A-Za-z_][\w.-]*)(?=/)
user name: \
    (?<![\w\\/])(?P<id>[A-Z][A-Z0-9-]{1,14}\\(?:\\|(?![ntrubfx]))[A-Za-z][\w.-]*)
host name: :
    (?:\b[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?) (?P<id>[A-Za-z][\w.-]*) (?=[\w./@-]+(?:\[\d+\])?: )
MAC address: enx
    \benx[0-9a-f]{12}\b
serial: sn serial wwn eui nguid
    (?i)(?:^|[\n{,]|\\n)\s*\\*\"?(?:sn|serial(?:_?number)?|wwn|eui64|nguid)\\*\"?\s*[:=]\s*\\*\"?(?P<id>[\w.-]{6,})
serial: serial= wwn= ptuuid=
    \b(?:SERIAL|WWN|PTUUID)=<QUOTED><VALUE>
serial: wwn device
    (?i)\bWWN Device Id:\s*(?P<id>[<HEX>] [<HEX>]{6} [<HEX>]{9})
serial: 0x 0000
    (?<!wwn-)\b0x(?:10|2[0-9A-Fa-f]|5[0-9A-Fa-f]|c0)[<HEX>]{14}\b|\b(?:10|2[0-9a-f])0000[0-9a-f]{10}\b
serial:
    (?<![0-9A-Fa-f])[0-9A-F]{32}(?![0-9A-Fa-f])
host name:
    (?<![\w.@/-])(?=[\w.-]*[\d-]|(?:[A-Za-z0-9-]+\.){3})(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.){2,}(?:<SUFFIX>)(?![\w-]|\.\w)
host name: ://
    (?<=://)(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)+(?:<SUFFIX>)(?![\w-]|\.\w)
disk name: /by-id/
    (?<=/dev/disk/by-id/)<PATH>
secret: private key
    -----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)-----END [A-Z ]*PRIVATE KEY-----
secret: ssh-
    \bssh-(?:rsa|dss|ed25519) (?P<id>AAAA[\w+/=]+)
secret: akia asia gh glpat xox github_pat aiza sk rk_ rk- hf_ npm_ hvs.
    \b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bgh[pousr]_\w{20,}|\bglpat-[\w-]{20,}|\bxox[abpr]-[\w-]{10,}|\bgithub_pat_\w{20,}|\bAIza[\w-]{35}|\b[sr]k[_-](?:live|test)[_-][\w-]{10,}|\bsk-[\w-]{20,}|\bhf_[A-Za-z0-9]{20,}|\bnpm_[A-Za-z0-9]{30,}|\bhvs\.[\w-]{20,}
secret: eyj
    \beyJ[\w-]+\.[\w-]+\.[\w-]+
secret: bearer basic
    \b(?:Bearer|Basic) (?P<id>[\w+/.=~-]{8,})
secret: ://
    (?<=://)[^\s/@\"'\\]+(?=@)
secret: pass secret token credential key
    (?i)(?:password|passwd|passphrase|secret|token|credentials?|(?:api|access|private)[_-]?key)\w*<TO><VALUE>
secret: pass pwd
    (?i)(?<![a-z])(?:pass|pwd)<TO><VALUE>
secret: =
    (?i)(?<=[?&])(?:[\w-]*signature|sig|auth|key)=(?P<id>[^\s\"'\\&]+)
user name: user log
    (?i)(?<![a-z])(?:user(?:name)?|login|logname|sudo_user)<QUOTED>=<QUOTED><VALUE>
user name: id=
    \b[ug]id=\d+\((?P<id>[^)\s]+)\)
user name: uid= cn=
    (?i)\b(?:uid|cn)=[^\s,=\"'\\]+(?:,(?:ou|dc|cn|o)=[^\s,=\"'\\)}]+)+
user name: user
    (?i)\buser:? (?P<id>[A-Z][\w.-]*\\+[\w.-]*\w)
home: users
    \b[A-Za-z]:\\+Users\\+(?P<id>[^\\\s\"',;)}]+)
serial: sha256:
    \bSHA256:[A-Za-z0-9+/]{40,44}
host name: domain workgroup
    (?i)(?<![a-z])(?:domain|workgroup)<QUOTED>=<QUOTED><VALUE>
serial: /by-uuid/ /by-partuuid/
    (?<=/dev/disk/by-uuid/)<PATH>|(?<=/dev/disk/by-partuuid/)<PATH>
label: /by-label/ /by-partlabel/
    (?<=/dev/disk/by-label/)<PATH>|(?<=/dev/disk/by-partlabel/)<PATH>
label: label
    \b(?:PART)?LABEL(?:_ENC)?=\\*\"(?P<id>[^\"\\]+)
label: label=
    (?<=\bLABEL=)[^\s\"',\\]+|(?<=\bPARTLABEL=)[^\s\"',\\]+
serial: uuid
    (?:\b|_)(?:PART|UUID_SUB_)?UUID(?:_ENC)?=<QUOTED><VALUE>
serial: id_
    \bID_(?:SERIAL(?:_SHORT)?|WWN\w*|PART_ENTRY_UUID)=<QUOTED><VALUE>
serial: serial
    (?i)\bserial (?:number|no\.?)<TO><VALUE>
serial: sn s/n
    \b(?:(?:SN|S/N)\s?[:=]\s*|S/N\s(?=[A-Z-]*\d))(?P<id>[A-Z0-9][A-Z0-9-]{5,})
serial: scsi-
    (?<=scsi-)3?[<HEX>]{16}\b
host name: hostname=
    (?<=\bhostname=)[\w.-]+
host name: hostname
    \"hostname\\*\" ?: ?\\*\"(?P<id>[^\"\\]+)
share: nfs ceph lustre gluster fuse.
    (?<![\w./-])[\w.,@\[\]:-]+:/[^\s\"'\\]*(?=\s+(?:on\s+)?/\S*\s+(?:type\s+)?(?:nfs|ceph|lustre|glusterfs|fuse\.))
user name: ceph
    \bceph\s[^\n]{0,300}?[(,]name=(?P<id>[^\s,)\"'\\]+)
host name: host= server= servername=
    (?i)(?<=[\s,(])(?:host|server|servername)=<VALUE>
share: cifs smb
    (?<![\w:/])//[\w.-]+/[^\s\"'\\]+(?=\s+(?:on\s+)?/\S*\s+(?:type\s+)?(?:cifs|smb))
home: /home/ /users/ /media/ /run/
    /(?:home|Users)/[^\s\"',;\\]+|/run/media/[^\s\"',;\\]+|/media/[^\s\"',;\\]+|/run/user/\d+[^\s\"',;\\]*
home: /root
    (?<![\w.-])/root(?=[/\"'\s,;])[^\s\"',;\\]*
path: /
    (?:(?<![\w./:*-])|(?<=[=:])|(?<=\\n))/(?!(?:<SYSTEM>|home|root|Users|media)/)[A-Za-z][\w.+-]*/[^\s\"',;:\\)\]}>|]+
volume: /dev/mapper/ /dev/zvol/ /dev/md/
    (?<=/dev/mapper/)(?!control\b)[^\s\"',;:\\]+|(?<=/dev/zvol/)[^\s\"',;:\\]+|(?<=/dev/md/)[^\s\"',;\\]+
volume: /dev/
    (?<=/dev/)(?!(?:disk|mapper|zvol|md|shm|fd|pts|block|char|input|bsg|snd|cpu|net|vfio|dri|hugepages|bus|mqueue|virtio-ports|vhost-\w+|ublk\w*|nvme-\w+|iodelta\S*)/)[A-Za-z][\w.+-]*/[A-Za-z][\w.+-]*
address: @
    [\w.+-]+@[\w-]+(?:\.[\w-]+)*
serial: - _ x2d
    (?<![<HEX>])[<HEX>]{8}<DASH>[<HEX>]{4}<DASH>[<HEX>]{4}<DASH>[<HEX>]{4}<DASH>[<HEX>]{12}(?![<HEX>])
container: -pod
    (?<=-pod)[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}\b
container: docker overlay2
    (?<=docker[-/])[0-9a-f]{12,64}\b|(?<=overlay2/)[0-9a-z-]{25,70}\b
container: libpod crio containerd buildkit
    \b(?:libpod|crio|containerd|cri-containerd|buildkit)-(?P<id>[0-9a-f]{12,64})\b
serial: naa. eui. wwn uuid. 0x5 nqn. iqn. t10.
    \b(?:naa\.|eui\.|wwn-0x|uuid\.|0x5)[<HEX>-]{12,36}\b|\b(?:nqn|iqn)\.[^\s\"',]+|\bt10\.[^\s\"',]+
serial: nvme.
    \bnvme\.[<HEX>]{4}-[<HEX>-]{8,}
serial: lvm-
    \bLVM-[A-Za-z0-9]{32,64}\b
serial:
    \b3[0-9a-f]{32}\b|\b5(?=[0-9]*[a-f])[0-9a-f]{15}\b
machine id:
    \b[0-9a-f]{32}\b
MAC address:
    (?<![<HEX>]{2}:)(?<![A-Za-z0-9])(?:[<HEX>]{2}:){5,19}[<HEX>]{2}(?![\w:])
MAC address:
    (?<![\w-])(?:[<HEX>]{2}-){5,19}[<HEX>]{2}(?![\w-])
MAC address: hwaddr ether mac
    (?i)\b(?:hwaddr|hwaddress|ether|macaddr|mac)(?:<TO>| )(?P<id>[<HEX>]{12})\b
MAC address: .
    (?<![\w.])[<HEX>]{4}\.[<HEX>]{4}\.[<HEX>]{4}(?![\w]|\.\d)
host name: jdbc:
    (?<=jdbc:)\w+://(?P<id>[\w.-]+)
IP address:
    (?<![A-Za-z0-9.])(?:\d{1,3}\.){3}\d{1,3}(?![A-Za-z0-9])(?!\.\d)
IP address:
    (?<=\bip-)(?:\d{1,3}-){3}\d{1,3}(?!\w)
IP address:
    (?<![\w:.])(?:[<HEX>]{0,4}:){2,7}[<HEX>]{0,4}(?![\w:])(?!\.\d)
host name:
    (?<![\w.@/-])(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)+(?:<TLD>)(?![\w-]|\.\w)
host name:
    (?<=//)(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)+(?:<TLD>)(?![\w-]|\.\w)
""",
    )
)
"""Kind, regular expression, and words in small letters of which every text with a match contains at least one (none: no
such words); in the table a line of kind and words, and a line of the expression. If the expression has a group named ``id``, only that group is the identity."""

_WORDS = {
    "host name": "host",
    "user name": "user",
    "disk name": "disk",
    "machine id": "machine",
    "MAC address": "mac",
    "IP address": "ip",
    "home": "home",
    "mount point": "mount",
    "path": "path",
}
_KINDS = "host|user|disk|serial|label|home|path|address|machine|mac|ip|secret|share|volume|mount|container"
_PLACEHOLDER = re.compile(rf"\b({_KINDS})-\d+(-part\d+)?\b", re.ASCII)
COMMAND_LINES = frozenset({"command_line", "cmdline"})
"""Keys of kernel command lines."""


_Step = tuple[re.Pattern[str], Callable[[re.Match[str]], str], str, tuple[str, ...]]
"""A regular expression, the replacement, the kind, and words of which every text with a match contains one."""


class Pseudonyms:
    """Replaces identities in texts and documents; ``given`` maps each identity to its placeholder."""

    def __init__(
        self,
        literals: Mapping[str, str],
        vocabulary: Collection[str] = (),
        command_lines: Collection[str] = (),
    ) -> None:
        """``literals``: identity -> kind. Those that are also ordinary words, or in the ``vocabulary`` of the
        experiment, are replaced only as whole values. ``command_lines`` of kernels are reduced everywhere."""
        self._kinds = dict(literals)
        self.given: dict[str, tuple[str, str]] = {}
        """Identity -> kind and placeholder."""
        self.places: Counter[str] = Counter()
        """Kind -> replacements made."""
        self._next: Counter[str] = Counter()
        self.only_as_names = tuple(
            sorted(word for word in literals if _is_ordinary(word, vocabulary))
        )
        """Names that are also words; such a word is kept in running text."""
        self._steps: list[_Step] = self._of_literals()
        for kind, pattern, words in PATTERNS:
            self._steps.append(
                (re.compile(pattern), self._looks(kind), kind, tuple(words.split()))
            )
        # By-id names before the serial numbers in them, everything else after.
        self._steps.sort(key=lambda step: 0 if "by-id" in step[0].pattern else 1)
        # A whole command line before the identities in it.
        self._steps = [*_of_command_lines(command_lines), *self._steps]

    def _of_literals(self) -> list[_Step]:
        apart = frozenset(self.only_as_names)
        anywhere = [word for word in self._kinds if word not in apart]
        if not anywhere:
            return []
        # A serial number may be part of a disk's name, after an underscore.
        pattern = rf"(?<![A-Za-z0-9])(?:{_any_of(anywhere)})(?![A-Za-z0-9])"
        return [(re.compile(pattern), self._literal, "", ())]

    def name(self, identity: str, kind: str) -> str:
        """Return the placeholder of an identity; always the same for the same identity."""
        if _PLACEHOLDER.fullmatch(identity):
            return identity
        stem, part = identity, ""
        # A partition gets the name of its disk, with its own number.
        if kind == "disk name":
            # A name below /dev/disk/by-id, split before `-partN`; the second part is empty for a whole disk
            disk, separator, number = identity.rpartition("-part")
            if separator and number.isdecimal():
                stem, part = disk, separator + number
            else:
                stem, part = identity, ""
        if stem not in self.given:
            word = _WORDS.get(kind, kind)
            self._next[word] += 1
            self.given[stem] = (kind, f"{word}-{self._next[word]}")
        self.places[kind] += 1
        return self.given[stem][1] + part

    def text(self, text: str, *, versions: bool = False) -> str:
        """Return a text without identities. ``versions``: the text is a version number, which may look like an IP
        address.
        """
        # Placeholders contain none of the words, so the original text tells which patterns can match.
        lower = text.lower()
        for pattern, replace, kind, words in self._steps:
            if versions and kind == "IP address":
                continue
            # Regular expressions are slow on a long text; a search for their words is fast.
            may_match = not words or any(word in lower for word in words)
            if may_match:
                text = pattern.sub(replace, text)
        return text

    def document(self, value: Any, path: tuple[str, ...] = ()) -> Any:
        """Plain data (of JSON) without identities in keys and values; numbers are unchanged."""
        if isinstance(value, dict):
            clean: dict[str, Any] = {}
            for key, inner in value.items():
                # The key comes first, because placeholders are numbered in the order of the text.
                clean_key = self.text(key)
                clean[clean_key] = self.document(inner, (*path, key))
            return clean
        if isinstance(value, list):
            return [self.document(inner, path) for inner in value]
        if isinstance(value, str):
            return self._value(value, path)
        return value

    def _value(self, value: str, path: tuple[str, ...]) -> str:
        """Return a string of a document, at ``path``, without identities."""
        key = path[-1] if path else ""
        if key in COMMAND_LINES:
            value = reduced(value)
        if value in self._kinds and self._is_name(value, path):
            return self._named(value, self._kinds[value])
        return self.text(value, versions=key in VERSIONS)

    def _is_name(self, value: str, path: tuple[str, ...]) -> bool:
        """Return whether a string is a known identity: an ordinary word is one only in the place of a name."""
        if value not in self.only_as_names:
            return True
        return bool(kind_of(path, value))

    def _literal(self, match: re.Match[str]) -> str:
        return self._named(match[0], self._kinds[match[0]])

    def _named(self, text: str, kind: str) -> str:
        if kind in ("home", "mount point", "path"):
            return f"/{self.name(text.rstrip('/'), kind)}"
        return self.name(text, kind)

    def _looks(self, kind: str) -> Callable[[re.Match[str]], str]:
        """Return the replacement for matches of a pattern: of the group ``id``, or of all if there is no such group."""

        def replace(match: re.Match[str]) -> str:
            group = "id" if "id" in match.re.groupindex else 0
            text = match[group]
            if not _identifies(text, kind):
                return match[0]
            before = match[0][: match.start(group) - match.start()]
            after = match[0][match.end(group) - match.start() :]
            return before + self._named(text, self._kinds.get(text, kind)) + after

        return replace


def _of_command_lines(command_lines: Collection[str]) -> list[_Step]:
    """Steps that reduce command lines in any text, also in JSON, where their quotes are escaped."""
    lines = [line for line in command_lines if len(line) >= LONG]
    lines += [line.replace('"', '\\"') for line in lines]
    if not lines:
        return []
    return [(re.compile(_any_of(lines)), lambda match: reduced(match[0]), "", ())]


def _any_of(texts: Collection[str]) -> str:
    """Return a regular expression for any of these; a longer text comes before its own beginning."""
    longest_first = sorted(set(texts), key=lambda text: (-len(text), text))
    return "|".join(map(re.escape, longest_first))


def nameless(document: Any) -> Any:
    """Return a document with one word for every identity of a kind, so that names are not differences between machines."""
    return _numberless(Pseudonyms(of_document(document)).document(document))


def is_nameless(value: Any) -> bool:
    """Return whether a document contains placeholders, so that its machine has no names."""
    if isinstance(value, dict):
        return any(map(is_nameless, value.values()))
    if isinstance(value, list):
        return any(map(is_nameless, value))
    return isinstance(value, str) and _PLACEHOLDER.search(value) is not None


def _numberless(value: Any) -> Any:
    """Plain data with placeholders without their numbers, and command lines without the count of omitted words."""
    if isinstance(value, dict):
        plain: dict[str, Any] = {}
        for key, inner in value.items():
            if key in COMMAND_LINES and isinstance(inner, str):
                plain[key] = without_count(inner)
            else:
                plain[key] = _numberless(inner)
        return plain
    if isinstance(value, list):
        return [_numberless(inner) for inner in value]
    if isinstance(value, str):
        return _PLACEHOLDER.sub(lambda match: match[1], value)
    return value


def _identifies(text: str, kind: str) -> bool:
    """Return whether a match of a pattern of this kind identifies a machine or a person."""
    if kind == "IP address":
        # Whether a text is an IP address that identifies a machine: neither loopback nor unspecified
        try:
            address = ipaddress.ip_address(text.replace("-", "."))
        except ValueError:
            return False
        return not (address.is_loopback or address.is_unspecified)
    if kind == "path":
        return text.rstrip("/.") not in USUAL
    return True


def _is_ordinary(word: str, vocabulary: Collection[str]) -> bool:
    """Return whether a word may have another meaning: it is short, a plain number, common, or used in the experiment."""
    if len(word) < SHORTEST or word.isdecimal():
        return True
    return word.casefold() in ORDINARY or word in vocabulary
