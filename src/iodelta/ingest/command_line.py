"""The fio command line above a text report, which itself repeats only four of the options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from iodelta.jobfile import canonical

_COMMAND = re.compile(r"(?:^|[\s/+$#>])fio((?: {1,4}\S{1,400}){1,60})")
_LOOK_BACK = 60
"""Number of lines above the report in which the command line is searched."""
_SAME = {"readwrite": "rw", "randreadwrite": "randrw"}


def command_options(said: Sequence[str]) -> dict[str, str]:
    """Return the options of the last fio command among the lines ``said``: by long name, a flag as ''.

    Empty if it starts several jobs; options whose values only the shell knew are omitted.
    """
    lines = said[-_LOOK_BACK:]
    for at in range(len(lines) - 1, -1, -1):
        command = _COMMAND.search(lines[at][:4000]) if "fio" in lines[at] else None
        if command is None or "--" not in "".join(lines[at : at + 3]):
            continue
        text = command[1].strip()
        for below in lines[at + 1 : at + 30]:
            if not (text.endswith("\\") or below.lstrip().startswith("--")):
                break
            text = f"{text.removesuffix(chr(92))} {below.strip()[:1000]}"
        options = _options(text)
        if options:
            return options
    return {}


def _options(text: str) -> dict[str, str]:
    try:
        words = shlex.split(text)
    except ValueError:
        return {}
    options: dict[str, str] = {}
    names = 0
    for word, following in zip(words, [*words[1:], "-"], strict=True):
        if not word.startswith("--") or len(word) < 4:
            continue
        name, equals, value = word[2:].partition("=")
        if not equals and not following.startswith("-"):
            value = following
        names += name == "name"
        is_of_shell = "$" in value or "`" in value
        if not is_of_shell:
            options[name] = value
    return options if names <= 1 else {}


def agrees(command: Mapping[str, str], banner: Mapping[str, str]) -> bool:
    """Return whether a command line can be that of a job with this banner."""
    given = {canonical(name): value for name, value in command.items()}
    for name in ("rw", "ioengine", "iodepth"):
        first, other = given.get(name, ""), banner.get(name, "")
        first = _SAME.get(first.partition(":")[0], first.partition(":")[0])
        if first and other and first != other:
            return False
    return True
