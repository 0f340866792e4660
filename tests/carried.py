"""Experiment folders that nobody measured: whole, with raw files and the names of a machine that never was."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from iodelta.experiment import Experiment, parse
from iodelta.lab.folder import Ended, Finished, Folder, Session, Started
from iodelta.lab.plan import Plan, make_plan
from iodelta.lab.record import RECORD, Record
from iodelta.lab.requests import Requests
from iodelta.machine import LocalMachine
from iodelta.probe.topology import Target, resolve
from iodelta.workload.model import OUTPUTS, FioRun

TEMPLATE = Path(__file__).with_name("trial.json").read_text()
SERIAL = "S5GXNX0R812345K"
BY_ID = f"/dev/disk/by-id/nvme-Samsung_SSD_980_PRO_1TB_{SERIAL}"
HOST = "blofeld.volcano-lair.example.org"
SECRETS = (
    *(HOST, "blofeld", SERIAL, "Samsung_SSD_980_PRO", "eui.0025388811b2c3d4", "6f1b6c2e-5a41-4f0e-9c77-1d2f3a4b5c6d"),
    *("ernst", "/home/ernst/volcano plans/disk.img", "192.0.2.77", "2001:db8::17", "52:54:00:ab:cd:ef"),
    *("0123456789abcdef0123456789abcdef", "world-domination", "/root/keys"),
)
"""Everything below that tells who and where."""

QUESTION = """
question = "Is slow slower?"
baseline = "fast"
[target]
path = "{path}"
[workload]
rw = "randread"
bs = "4k"
direct = 1
ioengine = "psync"
iodepth = [1, 4]
[variant.fast]
"cgroup.io_max" = "riops=5000"
[variant.slow]
"cgroup.io_max" = "riops=4000"
[design]
trial = "500ms"
ramp = 0
blocks = {blocks}
metrics = ["read.iops", "read.lat.mean"]
seed = 7
"""

ENVIRONMENT: dict[str, Any] = {
    "schema": 1,
    "host": {"machine": "local", "name": HOST, "vendor": "ACME", "product": "Lair 9.1.2.3"},
    "kernel": {
        "release": "6.18.1",
        "version": "Linux version 6.18.1 (ernst@blofeld) (gcc 15.3) #1 SMP",
        "command_line": "root=UUID=6f1b6c2e-5a41-4f0e-9c77-1d2f3a4b5c6d ip=192.0.2.77 quiet",
        "clocksource": "tsc",
    },
    "cpu": {"model": "Testor 3000", "threads": "32", "governor": "performance"},
    "target": {
        "path": BY_ID,
        "kind": "block",
        "real_path": "/dev/nvme0n1",
        "device": "nvme0n1",
        "serial": SERIAL,
        "wwid": "eui.0025388811b2c3d4",
        "size_bytes": "1000204886016",
    },
    "filesystem": {"btrfs.label": "world-domination", "source": "/dev/nvme0n1"},
    "devices": [
        {"name": "nvme0n1", "firmware": "5.2.1.0", "loop.backing_file": "/home/ernst/volcano plans/disk.img"},
    ],
    "fio": {"version": "fio-3.33", "path": "/root/keys/bin/fio"},
    "now": {"boot_id": "11111111-2222-3333-4444-555555555555"},
}


def carried(
    path: Path,
    changes: Mapping[str, float] | float = -0.2,
    *,
    text: str = "",
    sd: float = 0.01,
    blocks: int = 12,
    end: str | None = "complete",
    seed: int = 1,
    secret: bool = True,
    experiment: Experiment | None = None,
    environment: Mapping[str, Any] = ENVIRONMENT,
) -> Folder:
    """A folder whose variants other than the baseline differ by ``changes`` (by cell, or all) in IOPS."""
    given = text or QUESTION.format(path=BY_ID, blocks=blocks)
    asked = experiment or parse(given)
    plan = make_plan(asked)
    plan = msgspec.structs.replace(plan, identifier="00112233aabbccdd")
    folder = Folder.begin(path, given, plan)
    folder.write_struct("environment.json", environment)
    folder.write_struct("calibration.json", [])
    target = msgspec.to_builtins(resolve(LocalMachine(), str(path.parent)))
    identity = {**target["identity"], "serial": SERIAL, "wwid": "eui.0025388811b2c3d4", "by_id": [f"{BY_ID}-part1"]}
    target |= {"path": BY_ID, "kind": "block", "identity": identity, "size_bytes": 1000204886016}
    with folder.writing():
        folder.append(Session(1000.0, "11111111-2222-3333-4444-555555555555", 1, target, "environment.json"))
        _measured(folder, plan, changes, sd, blocks, np.random.default_rng(seed), secret)
        if end is not None:
            folder.append(Ended(9000.0, end))
    return folder


def _measured(
    folder: Folder,
    plan: Plan,
    changes: Mapping[str, float] | float,
    sd: float,
    blocks: int,
    rng: np.random.Generator,
    secret: bool,
) -> None:
    number = 0
    for slot in (slot for round_ in plan.schedule.rounds[:blocks] for slot in round_):
        for position, variant in enumerate(slot.order):
            number += 1
            uncounted = slot.conditioning(position)
            started = Started(1000.0 + number, number, slot.cell, slot.block, 0, position, variant, number, uncounted)
            change = changes if isinstance(changes, float | int) else changes[slot.cell]
            rate = 5000.0 * (1.0 if variant == plan.experiment.baseline else 1 + change)
            if uncounted and variant != plan.experiment.baseline:
                rate /= 2  # so that a conditioning trial which counted would be seen
            rate *= float(np.exp(rng.normal(0.0, sd / np.sqrt(2))))
            folder.append(started)
            folder.write_raw(number, _raw(plan, started, rate, secret))
            folder.append(Finished(1000.5 + number, number, 0.6))


def _raw(plan: Plan, started: Started, rate: float, secret: bool) -> dict[str, bytes]:
    document = json.loads(TEMPLATE)
    job = document["jobs"][0]
    read = job["read"]
    count = int(rate / 2)
    read |= {"iops": rate, "total_ios": count, "io_bytes": 4096 * count, "bw_bytes": int(4096 * rate), "runtime": 500}
    for latency in ("lat_ns", "clat_ns"):
        read[latency] |= {"mean": 4e9 / rate, "N": count}
    job["job options"]["randseed"] = str(started.seed)
    if secret:
        job["job options"]["filename"] = BY_ID
        job["hostname"] = "blofeld"
    cell = next(one for one in plan.experiment.cells if one.name == started.cell)
    target = _target(BY_ID if secret else "/dev/nvme0n1")
    requests = Requests(plan.experiment, target, size=None, version=(3, 33), workdir="/dev/shm/work")
    request = requests.of(cell, plan.experiment.variant(started.variant), seed=started.seed)
    said = "fio: host blofeld, 192.0.2.77 and [2001:db8::17] via 52:54:00:ab:cd:ef\n" if secret else ""
    run = FioRun(
        request=request,
        args=("fio", f"--filename={request.target}"),
        exit_code=0,
        ended="finished",
        started=started.at,
        seconds=0.6,
        output=b"",
        stdout=said.encode(),
        stderr=b"machine 0123456789abcdef0123456789abcdef\n" if secret else b"",
        log=b"",
    )
    record = Record(run=run, counters={"disk.nvme0n1.read_ios": float(count)}, background=None)
    return {OUTPUTS[run.request.tool]: json.dumps(document, indent=1).encode(), RECORD: msgspec.json.encode(record)}


def _target(path: str) -> Target:
    found = resolve(LocalMachine(), "/")
    return msgspec.structs.replace(found, path=path, real_path=path, kind="block")


def forged(lines: Sequence[bytes], files: Mapping[str, bytes]) -> bytes:
    """A journal sealed anew over these lines and files, as anyone can; written from the documentation."""
    import hashlib

    chain, made = "", []
    for line in lines:
        event = json.loads(line)
        event.pop("chain", None)
        for name, seal in event.get("files", {}).items():
            seal |= {"size": len(files[name]), "sha256": hashlib.sha256(files[name]).hexdigest()}
        bare = json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode()
        chain = hashlib.sha256(chain.encode() + bare).hexdigest()
        made.append(bare[:-1] + b',"chain":"' + chain.encode() + b'"}\n')
    return b"".join(made)


def forge(folder: Folder) -> Folder:
    """Seal a folder anew as it is now: a change that was meant is not what the test is about."""
    journal = folder.path / "journal.jsonl"
    names = [path.relative_to(folder.path).as_posix() for path in folder.path.rglob("*") if path.is_file()]
    files = {name: (folder.path / name).read_bytes() for name in names}
    journal.write_bytes(forged(journal.read_bytes().splitlines(), files))
    return Folder.open(folder.path)


def plain(packed: bytes) -> bytes:
    """All bytes that a bundle holds, raw files and their base64 unpacked."""
    import base64
    import io
    import re
    import tarfile

    import zstandard

    parts: list[bytes] = []
    with tarfile.open(fileobj=io.BytesIO(zstandard.ZstdDecompressor().decompress(packed))) as tar:
        for member in tar:
            parts.append(member.name.encode())
            data = _read(tar, member)
            if member.name.endswith(".zst"):
                data = zstandard.ZstdDecompressor().decompress(data)
            parts.append(data)
            parts += [
                base64.b64decode(found)
                for found in re.findall(rb'"([A-Za-z0-9+/]{8,}={0,2})"', data)
                if len(found) % 4 == 0
            ]
    return b"\n".join(parts)


def _read(tar: Any, member: Any) -> bytes:
    file = tar.extractfile(member)
    return bytes(file.read()) if file is not None else b""


def held(packed: bytes, words: Sequence[str]) -> list[str]:
    """The words that can be found in a bundle."""
    whole = plain(packed)
    return [word for word in words if word.encode() in whole]
