"""Attribution among patches of a real repository, as in the report of a regression that had several causes:
"about 20 % by the first patch ... the other 20-30 %, it's complicated"."""

from __future__ import annotations

from pathlib import Path

import pytest

from iodelta.errors import RequestError

from .toy import Toy, attribute

BENCH = """\
first=$(cat first) second=$(cat second) third=$(cat third)
test $first = 1 && base=8000 || base=10000
test $second$third = 11 && base=$((base * 78 / 100))
test $second$third = 1broken && exit 1
echo $base
"""
"""First costs 20 % by itself; second and third 22 %, but only together."""

MEASURE = ("--measure", "sh bench.sh", "--better", "higher", "--seed", "1", "--blocks", "6")


@pytest.fixture
def patched(repo: Toy) -> list[str]:
    """The base and three commits on top of it."""
    names = ("first", "second", "third")
    base = repo.commit(0, "base", **dict.fromkeys(names, "0\n"), **{"bench.sh": BENCH})
    return [base, *(repo.commit(0, f"cfq-iosched: {name}", **{name: "1\n"}) for name in names)]


def test_the_first_patch_costs_20_percent_and_the_rest_is_the_second_together_with_the_third(
    repo: Toy, patched: list[str], tmp_path: Path
) -> None:
    base, *commits = patched
    before = repo.untouched()
    options = [word for commit in commits for word in ("--patch", commit)]
    done = attribute(base, "--repo", repo.path, *options, *MEASURE, "--folder", tmp_path / "out")
    assert done.code == 1
    assert "All patches together: the number -37" in " ".join(done.out.split())
    assert "Patch 1 costs 20.0 % by itself; patch 2 together with 3 costs another 22.0 %." in " ".join(done.out.split())
    assert repo.untouched() == before
    found = attribute(tmp_path / "out", "--show", "--format", "json").json
    assert [share["value"] for share in found["shares"]] == pytest.approx([-0.2, -0.117, -0.117], abs=0.01)
    assert found["blocks"] == 6


def test_the_same_by_reverting_what_the_base_has(repo: Toy, patched: list[str], tmp_path: Path) -> None:
    options = [word for commit in patched[1:] for word in ("--patch", commit)]
    done = attribute("HEAD", "--revert", "--repo", repo.path, *options, *MEASURE, "--folder", tmp_path / "out")
    assert "Patch 1 costs 20.0 % by itself; patch 2 together with 3 costs another 22.0 %." in " ".join(done.out.split())


def test_a_combination_that_does_not_apply_or_run_is_left_out_and_what_that_costs_is_said(
    repo: Toy, patched: list[str], tmp_path: Path
) -> None:
    """The second patch changes a line that the first has made; the third breaks the measurement with the second."""
    base, first = patched[:2]
    repo.git("switch", "-q", "-c", "other", first)
    onto_first = repo.commit(0, "on top of the first", first="2\n")
    (tmp_path / "third.patch").write_text("--- a/third\n+++ b/third\n@@ -1 +1 @@\n-0\n+1\n")
    options = ("--patch", first, "--patch", onto_first, "--patch", tmp_path / "third.patch")
    done = attribute(base, "--repo", repo.path, *options, *MEASURE, "--folder", tmp_path / "out")
    found = attribute(tmp_path / "out", "--show", "--format", "json").json
    reasons = {one["item"]: one["reason"] for one in found["combinations"] if one["reason"]}
    assert set(reasons) == {"010", "011"}
    assert all("does not apply" in reason for reason in reasons.values())
    assert "do not determine: patch 2 without 1" in " ".join(done.out.split())
    assert found["inestimable"] == ["patch 2 without 1"]
    assert found["whole"] is not None
    assert found["shares"][0] is None
    assert "costs 20.0 % by itself" in found["answer"], "what the first does is known all the same"
    assert [one["over"] for one in found["alone"]] == [[], [1], []]
    assert "indistinguishable" not in found["answer"]


def test_an_attribution_goes_on_from_its_log(repo: Toy, patched: list[str], tmp_path: Path) -> None:
    base, *commits = patched
    options = [word for commit in commits for word in ("--patch", commit)]
    folder = tmp_path / "out"
    attribute(base, "--repo", repo.path, *options, *MEASURE, "--folder", folder)
    text = (folder / "log.jsonl").read_text().splitlines(keepends=True)
    (folder / "log.jsonl").write_text("".join(text[:40]))
    assert "block 3 of at most 6" in attribute(folder, "--dry-run").out
    assert "another 22.0 %" in attribute(folder).out


def test_no_patch_or_an_unknown_one_is_refused(repo: Toy, patched: list[str], tmp_path: Path) -> None:
    for options in ((), ("--patch", "nowhere"), ("--patch", patched[0])):
        done = attribute(patched[0], "--repo", repo.path, *options, *MEASURE, "--folder", tmp_path / "out")
        assert isinstance(done.error, RequestError)
        assert not (tmp_path / "out").exists()
