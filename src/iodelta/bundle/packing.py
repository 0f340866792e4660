"""Make a bundle of a folder: select the files, replace every identity, and account for the replacements."""

from __future__ import annotations

import base64
import binascii
import contextlib
import fcntl
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import zstandard

from iodelta import __version__
from iodelta.bundle.archive import NAME, Manifest, Removed, packed, sha256
from iodelta.bundle.identity import (
    Literals,
    left_out_words,
    of_document,
    of_host,
    of_owner,
    of_this_machine,
    reduced,
)
from iodelta.bundle.pseudonyms import Pseudonyms
from iodelta.errors import MeasureError, RequestError, pasted
from iodelta.lab.account import Account
from iodelta.lab.folder import CALIBRATION, EXPERIMENT, JOURNAL, PLAN, RAW, Folder
from iodelta.lab.integrity import integrity
from iodelta.lab.journal import whole
from iodelta.lab.judged import read_plan
from iodelta.lab.opened import believing, opened
from iodelta.lab.seal import FileSeal, body_of, chained, file_seal
from iodelta.lab.undo import REBOOT

STREAMS = ("stdout", "stderr", "log", "output")
"""Fields of a record that contain bytes, as base64 in JSON."""


class Packing(msgspec.Struct, frozen=True):
    """A bundle, and how it differs from the folder."""

    data: bytes
    manifest: Manifest
    replaced: tuple[tuple[str, str, str], ...]
    """Kind, placeholder and original text: only for the owner of the folder."""
    words: tuple[str, ...]
    """Names that are also ordinary words: replaced where a name belongs, and kept in running text."""
    left_out: tuple[str, ...]
    """Files of the folder that the bundle omits."""
    files: tuple[tuple[str, int], ...] = ()
    """Name and size in bytes of each file in the bundle."""
    boot_words: int = 0
    """Number of words of the kernel command line that the bundle omits."""


@believing
def pack(
    folder: Folder,
    *,
    keep_identity: bool = False,
    machine: Literals | None = None,
    remove: Sequence[str] = (),
) -> Packing:
    """Pack a folder that no process writes to. ``machine``: identities of this machine, looked up by default; ``remove``:
    further texts to replace.

    Raises RequestError for a folder in use or without a session, MeasureError for a damaged one.
    """
    with _at_rest(folder):
        plan = read_plan(folder)
        account = Account(folder.events())
        _check(folder, account)
        files, left_out = _files(folder.path, account)
        contents = {name: folder.read(name) for name in files}
    plan_sha256 = sha256(contents[PLAN])
    experiment_sha256 = sha256(contents[EXPERIMENT])
    name, state = folder.path.resolve().name, account.state
    names, boot_words = Pseudonyms({}, ()), 0
    if keep_identity:
        contents[JOURNAL] = _journal(contents, None)
    else:
        # Every kernel command line in the folder; that of the first session is first
        values: list[Any] = []
        environments = [
            file_name for file_name in contents if file_name.startswith("environment")
        ]
        for file_name in sorted(environments):
            kernel = _json(file_name, contents[file_name]).get("kernel")
            if isinstance(kernel, dict):
                values.append(kernel.get("command_line"))
        for line in whole(contents[JOURNAL]):
            # The values of a journal event that may be command lines: that of a boot, and those of a saved kernel
            event = _json(JOURNAL, line)
            lines_here = [event.get("cmdline")]
            saved = event.get("saved")
            if isinstance(saved, dict):
                pairs = saved.get("values", ())
                lines_here += [text for key, text in pairs if key == "cmdline"]
            values += lines_here
        found = [value for value in values if isinstance(value, str) and value]
        lines = list(dict.fromkeys(found))
        # The first line is that of the first session.
        boot_words = sum(map(left_out_words, lines[:1]))
        known = dict(of_this_machine() if machine is None else machine) | of_owner(
            folder.path
        )
        for file_name, data in contents.items():
            if file_name.startswith("environment"):
                known |= of_document(_json(file_name, data))
        for line in whole(contents[JOURNAL]):
            known |= of_document(_json(JOURNAL, line))
        literals = known | dict.fromkeys(remove, "secret")
        # Every word of the experiment: in running text, a name that equals one of them is ambiguous
        words = set()
        # The experiment without the parts that may contain names: question, target, commands
        experiment = plan.experiment
        replace = msgspec.structs.replace
        conditions = [
            replace(condition, background=()) for condition in experiment.conditions
        ]
        todo: list[Any] = [
            msgspec.to_builtins(
                replace(
                    experiment,
                    question="",
                    target=type(experiment.target)(),
                    subject=type(experiment.subject)(),
                    conditions=tuple(conditions),
                )
            )
        ]
        while todo:
            node = todo.pop()
            if isinstance(node, dict):
                todo += [*node, *node.values()]
            elif isinstance(node, list | tuple) and tuple(node[:1]) != ("description",):
                todo += node
            elif isinstance(node, str):
                words.update(re.findall(r"[A-Za-z0-9_-]+|[A-Za-z0-9]+", node))
        names, contents = _cleaned(contents, literals, frozenset(words), lines)
        for text in remove:
            if text in names.only_as_names:
                raise RequestError(
                    "is short, or a word of the experiment itself: a bundle keeps it in running text",
                    place=f"--remove {text}",
                    remedy="give a longer text, or name the variant otherwise and measure again",
                )
        contents[JOURNAL] = _journal(contents, names)
        name, state = names.text(name), names.text(state)
    # How many identities of each kind were replaced, and in how many places
    different = Counter(kind for kind, _ in names.given.values())
    removed = [
        Removed(kind, count, names.places[kind]) for kind, count in different.items()
    ]
    manifest = Manifest(
        made_by=__version__,
        name=name,
        state=state,
        plan_sha256=plan_sha256,
        experiment_sha256=experiment_sha256,
        seal=folder.seal.digest if folder.seal.sealed else "",
        identity_kept=keep_identity,
        removed=tuple(sorted(removed, key=lambda row: row.kind)),
    )
    return Packing(
        packed(manifest, contents),
        manifest,
        tuple(
            sorted([(kind, word, text) for text, (kind, word) in names.given.items()])
        ),
        names.only_as_names,
        left_out,
        tuple((name, len(contents[name])) for name in sorted(contents)),
        boot_words,
    )


