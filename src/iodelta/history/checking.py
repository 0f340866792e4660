"""Whether database, log and folders agree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from iodelta.bundle.packed import opened
from iodelta.errors import IodeltaError, MeasureError, RequestError
from iodelta.history.log import Added, Confirmed, Given, Log
from iodelta.history.reading import Nights, outcomes
from iodelta.history.store import Store
from iodelta.lab.account import Account
from iodelta.lab.folder import JOURNAL
from iodelta.lab.integrity import integrity
from iodelta.lab.seal import sha256


def problems(store: Store, log: Log) -> Iterator[str]:
    """Yield what does not agree, a sentence each."""
    if damage := store.damage():
        yield f"damaged: {damage}"
    entries, torn = log.entries()
    for number in torn:
        yield f"{log.path}:{number}: not a whole line"
    if broken := log.broken():
        yield f"{log.path}:{broken}: not the line that was written there"
    yield from _nights(store, log)
    for entry in entries:
        if isinstance(entry, Confirmed):
            yield from _confirmation(entry)


def _nights(store: Store, log: Log) -> Iterator[str]:
    """Of the database against the log and the folders. A folder or file of many nights is read once."""
    logged = log.added()
    known = {row["id"]: row for row in store.experiments()}
    for name in logged.keys() - known.keys():
        yield f"not in the database: {logged[name].folder}"
    places = {
        name: (row["folder"], _given(logged.get(name))) for name, row in known.items()
    }
    with outcomes(list(dict.fromkeys(places.values()))) as read:
        digests = dict(
            zip(dict.fromkeys(places.values()), map(_digests, read), strict=True)
        )
    for name, row in known.items():
        if name not in logged:
            yield f"not in the log: {row['folder']}"
        there = digests[places[name]]
        if isinstance(there, str):
            yield f"cannot be read: {row['folder']}: {there}"
        elif there.get(name) != row["sha"]:
            yield f"changed since it was added: {row['folder']}"


def _given(entry: Added | None) -> Given:
    return entry.given if entry is not None else Given()


def _digests(outcome: Nights | IodeltaError) -> dict[str, str] | str:
    """Return the nights of a place with their digests; or why they cannot be read."""
    return (
        outcome.what
        if isinstance(outcome, IodeltaError)
        else {night.identifier: night.sha for night in outcome}
    )


def _confirmation(entry: Confirmed) -> Iterator[str]:
    """Of an alert's experiment against its folder."""
    where = f"the confirmation of alert {entry.alert}"
    try:
        folder = opened(Path(entry.folder))
        account = Account(folder.events())
        broken = [
            finding
            for finding in integrity(folder, account)
            if finding.severity == "hard"
        ]
        digest = sha256(folder.read(JOURNAL))
    except (RequestError, MeasureError) as error:
        yield f"{where} cannot be read: {entry.folder}: {error.what}"
        return
    if broken:
        yield f"{where} is not what was measured: {entry.folder}: {broken[0].explanation}"
    elif digest != entry.sha:
        yield f"{where} changed since it ended: {entry.folder}"
