"""An attacker writes an experiment: what of it would do more than I/O on the target."""

from __future__ import annotations

import json

import msgspec
import pytest

from iodelta.bundle.dangers import SHAPES, dangers
from iodelta.bundle.planning import checked
from iodelta.errors import RequestError
from iodelta.experiment import Cell, Experiment, parse
from iodelta.jobfile import canonical, owned, runs_command

TEXT = """
[workload]
rw = "randread"
bs = "4k"
{workload}
[variant.a]
{variant}
[variant.b]
"block.scheduler" = "none"
{condition}
"""

PROGRAMS = (
    *('exec_prerun = "touch /tmp/owned"', 'exec_postrun = "touch /tmp/owned"', 'ioengine = "exec"'),
    *('ioengine = "external:/tmp/evil.so"', 'ioengine = "/tmp/evil.so"', 'ioengine = "evil.so"'),
    *(
        'ioengine = "rbd"',
        'ioengine = "libblkio"',
        'ioengine = "e4defrag"',
        'ioengine = "filedelete"',
        'ioengine = "sg"',
    ),
    *('ioengine = "net"\nhostname = "192.0.2.1"', 'ioengine = "nbd"\nuri = "nbd+unix:///?socket=/run/x"'),
    *('ioengine = "http"\nhttp_host = "192.0.2.1"', 'ioengine = "io_uring_cmd"', 'ioengine = "libpmem"'),
)
FILES = (
    *('mem = "mmap:/etc/passwd"', 'iomem = "mmaphuge:/etc/passwd"', 'mem = "mmapshared:/etc/passwd"'),
    *("buffer_pattern = \"'/etc/shadow'\"", "verify_pattern = \"'/etc/shadow'\"", 'verify_state_load = "1"'),
    *('replay_redirect = "/dev/sda"', 'donorname = "/etc/passwd"', 'file_append = "1"', 'zonemode = "zbd"'),
    *('dedupe_global = "1"', 'create_on_open = "1"', 'fill_device = "1"', 'sg_write_mode = "write_same"'),
)
MACHINE = (
    *('uid = "0"', 'gid = "0"', 'a_new_option = "1"'),
    *('job_max_open_zones = "1"', 'log_unknown = "/etc/x"', 'sprandom = "1"'),
)
REFUSED = (
    *('write_bw_log = "/etc/cron.d/x"', 'write_lat_log = "/etc/x"', 'write_iolog = "/etc/x"', 'read_iolog = "/etc/x"'),
    *('filename_format = "../../$jobnum"', 'opendir = "/etc"', 'directory = "/etc"', 'filename = "/dev/sda:/dev/sdb"'),
    *('server = "1"', 'client = "192.0.2.1"', 'remote-config = "/etc/x"', 'aux-path = "/etc"', 'output = "/etc/x"'),
    *('trigger-file = "/tmp/x"', 'include = "/etc/passwd"', 'unlink = "1"', 'allow_mounted_write = "1"'),
    *(
        'ioscheduler = "bfq"',
        'cgroup = "system.slice"',
        'profile = "act"',
        'debug = "all"',
        'exec_prer = "touch /tmp/x"',
        'showcmd = "1"',
    ),
)
KNOBS = (
    'command = {apply = ["touch", "/tmp/owned"], restore = ["true"]}',
    '"sysctl.kernel.core_pattern" = "|/tmp/evil %p"',
    '"sysctl.kernel.modprobe" = "/tmp/evil"',
    '"sysctl.kernel.sysrq" = "1"',
    '"sysctl.kernel/../vm/swappiness" = "1"',
    '"sysctl.vm.overcommit_memory" = "1"',
    '"sysfs:/sys/kernel/uevent_helper" = "/tmp/evil"',
    '"sysfs:/sys/block/sda/device/delete" = "1"',
    '"block.iosched.../../device/delete" = "1"',
    '"fio.exec_prerun" = "touch /tmp/owned"',
    '"fio.ioengine" = "external:/tmp/evil.so"',
    '"fio.mem" = "mmap:/etc/passwd"',
)
CONDITIONS = (
    '[condition.x]\nbackground = "sh -c evil"',
    '[condition.x]\nbackground = ["/tmp/evil"]',
    '[condition.x]\nbackground = {rw = "write"}',
    '[condition.x]\ncommand = {apply = ["evil"], restore = ["true"]}',
    '[condition.x]\n"sysctl.kernel.core_pattern" = "|/tmp/evil"',
)


def experiment(workload: str = "", variant: str = "", condition: str = "") -> Experiment:
    return parse(TEXT.format(workload=workload, variant=variant, condition=condition))


@pytest.mark.parametrize("workload", [*PROGRAMS, *FILES, *MACHINE])
def test_an_option_that_may_do_more_than_io_needs_a_word_of_its_own(workload: str) -> None:
    found = dangers(experiment(workload=workload))
    name, _, value = workload.partition(" = ")
    assert any(one.place == "workload" and one.what.startswith(f"{name}=") for one in found)
    assert all(one.why for one in found)
    assert json.loads(value.split("\n")[0]) in found[0].what


