"""Which file fio opens for a name: fio parses names itself, and opens another file than meant for some paths.

``str_filename_cb``, ``get_next_str`` (``options.c``) and ``strip_blank_end`` (``parse.c``) of fio 3.16 to 3.42:
``;`` and ``#`` end a name, blanks and control characters at its ends are cut, ``:`` parts two names unless a
backslash stands before it.
"""

from __future__ import annotations

import re

from iodelta.errors import RequestError

_MISREAD = re.compile(r"[;#\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffd]")
"""More than fio cuts at: a backslash, a line break or undecodable bytes may be read otherwise on the way to fio."""


def misread(path: str) -> str:
    """Return why fio would not open ``path`` for that name; empty when it would."""
    if not path.startswith("/"):
        return "it is not an absolute path"
    match = _MISREAD.search(path)
    if match:
        return f"it contains {match[0]!r}"
    if path != path.strip():
        return "it ends with white space"
    return ""


def named(path: str) -> str:
    """``path`` as a value of fio's ``filename`` or ``directory``. Raises RequestError where fio would read another."""
    why = misread(path)
    if why:
        raise RequestError(
            f"fio would open another file for this name: {why}",
            place=repr(path),  # in quotes, to show a blank at its end
            remedy="rename the file or directory, with letters, digits and inner blanks only",
        )
    return path.replace(":", "\\:")
