"""A bundle from a stranger: nothing of it leads anywhere, and what is damaged is never taken for sound."""

from __future__ import annotations

import io
import random
import tarfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import zstandard
from carried import carried, forge

from iodelta.bundle.archive import LARGEST, MANIFEST, Manifest, packed, sha256
from iodelta.bundle.packed import Packed, is_bundle, opened
from iodelta.bundle.packing import pack
from iodelta.errors import IodeltaError, MeasureError, RequestError
from iodelta.lab.folder import LARGEST_RAW

NOBODY: dict[str, str] = {}
HEAD = Manifest(made_by="0.1.0", name="x", state="complete", plan_sha256="", experiment_sha256="")
LEAST = {"experiment.toml": b"", "journal.jsonl": b""}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a small bundle."""
    return pack(carried(tmp_path_factory.mktemp("sound") / "folder", blocks=1), machine=NOBODY).data


def tar(*members: tuple[tarfile.TarInfo | str, bytes]) -> bytes:
    """A zstd-packed tar of these members, as written."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in members:
            info = tarfile.TarInfo(name) if isinstance(name, str) else name
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return zstandard.ZstdCompressor().compress(buffer.getvalue())


def manifest_of(members: dict[str, bytes]) -> bytes:
    entries = [{"name": name, "size": len(data), "sha256": sha256(data)} for name, data in members.items()]
    return msgspec.json.encode({**msgspec.to_builtins(HEAD), "members": entries})


def linked(kind: bytes, target: str) -> bytes:
    info = tarfile.TarInfo("experiment.toml")
    info.type, info.linkname = kind, target
    return tar((MANIFEST, manifest_of(LEAST)), (info, b""), ("journal.jsonl", b""))


TWICE = manifest_of(LEAST).replace(b'"members":[', b'"members":[{"name":"journal.jsonl","size":0,"sha256":""},')
NEWER = b'{"format": "iodelta.bundle", "version": 2, "members": "elsewhere"}'


def with_member(name: str, data: bytes = b"x") -> bytes:
    members = {**LEAST, name: data}
    return tar((MANIFEST, manifest_of(members)), *members.items())


def declared(size: int) -> bytes:
    """A member that says it has so many bytes, and has not."""
    info = tarfile.TarInfo("plan.json")
    info.size = size
    head = tarfile.TarInfo(MANIFEST)
    data = manifest_of(LEAST)
    head.size = len(data)
    raw = head.tobuf() + data + b"\0" * (-len(data) % 512) + info.tobuf(tarfile.GNU_FORMAT)
    return zstandard.ZstdCompressor().compress(raw + b"\0" * 10240)


