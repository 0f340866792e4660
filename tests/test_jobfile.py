"""A native fio job file means to iodelta what it means to fio."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiers import scaled

from iodelta.errors import RequestError
from iodelta.jobfile import GUARDED, canonical, owned, parse_job_file, read_job_file, runs_command

needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")


def refusal(text: str, **kwargs: object) -> RequestError:
    with pytest.raises(RequestError) as caught:
        parse_job_file(text, file="job.fio", **kwargs)  # type: ignore[arg-type]
    return caught.value


def test_a_section_inherits_the_globals_above_it_and_overrides_them() -> None:
    first, second = parse_job_file(
        "[global]\nbs=4k\nrw=randread\n[a]\niodepth=4\n[global]\nbs=8k\n[b]\nstonewall\nrw=read\n"
    )
    assert dict(first.options) == {"bs": "4k", "rw": "randread", "iodepth": "4"}
    assert dict(second.options) == {"bs": "8k", "rw": "read", "stonewall": None}
    assert first.place == "job.fio:4"


def test_a_repeated_option_has_its_last_value_also_under_its_other_name() -> None:
    (only,) = parse_job_file("[a]\nreadwrite=read\nbs=4k\nrw=write\nblocksize=8k\n")
    assert only.options == (("rw", "write"), ("blocksize", "8k"))


def test_comments_may_stand_alone_or_behind_an_option() -> None:
    (only,) = parse_job_file("; one\n  # two\n[a]  ; three\nrw = randread ; four\nbs=4k# five\n\n")
    assert only.options == (("rw", "randread"), ("bs", "4k"))


def test_environment_variables_are_replaced_and_an_unset_one_is_empty() -> None:
    (only,) = parse_job_file("[a]\nsize=${SIZE}m\ndescription=${NOTHING}x\n", environ={"SIZE": "64"})
    assert dict(only.options) == {"size": "64m", "description": "x"}


def test_included_options_belong_to_the_section_and_keep_their_own_place(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "common.fio").write_text("bs=4k\ninclude more.fio\n")
    (tmp_path / "deep" / "more.fio").write_text("thread\n")
    job = tmp_path / "job.fio"
    job.write_text("[a]\nrw=read\ninclude deep/common.fio\niodepth=2\n")
    (only,) = read_job_file(job)
    assert only.options == (("rw", "read"), ("bs", "4k"), ("thread", None), ("iodepth", "2"))
    assert only.places[2] == f"{tmp_path}/deep/more.fio:1"


def test_sections_that_fio_would_run_together_are_said_to_be_measured_alone() -> None:
    together = parse_job_file("[a]\nrw=read\n[b]\nrw=write\n")
    apart = parse_job_file("[global]\nstonewall\n[a]\nrw=read\n[b]\nrw=write\n")
    assert "together with [a]" in together[1].notes[0]
    assert [section.notes for section in apart] == [(), ()]


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("bs=4k\n[a]\n", 1, "outside of a section"),
        ("[a]\nrw=read\n[b\n", 3, "not a section header"),
        ("[a]\n=4k\n", 2, "not an option"),
        ("[a]\nrw=read\nsize=$mb_memory\n", 3, "only fio knows $mb_memory"),
        ("[a]\ninclude other.fio\n", 2, "cannot include other.fio"),
        ("[a]\nrw=read\nexec_prerun=rm -rf /\n", 3, "exec_prerun runs the command 'rm -rf /'"),
        ("[a]\nexec_postrun=${X}\n", 2, "runs the command 'reboot'"),
        ("[a]\nioengine=exec\nprogram=/bin/sh\n", 2, "ioengine=exec runs programs"),
        ("[a]\nioengine=external:/tmp/x.so\n", 2, "loads foreign code"),
        ("[a]\nrw=read\nmem=mmap:/srv/x\n", 3, "mem=mmap:/srv/x makes that file"),
        ("[a]\niomem=mmapshared:/dev/sdb\n", 2, "makes that file, or overwrites it"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_line(text: str, line: int, word: str) -> None:
    error = refusal(text, environ={"X": "reboot"})
    assert error.place == f"job.fio:{line}"
    assert word in error.what


def test_commands_of_a_job_file_are_kept_when_they_are_allowed_explicitly() -> None:
    (only,) = parse_job_file("[a]\nrw=read\nexec_prerun=sync\n", allow_commands=True)
    assert ("exec_prerun", "sync") in only.options


def test_a_job_file_without_a_job_and_a_missing_one_are_refused(tmp_path: Path) -> None:
    assert refusal("[global]\nbs=4k\n").what == "no job section"
    with pytest.raises(RequestError, match="No such file"):
        read_job_file(tmp_path / "none.fio")


def test_a_file_that_includes_itself_ends() -> None:
    with pytest.raises(RequestError, match="includes itself"):
        parse_job_file("[a]\ninclude b\n", file="a", read=lambda path: "include b\n")


def test_a_missing_include_is_named_with_the_line_that_wants_it(tmp_path: Path) -> None:
    job = tmp_path / "job.fio"
    job.write_text("[a]\nrw=read\ninclude gone.fio\n")
    with pytest.raises(RequestError, match=r"cannot include .*gone.fio: No such file") as caught:
        read_job_file(job)
    assert caught.value.place == f"{job}:3"


@pytest.mark.parametrize("name", ["filename", "runtime", "timeout", "randseed", "output", "unlink", "read_iolog", "ss"])
def test_options_that_decide_target_time_seed_or_output_belong_to_iodelta(name: str) -> None:
    assert owned(name) is not None


@pytest.mark.parametrize("name", ["ioscheduler", "cgroup", "cgroup_weight", "cgroup_nodelete"])
def test_options_that_change_the_machine_are_knobs_that_a_run_restores(name: str) -> None:
    refused = owned(name)
    assert refused is not None
    assert "in a variant" in refused.why
    assert not refused.harmless


@pytest.mark.parametrize("name", ["rw", "bs", "direct", "verify", "iodepth", "mem", "ba", "hipri", "rwmixread", "size"])
def test_options_of_the_workload_belong_to_the_user(name: str) -> None:
    assert owned(name) is None


@pytest.mark.parametrize("name", ["exec_prer", "allow_mounted", "-output", "rw=read", ""])
def test_an_abbreviation_does_not_get_past_the_refusal_of_the_full_name(name: str) -> None:
    assert owned(name) is not None


@given(full=st.sampled_from(GUARDED), length=st.integers(1, 40))
def test_every_beginning_of_a_guarded_name_is_refused_unless_it_is_a_name_itself(full: str, length: int) -> None:
    beginning = full[:length]
    names = {*GUARDED, "ba", "direct", "verify"}  # these three are options of their own
    assert beginning in names or owned(beginning) is not None


@pytest.mark.parametrize(
    "name", ["ioengin", "ioe", "iome", "readwrit", "siz", "filesi", "numjob", "fileoff", "me", "r"]
)
def test_options_whose_values_are_judged_are_written_in_full(name: str) -> None:
    """An ``ioengin=external:/tmp/x.so`` would be judged as no engine, and loaded by fio as one."""
    refused = owned(name)
    assert refused is not None
    assert "in full" in refused.why


@needs_fio
@pytest.mark.fio
def test_fio_does_take_abbreviated_options_on_its_command_line(tmp_path: Path) -> None:
    """Why abbreviations are refused: this fio runs the command."""
    ran = tmp_path / "ran"
    words = ["fio", "--name=x", "--ioengine=null", "--size=4k", f"--exec_prer=touch {ran}"]
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
    assert ran.exists()


@needs_fio
@pytest.mark.fio
def test_no_full_option_name_of_this_fio_is_mistaken_for_an_abbreviation() -> None:
    said = subprocess.run(["fio", "--cmdhelp=all"], check=True, capture_output=True, text=True).stdout
    names = re.findall(r"^\s*([a-z_-]+)\s*:", said, re.MULTILINE)
    assert len(names) > 200
    reasons = {name: owned(name) for name in names}
    assert [name for name, ours in reasons.items() if ours is not None and "in full" in ours.why] == []


def test_an_ordinary_engine_runs_no_command() -> None:
    assert runs_command("ioengine", "io_uring") is None
    assert runs_command("exec_prerun", "sync") is not None
    assert runs_command("ioengine", " external:evil.so") is not None


@pytest.mark.parametrize("value", ["mmap", "mmaphuge", "mmapshared", "malloc", "shmhuge", None])
def test_memory_that_is_no_file_is_the_users_to_choose(value: str | None) -> None:
    assert runs_command("mem", value) is None


values = st.sampled_from(["4k", "8k", "1", "2", "16"])
names = st.sampled_from(["bs", "iodepth", "numjobs", "offset", "size", "nrfiles", "blocksize", "loops"])
option_lines = st.one_of(
    st.builds("{}={}".format, names, values),
    st.builds("  {} = {}  ; comment".format, names, values),
    st.sampled_from(["stonewall", "thread", "norandommap", "# nothing", "; nothing", "", "rw=read # x", "rw=randread"]),
)
section_names = st.sampled_from(["a", "b", "job c", "read-4k", "x[1]"])


@st.composite
def job_files(draw: st.DrawFn) -> str:
    lines: list[str] = []
    for name in [
        *draw(st.lists(st.sampled_from(["global", "global2"]), max_size=2)),
        *draw(st.lists(section_names)),
        "z",
    ]:
        lines.append(f"[{name}]")
        lines += draw(st.lists(option_lines, max_size=5))
    return "\n".join(lines) + "\n"


@needs_fio
@pytest.mark.fio
@settings(max_examples=scaled(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=job_files())
def test_sections_and_values_are_those_that_fio_itself_reads(text: str, tmp_path: Path) -> None:
    job = tmp_path / "job.fio"
    job.write_text(text)
    done = subprocess.run(["fio", "--showcmd", str(job)], check=True, capture_output=True, text=True)
    # fio --global --options --name=JOB --its --options --name=JOB ...
    shared, *jobs = re.split(r"--name=", done.stdout.strip().removeprefix("fio"))
    theirs = []
    for said in jobs:
        name, _, options = said.partition(" --")
        theirs.append((name.strip(), _last_values(shared) | _last_values("--" + options if options else "")))
    mine = [(s.name, {canonical(n): v or "" for n, v in s.options}) for s in parse_job_file(text)]
    assert mine == theirs


def _last_values(words: str) -> dict[str, str]:
    found = re.findall(r"--([a-z_]+)(?:=\s*(\S+))?", words)
    return {canonical(name): value for name, value in found}
