"""The question of a bisection or attribution, as its folder stores it: subject, measurement and rules."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from iodelta.bisect.model import Rules
from iodelta.errors import RequestError
from iodelta.experiment.values import split_command

Better = Literal["higher", "lower"]
Words = tuple[str, ...]

WRONG = 0.05
"""Default probability that a person's word is wrong."""

_SHELLS = frozenset("sh bash dash zsh ksh ash busybox fish".split())
_PLACES = ("{item}", "{commit}", "{tree}", "{built}", "{settings}")


class Commits(msgspec.Struct, frozen=True, tag="commits"):
    """The first-parent line of a git repository from ``good`` to ``bad`` (full hashes)."""

    repo: str
    good: str
    """Full hash of the good end."""
    bad: str
    """Full hash of the bad end."""
    paths: tuple[str, ...] = ()
    """Commits that touch these are three times as likely beforehand."""


class Listed(msgspec.Struct, frozen=True, tag="items"):
    """Anything ordered, good first: package versions, kernel builds, values of a sysctl."""

    items: tuple[str, ...]
    """Their names, good first."""


class Settings(msgspec.Struct, frozen=True, tag="settings"):
    """Settings that differ between a good environment and a bad one; item k has the first k of them as in the bad."""

    good: dict[str, str]
    """Value by name in the good environment."""
    bad: dict[str, str]
    """Value by name in the bad environment."""
    form: Literal["plain", "kconfig"] = "plain"
    """How they are written: as a kernel's .config, or as plain NAME=value."""


class Patches(msgspec.Struct, frozen=True, tag="patches"):
    """Patches on top of ``base`` (full hash): commits, or files whose text is kept; reverted or applied."""

    repo: str
    base: str
    """Full hash of the commit that they belong on top of."""
    names: tuple[str, ...]
    """What they are called, in order."""
    texts: tuple[bytes, ...]
    """Their texts, base64."""
    revert: bool = False
    """Whether they are reverted from base rather than applied to it."""


Subject = Commits | Listed | Settings | Patches


class Steps(msgspec.Struct, frozen=True):
    """How an item is made ready and measured. Commands are argument lists; seconds."""

    build: Words = ()
    """Builds an item; empty: there is nothing to build."""
    artifacts: tuple[str, ...] = ()
    """What a build leaves that is kept, relative to the tree: then another run needs no build."""
    put: Words = ()
    """Puts the build under test: installs, loads or boots it. Run at every visit."""
    measure: Words = ()
    """Prints a number; without it an experiment cell is measured."""
    build_timeout: float = 7200.0
    """For one build."""
    put_timeout: float = 600.0
    """For installing it once."""
    measure_timeout: float = 600.0
    """For one measurement."""
    repeat: int = 1
    """Runs of one visit, averaged to one value."""


class Question(msgspec.Struct, frozen=True):
    """Everything that decides the course of a search; hashed into its log."""

    subject: Subject
    """What is searched."""
    steps: Steps
    rules: Rules
    metric: str
    unit: str
    better: Better
    experiment: str = ""
    """The experiment file's text when a cell is measured."""
    knobs: dict[str, str] = {}
    """Knobs set for every run, with ``{item}`` in their values."""
    destroy: tuple[str, ...] = ()
    """Devices and files that may be overwritten."""
    commands: bool = False
    """Whether a command of the experiment may run although nobody can see what it writes."""
    words: Words = ()
    """The command line that asked, for the reproducer."""
    cwd: str = "/"
    """Where commands run when there is no worktree."""
    blocks: int = 8
    """Blocks of an attribution."""
    by_hand: Literal["", "words", "numbers"] = ""
    """Whether a person answers, and in what; empty when iodelta measures by itself."""
    wrong: float = WRONG
    """Probability that a person's word is wrong."""
    schema: Literal[1] = 1


def command_words(text: str, place: str) -> Words:
    """Return the user's command line as an argument list, placeholders in it checked. Raises RequestError.

    What takes the place of ``{item}`` comes from a repository or a list, so it is not put into a shell's program.
    """
    if not text.strip():
        return ()
    words = split_command(text, place)
    for number, word in enumerate(words[2:], 2):
        *before, option = words[:number]
        of_shell = any(name.rpartition("/")[2] in _SHELLS for name in before)
        is_script = of_shell and re.fullmatch(r"-\w*c\w*", option)
        if is_script and any(place in word for place in _PLACES):
            raise RequestError(
                f"{word!r} puts foreign text into a shell script",
                place=place,
                remedy='use "$IODELTA_ITEM", "$IODELTA_TREE", "$IODELTA_BUILT" or "$IODELTA_SETTINGS" there',
            )
    return words


def filled(words: Words, values: dict[str, str]) -> Words:
    """Return the argument list with its placeholders replaced."""
    replaced = []
    for word in words:
        for name, value in values.items():
            word = word.replace("{" + name + "}", value)
        replaced.append(word)
    return tuple(replaced)
