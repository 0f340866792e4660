"""The folder of a fleet: the question, a small journal, and an ordinary experiment folder for every host.

experiment.toml     the question, as it was given
bundle.iodelta.tar.zst, reproduce.json     of `iodelta reproduce --hosts`: the bundle, and the user's options
journal.jsonl       the hosts and their states
hosts/NAME/         an experiment folder, as `iodelta run --machine ssh:HOST` makes it
logs/NAME.log       what the run on that host printed
stop/NAME           asks the run on that host to end
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from iodelta import __version__
from iodelta.decoding import decoder
from iodelta.errors import MeasureError, RequestError, pasted
from iodelta.experiment import Experiment, parse, toml_text
from iodelta.experiment.command import placed
from iodelta.experiment.source import text_of, toml_data
from iodelta.fleet.entry import checked
from iodelta.fleet.events import Begun, FleetEvent, Joined
from iodelta.fleet.host import FleetHost
from iodelta.lab.folder import EXPERIMENT, JOURNAL, now, room_for
from iodelta.lab.guard import check_commands
from iodelta.lab.journal import Journal
from iodelta.lab.opened import opened, read_member
from iodelta.lab.seal import sha256

JOB_FILE = "workload.fio"
"""The copy of the fio job file that the question names."""

BUNDLE, WISHES = "bundle.iodelta.tar.zst", "reproduce.json"
"""Of a fleet that reproduces: the bundle, and the user's options."""

_OWN = (EXPERIMENT, JOB_FILE, BUNDLE, WISHES, JOURNAL, "hosts", "logs", "stop")

_decoder: msgspec.json.Decoder[FleetEvent] = decoder(FleetEvent)


class FleetFolder:
    """Reading needs no lock; the scheduling process holds ``journal.held()``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal: Journal[FleetEvent] = Journal(
            path / JOURNAL, _decoder, self._failed, owner="fleet folder"
        )

    @classmethod
    def open(cls, path: Path) -> FleetFolder:
        """Return an existing one. Raises RequestError."""
        folder = cls(path)
        if folder.begun() is None:
            raise RequestError(
                "not a fleet folder",
                place=str(path),
                remedy="give the folder that `iodelta fleet run` printed",
            )
        return folder

    def begun(self) -> Begun | None:
        """Return the beginning of the journal; None before there is one. Raises MeasureError."""
        return next(
            (event for event in self.journal.events() if isinstance(event, Begun)), None
        )

    def hosts(self) -> dict[str, FleetHost]:
        """Return every host by name, as the inventory described it last; checked, as the folder may be a stranger's.
        Raises MeasureError."""
        joined = (
            event.host for event in self.journal.events() if isinstance(event, Joined)
        )
        try:
            return {
                host.name: checked(
                    host.name, dict(msgspec.structs.asdict(host), tags=[*host.tags])
                )
                for host in joined
            }
        except ValueError as error:
            raise MeasureError(
                f"damaged: {error.args[0]}", place=str(self.path / JOURNAL)
            ) from error

    def place(self, name: str) -> Path:
        """Return the experiment folder of a host."""
        return self.path / "hosts" / name

    def log(self, name: str) -> Path:
        """Return what the run on a host printed."""
        return self.path / "logs" / f"{name}.log"

    def stop(self, name: str) -> Path:
        """Return the file that asks the run on a host to end; it holds the reason."""
        return self.path / "stop" / name

    def experiment(self) -> Experiment:
        """Return the question, unchanged since it was fixed. Raises MeasureError."""
        begun = self.begun()
        for name, digest in begun.files.items() if begun else ():
            try:
                data = read_member(self.path, name)
            except FileNotFoundError as error:
                raise MeasureError(
                    f"cannot read: {error.strerror}", place=str(self.path / name)
                ) from error
            if sha256(data) != digest:
                raise MeasureError(
                    "changed since the fleet began: every host is asked the same question",
                    place=str(self.path / name),
                    remedy="put the original back, or begin a new fleet folder",
                )
        return parse(
            read_member(self.path, EXPERIMENT).decode(errors="replace"),
            str(self.path / EXPERIMENT),
            base=self.path,
        )

    def is_held(self) -> bool:
        """Return whether an `iodelta fleet run` schedules it now."""
        return is_held(self.path / JOURNAL)

    def make(self) -> None:
        """The directory, where there is none. Raises MeasureError, and RequestError where something else is there."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            strange = [
                entry.name
                for entry in self.path.iterdir()
                if entry.name not in _OWN and not entry.name.startswith(".")
            ]
        except OSError as error:
            raise self._failed(error) from error
        if strange:
            raise RequestError(
                f"not a fleet folder: it contains {strange[0]!r}",
                place=str(self.path),
                remedy="name a new one with --folder",
            )
        try:
            (self.path / "hosts").mkdir(exist_ok=True)
        except OSError as error:
            raise self._failed(error) from error

    def fix(self, files: Mapping[str, bytes]) -> None:
        """Fix the question, or check that it is the one fixed before; the journal is held. Raises RequestError,
        MeasureError."""
        digests = {name: sha256(data) for name, data in files.items()}
        begun = self.begun()
        if begun is None:
            for name, data in files.items():
                self.write(name, data)
            self.journal.append(Begun(now(), uuid.uuid4().hex, __version__, digests))
        elif begun.files != digests:
            raise RequestError(
                "this fleet folder is about another question",
                place=str(self.path),
                remedy="name a new folder with --folder; without a file, `iodelta fleet run FOLDER` continues this one",
            )

    def join(self, hosts: Iterable[FleetHost]) -> None:
        """Record hosts that are new, or described in another way; the journal is held. Raises RequestError."""
        known = self.hosts()
        for host in hosts:
            before = known.get(host.name)
            moved = before is not None and (before.ssh, before.targets) != (
                host.ssh,
                host.targets,
            )
            if moved and self.place(host.name).exists():
                raise RequestError(
                    "this host was measured under another address or target, by the inventory of that time",
                    place=host.name,
                    remedy="give the new one a name of its own, or begin a new fleet folder",
                )
            if before != host:
                self.journal.append(Joined(now(), host))

    def write(self, name: str, data: bytes) -> None:
        """A small file, whole or not at all. Raises MeasureError."""
        final = self.path / name
        draft = final.with_name(f".{final.name}.{os.getpid()}")
        try:
            final.parent.mkdir(parents=True, exist_ok=True)
            with draft.open("wb") as file:
                file.write(data)
                file.flush()
                os.fdatasync(file.fileno())
            draft.replace(final)
        except OSError as error:
            with contextlib.suppress(OSError):
                draft.unlink()
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> MeasureError:
        return MeasureError(
            f"cannot write to the fleet folder: {os.strerror(error.errno or 0)}",
            place=str(self.path),
            remedy=f"{room_for(error)}, then `iodelta fleet run {pasted(self.path)}` continues it",
        )


