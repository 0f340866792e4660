"""The same search over an ordered list of anything, and over settings that differ between two environments."""

from __future__ import annotations

from pathlib import Path

import pytest

from iodelta.bisect.question import command_words
from iodelta.errors import RequestError

from .toy import EXACT, asked, bisect


def test_the_value_of_a_list_from_which_on_it_is_slower(tmp_path: Path) -> None:
    items = [word for value in range(0, 100, 5) for word in ("--item", value)]
    measure = "sh -c 'test $IODELTA_ITEM -lt 60 && echo 500 || echo 450'"
    done = bisect(*items, "--measure", measure, "--folder", tmp_path / "out", *EXACT)
    assert done.code == 1
    assert "One culprit of 19 candidates: 60: the number -10.00 %" in done.out
    assert done.out.count("-10.09 .. -9.91 %") > 2, "the levels are as exact as the measure"
    assert "too few blocks" not in done.out


def test_a_list_may_come_from_a_file_and_go_into_the_words_of_a_command(tmp_path: Path) -> None:
    (tmp_path / "versions").write_text("3.33-1\n3.34; touch pwned\n\n3.35-1\n3.36-1\n")
    script = tmp_path / "speed.sh"
    script.write_text('case $1 in 3.3[34]*) echo 100;; *) echo 90;; esac; test $# = 1 || echo "split"\n')
    options = ("--items", tmp_path / "versions", "--measure", f"sh {script} {{item}}", "--folder", tmp_path / "out")
    found = bisect(*options, *EXACT, "--format", "json").json
    assert [one["item"] for one in found["culprits"]] == ["3.35-1"]
    assert not (tmp_path / "pwned").exists()


def test_an_item_twice_on_the_list_or_a_list_of_one_is_refused(tmp_path: Path) -> None:
    for items in (("--item", "a", "--item", "b", "--item", "a"), ("--item", "a")):
        done = bisect(*items, "--measure", "echo 1", "--folder", tmp_path / "out", *EXACT)
        assert isinstance(done.error, RequestError)
        assert not (tmp_path / "out").exists()


def test_which_of_the_differing_settings_explains_the_gap(tmp_path: Path) -> None:
    good = {f"vm.option{n}": n for n in range(40)}
    bad = {**good, **{f"vm.option{n}": 100 + n for n in range(0, 40, 2)}, "vm.new": 1}
    for name, settings in (("good", good), ("bad", bad)):
        (tmp_path / name).write_text("# a comment\n" + "".join(f"{k} = {v}\n" for k, v in settings.items()))
    measure = "sh -c 'grep -q \"^vm.option26=126$\" $IODELTA_SETTINGS && echo 90 || echo 100'"
    options = ("--settings", tmp_path / "good", tmp_path / "bad", "--measure", measure, "--folder", tmp_path / "out")
    done = bisect(*options, *EXACT)
    assert "vm.option26: 26 -> 126" in done.out
    assert done.code == 1
    assert len(set(asked(tmp_path / "out"))) < 10


def test_two_kernel_configurations_keep_their_form(tmp_path: Path) -> None:
    (tmp_path / "good").write_text("CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=m\n")
    (tmp_path / "bad").write_text("# CONFIG_A is not set\nCONFIG_B=y\nCONFIG_C=m\n")
    measure = "sh -c 'grep -q \"# CONFIG_A is not set\" {settings} && echo 90 || echo 100'"
    assert isinstance(bisect("--settings", tmp_path / "good", tmp_path / "bad", "--measure", measure, *EXACT).error,
                      RequestError)  # fmt: skip
    measure = measure.replace("{settings}", "$IODELTA_SETTINGS")
    options = ("--measure", measure, "--folder", tmp_path / "out", *EXACT)
    assert "CONFIG_A: y -> n" in bisect("--settings", tmp_path / "good", tmp_path / "bad", *options).out


def test_a_settings_file_that_is_none_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "good").write_text("a = 1\n")
    (tmp_path / "bad").write_text("a = 2\nwhat is this\n")
    done = bisect("--settings", tmp_path / "good", tmp_path / "bad", "--measure", "echo 1", *EXACT)
    assert f"{tmp_path / 'bad'}:2" in str(done.error)


@pytest.mark.parametrize("text", ["sh -c 'echo {item}'", "/bin/bash -c 'x={item}; echo $x'", "busybox sh -c {tree}/x"])
def test_a_foreign_text_is_not_put_into_a_shells_program(text: str) -> None:
    with pytest.raises(RequestError, match="IODELTA_ITEM"):
        command_words(text, "--measure")


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--good", "a"),
        ("--good", "a", "--bad", "b", "--item", "c"),
        ("--item", "a", "--item", "b", "--measure", "echo 1"),
        ("--item", "a", "--item", "b", "--measure", "echo 1", "--better", "higher", "--target", "/dev/null"),
        ("--item", "a", "--item", "b", "--measure", "echo 1", "--better", "higher", "--put-timeout", "soon"),
        ("--item", "a", "--item", "b", "--", "--rw=randread", "--bs=4k,8k", "--iodepth=1,2"),
        ("--dry-run",),
        ("--item", "a", "--item", "b", "--measure", "echo 1", "--better", "higher", "--undo", "1"),
    ],
)
def test_half_a_question_is_refused_and_leaves_nothing(
    options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert isinstance(bisect(*options).error, RequestError)
    assert not list(tmp_path.glob("iodelta-*"))


def test_a_plan_of_a_new_question_measures_nothing_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = bisect("--item", 1, "--item", 2, "--item", 3, "--measure", "touch measured", *EXACT, "--dry-run")
    assert done.code == 0
    assert "2 candidates between 1 and 3" in done.err
    assert "do the ends differ?" in done.out
    assert not list(tmp_path.glob("iodelta-*"))
    assert not (tmp_path / "measured").exists()