@pytest.mark.parametrize("workload", REFUSED)
def test_an_option_that_is_never_a_workload_is_refused_left_out_or_asked_about(workload: str) -> None:
    """By the experiment file (lifted into target, left out, refused), or here, whichever comes first."""
    name = workload.partition(" = ")[0]
    try:
        found = experiment(workload=f'"{name}"{workload[len(name) :]}')
    except RequestError as error:
        assert name in str(error)  # noqa: PT017
        return
    left = [option for cell in found.cells for option in cell.options if option[0] == name]
    assert not left or dangers(found)


@pytest.mark.parametrize("variant", KNOBS)
def test_a_knob_that_may_be_a_door_needs_a_word_of_its_own(variant: str) -> None:
    (found,) = dangers(experiment(variant=variant))
    assert found.place == "variant a"


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_background_load_and_the_knobs_of_a_condition_need_a_word_of_their_own(condition: str) -> None:
    (found,) = dangers(experiment(condition=condition))
    assert found.place == "condition x"


def test_an_ordinary_experiment_needs_none() -> None:
    text = """
[workload]
rw = ["randread", "randwrite", "randrw"]
bs = "4k"
bssplit = "4k/50:8k/50"
iodepth = [1, 32]
numjobs = 4
direct = 1
rwmixread = 70
ioengine = "libaio"
cpus_allowed = "0"
norandommap = 1
random_distribution = "zoned:60/10:40/90"
mem = "mmaphuge"
[variant.a]
"block.scheduler" = "none"
"block.iosched.read_lat_nsec" = "1"
"sysctl.vm.dirty_ratio" = "10"
cpus = "0"
"cgroup.io_max" = "riops=100"
[variant.b]
"fio.ioengine" = "io_uring"
"btrfs.read_policy" = "round-robin"
"""
    assert dangers(parse(text)) == ()


def test_no_option_that_only_shapes_io_runs_a_command_under_any_of_its_names() -> None:
    assert [name for name in SHAPES if runs_command(name, "x")] == []
    assert [name for name in SHAPES if canonical(name) != name] == []
    assert "mem" not in SHAPES
    assert "ioengine" not in SHAPES


def test_a_plan_says_nothing_that_a_file_could_not_say() -> None:
    """The plan is what runs; it is JSON, and knows no refusals of its own."""
    sound = experiment(workload="iodepth = [1, 4]")
    assert checked(sound, "x") == sound
    first, (one, other) = sound.cells[0], sound.variants
    forged = (
        {"cells": (msgspec.structs.replace(first, options=(*first.options, ("write_bw_log", "/etc/x"))),)},
        {"cells": (msgspec.structs.replace(first, options=(("rw\n--exec_prerun", "x"),)),)},
        {"cells": (msgspec.structs.replace(first, name="\x1b[2Jx"),)},
        {"cells": (first, first)},
        {"cells": ()},
        {"conditions": ()},
        {"variants": (msgspec.structs.replace(one, name="../x"), other)},
        {
            "variants": (
                msgspec.structs.replace(one, knobs={"block.scheduler": "a\nb"}),
                other,
            )
        },
        {"design": msgspec.structs.replace(sound.design, trial=1e12)},
        {"design": msgspec.structs.replace(sound.design, budget=float("inf"))},
        {"design": msgspec.structs.replace(sound.design, blocks=10**9)},
        {"margin": -1.0},
        {"baseline": "nobody"},
        {"cells": (Cell("x", "no such condition", first.options),)},
        {"cells": (Cell("x", "", (*first.options, ("size", "1g/etc"))),)},
    )
    for change in forged:
        with pytest.raises(RequestError):
            checked(msgspec.structs.replace(sound, **change), "x")


def test_flags_and_sizes_of_single_cells_are_said_by_job_files_and_lists() -> None:
    sound = experiment()
    (cell,) = sound.cells
    other = Cell("b", "", (*cell.options, ("norandommap", None), ("size", "2g")))
    both = (Cell("a", "", (*cell.options, ("size", "1g"))), other)
    assert owned("norandommap") is None
    assert checked(msgspec.structs.replace(sound, cells=both), "x").cells == both


def test_a_parameter_of_a_command_may_be_called_size() -> None:
    """It was left out as a size of fio: ``{size} has no value``."""
    text = """
    [workload]
    command = ["dd", "if=/dev/zero", "of=/dev/null", "bs={size}", "count=100"]
    size = ["4k", "64k"]
    [variant.a]
    [variant.b]
    param.size = "8k"
    """
    sound = parse(text)
    assert checked(sound, "x") == sound


def test_instruments_of_a_stranger_are_commands_like_any_other() -> None:
    text = TEXT.format(
        workload="", variant='"block.scheduler" = "mq-deadline"', condition="[instrument]\nperf = true\nblock = true"
    )
    experiment = parse(text, "theirs")
    found = {danger.what.split(":")[0]: danger.what for danger in dangers(experiment) if danger.place == "instrument"}
    assert set(found) == {"perf", "block"}
    assert "perf record of the whole machine" in found["perf"]
    assert len(experiment.looks_closer()) == 2
