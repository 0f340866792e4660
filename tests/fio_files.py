"""Result files as fio 3.33 writes them, small, for trees of results made in tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def document(
    iops: float = 10_000,
    *,
    ended: float = 1_700_000_000.0,
    rw: str = "randread",
    bs: str = "4k",
    depth: int = 32,
    jobs: int = 1,
    engine: str = "libaio",
    name: str = "job",
    seconds: int = 10,
    p99_ns: int = 7_045_120,
    version: str = "fio-3.33",
    error: int = 0,
    options: dict[str, str] | None = None,
) -> dict[str, Any]:
    """One job of fio that kept its depth full at ``iops`` in each direction, ended at ``ended`` (Unix seconds)."""
    ios = round(iops * seconds)
    size = {"4k": 4096, "128k": 131072, "1m": 1 << 20}[bs]
    kinds = ("read", "write") if rw.endswith("rw") else ("write",) if "write" in rw else ("read",)
    mean = depth * jobs / iops / len(kinds) * 1e9
    latency = {"min": mean / 2, "max": max(mean * 4, p99_ns * 2), "mean": mean, "stddev": mean / 5, "N": ios}
    percentiles = {"50.000000": _centre(mean), "99.000000": p99_ns, "99.900000": p99_ns + 131072}
    did = {
        "io_bytes": ios * size,
        "bw_bytes": round(iops * size),
        "bw": round(iops * size / 1024),
        "iops": iops,
        "runtime": seconds * 1000,
        "total_ios": ios,
        "lat_ns": latency,
        "clat_ns": latency | {"percentile": percentiles},
    }
    given = {"rw": rw, "bs": bs, "iodepth": str(depth), "ioengine": engine, "direct": "1", "runtime": str(seconds)}
    given |= {"numjobs": str(jobs)} if jobs > 1 else {}
    return {
        "fio version": version,
        "timestamp": int(ended),
        "timestamp_ms": round(ended * 1000),
        "global options": {},
        "jobs": [
            {
                "jobname": name,
                "groupid": 0,
                "error": error,
                "elapsed": seconds + 1,
                "job options": {"name": name} | given | (options or {}),
                **dict.fromkeys(kinds, did),
                "job_runtime": seconds * 1000 * jobs,
                "usr_cpu": 10.0,
                "sys_cpu": 20.0,
                "ctx": ios,
            }
        ],
    }


def write(path: Path, *args: Any, around: str = "", **more: Any) -> Path:
    """Write ``document`` to ``path``, its folder made, with text before it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(around + json.dumps(document(*args, **more), indent=1) + "\n", encoding="utf-8")
    return path


def _centre(value: float) -> int:
    """The centre of fio's bin that holds ``value`` ns."""
    exponent = max(0, int(value).bit_length() - 7)
    return ((int(value) >> exponent) << exponent) + (1 << exponent) // 2