def is_held(journal: Path) -> bool:
    """Return whether another process holds a journal for writing."""
    try:
        descriptor = opened(journal.parent, journal.name)
    except (FileNotFoundError, MeasureError):
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def question(file: Path, allow_commands: bool = False) -> dict[str, bytes]:
    """Return the files of a fleet's question: the experiment, and the fio job file that it names. Raises RequestError,
    RefusedError for a command that may write anywhere and is not allowed."""
    text = placed(text_of(file), file.parent)
    experiment = parse(text, str(file), base=file.parent, strict=True)
    place = str(file)
    if experiment.machines:
        raise RequestError(
            "the hosts of a fleet come from the inventory",
            place=f"{place}: machine",
            remedy="remove machine, and name hosts with --hosts",
        )
    if experiment.clock == "instructions":
        raise RequestError(
            "instructions are counted in a virtual machine, the same everywhere: a fleet has nothing to add",
            place=f"{place}: clock",
            remedy="count them with `iodelta run`",
        )
    check_commands(experiment, allow_commands)
    data = toml_data(text, str(file))
    named = (
        data["workload"].get("job_file")
        if isinstance(data.get("workload"), dict)
        else None
    )
    if not named:
        return {EXPERIMENT: text.encode()}
    job = (file.parent / named).read_bytes()  # which was parsed
    workload = {**data["workload"], "job_file": JOB_FILE}
    return {
        EXPERIMENT: toml_text({**data, "workload": workload}).encode(),
        JOB_FILE: job,
    }


def placebo(files: Mapping[str, bytes], budget: str) -> dict[str, bytes]:
    """Return the same workloads with the baseline against itself for so long."""
    data = toml_data(files[EXPERIMENT].decode(), EXPERIMENT)
    variants = data.get("variant", {})
    baseline = data.get("baseline") or next(iter(variants))
    design = {**data.get("design", {}), "placebo": True, "budget": budget}
    for name in ("weights", "blocks"):
        design.pop(name, None)
    about = {
        "question": "Is this machine steady?",
        "baseline": baseline,
        "design": design,
    }
    text = toml_text({**data, **about, "variant": {baseline: variants[baseline]}})
    return {**files, EXPERIMENT: text.encode()}
