"""A setting that the user's own commands apply and restore."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from iodelta.decoding import from_json
from iodelta.errors import KnobError, MachineError, RequestError
from iodelta.knob.base import EMPTY, Knob, KnobInfo, Saved
from iodelta.knob.shell import Line, Script, Steps
from iodelta.machine import Machine
from iodelta.plural import plural
from iodelta.probe.sysfs import attribute_text
from iodelta.probe.topology import Target

Words = tuple[str, ...]


def machine_id(machine: Machine) -> str:
    """systemd's id of a machine, empty without one: a record from another machine must not be restored on this one."""
    return attribute_text(machine, "/etc/machine-id")


class Commands(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Argument lists. ``restore`` undoes ``apply``, and does no harm when run twice or when nothing was applied;
    ``verify`` exits 0 when the setting holds."""

    apply: Words
    restore: Words
    verify: Words = ()


class Command(Knob):
    """``command``: its value is a table of argument lists, as JSON text.

    ``apply`` runs when the machine is turned to the variant, ``verify`` before each of its trials, ``restore`` when it
    is turned to another variant, at the end, and after a crash: then those of all variants, the last one's first.
    """

    names = ("command",)

    def __init__(self, machine: Machine, target: Target, name: str) -> None:
        super().__init__(machine, target, name)
        self._present: str | None = None

    @classmethod
    def catalogue(cls, machine: Machine, target: Target) -> tuple[KnobInfo, ...]:
        return (KnobInfo("command", "", cls(machine, target, "command").allowed()),)

    def available(self) -> str | None:
        return None

    def allowed(self) -> str:
        return ALLOWED

    def read(self) -> str:
        return ""

    def check(self, value: str, beside: Mapping[str, str] = EMPTY) -> None:
        _decoded(value)

    def save(self, values: Sequence[str] = ()) -> Saved:
        record = {("machine", machine_id(self.machine)): None}
        for value in values:
            record["restore", msgspec.json.encode(_decoded(value).restore).decode()] = (
                None
            )
        return self.record(tuple(record), volatile=False)

    def apply(self, value: str) -> None:
        if value == self._present:
            return
        self._undo()
        # Set before the command runs: what is applied in part needs restoring too.
        self._present = value
        _run(self.machine, "apply", _decoded(value).apply)

    def verify(self, value: str) -> None:
        words = _decoded(value).verify
        if words:
            _run(self.machine, "verify", words)

    def release(self, saved: Saved) -> None:
        self._undo()

    @classmethod
    def restore(cls, machine: Machine, saved: Saved) -> str:
        (_, origin), *_ = saved.values
        if origin != machine_id(machine):
            return "nothing to do: the commands were run on another machine"
        commands = list(stored_commands(saved))
        failures: list[str] = []
        # It is not known which of them were applied, so one that fails must not prevent the others.
        for words in commands:
            try:
                _run(machine, "restore", words)
            except (KnobError, MachineError) as error:
                failures.append(error.what)
        if failures:
            remedy = "run it by hand to see why"
            raise KnobError("; ".join(failures), place="command", remedy=remedy)
        return "ran " + "; ".join(map(_short, commands))

    @classmethod
    def danger(cls, name: str) -> str:
        return "a command knob runs commands written by the author of the bundle"

    @classmethod
    def script(cls, name: str, values: Sequence[str]) -> Script:
        lines: dict[str, tuple[Line, ...]] = {}
        steps: dict[str, Steps] = {}
        for number, value in enumerate(values, 1):
            name = str(number)
            commands = _decoded(value)
            lines[value] = (("commanded", name),)
            steps[name] = Steps(
                restore=commands.restore, apply=commands.apply, verify=commands.verify
            )
        # Steps are numbered from 1, so 0 means that none of them is applied.
        return Script(values=lines, release=(("commanded", "0"),), steps=steps)

    @classmethod
    def undo_lines(cls, saved: Saved) -> Iterator[Line]:
        yield from stored_commands(saved)

    def _undo(self) -> None:
        if self._present is not None:
            _run(self.machine, "restore", _decoded(self._present).restore)
            self._present = None


ALLOWED = '{apply = ["PROGRAM", "ARGUMENT"], restore = [...], verify = [...]}; verify may be left out'


def _decoded(value: str) -> Commands:
    """Raises RequestError."""
    try:
        commands = from_json(value, Commands)
    except msgspec.MsgspecError as error:
        raise RequestError(
            str(error), place="command", remedy=f"allowed: {ALLOWED}"
        ) from error
    words = (*commands.apply, *commands.restore, *commands.verify)
    if (
        any("\0" in word for word in words)
        or not commands.apply
        or not commands.restore
    ):
        raise RequestError(
            "apply and restore must each name a program",
            place="command",
            remedy=f"allowed: {ALLOWED}",
        )
    return commands


def stored_commands(saved: Saved) -> Iterator[Words]:
    """Yield the commands of a record that undo what was applied, latest first."""
    for key, text in reversed(saved.values):
        if key == "restore":
            yield from_json(text, Words)


def _short(words: Words) -> str:
    """Return a command for a reader: a word of several lines, such as a script, is only counted."""
    return " ".join(map(_short_word, words))


def _short_word(word: str) -> str:
    if "\n" not in word:
        return word
    return f"({plural(len(word.splitlines()), 'line')})"


def _run(machine: Machine, step: str, words: Words) -> None:
    done = machine.run(words)
    if done.returncode != 0:
        lines = (
            (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        )
        message = lines[-1] if lines else "it printed nothing"
        raise KnobError(
            f"{step} {' '.join(words)} ended with {done.returncode}: {message}",
            place="command",
            remedy="run it by hand to see why",
        )
