"""Known slow-downs: the kernel's own throttle on a loop device holds one rate against another, or lowers it later."""

from __future__ import annotations

import json

import pytest

from .stand import LIMIT, Stand, verdict

pytestmark = [pytest.mark.root, pytest.mark.beside]

EXPERIMENT = """
question = "Is a limit of 250 reads/s slower than one of 500?"
baseline = "old"
[target]
path = "{node}"
[workload]
rw = "randread"
bs = "4k"
direct = 1
ioengine = "libaio"
iodepth = 8
[variant.old]
"cgroup.io_max" = "riops=500"
[variant.new]
"cgroup.io_max" = "riops=250"
[design]
trial = "400ms"
ramp = "200ms"
budget = "10m"
metrics = ["read.iops"]
seed = 1
"""


def test_half_the_rate_is_called_a_regression_of_half(stand: Stand) -> None:
    """So few reads a second that a machine that others keep busy serves them, and a change that nothing else hides."""
    (stand.place / "throttle.toml").write_text(EXPERIMENT.format(node=stand.loop()))
    done = stand.start("run", "throttle.toml", "--folder", "folder").wait(700)
    assert done.code == 1, done
    (found,) = verdict(stand.place / "folder")["account"]["judgement"]["verdicts"]
    assert found["word"] == "regression"
    assert found["change"]["value"] == pytest.approx(-0.5, abs=0.1)
    assert found["change"]["low"] < found["change"]["value"] < found["change"]["high"]


def test_a_fifth_less_is_a_regression_and_the_same_again_is_shown_as_measured(stand: Stand) -> None:
    """300 reads a second against 240, and against 300. Of the equal pair only what always holds: it was measured, no
    value exceeds its limit, and its row is that of the trials."""
    text = EXPERIMENT.format(node=stand.loop()).replace("riops=500", "riops=300").replace("riops=250", "riops=240")
    (stand.place / "throttle.toml").write_text(text + "blocks = 20\nplacebo = true\n")
    done = stand.start("run", "throttle.toml", "--folder", "folder").wait(700)
    assert done.code == 1, done
    found = {one["variant"]: one for one in verdict(stand.place / "folder")["account"]["judgement"]["verdicts"]}
    assert found["new"]["word"] == "regression"
    assert found["new"]["change"]["value"] == pytest.approx(-0.2, abs=0.08)
    assert found["new"]["baseline_value"] == found["placebo"]["baseline_value"]
    for one in found.values():
        assert 0 < one["variant_value"] < 1.25 * 300
        assert one["change"]["low"] <= one["change"]["value"] <= one["change"]["high"]
        ratio = one["variant_value"] / one["baseline_value"] - 1
        assert one["apart"] or ratio == pytest.approx(one["change"]["value"], abs=1e-8)


LATER = """\
# Before a trial of the variant: after its first 15 trials the limit is lowered.
echo trial >>"$0.count"
if [ "$(wc -l <"$0.count")" -gt 15 ]; then limit=100; else limit=500; fi
exec sh LIMIT $limit GROUP NUMBER
"""

LATE = """
[target]
path = "{node}"
[workload]
rw = "randread"
bs = "4k"
direct = 1
ioengine = "libaio"
iodepth = 8
[variant.old]
command = {{apply = {full}, restore = {none}}}
[variant.new]
command = {{apply = {none}, verify = {late}, restore = {none}}}
[design]
trial = "400ms"
ramp = "200ms"
budget = "10m"
blocks = 30
metrics = ["read.iops"]
seed = 1
"""


def test_a_loss_that_begins_at_block_15_is_found_and_its_block_named(stand: Stand) -> None:
    node = stand.loop()
    group, number = stand.group(node)
    limit, later = stand.place / "limit.sh", stand.place / "later.sh"
    limit.write_text(LIMIT)
    later.write_text(LATER.replace("LIMIT", str(limit)).replace("GROUP", str(group)).replace("NUMBER", number))
    words = {
        "full": json.dumps(["sh", str(limit), "500", str(group), number]),
        "late": json.dumps(["sh", str(later)]),
        "none": json.dumps(["true"]),
    }
    (stand.place / "late.toml").write_text(LATE.format(node=node, **words))
    done = stand.run_in(group, "run", "late.toml", "--folder", "folder", "--allow-commands", timeout=700)
    assert done.code == 1, done
    (found,) = verdict(stand.place / "folder")["account"]["judgement"]["verdicts"]
    assert found["word"] == "regression"
    course = found["course"]
    begins = course["last"] + 1 if course["starts"] else course["first"]
    assert abs(begins - 15) <= 2
    changed = course["outside"] if course["starts"] else course["inside"]
    assert changed == pytest.approx(-0.8, abs=0.1)


PLACED = """
[workload]
command = ["python3", "-I", "-S", "{{build}}/bench.py", "{{seed}}"]
build = "{place}/one"
only_reads = true
[metric.rate]
pattern = 'rate: ([0-9.]+)'
unit = "1/s"
better = "higher"
[variant.one]
[variant.two]
"workload.build" = "{place}/two"
[design]
placement = "fresh"
trial = "200ms"
blocks = 6
carry-over = "tested"
seed = 7
"""

BENCH = """
import os, random, sys
print(os.path.dirname(__file__), os.stat(__file__).st_ino, len(os.environ["IODELTA_PADDING"]), file=open({seen!r}, "a"))
print("rate:", 1000 * (1 + random.Random(int(sys.argv[1])).gauss(0, 0.01)))
"""


def test_two_copies_of_one_build_have_a_place_of_their_own_in_every_trial(stand: Stand) -> None:
    """The numbers come from the trials' seeds, so the words are always the same ones."""
    seen = stand.place / "seen"
    for build in ("one", "two"):
        (stand.place / build).mkdir()
        (stand.place / build / "bench.py").write_text(BENCH.format(seen=str(seen)))
    (stand.place / "placed.toml").write_text(PLACED.format(place=stand.place))
    done = stand.run("run", "placed.toml", "--folder", "folder", "--allow-commands")
    assert done.code in (0, 3), done
    places = [line.split() for line in seen.read_text().splitlines()]
    assert len(places) >= 12
    assert len({place for place, _, _ in places}) == len(places)
    assert len({padding for _, _, padding in places}) > 6
    assert not any(place.startswith(f"{stand.place}/{name}") for place, _, _ in places for name in ("one", "two"))
