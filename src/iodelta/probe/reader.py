"""Reads files and commands that may be missing: the text, or a recorded reason why there is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from iodelta.errors import MachineError
from iodelta.machine import Machine

Section = dict[str, str]
"""What was found, by name: text as the kernel or the command prints it."""


class Reader:
    """Collects facts about one machine; ``absent`` keeps, by dotted name, the reason why a fact is missing."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.absent: Section = {}

    def text(self, name: str, *paths: str) -> str:
        """Text of the first of ``paths`` that is there; empty when none is, and ``name`` is then absent."""
        reason = "nothing to read"
        for path in paths:
            try:
                content = self.machine.read(path).strip("\n\0 ")
            except MachineError as error:
                reason = f"{path}: {error.what}"
                continue
            if content:
                return content
            reason = f"{path} is empty"
        self.absent[name] = reason
        return ""

    def section(self, prefix: str, paths: Mapping[str, str | Sequence[str]]) -> Section:
        """Return every named file of ``paths`` (or the first of several) that is there."""
        texts = {}
        for key, places in paths.items():
            text = self.text(
                f"{prefix}.{key}", *([places] if isinstance(places, str) else places)
            )
            if text:
                texts[key] = text
        return texts

    def command(self, name: str, args: Sequence[str]) -> str:
        """Output of a command that only reports; empty when it fails, and ``name`` is then absent."""
        try:
            done = self.machine.run(args, timeout=20, env={"LC_ALL": "C"})
        except MachineError as error:
            self.absent[name] = error.what
            return ""
        text = done.text.strip()
        if done.returncode != 0 or not text:
            message = done.error_text.splitlines()
            self.absent[name] = (
                f"{' '.join(args)}: {message[0] if message else f'exit code {done.returncode}'}"
            )
            return ""
        return text

    def directory(self, *patterns: str) -> Section:
        """Return every readable file that matches, by its last name. Nothing is recorded about the others."""
        section = {}
        for path in chain.from_iterable(
            self.machine.glob(pattern) for pattern in patterns
        ):
            try:
                text = self.machine.read(path).strip("\n\0 ")
            except MachineError:
                continue  # directories, and files that only root or nobody may read
            if text:
                section[path.rsplit("/", 1)[1]] = text
        return section

    def together(self, name: str, pattern: str) -> str:
        """Return one text for many files that mostly agree (one of each CPU): ``performance``, or ``a (3), b (1)``."""
        texts = [
            text
            for path in self.machine.glob(pattern)
            if (text := self.text(name, path))
        ]
        if texts:
            self.absent.pop(name, None)
        else:
            self.absent.setdefault(name, f"no {pattern}")
        return summary(texts)


def summary(texts: Iterable[str]) -> str:
    """Return the common text, or each with its count, the most frequent first."""
    counts = Counter(texts).most_common()
    if len(counts) == 1:
        return counts[0][0]
    return ", ".join(f"{text} ({count})" for text, count in counts)


def pairs(text: str, separator: str) -> Section:
    """``key: value`` or ``key=value`` lines, without quotes around the value."""
    lines = (line.partition(separator) for line in text.splitlines())
    return {
        key.strip(): value.strip().strip('"') for key, found, value in lines if found
    }
