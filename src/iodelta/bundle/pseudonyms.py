"""Replace each identity by one placeholder, the same everywhere, so that relations remain visible.

Placeholders are plain words (``host-1``), so a text stays as valid (JSON, TOML, an option of fio) as it was.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any

from iodelta.bundle.boot_words import reduced, without_count
from iodelta.bundle.identity import SYSTEM, USUAL, kind_of, of_document

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

_HEX = "0-9A-Fa-f"
_PATH = r"(?:[^\s\"',\\]|\\\\)+"
_QUOTED = r"\\*[\"']?"
"""Quotes around a value, escaped if the text is inside JSON."""
_VALUE = r"(?P<id>[^\s\"'\\&,;)]+)"
_TO = r"\\*[\"']?\s*[=:]\s*\\*[\"']?"
"""Characters between a name and its value in options, shells, YAML and JSON."""
_DASH = r"(?:-|_|\\+x2d)"
_TLD = (
    "com|org|net|edu|gov|mil|int|biz|local|localdomain|lan|internal|intranet|corp|home|arpa|example|invalid|cloud|de|uk|fr|nl|"
    "eu|ch|us|ca|au|jp|cn|kr|se|dk|pl|cz|ru|br"
)

_NEXT = r"(?:\\*[\"']\s*,\s*\\*[\"']|\s+\\*[\"']?)"
"""Between an option and its value: the next word of a line, or the next element of a list."""
_SUFFIX = (
    "academy|agency|ai|app|at|be|bg|bio|blog|center|chat|club|co|company|computer|cool|dev|digital|ee|email|energy|engineering|es|"
    "fi|fm|fun|global|gmbh|gr|group|hk|host|hosting|hr|hu|id|ie|il|in|info|ink|institute|io|is|it|lab|life|link|live|lt|lu|lv|me|"
    "mobi|money|mx|name|network|news|ngo|ninja|no|nu|nz|one|online|ovh|page|pro|pt|ro|rocks|rs|run|school|science|services|sg|sh|"
    "shop|si|site|sk|so|social|software|solutions|space|store|studio|su|support|systems|team|tech|tel|to|today|tools|top|tr|tv|"
    "tw|ua|university|vip|website|wiki|work|works|world|ws|xyz|za|zone"
)
"""Ends of public names that are also words of programs: alone they tell nothing, after three labels or a digit they do."""

PATTERNS: tuple[tuple[str, str, str], ...] = (
    (
        "secret",
        rf"(?i)(?<![\w-])--?(?:pass(?:word|wd|phrase)?|pwd|secret|token|credentials?|auth|(?:api|access|secret|private)[_-]?key)"
        rf"{_NEXT}(?P<id>[^\s\"'\\,;&)\]-][^\s\"'\\,;&)\]]*)",
        "pass pwd secret token cred auth key",
    ),
    (
        "secret",
        rf"(?<![\w-])(?:-u|--user|--proxy-user)(?:{_NEXT}|=)?(?P<id>[^\s:\"'\\/]+:[^\s\"'\\,]+)",
        "-u --user --proxy",
    ),
    ("secret", rf"\bsshpass{_NEXT}-p(?:{_NEXT})?(?P<id>[^\s\"'\\,]+)", "sshpass"),
    (
        "secret",
        rf"\b(?:mysql\w*|mariadb\S*|7z\w*|unzip|zip|smbclient|ipmitool|kinit|ldap\w+)\b[^\n]{{0,200}}?(?<=[\s\"'])-[pPw](?:{_NEXT})?"
        r"(?P<id>[^\s\"'\\,-][^\s\"'\\,]*)",
        "mysql mariadb 7z zip smbclient ipmitool kinit ldap",
    ),
    ("secret", r"\blogin\s+\S+\s+password\s+(?P<id>[^\s\"'\\]+)", "password"),
    (
        "user name",
        r"\blogin\s+(?P<id>[^\s\"'\\]+)(?=\s+(?:account\s+\S+\s+)?password\s)",
        "login",
    ),
    ("host name", r"\bmachine\s+(?P<id>[^\s\"'\\]+)(?=\s+login\s)", "machine"),
    (
        "secret",
        r"(?i)/(?:services|web-?hooks?|hooks?)/(?P<id>[\w-]+(?:/[\w-]+)*)(?<=[\w-]{8})",
        "/services/ hook",
    ),
    (
        "user name",
        r"(?i)\b(?:[a-z]+-(?:by|to)|cc|author|committer|from):\s*(?P<id>[^\s<>\"\\][^<>\"\\\n]{1,60}?)(?=\s*<)",
        "-by: -to: cc: author: committer: from:",
    ),
    ("user name", r"(?<![\w~/.])~(?P<id>[A-Za-z_][\w.-]*)(?=/)", "~"),
    (
        "user name",
        r"(?<![\w\\/])(?P<id>[A-Z][A-Z0-9-]{1,14}\\(?:\\|(?![ntrubfx]))[A-Za-z][\w.-]*)",
        "\\",
    ),
    (
        "host name",
        r"(?:\b[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?) "
        r"(?P<id>[A-Za-z][\w.-]*) (?=[\w./@-]+(?:\[\d+\])?: )",
        ":",
    ),
    ("MAC address", r"\benx[0-9a-f]{12}\b", "enx"),
    (
        "serial",
        r"(?i)(?:^|[\n{,]|\\n)\s*\\*\"?(?:sn|serial(?:_?number)?|wwn|eui64|nguid)\\*\"?\s*[:=]\s*\\*\"?(?P<id>[\w.-]{6,})",
        "sn serial wwn eui nguid",
    ),
    (
        "serial",
        rf"\b(?:SERIAL|WWN|PTUUID)={_QUOTED}{_VALUE}",
        "serial= wwn= ptuuid=",
    ),
    (
        "serial",
        rf"(?i)\bWWN Device Id:\s*(?P<id>[{_HEX}] [{_HEX}]{{6}} [{_HEX}]{{9}})",
        "wwn device",
    ),
    (
        "serial",
        rf"(?<!wwn-)\b0x(?:10|2[0-9A-Fa-f]|5[0-9A-Fa-f]|c0)[{_HEX}]{{14}}\b|\b(?:10|2[0-9a-f])0000[0-9a-f]{{10}}\b",
        "0x 0000",
    ),
    ("serial", r"(?<![0-9A-Fa-f])[0-9A-F]{32}(?![0-9A-Fa-f])", ""),
    (
        "host name",
        rf"(?<![\w.@/-])(?=[\w.-]*[\d-]|(?:[A-Za-z0-9-]+\.){{3}})(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.){{2,}}(?:{_SUFFIX})"
        r"(?![\w-]|\.\w)",
        "",
    ),
    (
        "host name",
        rf"(?<=://)(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)+(?:{_SUFFIX})(?![\w-]|\.\w)",
        "://",
    ),
    ("disk name", rf"(?<=/dev/disk/by-id/){_PATH}", "/by-id/"),
    (
        "secret",
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)-----END [A-Z ]*PRIVATE KEY-----",
        "private key",
    ),
    ("secret", r"\bssh-(?:rsa|dss|ed25519) (?P<id>AAAA[\w+/=]+)", "ssh-"),
    (
        "secret",
        r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bgh[pousr]_\w{20,}|\bglpat-[\w-]{20,}|\bxox[abpr]-[\w-]{10,}|"
        r"\bgithub_pat_\w{20,}|\bAIza[\w-]{35}|\b[sr]k[_-](?:live|test)[_-][\w-]{10,}|\bsk-[\w-]{20,}|"
        r"\bhf_[A-Za-z0-9]{20,}|\bnpm_[A-Za-z0-9]{30,}|\bhvs\.[\w-]{20,}",
        "akia asia gh glpat xox github_pat aiza sk rk_ rk- hf_ npm_ hvs.",
    ),
    ("secret", r"\beyJ[\w-]+\.[\w-]+\.[\w-]+", "eyj"),
    ("secret", r"\b(?:Bearer|Basic) (?P<id>[\w+/.=~-]{8,})", "bearer basic"),
    ("secret", r"(?<=://)[^\s/@\"'\\]+(?=@)", "://"),
    (
        "secret",
        rf"(?i)(?:password|passwd|passphrase|secret|token|credentials?|(?:api|access|private)[_-]?key)\w*{_TO}{_VALUE}",
        "pass secret token credential key",
    ),
    ("secret", rf"(?i)(?<![a-z])(?:pass|pwd){_TO}{_VALUE}", "pass pwd"),
    (
        "secret",
        r"(?i)(?<=[?&])(?:[\w-]*signature|sig|auth|key)=(?P<id>[^\s\"'\\&]+)",
        "=",
    ),
    (
        "user name",
        rf"(?i)(?<![a-z])(?:user(?:name)?|login|logname|sudo_user){_QUOTED}={_QUOTED}{_VALUE}",
        "user log",
    ),
    ("user name", r"\b[ug]id=\d+\((?P<id>[^)\s]+)\)", "id="),
    (
        "user name",
        r"(?i)\b(?:uid|cn)=[^\s,=\"'\\]+(?:,(?:ou|dc|cn|o)=[^\s,=\"'\\)}]+)+",
        "uid= cn=",
    ),
    ("user name", r"(?i)\buser:? (?P<id>[A-Z][\w.-]*\\+[\w.-]*\w)", "user"),
    ("home", r"\b[A-Za-z]:\\+Users\\+(?P<id>[^\\\s\"',;)}]+)", "users"),
    ("serial", r"\bSHA256:[A-Za-z0-9+/]{40,44}", "sha256:"),
    (
        "host name",
        rf"(?i)(?<![a-z])(?:domain|workgroup){_QUOTED}={_QUOTED}{_VALUE}",
        "domain workgroup",
    ),
    (
        "serial",
        rf"(?<=/dev/disk/by-uuid/){_PATH}|(?<=/dev/disk/by-partuuid/){_PATH}",
        "/by-uuid/ /by-partuuid/",
    ),
    (
        "label",
        rf"(?<=/dev/disk/by-label/){_PATH}|(?<=/dev/disk/by-partlabel/){_PATH}",
        "/by-label/ /by-partlabel/",
    ),
    ("label", r"\b(?:PART)?LABEL(?:_ENC)?=\\*\"(?P<id>[^\"\\]+)", "label"),
    ("label", r"(?<=\bLABEL=)[^\s\"',\\]+|(?<=\bPARTLABEL=)[^\s\"',\\]+", "label="),
    ("serial", rf"(?:\b|_)(?:PART|UUID_SUB_)?UUID(?:_ENC)?={_QUOTED}{_VALUE}", "uuid"),
    (
        "serial",
        rf"\bID_(?:SERIAL(?:_SHORT)?|WWN\w*|PART_ENTRY_UUID)={_QUOTED}{_VALUE}",
        "id_",
    ),
    ("serial", rf"(?i)\bserial (?:number|no\.?){_TO}{_VALUE}", "serial "),
    (
        "serial",
        r"\b(?:(?:SN|S/N)\s?[:=]\s*|S/N\s(?=[A-Z-]*\d))(?P<id>[A-Z0-9][A-Z0-9-]{5,})",
        "sn s/n",
    ),
    ("serial", rf"(?<=scsi-)3?[{_HEX}]{{16}}\b", "scsi-"),
    ("host name", r"(?<=\bhostname=)[\w.-]+", "hostname="),
    ("host name", r"\"hostname\\*\" ?: ?\\*\"(?P<id>[^\"\\]+)", "hostname"),
    (
        "share",
        r"(?<![\w./-])[\w.,@\[\]:-]+:/[^\s\"'\\]*(?=\s+(?:on\s+)?/\S*\s+(?:type\s+)?(?:nfs|ceph|lustre|glusterfs|fuse\.))",
        " nfs ceph lustre gluster fuse.",
    ),
    ("user name", r"\bceph\s[^\n]{0,300}?[(,]name=(?P<id>[^\s,)\"'\\]+)", "ceph"),
    (
        "host name",
        rf"(?i)(?<=[\s,(])(?:host|server|servername)={_VALUE}",
        "host= server= servername=",
    ),
    (
        "share",
        r"(?<![\w:/])//[\w.-]+/[^\s\"'\\]+(?=\s+(?:on\s+)?/\S*\s+(?:type\s+)?(?:cifs|smb))",
        "cifs smb",
    ),
    (
        "home",
        r"/(?:home|Users)/[^\s\"',;\\]+|/run/media/[^\s\"',;\\]+|/media/[^\s\"',;\\]+|/run/user/\d+[^\s\"',;\\]*",
        "/home/ /users/ /media/ /run/",
    ),
    ("home", r"(?<![\w.-])/root(?=[/\"'\s,;])[^\s\"',;\\]*", "/root"),
    (
        "path",
        rf"(?:(?<![\w./:*-])|(?<=[=:])|(?<=\\n))/(?!(?:{'|'.join(SYSTEM)}|home|root|Users|media)/)[A-Za-z][\w.+-]*/[^\s\"',;:\\)\]}}>|]+",
        "/",
    ),
    (
        "volume",
        r"(?<=/dev/mapper/)(?!control\b)[^\s\"',;:\\]+|(?<=/dev/zvol/)[^\s\"',;:\\]+|(?<=/dev/md/)[^\s\"',;\\]+",
        "/dev/mapper/ /dev/zvol/ /dev/md/",
    ),
    (
        "volume",
        r"(?<=/dev/)(?!(?:disk|mapper|zvol|md|shm|fd|pts|block|char|input|bsg|snd|cpu|net|vfio|dri|hugepages|bus|mqueue|"
        r"virtio-ports|vhost-\w+|ublk\w*|nvme-\w+|iodelta\S*)/)[A-Za-z][\w.+-]*/[A-Za-z][\w.+-]*",
        "/dev/",
    ),
    ("address", r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*", "@"),
    (
        "serial",
        rf"(?<![{_HEX}])[{_HEX}]{{8}}{_DASH}[{_HEX}]{{4}}{_DASH}[{_HEX}]{{4}}{_DASH}[{_HEX}]{{4}}{_DASH}[{_HEX}]{{12}}"
        rf"(?![{_HEX}])",
        "- _ x2d",
    ),
    (
        "container",
        r"(?<=-pod)[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}\b",
        "-pod",
    ),
    (
        "container",
        r"(?<=docker[-/])[0-9a-f]{12,64}\b|(?<=overlay2/)[0-9a-z-]{25,70}\b",
        "docker overlay2",
    ),
    (
        "container",
        r"\b(?:libpod|crio|containerd|cri-containerd|buildkit)-(?P<id>[0-9a-f]{12,64})\b",
        "libpod crio containerd buildkit",
    ),
    (
        "serial",
        rf"\b(?:naa\.|eui\.|wwn-0x|uuid\.|0x5)[{_HEX}-]{{12,36}}\b|\b(?:nqn|iqn)\.[^\s\"',]+|\bt10\.[^\s\"',]+",
        "naa. eui. wwn uuid. 0x5 nqn. iqn. t10.",
    ),
    ("serial", rf"\bnvme\.[{_HEX}]{{4}}-[{_HEX}-]{{8,}}", "nvme."),
    ("serial", r"\bLVM-[A-Za-z0-9]{32,64}\b", "lvm-"),
    ("serial", r"\b3[0-9a-f]{32}\b|\b5(?=[0-9]*[a-f])[0-9a-f]{15}\b", ""),
    ("machine id", r"\b[0-9a-f]{32}\b", ""),
    (
        "MAC address",
        rf"(?<![{_HEX}]{{2}}:)(?<![A-Za-z0-9])(?:[{_HEX}]{{2}}:){{5,19}}[{_HEX}]{{2}}(?![\w:])",
        "",
    ),
    ("MAC address", rf"(?<![\w-])(?:[{_HEX}]{{2}}-){{5,19}}[{_HEX}]{{2}}(?![\w-])", ""),
    (
        "MAC address",
        rf"(?i)\b(?:hwaddr|hwaddress|ether|macaddr|mac)(?:{_TO}| )(?P<id>[{_HEX}]{{12}})\b",
        "hwaddr ether mac",
    ),
    (
        "MAC address",
        rf"(?<![\w.])[{_HEX}]{{4}}\.[{_HEX}]{{4}}\.[{_HEX}]{{4}}(?![\w]|\.\d)",
        ".",
    ),
    ("host name", r"(?<=jdbc:)\w+://(?P<id>[\w.-]+)", "jdbc:"),
    (
        "IP address",
        r"(?<![A-Za-z0-9.])(?:\d{1,3}\.){3}\d{1,3}(?![A-Za-z0-9])(?!\.\d)",
        "",
    ),
    ("IP address", r"(?<=\bip-)(?:\d{1,3}-){3}\d{1,3}(?!\w)", ""),
    (
        "IP address",
        rf"(?<![\w:.])(?:[{_HEX}]{{0,4}}:){{2,7}}[{_HEX}]{{0,4}}(?![\w:])(?!\.\d)",
        "",
    ),
    (
        "host name",
        rf"(?<![\w.@/-])(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)+(?:{_TLD})(?![\w-]|\.\w)",
        "",
    ),
    (
        "host name",
        rf"(?<=//)(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)+(?:{_TLD})(?![\w-]|\.\w)",
        "",
    ),
)
"""Kind, regular expression, and words in small letters of which every text with a match contains at least one (none: no
such words). If the expression has a group named ``id``, only that group is the identity."""

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
            stem, part = _disk_and_partition(identity)
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
    named = Pseudonyms(of_document(document)).document(document)
    return _numberless(named)


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


def _disk_and_partition(name: str) -> tuple[str, str]:
    """Return a name below /dev/disk/by-id, split before ``-partN``; the second part is empty for a whole disk."""
    disk, separator, number = name.rpartition("-part")
    if separator and number.isdecimal():
        return disk, separator + number
    return name, ""


def _identifies(text: str, kind: str) -> bool:
    """Return whether a match of a pattern of this kind identifies a machine or a person."""
    if kind == "IP address":
        return _is_address(text)
    if kind == "path":
        return text.rstrip("/.") not in USUAL
    return True


def _is_ordinary(word: str, vocabulary: Collection[str]) -> bool:
    """Return whether a word may have another meaning: it is short, a plain number, common, or used in the experiment."""
    if len(word) < SHORTEST or word.isdecimal():
        return True
    return word.casefold() in ORDINARY or word in vocabulary


def _is_address(text: str) -> bool:
    """Return whether a text is an IP address that identifies a machine: neither loopback nor unspecified."""
    try:
        address = ipaddress.ip_address(text.replace("-", "."))
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified)
