"""Commands, patterns and data as code for a POSIX sh with coreutils, and its answers as data."""

from __future__ import annotations

import base64
import errno
import os
import re
from collections.abc import Mapping, Sequence
from itertools import chain, product

from iodelta.errors import MachineError
from iodelta.machine.channel import Reply, quoted

ERRORS = {os.strerror(number): name for number, name in errno.errorcode.items()}


def between(paths: Sequence[str], separator: str) -> list[str]:
    """Return the words of one ``cat`` of all ``paths`` with ``separator`` after each but the last."""
    return list(chain.from_iterable((separator, path) for path in paths))[1:]


def text_of(path: str, reply: Reply) -> bytes | MachineError:
    """Return what ``cat`` of one file printed, or why it could not."""
    if reply.word == "0":
        return reply.stdout
    return MachineError(f"cannot read: {reason(reply.stderr)}", place=path)


def texts_of(
    paths: Sequence[str], reply: Reply, separator: bytes
) -> list[bytes | MachineError | None]:
    """Return the text of each file, why it has none, or None if that is unknown."""
    pieces = reply.stdout.split(separator) if separator else []
    if len(pieces) != len(paths):
        return [None] * len(paths)
    errors = reply.stderr.decode(errors="surrogateescape").splitlines()
    reasons: dict[str, str] = {}
    for path, line in product(paths, errors):
        if line.startswith((f"cat: {path}: ", f"cat: '{path}': ")):
            reasons[path] = line
    # If an error line belongs to no path, a file without text may be the one that could not be read.
    clear = len(reasons) == len(errors)

    def one(path: str, text: bytes) -> bytes | MachineError | None:
        if path in reasons:
            return MachineError(
                f"cannot read: {reason(os.fsencode(reasons[path]))}", place=path
            )
        return text if text or clear else None

    return [one(path, text) for path, text in zip(paths, pieces, strict=True)]


def listing(pattern: str) -> str:
    """Code that prints the matching paths, each ended by a NUL, and one more NUL at the end."""
    # Only glob characters keep their meaning; everything else, even a newline, is literal.
    spelt = "".join(
        "'\n'"
        if c == "\n"
        else c
        if re.match(r"[\w/.:,@%+*?\[\]!^-]", c, re.ASCII) or ord(c) > 127
        else f"\\{c}"
        for c in pattern
    )
    show = 'if [ -e "$f" ] || [ -L "$f" ]; then printf \'%s\\0\' "$f"; fi'
    return f"for f in {spelt}; do {show}; done; printf '\\0';\n"


def command(
    words: tuple[str, ...],
    *,
    before: str = "",
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
) -> str:
    """Code that runs a command in the foreground and ends with its exit status, with ``missing``, or with ``undecoded``
    if it would get less than ``stdin``."""
    given = source(stdin) if stdin else ""
    # The status of a pipeline is that of its last command, so a failing base64 would go unnoticed: count the bytes.
    whole = f'[ "$({given} wc -c)" -eq {len(stdin)} ]' if stdin else ":"
    return (
        f"if ! command -v {quoted(words[0])} >/dev/null 2>&1; then iodelta_end missing\n"
        f"elif ! {whole}; then iodelta_end undecoded; else\n"
        f"{given} ( {prelude(env, cwd)} {before} {spelt(words)} ) {'' if stdin else '</dev/null'}; iodelta_end $?\n"
        "fi"
    )


def prelude(env: Mapping[str, str] | None, cwd: str | None) -> str:
    """Return what comes before a command in its subshell."""
    return (f"cd -- {quoted(cwd)} && " if cwd else "") + "".join(
        f"export {name}={quoted(value)} && " for name, value in (env or {}).items()
    )


def source(data: bytes) -> str:
    """Return the beginning of a pipeline that outputs these bytes."""
    return f"printf %s {quoted(base64.b64encode(data).decode())} | base64 -d |"


def spelt(words: Sequence[str]) -> str:
    """Return the words of a command, each exactly as it is. Raises MachineError for a NUL."""
    return " ".join(map(quoted, words))


def exit_code(word: str) -> int:
    """Return an exit status as Python gives it: negative for the signal that ended it. Raises MachineError for another
    word.
    """
    if not word.isdigit():
        raise MachineError(f"the shell answered {word!r} instead of an exit status")
    code = int(word)
    # sh reports a signal as 128 + its number; Linux has 64.
    if 128 < code <= 128 + 64:
        return 128 - code
    return code


def reason(stderr: bytes) -> str:
    """Return the kernel's reason in an error of cat or dd: ``Permission denied (EACCES)``."""
    lines = stderr.decode(errors="replace").strip().splitlines()
    message = lines[-1].rpartition(": ")[2] if lines else "no reason given"
    if message not in ERRORS:
        return message
    return f"{message} ({ERRORS[message]})"
