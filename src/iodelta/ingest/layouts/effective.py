"""The effective options of a run: runs that differ in one have different workloads, and are not replicates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from iodelta.ingest.model import Run
from iodelta.ingest.numbers import size, version_of
from iodelta.jobfile import canonical

CELL_OPTIONS = (
    "size filesize io_size rwmixread bs bsrange bssplit rate rate_iops fsync fdatasync sync thinktime "
    "percentage_random random_distribution"
).split()
"""Options that define the workload in addition to rw, bs (if it is one size), iodepth and numjobs."""

SIZES = ("bs", "bsrange", "bssplit")
"""Options for block sizes."""

_SAID = ("rw", "iodepth", "numjobs")
"""Options that the name of a cell contains anyway."""

_NO_MATTER = frozenset(
    "name description filename filename_format directory output output-format runtime ramp_time startdelay time_based "
    "loops randseed randrepeat allrandrepeat unlink stonewall new_group group_reporting unified_rw_reporting "
    "per_job_logs wait_for exitall exitall_on_error error_dump continue_on_error ignore_error percentile_list "
    "clat_percentiles lat_percentiles slat_percentiles status-interval eta disk_util stats kb_base unit_base".split()
)
"""Options for names, duration and output."""

_PRINTS = (
    "write_bw_log",
    "write_iops_log",
    "write_lat_log",
    "write_hist_log",
    "log_",
    "steadystate",
    "ss_",
    "eta-",
)

_SYNCS = {
    "fsync",
    "fdatasync",
    "sync_file_range",
    "end_fsync",
    "fsync_on_close",
    "create_fsync",
}

_DEFAULTS = {
    "bs": "4096",
    "fallocate": "native",
    "invalidate": "1",
    "ioengine": "psync",
    "random_generator": "tausworthe",
    "rate_process": "linear",
    "rwmixread": "50",
    "sync": "none",
    "zonemode": "none",
}
"""fio's defaults, other than 0."""


def settings(run: Run) -> dict[str, str]:
    """Return the options of ``run`` other than fio's defaults: flags as 1, sizes in bytes, by fio's first names."""
    written = dict(_setting(name, text) for name, text in run.options.items())
    if run.workload.bs is not None:
        # The size of another direction in "4k,64k" does not matter.
        written.pop("bs", None)
    if run.sync is not None and _SYNCS.isdisjoint(written):
        written["fsync"] = "yes"
    matter = {name: value for name, value in written.items() if _matters(name, value)}
    return {
        name: value
        for name, value in matter.items()
        if value != _DEFAULTS.get(name, "0")
    }


@lru_cache(maxsize=4096)
def _setting(given: str, text: str) -> tuple[str, str]:
    """Return the first name of an option in fio, and its value: a flag as 1, a size in bytes."""
    name, value = canonical(given), text.strip() or "1"
    if name == "rwmixwrite" and value.isdigit():
        name, value = "rwmixread", str(100 - int(value))
    if name == "sync":
        value = {"0": "none", "1": "sync"}.get(value, value)
    number = size(value)
    return name, value if number is None else str(number)


def differing(runs: Sequence[Run], *, names: Sequence[str] | None = None) -> list[str]:
    """Return the options (of ``names``, else any) in which ``runs`` differ, each only if it distinguishes more runs
    than those before it. A value that a report does not show equals every other."""
    settings_of = [settings(run) for run in runs]
    if names is None:
        names = [*CELL_OPTIONS, *sorted(set().union(*settings_of))]
    columns: list[list[str | None]] = []
    options: list[str] = []
    for name in dict.fromkeys(names):
        values = [
            given.get(name, ("" if says(run, name) else None))
            for run, given in zip(runs, settings_of, strict=True)
        ]
        if len(set(values) - {None}) < 2:
            continue
        if _distinct([*columns, values]) > _distinct(columns):
            options.append(name)
            columns.append(values)
    return options


def _distinct(columns: Sequence[Sequence[str | None]]) -> int:
    """Return how many runs differ in one of the ``columns``, which have a value for each run."""
    return len(set(zip(*columns, strict=True)))


def says(run: Run, name: str) -> bool:
    """Return whether an option that ``run`` does not show has fio's default: a normal report shows four options, and
    since 3.4 the latency of syncs; a log shows none."""
    if run.format in ("json", "json+"):
        return bool(run.options)
    if run.format != "text" or name != "fsync":
        return False
    version = version_of(run.fio_version or "")
    return version is not None and version >= (3, 4)


def spelt(run: Run, names: Sequence[str]) -> str:
    """Return the options of ``run`` among ``names`` in their original spelling: ``fsync=1 size=1G``."""
    written = settings(run)
    given = {canonical(name): text.strip() or "1" for name, text in run.options.items()}
    return " ".join(
        f"{name}={given.get(name, written[name])}" for name in names if name in written
    )


def _matters(name: str, value: str) -> bool:
    """Return whether an option affects the result. The name of a file does not, that of a device does."""
    if name == "filename":
        return value.startswith("/dev/")
    if name in _SAID:
        return ":" in value
    return name not in _NO_MATTER and not name.startswith(_PRINTS)
