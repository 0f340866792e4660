"""The build that is measured: said in the file, or taken from a checkout; one variant may be the reference."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from iodelta.api.checkout import checked_out
from iodelta.errors import RequestError
from iodelta.experiment import Experiment, Subject, overridden, parse
from iodelta.experiment.shorthand import shorthand

QUESTION = """
[workload]
rw = "randread"
[variant.old]
role = "reference"
"fio.ioengine" = "libaio"
[variant.new]
"fio.ioengine" = "io_uring"
"""


def git(where: Path, *words: str) -> str:
    """git as somebody with a name."""
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    return subprocess.run(
        ["git", *identity, *words], cwd=where, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository of one commit with a tag, cloned from an address with a password."""
    where = tmp_path / "kernel"
    where.mkdir()
    git(where, "init", "-q")
    (where / "a").write_text("1")
    git(where, "add", "a")
    git(where, "commit", "-qm", "first")
    git(where, "tag", "-a", "-m", "one", "v1.0")
    git(where, "remote", "add", "origin", "https://me:secret@example.org/kernel.git")
    return where


def test_a_file_says_what_was_measured_and_which_variant_stays() -> None:
    text = QUESTION + '[subject]\nrepo = "linux"\ncommit = "4f2a1c9"\ndirty = true\nlabels = { branch = "next" }\n'
    found = parse(text)
    assert found.subject == Subject("linux", "4f2a1c9", "", True, {"branch": "next"})
    assert [(one.name, one.role) for one in found.variants] == [("old", "reference"), ("new", "")]
    assert "role" not in found.knob_names()


def test_without_a_subject_nothing_is_said() -> None:
    assert parse(QUESTION).subject == Subject()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('[subject]\ncommit = "main"', "commit is the hash"),
        ('[subject]\ncomit = "4f2a1c9"', "has no key 'comit'"),
        ('[subject]\ndirty = "yes"', "dirty is true or false"),
        ("[subject]\nrepo = 1", "repo is one line"),
        ("[subject]\nlabels = { a = 1 }", "labels are a table"),
        ("subject = 1", "subject is a table"),
        ('[variant.other]\nrole = "reference"', "at most one reference"),
        ('[variant.other]\nrole = "base"', "'base' is not a role"),
    ],
)
def test_a_wrong_subject_or_role_is_refused(more: str, said: str) -> None:
    text = more + "\n" + QUESTION if more.startswith("subject") else QUESTION + more
    with pytest.raises(RequestError, match=said):
        parse(text)


def test_a_checkout_says_its_commit_and_no_password(checkout: Path) -> None:
    found = checked_out(str(checkout))
    assert found == {
        "repo": "https://example.org/kernel.git",
        "commit": git(checkout, "rev-parse", "HEAD"),
        "describe": "v1.0",
        "dirty": False,
    }
    (checkout / "untracked").write_text("x")
    assert checked_out(str(checkout))["dirty"] is False
    (checkout / "a").write_text("2")
    assert checked_out(str(checkout))["dirty"] is True
    git(checkout, "remote", "remove", "origin")
    assert checked_out(str(checkout))["repo"] == "kernel"


def test_a_checkout_without_a_commit_and_what_is_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="not a git repository"):
        checked_out(str(tmp_path))
    git(tmp_path, "init", "-q")
    with pytest.raises(RequestError, match="has no commit"):
        checked_out(str(tmp_path))


def test_the_checkout_is_in_the_text_that_the_folder_keeps(checkout: Path) -> None:
    subject = checked_out(str(checkout))

    def kept(text: str) -> Experiment:
        return parse(text)

    text = shorthand(variants=["a:fio.ioengine=libaio", "b:fio.ioengine=psync"], fio=["--rw=read"], subject=subject)
    other = overridden(QUESTION, subject=subject)
    assert other is not None
    assert kept(text).subject == kept(other).subject
    assert kept(text).subject.commit == subject["commit"]
