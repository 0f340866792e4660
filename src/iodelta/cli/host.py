"""``iodelta env``, ``knobs``, ``restore``, ``doctor``, ``fio`` and ``rebuild``: this machine, and what iodelta keeps there."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iodelta.cli.commands import Asked, ask, contact, declared, group
from iodelta.errors import RequestError
from iodelta.plural import plural
from iodelta.study.words import inert, wrap

if TYPE_CHECKING:
    from iodelta.api.doctor import DoctorAnswer
    from iodelta.knob import KnobInfo
    from iodelta.lab.undo import Outcome

WIDTH = 80


@declared(
    "env",
    "[folder]",
    """
--machine
--target
--diff FILE           Show only what differs from this folder.
--verbose (was --all)  List every difference, even if there are many of one kind.
--format
""",
    """
  iodelta env
  iodelta env --target /dev/sdb --format json
  iodelta env --machine ssh:storage1 --target /dev/nvme0n1
  iodelta env iodelta-20260102-030405 --diff iodelta-20260203-040506
  iodelta env --diff iodelta-20260102-030405      # that folder's machine against this one, now
""",
)
def env(asked: Asked) -> None:
    """Show the environment of this machine, or the one recorded in FOLDER. With --diff, show only what differs, the
    most likely explanations of a different result first.

    Exit codes: 0 success, 2 the request is wrong.
    """
    folder, machine, other = asked.folder, asked.machine, asked.diff
    if folder is not None and machine:
        raise RequestError(
            "a folder records the environment of its own machine", place=str(folder)
        )
    theirs = _environment(other, "", "") if other is not None else {}
    target = asked.target
    if not (target or folder or machine or other is None):
        # The same target as in the folder, so that both environments describe the same; if it is here.
        path = str(theirs.get("target", {}).get("path", ""))
        target = path if path and os.path.exists(path) else ""
    sections = _environment(folder, machine, target)
    from iodelta.report.answers import EnvAnswer, EnvDiffAnswer

    if other is None:
        rows = _flat(sections)
        lines = (line for name, value in rows for line in _line(name, value))
        asked.answer(EnvAnswer(sections), lines)
        return
    from iodelta.report.stories.environment import lines as differing
    from iodelta.study.confounders import differences

    # The folder on the right is the one asked about: FOLDER, or this machine now.
    found = differences(theirs, sections)
    names = (str(other), str(folder or machine or "this machine"))
    asked.answer(
        EnvDiffAnswer(*names, found), differing(found, *names, whole=asked.verbose)
    )


def _environment(folder: Path | None, name: str, target: str) -> dict[str, Any]:
    if folder is None:
        import msgspec

        from iodelta.probe.environment import environment
        from iodelta.probe.topology import resolve

        with contact(name) as machine:
            here = resolve(machine, target or machine.directory)
            sections: dict[str, Any] = msgspec.to_builtins(environment(machine, here))
        return sections
    from iodelta.bundle.packed import opened
    from iodelta.study.judging import recorded

    opened(folder).check_times()
    known = recorded(folder)
    if known is None:
        raise RequestError(
            "has no environment: the run was killed before it recorded one",
            place=str(folder),
        )
    return known


def _line(name: str, value: str) -> Iterator[str]:
    head, text = f"{inert(name)}  ", inert(value)
    if len(head) + len(text) <= WIDTH:
        yield head + text
        return
    yield head.rstrip()
    for line in textwrap.wrap(text, WIDTH - 4, break_on_hyphens=False):
        yield f"    {line}"


def _flat(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    nested = isinstance(value, list) and any(
        isinstance(inner, dict | list) for inner in value
    )
    if isinstance(value, dict) or nested:
        assert isinstance(value, dict | list)
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            yield from _flat(inner, f"{path}.{key}" if path else str(key))
    elif value not in (None, "", []):
        texts = map(str, value if isinstance(value, list) else [value])
        yield (path, ", ".join(texts))


@declared(
    "knobs",
    "",
    """