def _cleaned(
    contents: dict[str, bytes],
    literals: Literals,
    vocabulary: frozenset[str],
    command_lines: list[str],
) -> tuple[Pseudonyms, dict[str, bytes]]:
    """Return the placeholders, and all files except the journal with placeholders for identities."""
    replaced = Pseudonyms(literals, vocabulary, command_lines)
    clean = {name: _without(name, data, replaced) for name, data in contents.items()}
    # Parts of the host names that patterns found: `db-7` of `db-7.example.com`
    hosts: Literals = {}
    for identity, (kind, _) in replaced.given.items():
        if kind == "host name" and not re.fullmatch(r"[\d.]*", identity):
            hosts |= of_host(identity)
    more = {name: kind for name, kind in hosts.items() if name not in literals}
    if not more:
        return replaced, clean
    # Start again from the originals: a file may contain a host's short name before its full name.
    replaced = Pseudonyms(literals | more, vocabulary, command_lines)
    clean = {name: _without(name, data, replaced) for name, data in contents.items()}
    return replaced, clean


def _check(folder: Folder, account: Account) -> None:
    """Raises RequestError for a folder without a session, MeasureError for a damaged one."""
    if not account.sessions:
        raise RequestError(
            "nothing was measured in this folder",
            place=str(folder.path),
            remedy=f"`iodelta run {pasted(folder.path)}` first",
        )
    for finding in integrity(folder, account):
        if finding.severity == "hard":
            raise MeasureError(
                finding.explanation,
                place=f"{folder.path}/{finding.place}",
                remedy=finding.remedy,
            )


