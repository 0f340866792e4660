"""Before the first trial: looking changes nothing, and what is made ready is put back whatever happens."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from paper import Quiet
from workshop import Workshop

from iodelta.errors import MeasureError, RefusedError, RequestError
from iodelta.experiment import parse
from iodelta.lab.bench import Bench
from iodelta.lab.folder import Folder, KnobRestored, KnobSaved
from iodelta.lab.plan import Plan, make_plan
from iodelta.lab.progress import Control
from iodelta.lab.scratch import remove_scratch
from iodelta.lab.setup import Survey, ready, survey
from iodelta.machine import LocalMachine

pytestmark = [pytest.mark.root, pytest.mark.fio]

MACHINE = LocalMachine()


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IODELTA_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def plan_of(target: str, *, rw: str = "randread", size: str = "", knob: str = "") -> Plan:
    sized = f'size = "{size}"' if size else ""
    set_knob = f'"block.scheduler" = "{knob}"' if knob else ""
    workload = f'rw = "{rw}"\nbs = "4k"\ndirect = 1\nioengine = "psync"'
    text = f'[target]\npath = "{target}"\n{sized}\n[workload]\n{workload}\n[variant.a]\n[variant.b]\n{set_knob}'
    return make_plan(parse(text))


@contextlib.contextmanager
def made_ready(plan: Plan, folder: Folder, *, destroy: tuple[str, ...] = ()) -> Iterator[Bench]:
    found = survey(MACHINE, plan.experiment)
    control = Control(cast(Any, Quiet()), lambda: False, destroy)
    with folder.writing(), ready(MACHINE, plan, found, folder, control) as bench:
        yield bench


def reads(node: str) -> str:
    """What a device has read so far."""
    return Path(f"/sys/block/{node.removeprefix('/dev/')}/stat").read_text()


def scheduler(node: str) -> str:
    return Path(f"/sys/block/{node.removeprefix('/dev/')}/queue/scheduler").read_text()


def test_to_look_at_a_device_asks_nothing_of_it_and_changes_nothing(workshop: Workshop) -> None:
    node = workshop.loop(16)
    before = reads(node), scheduler(node)
    found = survey(MACHINE, plan_of(node, knob="kyber").experiment)
    assert (reads(node), scheduler(node)) == before
    assert not found.writes
    assert found.unavailable == {}


def test_more_than_the_device_has_is_refused_by_its_size(workshop: Workshop) -> None:
    with pytest.raises(RequestError, match="16777216 bytes"):
        survey(MACHINE, plan_of(workshop.loop(16), size="1g").experiment)


def test_an_engine_that_is_not_here_is_a_reason_and_no_error(tmp_path: Path) -> None:
    variants = '[variant.a]\n"fio.ioengine" = "psync"\n[variant.b]\n"fio.ioengine" = "sg"'
    text = f'[workload]\nrw = "randread"\n{variants}'
    found: Survey = survey(MACHINE, parse(f'[target]\npath = "{tmp_path}"\n{text}'))
    assert list(found.unavailable) == ["b"]
    assert "sg: " in found.unavailable["b"]


def test_knobs_are_journalled_before_and_put_back_after(workshop: Workshop, tmp_path: Path, state: Path) -> None:
    node = workshop.loop(16)
    original = scheduler(node)
    plan = plan_of(node, knob="kyber")
    folder = Folder.begin(tmp_path / "folder", "", plan)
    with made_ready(plan, folder):
        assert [event.saved["knob"] for event in folder.events() if isinstance(event, KnobSaved)] == ["block.scheduler"]
        MACHINE.write(f"/sys/block/{node.removeprefix('/dev/')}/queue/scheduler", "kyber")
    assert scheduler(node) == original
    assert isinstance(folder.events()[-1], KnobRestored)
    assert not list((state / "pending").iterdir())


def test_a_refused_write_leaves_bytes_and_settings_as_they_were(
    workshop: Workshop, tmp_path: Path, state: Path
) -> None:
    node = workshop.loop(64)
    workshop.run("mkfs.ext4", "-q", "-F", node)
    before = workshop.checksum(node), scheduler(node)
    plan = plan_of(node, rw="randwrite", knob="kyber")
    folder = Folder.begin(tmp_path / "folder", "", plan)
    with pytest.raises(RefusedError, match="ext2/3/4"), made_ready(plan, folder):
        pass
    assert (workshop.checksum(node), scheduler(node)) == before
    assert not list((state / "pending").iterdir())


def test_a_scratch_file_is_laid_out_whole_kept_between_sessions_and_removed_at_the_end(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    plan = plan_of(str(place), size="4m")
    folder = Folder.begin(tmp_path / "folder", "", plan)
    with made_ready(plan, folder) as bench:
        assert Path(bench.target.path).stat().st_size == 4 << 20
        inode = Path(bench.target.path).stat().st_ino
    with made_ready(plan, folder) as bench:
        assert Path(bench.target.path).stat().st_ino == inode
    remove_scratch(MACHINE, plan, survey(MACHINE, plan.experiment).target)
    assert list(place.iterdir()) == []


def test_a_scratch_directory_of_any_name_stays_marked_while_another_experiment_has_its_file_there(
    tmp_path: Path,
) -> None:
    place = tmp_path / "pl[a]ce"
    place.mkdir()
    plan = plan_of(str(place), size="1m")
    with made_ready(plan, Folder.begin(tmp_path / "folder", "", plan)) as bench:
        scratch = Path(bench.target.path).parent
    (scratch / "other.dat").write_text("")
    before = {path.name for path in scratch.iterdir() if plan.identifier not in path.name}
    remove_scratch(MACHINE, plan, survey(MACHINE, plan.experiment).target)
    assert {path.name for path in scratch.iterdir()} == before


def test_a_scratch_file_that_became_a_link_is_not_measured(tmp_path: Path) -> None:
    place, victim = tmp_path / "place", tmp_path / "victim"
    place.mkdir()
    victim.write_bytes(b"precious" * (1 << 18))
    plan = plan_of(str(place), rw="randwrite", size="1m")
    folder = Folder.begin(tmp_path / "folder", "", plan)
    with made_ready(plan, folder) as bench:
        scratch = Path(bench.target.path)
    scratch.unlink()
    scratch.symlink_to(victim)
    with pytest.raises(RefusedError, match=f"is a link to {victim}"), made_ready(plan, folder):
        pass
    assert victim.read_bytes() == b"precious" * (1 << 18)


def test_a_stop_while_the_scratch_file_is_written_leaves_no_half_file(tmp_path: Path, state: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    plan = plan_of(str(place), size="512m")
    folder = Folder.begin(tmp_path / "folder", "", plan)
    found = survey(MACHINE, plan.experiment)
    stopped = ready(MACHINE, plan, found, folder, Control(cast(Any, Quiet()), lambda: True))
    with folder.writing(), pytest.raises(MeasureError, match="stopped"), stopped:
        pass
    assert [path.name for path in place.glob("*/*")] == ["IODELTA-SCRATCH.txt"]
    assert not list((state / "pending").iterdir())
