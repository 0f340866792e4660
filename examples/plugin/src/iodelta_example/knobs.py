"""Transparent huge pages. Source: Documentation/admin-guide/mm/transhuge.rst."""

from __future__ import annotations

from iodelta.knob.files import FileKnob

FILE = "/sys/kernel/mm/transparent_hugepage/enabled"


class TransparentHugePages(FileKnob):
    """Where the kernel gives a program huge pages by itself."""

    names = ("thp.enabled",)
    harmless = True

    def paths(self) -> tuple[str, ...]:
        return (FILE,)

    def absent(self) -> str:
        return "this kernel has no transparent huge pages"

    def allowed(self) -> tuple[str, ...]:
        return ("always", "madvise", "never")

    @classmethod
    def script_files(cls, name: str) -> tuple[str, ...]:
        return (FILE,)
