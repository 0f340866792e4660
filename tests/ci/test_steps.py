"""The GitHub Action and the GitLab example: their steps run on a real program in a repository whose main moved."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from junitparser import JUnitXml
from pages import whole
from tiers import one_at_push

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
PAGE = whole("in-ci")

PROGRAM = """
#include <stdio.h>
int main(void)
{
    volatile unsigned long sum = 0;
    for (unsigned long n = 0; n < ROUNDSul; n++) sum += n;
    return printf("done\\n") < 0;
}
"""

RECORD = """#!/bin/sh
# Stands in for a client of the service, which knows no comments; or for iodelta, which measures nothing.
printf '%s\\n' "${0##*/} $*" >> "$RECORD/calls"
for word; do
    case $word in *body*@*) cat "${word#*@}" > "$RECORD/body" ;; esac
done
if [ "${0##*/} $1" = "iodelta run" ]; then mkdir "$4"; fi
[ "${0##*/}" != gh ] || [ ! -e "$RECORD/fork" ]
"""


class Repository(msgspec.Struct):
    """A checkout of a pull request that was merged into a main that others changed since it began."""

    path: Path
    commits: dict[str, str]
    """fork: where it began; main: the target's newest commit; change: its own; merge: what the service measures."""
    environment: dict[str, str]
    record: Path
    """What the stand-ins were given."""

    def run(self, script: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        words = ["bash", "-e", "-o", "pipefail", "-c", script]
        whole = {**self.environment, **environment}
        return subprocess.run(words, cwd=self.path, env=whole, capture_output=True, text=True, timeout=300)

    def action(self, **inputs: str) -> tuple[subprocess.CompletedProcess[str], str]:
        """Run all steps; return the last one and all that was printed. Only the last may fail."""
        github = {
            "event.pull_request.base.sha": self.commits["fork"],  # of when the pull request began, as GitHub has it
            "event.pull_request.number": "7",
            "event_name": "pull_request",
            "sha": self.commits["merge"],
            "token": "secret",
            "repository": "owner/project",
        }
        printed = ""
        for step in steps_of({"experiment": "bench.toml", "install": "", **inputs}, github):
            done = self.run(step["run"], {**step["env"], "GITHUB_STEP_SUMMARY": str(self.record / "summary.md")})
            printed += done.stdout
            assert done.returncode == 0 or step["name"] == "Verdict", (step["name"], done.stdout, done.stderr)
        return done, printed

    def built(self, tree: str) -> str:
        words = ["git", "-C", f"{self.path}/iodelta-ci/{tree}", "rev-parse", "HEAD"]
        return subprocess.check_output(words, text=True).strip()


@pytest.fixture
def repository_of(tmp_path: Path) -> Callable[..., Repository]:
    """A function that makes one: how many times the CPU time the change costs, how many blocks, whether iodelta is a
    stand-in."""

    def make(times: int, blocks: int, measured: bool = True) -> Repository:
        path, tools, record = (tmp_path / name for name in ("project", "tools", "record"))
        for each in (path, tools, record):
            each.mkdir()
        (example,) = (text for text in re.findall(r"(?s)```toml\n(.*?)```", PAGE) if "iodelta-ci" in text)
        own = example.replace('trial = "2s"', 'trial = "0.5s"').replace(
            'budget = "10m"', f"blocks = {blocks}\nseed = 1"
        )
        (path / "bench.toml").write_text(own + 'carry-over = "tested"\n')
        (path / "Makefile").write_text("bench: work.c\n\t$(CC) -O1 -o $@ $<\n")
        names = ("gh", "curl") if measured else ("gh", "curl", "iodelta")
        if measured:
            (tools / "iodelta").write_text(f"#!{sys.executable}\nfrom iodelta.cli.main import main\n\nmain()\n")
        for name in names:
            (tools / name).write_text(RECORD)
        for tool in tools.iterdir():
            tool.chmod(0o755)
        environment = {
            **{f"GIT_{who}_NAME": "A U Thor" for who in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{who}_EMAIL": "author@example.com" for who in ("AUTHOR", "COMMITTER")},
            "GIT_CONFIG_GLOBAL": os.devnull,
            "HOME": str(tmp_path),
            "LC_ALL": "C",
            "PATH": f"{tools}:{os.environ['PATH']}",
            "RECORD": str(record),
            "IODELTA_STATE": str(tmp_path / "state"),
            "PYTHONPATH": str(ROOT / "src"),
            "OPENBLAS_NUM_THREADS": "1",
        }

        def git(*words: str) -> str:
            done = subprocess.run(["git", *words], cwd=path, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            return done.stdout.strip()

        def commit(file: str, text: str) -> str:
            (path / file).write_text(text)
            git("add", "-A")
            git("commit", "-q", "-m", f"{file}: a change")
            return git("rev-parse", "HEAD")

        git("init", "-q", "-b", "main")
        fork = commit("work.c", PROGRAM.replace("ROUNDS", "10000000"))
        git("checkout", "-q", "-b", "topic")
        change = commit("work.c", f"/* {times} */" + PROGRAM.replace("ROUNDS", str(times * 10_000_000)))
        git("checkout", "-q", "main")
        main = commit("of-others.c", "int unrelated;\n")
        git("merge", "-q", "--no-ff", "-m", "merge", "topic")
        commits = {"fork": fork, "main": main, "change": change, "merge": git("rev-parse", "HEAD")}
        return Repository(path, commits, environment, record)

    return make


def steps_of(given: Mapping[str, str], github: Mapping[str, str]) -> Iterator[Any]:
    """The steps that run, with their environment filled in as GitHub does; an expression that is not known fails."""
    values = {f"github.{name}": value for name, value in github.items()}

    def filled(text: str) -> str:
        return re.sub(r"\$\{\{ *([\w.-]+) *\}\}", lambda found: values[found[1]], text)

    for name, described in ACTION["inputs"].items():
        values[f"inputs.{name}"] = given.get(name, filled(str(described.get("default", ""))))
        assert values[f"inputs.{name}"] or not described.get("required")
    for step in ACTION["runs"]["steps"]:
        name = step.get("if", "").removesuffix(" != ''")
        if not name or values[name]:
            assert "${{" not in step["run"], "an expression in a script is an injection"
            assert step["shell"] == "bash"
            yield {**step, "env": {key: filled(value) for key, value in step.get("env", {}).items()}}


def test_the_action_installs_the_copy_it_is_part_of_into_an_environment_of_its_own(tmp_path: Path) -> None:
    """A name that nobody has taken in an index is anybody's to take; the Python of a distribution is managed by it."""
    wheel = tmp_path / "iodelta-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("own.py", "def main():\n    print('installed')\n")
        for name, text in (
            ("METADATA", "Metadata-Version: 2.1\nName: iodelta\nVersion: 1\n"),
            ("WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"),
            ("entry_points.txt", "[console_scripts]\niodelta = own:main\n"),
            ("RECORD", ""),
        ):
            archive.writestr(f"iodelta-1.dist-info/{name}", text)
    github = dict.fromkeys(("event.pull_request.base.sha", "event.pull_request.number", "event_name", "sha"), "")
    first = next(iter(steps_of({"experiment": "bench.toml"}, {**github, "token": "", "repository": "owner/project"})))
    assert first["env"] == {"PACKAGE": "this repository"}
    environment = {
        "PATH": os.environ["PATH"],
        "GITHUB_ACTION_PATH": str(wheel),
        "GITHUB_PATH": str(tmp_path / "path"),
        "RUNNER_TEMP": str(tmp_path),
        "PIP_REQUIRE_VIRTUALENV": "1",  # as if the Python were a distribution's
        "PIP_NO_INDEX": "1",
    }
    for _ in range(2):  # a job may use the action twice
        words = ["bash", "-e", "-o", "pipefail", "-c", first["run"]]
        done = subprocess.run(words, env={**environment, **first["env"]}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    [place] = set((tmp_path / "path").read_text().splitlines())
    assert os.listdir(place) == ["iodelta"], "the build keeps its own Python"
    assert subprocess.check_output([f"{place}/iodelta"], text=True) == "installed\n"


@pytest.mark.parametrize(
    ("inputs", "base", "head"),
    [
        ({}, "main", "merge"),
        ({"head": "change"}, "fork", "change"),
        ({"base": "fork"}, "fork", "merge"),
    ],
)
def test_what_others_merged_meanwhile_is_not_blamed_on_this_change(
    repository_of: Callable[..., Repository], inputs: dict[str, str], base: str, head: str
) -> None:
    repository = repository_of(1, 3, measured=False)
    repository.action(**{name: repository.commits[value] for name, value in inputs.items()})
    assert (repository.built("base"), repository.built("head")) == (repository.commits[base], repository.commits[head])


def test_a_second_job_on_the_same_runner_waits_and_measures_its_own_builds(
    repository_of: Callable[..., Repository],
) -> None:
    repository = repository_of(1, 3, measured=False)
    for given in ({}, {"metrics": "cpu"}):
        done, _ = repository.action(**given)
        assert done.returncode == 0, done.stderr
    assert repository.built("base") == repository.commits["main"]
    calls = (repository.record / "calls").read_text()
    assert calls.count("iodelta run bench.toml --folder iodelta-ci-result --wait") == 2
    assert calls.count("--metrics cpu") == 1
    assert len(list(repository.path.glob("iodelta-ci-result.before.*"))) == 1


def test_a_fork_without_the_right_to_comment_gets_the_summary(repository_of: Callable[..., Repository]) -> None:
    repository = repository_of(1, 3, measured=False)
    (repository.record / "fork").touch()
    done, printed = repository.action()
    assert done.returncode == 0
    assert "::warning title=iodelta::The report could not be commented" in printed
    assert "One session" in (repository.record / "summary.md").read_text()


@pytest.mark.parametrize(("times", "blocks"), one_at_push([(8, 10), (1, 3)]))
def test_the_action_comments_the_verdict_and_fails_for_a_regression_only(
    repository_of: Callable[..., Repository], times: int, blocks: int
) -> None:
    slower = times > 1  # three blocks can decide nothing
    repository = repository_of(times, blocks)
    done, printed = repository.action()
    assert done.returncode == int(slower), done.stdout
    body = (repository.record / "body").read_text()
    assert body.startswith("<!-- iodelta bench.toml -->\n## Does this change cost CPU time?")
    assert ("worse" in body) is slower
    assert "CPU time" in body
    assert "One session" in body
    assert "repos/owner/project/issues/7/comments" in (repository.record / "calls").read_text()
    assert body.endswith((repository.record / "summary.md").read_text())
    assert ("::error title=regression" in printed) is slower
    if not slower:
        assert "::notice title=inconclusive" in printed
        assert "::error" not in printed


@pytest.mark.night
def test_the_gitlab_example_shows_junit_and_comments_the_verdict(
    repository_of: Callable[..., Repository],
) -> None:
    repository = repository_of(8, 10)
    done = gitlab(repository, "merged_result", "merge")
    assert done.returncode == 1, done.stderr + done.stdout
    assert repository.built("base") == repository.commits["main"]
    body = (repository.record / "body").read_text()
    assert "## Does this change cost CPU time?" in body
    assert "One session" in body
    assert "merge_requests/7/notes" in (repository.record / "calls").read_text()
    parsed = JUnitXml.fromstring((repository.path / "iodelta-ci-result/verdicts.xml").read_bytes())
    assert (parsed.failures, parsed.errors) == (1, 0)


def test_gitlab_compares_a_branch_with_where_it_began_also_in_a_second_job(
    repository_of: Callable[..., Repository],
) -> None:
    repository = repository_of(1, 3, measured=False)
    for _ in range(2):
        done = gitlab(repository, "detached", "change")
        assert done.returncode == 0, done.stderr
        assert repository.built("base") == repository.commits["fork"]


def gitlab(repository: Repository, event: str, head: str) -> subprocess.CompletedProcess[str]:
    (job,) = yaml.safe_load((ROOT / "examples/gitlab/.gitlab-ci.yml").read_text()).values()
    assert job["artifacts"]["reports"]["junit"] == "iodelta-ci-result/verdicts.xml"
    predefined = {
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": repository.commits["fork"],
        "CI_MERGE_REQUEST_EVENT_TYPE": event,
        "CI_COMMIT_SHA": repository.commits[head],
        "CI_API_V4_URL": "https://gitlab.example/api/v4",
        "CI_PROJECT_ID": "3",
        "CI_MERGE_REQUEST_IID": "7",
        "IODELTA_TOKEN": "secret",
    }
    return repository.run("\n".join(job["script"]), predefined | {k: str(v) for k, v in job["variables"].items()})
