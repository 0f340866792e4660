"""What confirms an alert, or compares two nights: which experiment has to be run. Nothing is measured here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from iodelta.errors import RequestError

if TYPE_CHECKING:
    from iodelta.experiment import Variant
    from iodelta.history.answers import Alert
    from iodelta.history.confirm import Measured
    from iodelta.history.log import Log
    from iodelta.history.store import Store

Say = Callable[[str], None]


def nights(alert: Alert, store: Store) -> tuple[Measured, Measured]:
    """Return the last good and the first bad night of an alert. Raises RequestError where it has none, MeasureError."""
    from iodelta.history.confirm import measured_in

    check(alert)
    assert alert.last_good is not None
    assert alert.first_bad is not None
    folders = {row["id"]: row["folder"] for row in store.experiments()}
    variant = alert.steps[0].variant
    good, bad = (
        measured_in(folders[one.experiment], variant)
        for one in (alert.last_good, alert.first_bad)
    )
    return good, bad


def folder_of(alert: Alert, written: Log) -> Path:
    """Where its experiment is measured: a confirmation that was cut short goes on, else the next one begins."""
    from iodelta.history.log import Confirming

    unfinished = _unfinished(alert, written)
    if unfinished is not None:
        return unfinished
    number = 1 + sum(
        isinstance(one, Confirming) and one.alert == alert.id
        for one in written.entries()[0]
    )
    return confirmations(written) / f"{alert.id}-{number}"


def confirmations(written: Log) -> Path:
    """Return the directory of a history's confirmations."""
    return written.path.absolute().parent / "confirmations"


def check(alert: Alert) -> None:
    """Raises RequestError for an alert of which nothing can be measured."""
    if not alert.steps or alert.last_good is None or alert.first_bad is None:
        raise RequestError(
            "there is no step to confirm any more",
            place=alert.id,
            remedy=f"it is {alert.state}",
        )
    if alert.kind == "machine":
        raise RequestError(
            "only unchanged builds moved, so there are no two builds to compare",
            place=alert.id,
            remedy="look for what changed on the machine; `iodelta history decide` keeps what you find",
        )


def _unfinished(alert: Alert, written: Log) -> Path | None:
    """Return the folder of a confirmation that was cut short."""
    from iodelta.history.log import Confirmed, Confirming

    entries = written.entries()[0]
    ended = {entry.folder for entry in entries if isinstance(entry, Confirmed)}
    begun = [
        entry.folder
        for entry in entries
        if isinstance(entry, Confirming) and entry.alert == alert.id
    ]
    return next(
        (Path(folder) for folder in reversed(begun) if folder not in ended), None
    )


def variants(
    good: Measured, bad: Measured, put: Sequence[str], place: Path, say: Say
) -> tuple[Variant, Variant]:
    """Both builds as variants of one experiment. Raises RequestError, MeasureError."""
    import msgspec

    from iodelta.history.confirm import put_knobs

    builds = tuple(_build(one, put, place, say) for one in (good, bad))
    if not put:
        if good.settings == bad.settings:
            raise RequestError(
                "both nights have the same settings: another program installed the difference",
                place=bad.variant.name,
                remedy="give --put COMMAND that installs {commit} or {built}",
            )
        return good.variant, bad.variant
    values = [
        {"commit": one.commit, "built": built}
        for one, built in zip((good, bad), builds, strict=True)
    ]
    if not all(one["commit"] for one in values):
        raise RequestError(
            "--put installs commits, and a night has none",
            place="--put",
            remedy="measure with --repo",
        )
    first, second = put_knobs(put, *values)
    replace = msgspec.structs.replace
    return (
        replace(good.variant, knobs={**good.variant.knobs, **first}),
        replace(bad.variant, knobs={**bad.variant.knobs, **second}),
    )


def is_built(night: Measured) -> bool:
    """Return whether the build of a night is there, or there is none to be made."""
    from iodelta.history.points import BUILT

    kept = night.experiment.subject.labels.get(BUILT, "")
    return not kept or Path(kept).is_dir()


def _build(night: Measured, put: Sequence[str], place: Path, say: Say) -> str:
    """Return the place of a night's build, which is built again if it is gone."""
    from iodelta.history.builds import kept_build
    from iodelta.history.points import BUILT
    from iodelta.lab.signals import stop_on_signals
    from iodelta.machine import LocalMachine

    kept = night.experiment.subject.labels.get(BUILT, "")
    wanted = kept or any("{built}" in word for word in put)
    if not wanted or not night.build.command or (Path(kept or ".").is_dir() and kept):
        return kept
    where = Path(kept).parent.parent if kept else place
    with stop_on_signals() as stop:
        return str(
            kept_build(
                LocalMachine(), night.build, night.commit, where, stop=stop, say=say
            )
        )
