"""A setting that only the user's own commands can make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from iodelta.decoding import from_json
from iodelta.errors import KnobError, MachineError, RequestError
from iodelta.knob.base import EMPTY, Knob, KnobInfo, Saved
from iodelta.knob.shell import Line, Script, Steps
from iodelta.machine import Machine
from iodelta.probe.sysfs import attribute
from iodelta.probe.topology import Target

Words = tuple[str, ...]

MACHINE_ID = "/etc/machine-id"
"""A record that came from elsewhere must not make this machine run its commands."""


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
        self._commands(value)

    def save(self, values: Sequence[str] = ()) -> Saved:
        undo = tuple(
            ("restore", msgspec.json.encode(self._commands(value).restore).decode())
            for value in values
        )
        machine = ("machine", attribute(self.machine, MACHINE_ID) or "")
        return self.record((machine, *dict.fromkeys(undo)), volatile=False)

    def apply(self, value: str) -> None:
        if value == self._present:
            return
        self._undo()
        self._present = value  # before it runs: half applied needs restoring too
        _run(self.machine, "apply", self._commands(value).apply)

    def verify(self, value: str) -> None:
        words = self._commands(value).verify
        if words:
            _run(self.machine, "verify", words)

    def release(self, saved: Saved) -> None:
        self._undo()

    @classmethod
    def restore(cls, machine: Machine, saved: Saved) -> str:
        (_, origin), *_ = saved.values
        if origin != (attribute(machine, MACHINE_ID) or ""):
            return "nothing to do: the commands were run on another machine"
        commands = list(stored_commands(saved))
        failed = []
        for words in commands:  # which were applied is unknown: one that cannot be undone does not prevent the others
            try:
                _run(machine, "restore", words)
            except (KnobError, MachineError) as error:
                failed.append(error.what)
        if failed:
            raise KnobError(
                "; ".join(failed), place="command", remedy="run it by hand to see why"
            )
        return "ran " + "; ".join(map(_short, commands))

    @classmethod
    def danger(cls, name: str) -> str:
        return "a command knob runs commands written by the author of the bundle"

    @classmethod
    def script(cls, name: str, values: Sequence[str]) -> Script:
        numbers = {value: str(number) for number, value in enumerate(values, 1)}
        commands = {value: _decoded(value) for value in values}
        return Script(
            values={value: (("commanded", numbers[value]),) for value in values},
            release=(("commanded", "0"),),
            steps={
                numbers[value]: Steps(
                    restore=words.restore, apply=words.apply, verify=words.verify
                )
                for value, words in commands.items()
            },
        )

    @classmethod
    def undo_lines(cls, saved: Saved) -> Iterator[Line]:
        yield from stored_commands(saved)

    def _undo(self) -> None:
        if self._present is not None:
            _run(self.machine, "restore", self._commands(self._present).restore)
            self._present = None

    def _commands(self, value: str) -> Commands:
        return _decoded(value)


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
        not commands.apply
        or not commands.restore
        or any("\0" in word for word in words)
    ):
        raise RequestError(
            "apply and restore must each name a program",
            place="command",
            remedy=f"allowed: {ALLOWED}",
        )
    return commands


def stored_commands(saved: Saved) -> Iterator[Words]:
    """The commands of a record that undo what was applied, the last one first."""
    for key, text in reversed(saved.values):
        if key == "restore":
            yield from_json(text, Words)


def _short(words: Words) -> str:
    """A command for a reader: only the beginning of a script of several lines."""
    return " ".join(
        f"({len(word.splitlines())} lines)" if "\n" in word else word for word in words
    )


def _run(machine: Machine, step: str, words: Words) -> None:
    done = machine.run(words)
    if done.returncode != 0:
        last = (
            (done.stderr or done.stdout)
            .decode(errors="replace")
            .strip()
            .splitlines()[-1:]
        )
        raise KnobError(
            f"{step} {' '.join(words)} ended with {done.returncode}: {''.join(last) or 'it said nothing'}",
            place="command",
            remedy="run it by hand to see why",
        )