--machine
--target
--format
""",
    """
  iodelta knobs
  iodelta knobs --target /dev/sdb
  iodelta knobs --format json
  iodelta knobs --machine ssh:storage1 --target /dev/nvme0n1
""",
)
def knobs(asked: Asked) -> None:
    """List every knob: its current value and the allowed values, or why it cannot be set on this machine."""
    from iodelta.knob import catalogue
    from iodelta.probe.topology import resolve
    from iodelta.report.answers import KnobsAnswer

    with asked.contact() as place:
        target = resolve(place, asked.target or place.directory)
        found = catalogue(place, target)
    on = f" on {target.device}" if target.device else ""
    asked.answer(
        KnobsAnswer(target, found), (f"For {inert(target.path)}{on}", *_knobs(found))
    )


def _knobs(knobs: Sequence[KnobInfo]) -> Iterator[str]:
    """80 columns: name and present value, below them what is allowed; then what cannot be set here, by reason."""

    def below(text: str) -> list[str]:
        indent = "    "
        return textwrap.wrap(
            text,
            WIDTH,
            initial_indent=indent,
            subsequent_indent=indent,
            break_on_hyphens=False,
        )

    width = max((len(info.name) for info in knobs), default=0) + 2
    reasons: dict[str, list[str]] = {}
    for info in knobs:
        if info.reason:
            reasons.setdefault(info.reason, []).append(info.name)
            continue
        present = inert(info.present) or "(nothing to show)"
        yield from textwrap.wrap(
            f"{info.name:<{width}}{present}", WIDTH, subsequent_indent=" " * width
        )
        yield from below(f"allowed: {inert(info.allowed)}")
    if reasons:
        yield from ("", "Not here:")
    for reason, names in reasons.items():
        yield from textwrap.wrap(", ".join(names), WIDTH)
        yield from below(inert(reason))


@declared(
    "restore",
    "",
    """
--machine
--forget              Give up settings that cannot be restored; shows what is lost and asks first.
--yes                 With --forget: do not ask.
--format
""",
    """
  iodelta restore
  iodelta restore --forget
  iodelta restore --machine ssh:storage1
""",
)
def restore(asked: Asked) -> None:
    """Restore every setting that a killed run left changed, and end the processes that it left running.

    It does not touch runs that are still alive. Every new run does the same before it starts. From a damaged log it
    restores every readable line, names the others, and keeps the shell script of that run, which sets all original
    values.

    Exit codes: 0 everything is restored or given up, 2 it could not ask you, 4 a setting could not be restored.
    """
    from iodelta.lab.undo import give_up, lost, restore_pending  # --help does without
    from iodelta.machine import reach
    from iodelta.report.answers import RestoreAnswer

    error = asked.format == "json"
    with reach(asked.machine) as place:
        outcomes = restore_pending(place)
        left = [outcome for outcome in outcomes if not outcome.done]
        for line in _restored(outcomes) if not error else ():
            click.echo(line)
        given_up = bool(left) and asked.forget
        if given_up:
            what = "Given up" if asked.yes else "To give up"
            click.echo(f"{what}; iodelta will not restore:", err=error)
            for outcome in left:
                for sentence in lost(outcome):
                    click.echo(f"  {inert(sentence)}", err=error)
            if not asked.yes:
                refused = "not accepted, nothing was given up"
                ask("Give it up?", refused, "--forget", "")
            for outcome in left:
                if kept := give_up(place, outcome):
                    click.echo(
                        f"  kept: {inert(kept)}, which sets every original of that run",
                        err=error,
                    )
    asked.answer(RestoreAnswer(tuple(outcomes), given_up), ())
    sys.exit(4 if left and not given_up else 0)


def _restored(outcomes: Sequence[Outcome]) -> Iterator[str]:
    if not outcomes:
        yield "nothing to restore"
    for outcome in outcomes:
        yield f"{inert(outcome.folder)}:"
        yield from (f"  ended left-over process {pid}" for pid in outcome.ended)
        for record in outcome.restored:
            yield f"  {inert(record.saved.knob)}: {inert(record.account or record.error)}"
        if outcome.problem:
            yield f"  {inert(outcome.problem)}"


@declared("doctor", "", "--format", "  iodelta doctor\n  iodelta doctor --format json")
def doctor(asked: Asked) -> None:
    """List what this machine lacks, which features need it, and what installs it. Changes nothing.

    Exit code: always 0, because each part of the list is needed by some commands only.
    """
    from iodelta.api.doctor import doctor

    answer = doctor()
    asked.answer(answer, lacking(answer))


def lacking(answer: DoctorAnswer) -> Iterator[str]:
    """80 columns: what is here, then what is not, and at the end the commands that install it."""
    here = ", ".join(
        f"{component.name} {component.version}" for component in answer.here
    )
    yield from wrap(inert(f"Here: {here}"), WIDTH, "  ")
    if not answer.missing:
        yield "Nothing is missing."
        return
    yield from ("", "Missing, and what needs it:")
    for lack in answer.missing:
        text = f"  {lack.what}: {lack.needed_for} ({lack.remedy})"
        yield from wrap(inert(text), WIDTH, "    ")
    if answer.install:
        yield from ("", "To install all of it:")
        yield from (f"  {inert(line)}" for line in answer.install)


fio = group(
    "fio",
    "Build a static fio for guests, and fio's t/io_uring, which distributions do not package.",
    "  iodelta fio build",
)


@declared(
    "build",
    "",
    """
