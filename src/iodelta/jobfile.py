"""fio's own option names, and its job files: text in, sections of ordered options out. Nothing here starts fio."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from iodelta.errors import RequestError

ALIASES = {
    "blockalign": "ba",
    "blocksize": "bs",
    "blocksize_range": "bsrange",
    "blocksize_unaligned": "bs_unaligned",
    "disable_bw": "disable_bw_measurement",
    "fileoffset": "offset",
    "fill_fs": "fill_device",
    "io_limit": "io_size",
    "iodepth_batch_complete": "iodepth_batch_complete_min",
    "iodepth_batch_submit": "iodepth_batch",
    "iomem": "mem",
    "iomem_align": "mem_align",
    "nr_files": "nrfiles",
    "ratecycle": "rate_cycle",
    "ratemin": "rate_min",
    "readwrite": "rw",
    "ss": "steadystate",
    "ss_dur": "steadystate_duration",
    "ss_interval": "steadystate_check_interval",
    "ss_ramp": "steadystate_ramp_time",
    "timeout": "runtime",
    "wait_for_previous": "stonewall",
}
"""Second names of fio options (``options.c``, fio 3.16 to 3.42)."""


class Owned(msgspec.Struct, frozen=True):
    """A fio option that iodelta sets itself: why, what to say instead, and whether it can simply be left out."""

    why: str
    harmless: bool = False
    """Left out of a pasted command line or job file without changing what is measured."""


def _all(why: str, *names: str, harmless: bool = False) -> dict[str, Owned]:
    return dict.fromkeys(names, Owned(why, harmless))


_OWNED: dict[str, Owned] = {
    **_all(
        "the target is [target] path",
        "filename",
        "directory",
        "opendir",
        "filename_format",
        "unique_filename",
    ),
    **_all("every trial is equally long: say [design] trial", "runtime"),
    **_all("every trial is time_based already", "time_based", "loops", harmless=True),
    **_all(
        "the ramp is the same for every trial: say [design] ramp",
        "ramp_time",
        "ramp_size",
        "startdelay",
    ),
    **_all(
        "a trial that stops when it looks steady selects its own result; say [design] trial and ramp",
        *(
            "steadystate",
            "steadystate_duration",
            "steadystate_ramp_time",
            "steadystate_check_interval",
        ),
    ),
    **_all(
        "every trial has a recorded seed: see [design] seed",
        "randseed",
        "randrepeat",
        "allrandrepeat",
        harmless=True,
    ),
    **_all(
        "iodelta reads fio's output and keeps all of it",
        *(
            "output",
            "output-format",
            "append-terse",
            "terse-version",
            "minimal",
            "bandwidth-log",
            "latency-log",
        ),
        *(
            "eta",
            "eta-interval",
            "eta-newline",
            "status-interval",
            "error_dump",
            "unit_base",
            "job_start_clock_id",
        ),
        *(
            "write_bw_log",
            "write_lat_log",
            "write_iops_log",
            "write_hist_log",
            "bwavgtime",
            "iopsavgtime",
        ),
        *(
            "per_job_logs",
            "log_entries",
            "log_avg_msec",
            "log_hist_msec",
            "log_hist_coarseness",
            "log_max_value",
        ),
        *(
            "log_window_value",
            "log_offset",
            "log_prio",
            "log_issue_time",
            "log_compression",
            "log_compression_cpus",
        ),
        *(
            "log_store_compressed",
            "log_unix_epoch",
            "log_alternate_epoch",
            "log_alternate_epoch_clock_id",
        ),
        *(
            "lat_percentiles",
            "clat_percentiles",
            "slat_percentiles",
            "percentile_list",
            "group_reporting",
        ),
        harmless=True,
    ),
    **_all(
        "iodelta reads the result of each direction", "unified_rw_reporting", "stats"
    ),
    **_all(
        "a job that writes other files is not a workload of the target",
        "write_iolog",
        "inflate-log",
        "aux-path",
    ),
    **_all(
        "iodelta orders the trials; each section of a job file is a cell of its own",
        *("name", "section", "stonewall", "wait_for", "new_group"),
        harmless=True,
    ),
    **_all(
        "that is another mode of fio, not a workload",
        *(
            "profile",
            "server",
            "server-internal",
            "client",
            "daemonize",
            "remote-config",
            "debug",
            "showcmd",
        ),
        *(
            "parse-only",
            "version",
            "help",
            "cmdhelp",
            "enghelp",
            "cpuclock-test",
            "crctest",
            "memcpytest",
            "idle-prof",
        ),
        *(
            "merge-blktrace-only",
            "create_only",
            "verify_only",
            "max-jobs",
            "alloc-size",
            "warnings-fatal",
            "readonly",
        ),
    ),
    **_all(
        "iodelta's own guard decides what may be written: see --destroy",
        "allow_mounted_write",
    ),
    **_all(
        "files are laid out before the trials: see [target] size", "allow_file_create"
    ),
    **_all("the target is kept for the next trial", "unlink", "unlink_each_loop"),
    **_all(
        "a replayed log names its own files, past the guard and [target]",
        "read_iolog",
        "merge_blktrace_file",
    ),
    **_all(
        "set it in a variant, so that iodelta restores it: block.scheduler",
        "ioscheduler",
    ),
    **_all(
        "a trial that is killed leaves its control groups behind; set cgroup.io_max in a variant",
        *("cgroup", "cgroup_weight", "cgroup_nodelete"),
    ),
}

_COMMANDS = (
    "exec_prerun",
    "exec_postrun",
    "trigger",
    "trigger-file",
    "trigger-remote",
    "trigger-timeout",
    "program",
)

_JUDGED = (
    "ioengine",
    "mem",
    "rw",
    "size",
    "filesize",
    "offset",
    "offset_increment",
    "numjobs",
)
"""Whose values decide whether a workload may write, and where."""

_FULL_NAMES = frozenset({"ba", "direct", "verify"})
"""fio options that are the beginning of a guarded one, and no abbreviation of it."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_KEYWORDS = ("$pagesize", "$mb_memory", "$ncpus")


