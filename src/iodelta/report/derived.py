"""The derived files of a folder, made from raw data; the report of a large folder is cached."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from iodelta.errors import needs_extra
from iodelta.lab.account import OVER
from iodelta.lab.folder import Folder
from iodelta.lab.integrity import VERDICT
from iodelta.lab.opened import believing
from iodelta.report.cache import keep, kept, key_of
from iodelta.report.documents import written
from iodelta.report.stories.story import PLAIN, Detail
from iodelta.report.verdict_json import document
from iodelta.study.changed import refuse_changed
from iodelta.study.experiment import Account
from iodelta.study.judging import Judged, judged
from iodelta.study.preparation import PrepareAnswer, prepared
from iodelta.trial import Direction, Trial

if TYPE_CHECKING:
    import polars

    from iodelta.path.judge import PathAccount
    from iodelta.report.formats.charts.model import Charts, Scale

TRIALS = "trials.parquet"
PAGE = "report.html"

ROUNDS = "Preparation of the disk"


MANY = 1000
"""The report of a finished folder with at least so many trials is cached: judging it takes seconds."""


def load(folder: Folder) -> Account:
    """Return the account of a folder, complete or still being written. Raises MeasureError for a damaged one."""
    known = kept(folder)
    return known.account if known is not None else _kept_if_slow(folder).account


@believing
def charted(folder: Folder, scale: Scale = "auto") -> tuple[Account, Charts]:
    """Return the account of a folder and its charts. Raises MeasureError for a damaged one."""
    # Charts with another axis are not kept.
    known = kept(folder) if scale == "auto" else None
    if known is not None:
        from iodelta.report.formats.charts.model import Charts

        return known.account, msgspec.msgpack.decode(known.charts, type=Charts)
    seen = _kept_if_slow(folder)
    return seen.account, _charts(seen, scale)


def _kept_if_slow(folder: Folder) -> Judged:
    """Return a folder judged from its raw data. The report of a finished one with many trials is cached."""
    key = key_of(folder)
    seen = judged(folder)
    if seen.account.state in OVER and len(seen.trials) >= MANY:
        keep(folder, seen.account, _charts(seen), key)
    return seen


@believing
def derive(folder: Folder, *, unchanged: bool = False) -> Account:
    """Recreate the derived files: ``verdict.json``, ``trials.parquet``, and ``report.html`` where the folder has one.

    A page takes seconds and a megabyte, so it is made when it is asked for. With ``unchanged`` a folder that was
    changed after it was measured keeps its old derived files, which may show the change. Raises MeasureError.
    """
    key = key_of(folder)
    seen = judged(folder)
    if unchanged:
        refuse_changed(seen.account.findings, str(folder.path))
    folder.write(VERDICT, written(document(seen.account)))
    if (
        importlib.util.find_spec("polars") is not None
    ):  # else the extra frames and `iodelta rebuild` add it later
        buffer = io.BytesIO()
        frame_of([seen.trials[number] for number in sorted(seen.trials)]).write_parquet(
            buffer
        )
        folder.write(TRIALS, buffer.getvalue())
    if (folder.path / PAGE).exists():
        charts = _charts(seen)
        _renew_page(folder, seen.account, charts, PLAIN)
        keep(folder, seen.account, charts, key)
    return seen.account


def _renew_page(folder: Folder, account: Any, charts: Charts, detail: Detail) -> None:
    """Write the page of a folder that has one."""
    from iodelta.report.formats.html.pages import html_of

    if (folder.path / PAGE).exists():
        folder.write(PAGE, html_of(account, charts, detail))


def derive_counts(folder: Folder) -> PathAccount:
    """Write ``verdict.json`` of a folder with counts of instructions, and its page where it has one.

    Raises MeasureError.
    """
    from iodelta.study.counted import counted

    account = counted(folder)
    folder.write(VERDICT, written(account))
    deep = account.anatomy == "path"
    _renew_page(
        folder,
        account,
        (),
        Detail(functions=True, bill=True, lines=True, paths=deep, footprint=deep),
    )
    return account


def derive_prepared(folder: Folder) -> PrepareAnswer:
    """Write ``verdict.json`` of the preparation of a disk, and its page where it has one. Raises MeasureError."""
    account = prepared(folder)
    folder.write(VERDICT, written(account))
    _renew_page(folder, account, charts_of_preparation(account), PLAIN)
    return account


def charts_of_preparation(account: PrepareAnswer, scale: Scale = "auto") -> Charts:
    """Its rounds."""
    if not account.disk.rounds:
        return ()
    from iodelta.report.formats.charts.times import rounds_of

    return ((ROUNDS, (rounds_of(account.disk, log=scale == "log"),)),)


def _charts(match: Judged, scale: Scale = "auto") -> Charts:
    """Drawn from the trials that count."""
    from iodelta.report.formats.charts import figures
    from iodelta.report.formats.charts.sources import of_account

    source = of_account(match.account, match.counted, match.environment, match.sessions)
    return tuple(figures(msgspec.structs.replace(source, scale=scale)))


def frame_of(trials: Sequence[Trial]) -> polars.DataFrame:
    """Return one row per trial and direction, or per trial of a command; latencies in ns, sizes in bytes."""
    with needs_extra("frames", "a data frame"):
        import polars

    rows: list[dict[str, Any]] = []
    for trial in trials:
        results = [_row_of_direction(direction) for direction in trial.directions]
        if trial.measured:
            results.insert(0, _row_of_command(trial))
        rows += [
            {
                **(
                    {
                        "trial": trial.number,
                        "cell": trial.cell,
                        "variant": trial.variant,
                        "block": trial.block,
                        "attempt": trial.attempt,
                        "conditioning": trial.conditioning,
                        "position": trial.position,
                        "seed": trial.seed,
                        "started": trial.started,
                        "seconds": trial.seconds,
                    }
                ),
                **row,
                **(
                    {
                        "usr_cpu": trial.usr_cpu,
                        "sys_cpu": trial.sys_cpu,
                        "context_switches": trial.context_switches,
                        "background_alive": trial.background.alive
                        if trial.background
                        else None,
                        **{
                            f"counter.{name}": value
                            for name, value in sorted(trial.counters.items())
                        },
                    }
                ),
            }
            for row in results
        ]
    return polars.DataFrame(rows, infer_schema_length=None)


def _row_of_command(trial: Trial) -> dict[str, Any]:
    """Return the numbers of a command that is not fio."""
    numbers = {
        f"measured.{name}": number.value for name, number in trial.measured.items()
    }
    return {"direction": "command", **numbers}


def _row_of_direction(direction: Direction) -> dict[str, Any]:
    """Return what fio measured of reads, of writes or of trims."""
    latency = direction.lat or direction.clat
    mean = p50 = p99 = p999 = None
    if latency:
        mean = latency.mean.value
        p50, p99, p999 = map(latency.quantile, (0.50, 0.99, 0.999))
    return {
        "direction": direction.kind,
        "ios": direction.ios,
        "bytes": direction.bytes,
        "runtime_ms": direction.runtime_ms,
        "iops": direction.iops.value,
        "bandwidth": direction.bandwidth.value,
        "lat_mean": mean,
        "lat_p50": p50,
        "lat_p99": p99,
        "lat_p999": p999,
    }
