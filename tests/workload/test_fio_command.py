"""The command line of a trial: the user's options as they are, iodelta's where they must be."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from iodelta.errors import MeasureError, RequestError
from iodelta.machine import Completed, LocalMachine, Machine
from iodelta.workload.fio import command, fio_version
from iodelta.workload.model import FioRequest


def request(*options: tuple[str, str | None], **changes: object) -> FioRequest:
    made = FioRequest(
        options=options, target="/dev/x", target_kind="device", runtime=5, ramp=1, seed=42, workdir="/tmp/w"
    )
    return msgspec.structs.replace(made, **changes)


def after_name(words: list[str]) -> list[str]:
    return words[words.index("--name=iodelta") + 1 :]


def test_user_options_keep_their_order_spelling_and_values() -> None:
    given = (("rw", "randrw"), ("bs", "4k,8k"), ("norandommap", None), ("description", "--output=/etc/passwd x"))
    words = after_name(command(request(*given)))
    assert words[1:5] == ["--rw=randrw", "--bs=4k,8k", "--norandommap", "--description=--output=/etc/passwd x"]


def test_the_engine_comes_before_the_options_only_it_knows() -> None:
    words = command(request(("rw", "read"), ("hipri", "1"), ("ioengine", "io_uring"), ("kb_base", "1000")))
    assert words.index("--ioengine=io_uring") < words.index("--hipri=1")
    assert words.index("--kb_base=1000") < words.index("--rw=read")


def test_every_trial_has_equal_time_its_own_seed_one_group_and_its_launcher() -> None:
    words = command(request(("rw", "randread"), runtime=2.5, ramp=0.25, seed=99, launcher=("taskset", "-c", "0-1")))
    assert words[:4] == ["taskset", "-c", "0-1", "fio"]
    for word in ("--time_based=1", "--runtime=2500ms", "--ramp_time=250ms", "--group_reporting=1"):
        assert word in words
    for word in ("--randseed=99", "--randrepeat=0", "--allrandrepeat=0"):
        assert word in words


@pytest.mark.parametrize(
    ("mode", "reads_only"),
    [(None, True), ("read", True), ("randread:8", True), ("randrw", False), ("write", False), ("randtrim", False)],
)
def test_a_workload_that_only_reads_cannot_write_whatever_happens(mode: str | None, reads_only: bool) -> None:
    options = () if mode is None else (("readwrite", mode),)
    assert ("--readonly" in command(request(*options))) is reads_only


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (request(), "--allow_file_create=0"),
        (
            request(target="/dev/disk/by-path/pci-0000:00:1f.2-ata-1"),
            r"--filename=/dev/disk/by-path/pci-0000\:00\:1f.2-ata-1",
        ),
        (request(target="/srv/x", target_kind="directory"), "--directory=/srv/x"),
    ],
    ids=["a target that vanished is not made anew", "colons split no name", "a directory is given as one"],
)
def test_the_target_is_what_was_named(given: FioRequest, word: str) -> None:
    assert word in command(given)


@pytest.mark.parametrize("target", ["/dev/sda#1", "/dev/sda;x", "relative", "/a\nb", "--output=x"])
def test_a_target_that_fio_would_read_as_another_one_is_refused(target: str) -> None:
    with pytest.raises(RequestError, match="fio would open another file for this name"):
        command(request(target=target))


def test_the_size_of_a_cell_wins_over_that_of_the_target() -> None:
    assert "--size=4096" in command(request(size=4096))
    assert [w for w in command(request(("size", "1m"), size=4096)) if w.startswith("--size")] == ["--size=1m"]


@pytest.mark.parametrize("name", ["runtime", "ramp_time", "filename", "output", "randseed", "exec_prer", "x y"])
def test_an_option_that_iodelta_sets_is_refused_with_what_to_say_instead(name: str) -> None:
    with pytest.raises(RequestError) as caught:
        command(request((name, "1")))
    assert name in str(caught.value)
    assert caught.value.place == "workload"


def test_the_users_runtime_is_answered_with_design_trial() -> None:
    with pytest.raises(RequestError, match=r"\[design\] trial"):
        command(request(("runtime", "60")))
    with pytest.raises(RequestError, match=r"\[design\] ramp"):
        command(request(("ramp_time", "60")))


def test_options_that_run_commands_need_to_be_allowed() -> None:
    option = ("exec_prerun", "sync")
    with pytest.raises(RequestError, match="runs the command 'sync'"):
        command(request(option))
    assert "--exec_prerun=sync" in command(request(option, allow_commands=True))


@pytest.mark.parametrize("rw", ["read", "randwrite"])
@pytest.mark.parametrize(
    "engine", "e4defrag filedelete falloc http libblkio nbd net rados rbd xnvme unheard-of external:/x.so exec".split()
)
def test_an_engine_that_may_write_elsewhere_is_refused_whatever_rw_says(engine: str, rw: str) -> None:
    with pytest.raises(RequestError, match=r"keep to the target|runs programs|foreign code"):
        command(request(("rw", rw), ("ioengine", engine)))


def test_an_engine_that_addresses_more_than_the_target_may_only_read() -> None:
    assert "--ioengine=sg" in command(request(("rw", "read"), ("ioengine", "sg")))
    with pytest.raises(RequestError, match="ioengine=sg is not known to keep to the target") as caught:
        command(request(("ioengine", "sg"), ("readwrite", "randrw")))
    assert "io_uring, libaio" in caught.value.remedy


@pytest.mark.parametrize("option", [("mem", "mmap:/srv/x"), ("iomem", "mmaphuge:/srv/x"), ("mem", "mmapshared:/dev/x")])
def test_memory_in_a_file_is_refused_for_reads_too(option: tuple[str, str]) -> None:
    with pytest.raises(RequestError, match="makes that file, or overwrites it"):
        command(request(("rw", "read"), option))


@pytest.mark.parametrize("changes", [{"runtime": 0.0}, {"ramp": -1.0}, {"seed": 0}, {"seed": 1 << 63}])
def test_impossible_times_and_seeds_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(RequestError):
        command(request(**changes))


def test_both_histograms_are_kept_from_3_18_and_the_total_one_before() -> None:
    new, old = command(request(version=(3, 18))), command(request(version=(3, 16)))
    assert ["--lat_percentiles=1" in words for words in (new, old)] == [True, True]
    assert ("--clat_percentiles=1" in new, "--clat_percentiles=0" in old) == (True, True)


class Says(LocalMachine):
    """A machine whose every command says one thing."""

    def __init__(self, text: str) -> None:
        self.text = text

    def run(self, args: object, **_: object) -> Completed:
        return Completed(("fio",), 0, self.text.encode(), b"", 0.0)


@pytest.mark.parametrize(("said", "version"), [("fio-3.33\n", (3, 33)), ("fio-3.42-12-gabc\n", (3, 42))])
def test_the_version_is_read_from_fio(said: str, version: tuple[int, int]) -> None:
    assert fio_version(Says(said)) == version


@pytest.mark.parametrize("said", ["fio-3.7\n", "fio-2.21\n", "hello\n", ""])
def test_a_fio_that_is_too_old_or_none_is_refused(said: str) -> None:
    with pytest.raises(MeasureError):
        fio_version(Says(said))


def test_a_missing_fio_is_named(machine: Machine, request_for: Callable[..., FioRequest]) -> None:
    with pytest.raises(MeasureError, match="no-such-fio not found"):
        fio_version(machine, "no-such-fio")
