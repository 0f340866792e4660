"""A fleet: hosts in network namespaces with sshd, each with its own cable, boot ID, state directory and disk."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from acceptance.stand import Done, Running, Stand, finished, kinds
from processes import alive
from ssh.host import Host

PORT = 2200

QUESTION = """
[target]
path = "class:disk"
[workload]
rw = "randread"
bs = "4k"
direct = 1
ioengine = "libaio"
iodepth = 4
rate_iops = 400
[variant.old]
"block.scheduler" = "none"
[variant.new]
"block.scheduler" = "mq-deadline"
[design]
trial = "{trial}"
ramp = "0s"
blocks = {blocks}
seed = 1
"""


class Member:
    """One host of the fleet."""

    def __init__(self, name: str, place: Path, node: str) -> None:
        place.mkdir()
        self.name, self.place, self.node = name, place, node
        self.host = Host(place)
        self.boot, self.kernel = place / "boot_id", place / "osrelease"
        self.kernel.write_text("6.12.5-test\n")
        self.host.open()
        self.reboot()
        self.serve()

    def reboot(self, kernel: str = "") -> None:
        """Another boot ID, perhaps another kernel."""
        _overwrite(self.boot, f"{uuid.uuid4()}\n")
        if kernel:
            _overwrite(self.kernel, f"{kernel}\n")

    def serve(self, *options: str, port: int = PORT, name: str = "", alias: tuple[str, ...] = ()) -> int:
        """An sshd whose users see its boot ID and kernel, and an alias for it; returns its process."""
        state = f"SetEnv IODELTA_STATE={self.host.state}"
        mounts = {self.boot: "/proc/sys/kernel/random/boot_id", self.kernel: "/proc/sys/kernel/osrelease"}
        daemon = self.host.serve(port, *(options or (state,)), mounts=mounts)
        self.host.alias(name or self.name, *alias, port=port)
        return daemon


def _overwrite(path: Path, text: str) -> None:
    """A file that is mounted over another one, so it stays the same; who reads meanwhile never reads nothing."""
    with open(path, "rb+" if path.exists() else "wb", buffering=0) as file:
        file.write(text.encode())
        file.truncate()


class Fleet:
    """A stand with hosts and an inventory; ``extra`` is more TOML of a host."""

    def __init__(self, stand: Stand, names: str = "a b c", **extra: str) -> None:
        self.stand, self.extra = stand, extra
        self.members: dict[str, Member] = {}
        for name in names.split():
            member = Member(name, stand.place / f"host-{name}", stand.loop())
            self.members[name] = member
            stand.undo(member.host.close)
        bin_ = stand.place / "bin"
        bin_.mkdir()
        configuration = stand.place / "ssh_config"
        configuration.write_text("".join(f"Include {one.place}/ssh_config\n" for one in self.members.values()))
        (bin_ / "ssh").write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {configuration} "$@"\n')
        (bin_ / "ssh").chmod(0o755)
        stand.env["PATH"] = f"{bin_}:{os.environ['PATH']}"
        self.inventory()
        self.ask()

    def inventory(self, more: str = "") -> None:
        tables = []
        for name, member in self.members.items():
            tables.append(f'[host.{name}]\ntargets = {{ disk = "{member.node}" }}\n{self.extra.get(name, "")}\n')
        (self.stand.place / "fleet.toml").write_text("".join(tables) + more)

    def ask(self, *, trial: str = "200ms", blocks: int = 1) -> None:
        (self.stand.place / "question.toml").write_text(QUESTION.format(trial=trial, blocks=blocks))

    def apart(self) -> str:
        """One more disk here, which shares nothing with the others: what it holds is in memory."""
        place = Path(tempfile.mkdtemp(dir="/dev/shm", prefix="iodelta-test-"))
        self.stand.undo(lambda: shutil.rmtree(place))
        return self.stand.loop(place=place)

    def run(self, *options: str) -> Done:
        return self.stand.run("fleet", "run", "question.toml", "--folder", "fleet", *options)

    def start(self, *options: str) -> Running:
        return self.stand.start("fleet", "run", "question.toml", "--folder", "fleet", *options)

    def place(self, name: str) -> Path:
        """The experiment folder of a host."""
        return self.stand.place / "fleet/hosts" / name

    def status(self) -> dict[str, dict[str, Any]]:
        done = self.stand.run("fleet", "status", "fleet", "--format", "json")
        assert done.code == 0, done
        return {host["name"]: host for host in json.loads(done.out)["hosts"]}

    def last(self, name: str) -> dict[str, Any]:
        """The last state of a host by the journal: to wait for it, as a process for every look would take the CPUs."""
        moves = [event for event in kinds(self.stand.place / "fleet", "moved") if event["name"] == name]
        return {"state": "", "reason": "", **(moves[-1] if moves else {})}

    def states(self) -> dict[str, str]:
        return {name: host["state"] for name, host in self.status().items()}


def measured(place: Path) -> set[int]:
    """Blocks with a number of both variants in one attempt, by the journal; none is there twice."""
    usable = finished(place)
    started = [one for one in kinds(place, "started") if one["trial"] in usable]
    made = Counter((one["block"], one["attempt"], one["variant"]) for one in started)
    assert set(made.values()) == {1}
    pairs = Counter((block, attempt) for block, attempt, _ in made)
    return {block for (block, _), variants in pairs.items() if variants == 2}


def with_own_clock(member: Member, alias: str) -> Callable[[int], object]:
    """A second sshd of a host, whose users have a clock of their own; what is returned sets it so many seconds off."""
    programs = member.place / "own-bin"
    programs.mkdir()
    offset = programs / "offset"

    def put(seconds: int) -> None:
        (programs / "next").write_text(f"{seconds}")
        (programs / "next").rename(offset)

    put(0)
    (programs / "date").write_text(f'#!/bin/sh\nexec /bin/date -d "now + $(cat {offset}) seconds" "$@"\n')
    (programs / "date").chmod(0o755)
    state = f"SetEnv IODELTA_STATE={member.host.state} PATH={programs}:{os.environ['PATH']}"
    member.serve(state, port=2301, name=alias)
    return put


class Witness:
    """Looks at the hosts themselves, time and again: how many fio work on one device at once, at most. Devices of one
    host may be counted together: ``nodes`` are devices and what they are counted as."""

    def __init__(self, nodes: Mapping[str, str], pause: float = 0.1) -> None:
        self.most = dict.fromkeys(nodes.values(), 0)
        self._nodes = nodes
        self.looks, self._pause = 0, pause
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Witness:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.wait(self._pause):
            self.looks += 1
            working: Counter[str] = Counter()
            for pid, words in alive():
                if words[0].endswith(b"fio") and not _is_job_of_fio(pid):
                    named = [os.fsdecode(word).removeprefix("--filename=") for word in words if b"--filename=" in word]
                    working.update(self._nodes[node] for node in named if node in self._nodes)
            for label in self.most:
                self.most[label] = max(self.most[label], working[label])


def _is_job_of_fio(pid: int) -> bool:
    """fio makes a process of the same words for every job; one that has ended by now is taken for such a job."""
    try:
        parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
        return Path("/proc", parent, "comm").read_text().strip() == "fio"
    except OSError:
        return True