--source DIR          An unpacked source tree of fio (default: the distribution's source package, fetched by apt).
--again               Build even if the cache has a complete build.
--format
""",
    "  iodelta fio build\n  iodelta fio build --source fio-3.39",
    into=fio,
)
def build(asked: Asked) -> None:
    """Build a static fio and t/io_uring into the cache, from the distribution's own source of fio.

    Changes nothing outside ~/.cache/iodelta (set IODELTA_CACHE for another place). An interrupted build continues
    where it stopped.
    """
    from iodelta.cli.progress import Progress
    from iodelta.report.answers import FioBuildAnswer
    from iodelta.tools.fio import build_fio, built_fio

    if asked.source is not None and not asked.source.is_dir():
        raise RequestError("not a directory", place=f"--source {asked.source}")
    binary = None if asked.again or asked.source else built_fio()
    if binary is None:
        with Progress(log=True) as progress:
            binary = build_fio(source=asked.source, on_step=progress.step)
    asked.answer(
        FioBuildAnswer(str(binary.fio), str(binary.io_uring), binary.version),
        (
            f"{inert(str(path))}  (fio {inert(binary.version)}, static)"
            for path in (binary.fio, binary.io_uring)
        ),
    )


@declared("rebuild", "folder", "--format", "  iodelta rebuild iodelta-20260102-030405")
def rebuild(asked: Asked) -> None:
    """Recreate verdict.json and trials.parquet of FOLDER from its raw data and plan, and report.html if it is there.

    Exit codes: 0 success, 4 the folder was changed after the run: no file is written; see `iodelta report`.
    """
    from iodelta.lab.folder import CountFolder, Folder  # --help does without
    from iodelta.lab.integrity import VERDICT
    from iodelta.report.answers import RebuildAnswer
    from iodelta.report.derived import PAGE, TRIALS, derive, derive_counts

    folder = Folder.open(asked.folder)
    made: tuple[str, ...] = (VERDICT,)
    if isinstance(folder, CountFolder):
        count, what = derive_counts(folder).boots, "boot"
    else:
        count, what = derive(folder, unchanged=True).trials, "trial"
        names = (VERDICT, TRIALS, PAGE)
        made = tuple(name for name in names if (asked.folder / name).exists())
    said = f"{asked.folder / ', '.join(made)} rebuilt from {plural(count, what)}"
    asked.answer(RebuildAnswer(made, count), [said])
    if what == "trial" and TRIALS not in made and asked.format == "console":
        click.echo(f"{TRIALS} needs polars: pip install 'iodelta[frames]'", err=True)
