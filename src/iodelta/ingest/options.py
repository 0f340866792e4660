"""The workload of a run, from fio options in any spelling."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from iodelta.ingest.model import Workload
from iodelta.ingest.numbers import seconds, size, whole
from iodelta.ingest.wording import clean
from iodelta.jobfile import canonical

_RW = {"readwrite": "rw", "randreadwrite": "randrw"}
_BANNER = re.compile(r"\((R|W|T)\) ([\w.]{1,24})-([\w.]{1,24})")
_PLACES = {"read": 0, "write": 1, "trim": 2}


def workload(options: Mapping[str, str]) -> Workload:
    """Return the workload that ``options`` request; None for facts that they omit or express in a form that only fio
    knows.
    """
    given = {canonical(name): value.strip() for name, value in options.items()}
    rw = clean(given.get("rw", "").split(":")[0])
    rw = _RW.get(rw, rw)
    kilo = 1000 if given.get("kb_base") == "1000" else 1024
    return Workload(
        rw=rw or None,
        bs=_block(given, rw, kilo),
        ioengine=clean(given.get("ioengine", "")) or None,
        iodepth=whole(given.get("iodepth", "")),
        numjobs=whole(given.get("numjobs", "")),
        direct=_flag(given, "direct"),
        size=size(given.get("size", ""), kilo),
        runtime=seconds(given.get("runtime", "")),
    )


def known(best: Workload, other: Workload) -> Workload:
    """Return the workload ``best``, with unknown facts taken from ``other``."""
    gaps = {
        name: getattr(other, name)
        for name in best.__struct_fields__
        if getattr(best, name) is None
    }
    return msgspec.structs.replace(best, **gaps)


def banner_options(rw: str, bs: str, ioengine: str, iodepth: str) -> dict[str, str]:
    """Return the four options that fio's text report repeats; equal block sizes of three directions become one.

    The spelling changed: ``4K-4K/4K-4K``, ``4096B-4096B,4096B-4096B,..`` (2.17), ``(R) 4096B-4096B, (W) ...`` (2.21).
    """
    named = _BANNER.findall(bs)
    ranges = [f"{low}-{high}" for _, low, high in named] or re.split(r"[,/]", bs)
    sizes = list(map(_fixed, ranges))
    options = {"rw": rw, "ioengine": ioengine, "iodepth": iodepth}
    if sizes and all(sizes):
        is_one = len(set(sizes)) == 1
        options["bs"] = sizes[0] if is_one else ",".join(sizes)
    return options


def _fixed(text: str) -> str:
    """``4K`` for ``4K-4K``; a range of two sizes is unchanged."""
    low, _, high = text.strip().partition("-")
    return low if low == high else text


def _block(given: Mapping[str, str], rw: str, kilo: int) -> int | None:
    """Return the block size if all directions of ``rw`` use one, or None. In ``bs=r,w,t`` the last value fills the
    rest.
    """
    if "bsrange" in given or "bssplit" in given:
        return None
    sizes = [size(part, kilo) for part in given.get("bs", "").split(",")]
    if not sizes:
        return None
    used = {"read", "write", "trim"}
    plain = rw.removeprefix("rand")
    used = {"rw": {"read", "write"}, "trimwrite": {"write", "trim"}}.get(
        plain, {plain} if plain in _PLACES else used
    )
    wanted = {sizes[min(_PLACES[kind], len(sizes) - 1)] for kind in used}
    if len(wanted) == 1:
        return wanted.pop()
    return None


def _flag(given: Mapping[str, str], name: str) -> bool | None:
    if name not in given:
        return None
    return {"": True, "1": True, "0": False}.get(given[name])