@contextlib.contextmanager
def _at_rest(folder: Folder) -> Iterator[None]:
    """Hold a shared lock on the journal. Raises RequestError while a process writes to the folder."""
    try:
        descriptor = opened(folder.path, JOURNAL)
    except FileNotFoundError as error:
        raise MeasureError(
            f"cannot read the journal: {error.strerror}",
            place=str(folder.path / JOURNAL),
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise RequestError(
            "this experiment is being measured",
            place=str(folder.path),
            remedy="pack it after it has ended",
        ) from error
    finally:
        os.close(descriptor)


def _files(path: Path, account: Account) -> tuple[list[str], tuple[str, ...]]:
    """Return names of the files to pack (those of an experiment, raw files only of trials in the journal), and all
    others.
    """
    names = [file.name for file in path.iterdir() if file.name != RAW]
    if (path / RAW).is_dir():
        names += [f"{RAW}/{file.name}" for file in (path / RAW).iterdir()]
    travels: list[str] = []
    stays: list[str] = []
    for name in sorted(names):
        if _travels(path / name, name, account):
            travels.append(name)
        else:
            stays.append(name)
    return travels, tuple(stays)


def _travels(file: Path, name: str, account: Account) -> bool:
    """Return whether a file belongs to an experiment, and its trial or step, if any, is in the journal."""
    if file.is_symlink() or not file.is_file() or not NAME.fullmatch(name):
        return False
    raw = re.match(r"raw/(step-)?(\d+)\.", name)
    if not raw:
        return True
    known = account.steps if raw[1] else account.finished
    return int(raw[2]) in known


def _without(name: str, data: bytes, names: Pseudonyms) -> bytes:
    """Return a file without identities; byte for byte the same if it had none."""
    if name.startswith(f"{RAW}/"):
        return _raw(name, data, names)
    if name == EXPERIMENT:
        return _text(data, names)
    if name == JOURNAL:
        # The journal comes last, because it seals the others.
        return data
    before = _json(name, data)
    after = names.document(before)
    # The key is a digest of machine and disk, and would identify the machine.
    if name == CALIBRATION:
        for epoch in after:
            epoch["key"] = names.name(str(epoch.get("key", "")), "machine id")
    if after == before:
        return data
    return msgspec.json.format(msgspec.json.encode(after), indent=1) + b"\n"


def _raw(name: str, data: bytes, names: Pseudonyms) -> bytes:
    """Return a compressed file of a trial without identities."""
    try:
        original = zstandard.ZstdDecompressor().decompress(data)
    except zstandard.ZstdError as error:
        raise MeasureError(f"damaged: {error}", place=name) from error
    if ".record." in name:
        clean = _record(name, original, names)
    else:
        clean = _text(original, names)
    if clean == original:
        return data
    return zstandard.ZstdCompressor(level=9, write_checksum=True).compress(clean)


def _record(name: str, data: bytes, names: Pseudonyms) -> bytes:
    """Return a trial's record without identities, also in its outputs in base64."""
    before = _json(name, data)
    after = names.document(before)
    for run, clean in zip(_runs(before), _runs(after), strict=True):
        for stream in STREAMS:
            text = run.get(stream)
            if isinstance(text, str):
                output = _from_base64(text, f"damaged: {stream} is not base64", name)
                clean[stream] = base64.b64encode(_text(output, names)).decode()
    if after == before:
        return data
    return msgspec.json.encode(after)


def _from_base64(text: str, what: str, place: str) -> bytes:
    """Return the decoded bytes. Raises MeasureError with the message ``what`` for a text that is not base64."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise MeasureError(what, place=place) from error


def _runs(record: Any) -> list[dict[str, Any]]:
    """All runs of a record: the first, and the further ones of the same boot."""
    runs = [record.get("run")]
    more = record.get("more")
    if isinstance(more, list):
        runs += more
    return [run for run in runs if isinstance(run, dict)]


def _text(data: bytes, names: Pseudonyms) -> bytes:
    """Return a text without identities; bytes that are not UTF-8 are unchanged."""
    text = data.decode("utf-8", "surrogateescape")
    return names.text(text).encode("utf-8", "surrogateescape")


def _json(name: str, data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except msgspec.MsgspecError as error:
        raise MeasureError(f"damaged: {error}", place=name) from error


def _journal(contents: dict[str, bytes], names: Pseudonyms | None) -> bytes:
    """Return the journal, without identities if ``names`` are given. Sealed lines are sealed again, over the packed
    files.
    """
    chain = ""
    lines = []
    for line in whole(contents[JOURNAL]):
        event = _json(JOURNAL, line)
        was_sealed = event.pop("chain", "")
        files: dict[str, FileSeal] = {}
        for name in event.pop("files", {}):
            if name in contents:
                files[name] = file_seal(contents[name])
        if names is not None:
            event = names.document(_without_way_back(event))
        if event.get("type") == "planned":
            event |= {
                "plan_sha256": sha256(contents[PLAN]),
                "experiment_sha256": sha256(contents[EXPERIMENT]),
            }
        body = body_of(event, files)
        with_chain, chain = chained(chain, body)
        lines.append(with_chain if was_sealed else body)
    return b"".join(line + b"\n" for line in lines)


def _without_way_back(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event without the script that boots the original kernel again, and with its command line reduced."""
    saved = event.get("saved")
    if event.get("type") != "knob-saved" or not isinstance(saved, dict):
        return event
    if saved.get("knob") != REBOOT:
        return event
    values: list[list[str]] = []
    for key, text in saved["values"]:
        if key == "cmdline":
            values.append([key, reduced(text)])
        elif key != "restore":
            values.append([key, text])
    return event | {"saved": saved | {"values": values}}