_FIRST = (*_OWNED, *_COMMANDS, *_JUDGED)
GUARDED = (*_FIRST, *(alias for alias, full in ALIASES.items() if full in _FIRST))
"""Names, first and second, whose beginnings are refused: each must be seen to be judged."""


def canonical(name: str) -> str:
    """fio's first name of an option: ``rw`` for ``readwrite``."""
    return ALIASES.get(name, name)


def owned(name: str) -> Owned | None:
    """Return why iodelta sets the fio option ``name`` itself; None for a workload's own option.

    fio accepts unambiguous beginnings of its option names on the command line (``--exec_prer=``, measured with 3.33),
    so a beginning of a guarded name (owned, running commands, or judged by its value) is answered like a name that is
    not allowed.
    """
    first = canonical(name)
    if first in _OWNED:
        return _OWNED[first]
    if not _NAME.fullmatch(name):
        return Owned("fio's option names are made of letters, digits, _ and -")
    if name in _FULL_NAMES or first in (*_COMMANDS, *_JUDGED):
        return None
    longer = [full for full in GUARDED if full.startswith(name)]
    if not longer:
        return None
    return Owned(f"write the name in full; fio would take it for {longer[0]}")


def runs_command(name: str, value: str | None) -> str | None:
    """Return which command or foreign code fio would run for this option, or which file it would make, or None."""
    first = canonical(name)
    if first in _COMMANDS:
        return f"{name} runs the command {value or ''!r}"
    if first == "tool" and value not in ("fio", "t/io_uring"):
        return f"tool={value} is a program"
    if first == "ioengine" and value is not None:
        if value.strip() == "exec":
            return "ioengine=exec runs programs"
        if value.strip().startswith("external:") or "/" in value:
            return f"ioengine={value} loads foreign code"
    if first == "mem" and ":" in (value or ""):
        return f"{name}={value} makes that file, or overwrites it"
    return None


class Section(msgspec.Struct, frozen=True):
    """One job: the options of the global sections above it, then its own; a repeated option has its last value."""

    name: str
    options: tuple[tuple[str, str | None], ...]
    """In order, as spelt in the file; None for a flag without ``=``. ``owned`` options are among them."""
    places: tuple[str, ...]
    """``file:line`` of each option."""
    place: str
    notes: tuple[str, ...] = ()
    """What measuring the sections one by one changes against fio."""


def read_job_file(path: Path, *, allow_commands: bool = False) -> tuple[Section, ...]:
    """``parse_job_file`` of a file of this machine, with its environment. Raises RequestError."""
    try:
        text = path.read_text(errors="replace")
    except OSError as error:
        raise RequestError(
            f"cannot read the fio job file: {error.strerror}", place=str(path)
        ) from error
    return parse_job_file(
        text,
        file=str(path),
        environ=os.environ,
        read=lambda name: Path(name).read_text(errors="replace"),
        allow_commands=allow_commands,
    )