HOSTILE: dict[str, Callable[[], bytes]] = {
    "climbs out of its place": lambda: with_member("../../etc/cron.d/x"),
    "climbs from within": lambda: with_member("raw/../../x"),
    "has an absolute name": lambda: with_member("/etc/passwd"),
    "has a name that no experiment has": lambda: with_member("report.html"),
    "has a terminal escape for a name": lambda: with_member("\x1b[2J\x1b]0;owned\x07"),
    "has a name with a line break": lambda: with_member("environment.json\nx"),
    "is a symbolic link": lambda: linked(tarfile.SYMTYPE, "/etc/shadow"),
    "is a hard link": lambda: linked(tarfile.LNKTYPE, "/etc/shadow"),
    "is a device": lambda: linked(tarfile.CHRTYPE, ""),
    "is a pipe": lambda: linked(tarfile.FIFOTYPE, ""),
    "is there twice": lambda: tar((MANIFEST, manifest_of(LEAST)), *LEAST.items(), ("journal.jsonl", b"")),
    "is listed twice": lambda: tar(
        (
            MANIFEST,
            manifest_of(LEAST).replace(b'"members":[', b'"members":[{"name":"journal.jsonl","size":0,"sha256":""},'),
        ),
        *LEAST.items(),
    ),
    "is missing": lambda: tar((MANIFEST, manifest_of(LEAST)), ("experiment.toml", b"")),
    "is not listed": lambda: tar((MANIFEST, manifest_of({"experiment.toml": b""})), *LEAST.items()),
    "is not what is listed": lambda: tar(
        (MANIFEST, manifest_of(LEAST)), ("experiment.toml", b"x"), ("journal.jsonl", b"")
    ),
    "says it has 10 GB": lambda: declared(10 << 30),
    "says it has less than nothing": lambda: declared(LARGEST + 1),
    "unpacks to a thousand times what it is": lambda: with_member("plan.json", b"\0" * (100 << 20)),
    "comes before the list": lambda: tar(*LEAST.items(), (MANIFEST, manifest_of(LEAST))),
    "has a list that is no JSON": lambda: tar((MANIFEST, b"\xff{"), *LEAST.items()),
    "has a list as deep as a well": lambda: tar((MANIFEST, b'{"a":' + b"[" * 200_000), *LEAST.items()),
    "has somebody else's list": lambda: tar((MANIFEST, b'{"format": "other", "version": 1}'), *LEAST.items()),
    "has no list": lambda: tar(*LEAST.items()),
    "is empty": lambda: tar(),
    "is no tar": lambda: zstandard.ZstdCompressor().compress(b"hello" * 1000),
    "has no experiment": lambda: tar(
        (MANIFEST, manifest_of({})),
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_an_archive_that(what: str, tmp_path: Path) -> None:
    """...is refused, whole, with one message; nothing is written."""
    place = tmp_path / "in" / "x.iodelta.tar.zst"
    place.parent.mkdir()
    place.write_bytes(HOSTILE[what]())
    with pytest.raises(RequestError) as caught:
        Packed(place)
    assert caught.value.exit_code == 2
    assert caught.value.remedy
    assert str(caught.value).replace("\n", "").isprintable()
    assert [path.name for path in tmp_path.rglob("*")] == ["in", "x.iodelta.tar.zst"]


def test_cut_short_anywhere_it_is_never_taken_for_whole(sound: bytes, tmp_path: Path) -> None:
    place = tmp_path / "x.iodelta.tar.zst"
    rng = random.Random(1)
    for end in {*range(12), *(len(sound) - n for n in range(1, 12)), *(rng.randrange(len(sound)) for _ in range(30))}:
        place.write_bytes(sound[:end])
        with pytest.raises(RequestError):
            Packed(place)


def test_one_byte_changed_anywhere_is_found(sound: bytes, tmp_path: Path) -> None:
    place = tmp_path / "x.iodelta.tar.zst"
    rng = random.Random(2)
    for at in {*range(16), len(sound) - 1, *(rng.randrange(len(sound)) for _ in range(60))}:
        bit = rng.choice([0, 1, 2, 3, 5, 6, 7]) if at == 4 else rng.randrange(8)  # the frame's unused bit says nothing
        place.write_bytes(sound[:at] + bytes([sound[at] ^ (1 << bit)]) + sound[at + 1 :])
        with pytest.raises(RequestError):
            Packed(place)


def test_something_after_its_end_is_refused(sound: bytes, tmp_path: Path) -> None:
    place = tmp_path / "x"
    place.write_bytes(sound + zstandard.ZstdCompressor().compress(b"more"))
    with pytest.raises(RequestError, match="after its end"):
        Packed(place)


def test_a_newer_format_asks_for_a_newer_iodelta(tmp_path: Path) -> None:
    place = tmp_path / "x"
    place.write_bytes(
        tar((MANIFEST, b'{"format": "iodelta.bundle", "version": 2, "members": "elsewhere"}'), *LEAST.items())
    )
    assert is_bundle(place)
    with pytest.raises(RequestError, match="format 2 of bundles, this iodelta knows 1"):
        Packed(place)


def test_a_raw_file_that_unpacks_to_gigabytes_is_not_unpacked(tmp_path: Path) -> None:
    folder = carried(tmp_path / "folder", blocks=1)
    (folder.path / "raw" / "000001.fio.json.zst").write_bytes(_promising(LARGEST_RAW + 1))
    folder = forge(folder)
    with pytest.raises(MeasureError, match="unpacks to more than"):
        folder.read_raw(1, "fio.json")


def test_nothing_can_be_written_into_a_bundle(sound: bytes, tmp_path: Path) -> None:
    place = tmp_path / "x.iodelta.tar.zst"
    place.write_bytes(sound)
    folder = opened(place)
    with pytest.raises(RequestError, match="read-only"):
        folder.write("plan.json", b"")
    with pytest.raises(RequestError, match="read-only"), folder.writing():
        pass
    assert place.read_bytes() == sound


def test_what_is_no_bundle_is_told_from_one_by_its_contents(sound: bytes, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(sound)
    (tmp_path / "b.zst").write_bytes(zstandard.ZstdCompressor().compress(b"{}"))
    (tmp_path / "c").write_text("{}")
    (tmp_path / "d").symlink_to(tmp_path / "nowhere")
    assert [is_bundle(tmp_path / name) for name in "a b.zst c d .".split()] == [True, False, False, False, False]


def test_a_plan_that_was_changed_with_its_digest_in_the_list_is_refused_by_the_journal(tmp_path: Path) -> None:
    """Whoever makes up results has to make up all of them."""
    from iodelta.report.derived import load

    made = Packed(_written(tmp_path, pack(carried(tmp_path / "folder", blocks=1), machine=NOBODY).data))
    members = {entry.name: made.read(entry.name) for entry in made.manifest.members}
    members["plan.json"] = members["plan.json"].replace(b'"margin": 0.01', b'"margin": 0.5')
    forged = _written(tmp_path, packed(made.manifest, members), "forged")
    with pytest.raises(IodeltaError, match="changed since the run began"):
        load(Packed(forged))


def _written(tmp_path: Path, data: bytes, name: str = "x") -> Path:
    (tmp_path / name).write_bytes(data)
    return tmp_path / name


def _promising(size: int) -> bytes:
    """A zstd frame whose head promises ``size`` bytes."""
    return b"\x28\xb5\x2f\xfd\xe0" + size.to_bytes(8, "little") + b"\x01\x00\x00"