def parse_job_file(
    text: str,
    *,
    file: str = "job.fio",
    environ: Mapping[str, str] | None = None,
    read: Callable[[str], str] | None = None,
    allow_commands: bool = False,
) -> tuple[Section, ...]:
    """Return the jobs of a native fio job file, with the syntax of fio 3.33's ``__parse_jobs_ini`` (``init.c``).

    ``environ`` replaces ``${NAME}`` (unset: empty, as fio does); ``read`` returns the text of an included file and
    raises OSError. Options that run commands are refused unless ``allow_commands``. Raises RequestError with file and
    line.
    """
    shared: list[_Line] = []
    sections: list[Section] = []
    for name, place, lines in _Reader(environ or {}, read, allow_commands).sections(
        text, file
    ):
        # fio compares the first six letters: [global2] is global too.
        if name.startswith("global"):
            shared.extend(lines)
            continue
        latest = {canonical(line.name): line for line in (*shared, *lines)}
        notes: tuple[str, ...] = ()
        if sections and not {"stonewall", "wait_for"} & latest.keys():
            notes = (
                f"fio would run [{name}] together with [{sections[-1].name}]; here each is measured alone",
            )
        options = tuple((line.name, line.value) for line in latest.values())
        sections.append(
            Section(
                name,
                options,
                tuple(line.place for line in latest.values()),
                place,
                notes,
            )
        )
    if not sections:
        raise RequestError(
            "no job section",
            place=file,
            remedy="add a section such as [randread] with rw=randread",
        )
    return tuple(sections)


class _Line(msgspec.Struct, frozen=True):
    name: str
    value: str | None
    place: str


class _Reader:
    """Splits the text of a job file, and of those it includes, into sections of options."""

    def __init__(
        self,
        environ: Mapping[str, str],
        read: Callable[[str], str] | None,
        allow_commands: bool,
    ) -> None:
        self._environ = environ
        self._read = read
        self._allow_commands = allow_commands

    def sections(self, text: str, file: str) -> list[tuple[str, str, list[_Line]]]:
        """Name, place and option lines of each section."""
        parts: list[tuple[str, str, list[_Line]]] = []
        for place, line in _lines(text, file):
            if line.startswith("["):
                if not line.endswith("]") or len(line) < 3:
                    raise RequestError(
                        f"not a section header: {line}",
                        place=place,
                        remedy="write [name] on its own",
                    )
                parts.append((line[1:-1], place, []))
            elif not parts:
                raise RequestError(
                    f"option {line} outside of a section",
                    place=place,
                    remedy="put [global] or [name] above it",
                )
            else:
                parts[-1][2].extend(self._options(line, place, (file,)))
        return parts

    def _options(self, line: str, place: str, chain: tuple[str, ...]) -> list[_Line]:
        word, _, rest = line.partition(" ")
        if word == "include":
            return self._included(
                posixpath.join(posixpath.dirname(chain[-1]), rest.strip()), place, chain
            )
        return [self._option(line, place)]

    def _included(self, path: str, place: str, chain: tuple[str, ...]) -> list[_Line]:
        if self._read is None:
            raise RequestError(
                f"cannot include {path} here",
                place=place,
                remedy="paste its lines instead",
            )
        if path in chain:
            raise RequestError(
                f"{path} includes itself",
                place=place,
                remedy="remove one of the include lines",
            )
        try:
            text = self._read(path)
        except OSError as error:
            raise RequestError(
                f"cannot include {path}: {error.strerror or error}", place=place
            ) from error
        options: list[_Line] = []
        for inner, line in _lines(text, path):
            if line.startswith("["):
                raise RequestError(
                    f"section {line} in an included file",
                    place=inner,
                    remedy="an included file holds options only",
                )
            options.extend(self._options(line, inner, (*chain, path)))
        return options

    def _option(self, line: str, place: str) -> _Line:
        line = re.sub(
            r"\$\{([^}]*)\}", lambda match: self._environ.get(match[1], ""), line
        )
        name, equals, rest = (part.strip() for part in line.partition("="))
        value = rest if equals else None
        if not _NAME.fullmatch(name):
            raise RequestError(
                f"not an option: {line}",
                place=place,
                remedy="write name=value, or a flag's name alone",
            )
        keyword = next((word for word in _KEYWORDS if word in rest), None)
        if keyword:
            raise RequestError(
                f"{line}: only fio knows {keyword}",
                place=place,
                remedy="write the number itself",
            )
        danger = runs_command(name, value)
        if danger and not self._allow_commands:
            raise RequestError(danger, place=place, remedy=f"remove {name}")
        return _Line(name, value, place)


def _lines(text: str, file: str) -> list[tuple[str, str]]:
    """Place and text of the lines with something in them; ``;`` and ``#`` begin a comment anywhere (fio's parse.c)."""
    stripped = (
        re.split("[;#]", line, maxsplit=1)[0].strip() for line in text.split("\n")
    )
    return [
        (f"{file}:{number}", line) for number, line in enumerate(stripped, 1) if line
    ]
