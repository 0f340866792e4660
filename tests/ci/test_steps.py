"""The GitHub Action and the GitLab example, by running their steps on a real program at two commits."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from junitparser import JUnitXml

ROOT = Path(__file__).parents[2]

PROGRAM = """
#include <stdio.h>
int main(void)
{
    volatile unsigned long sum = 0;
    for (unsigned long n = 0; n < ROUNDSul; n++) sum += n;
    return printf("done\\n") < 0;
}
"""

EXPERIMENT = """
question = "Does this change cost CPU time?"
margin = "5%"
[workload]
command = ["{here}/iodelta-ci/{tree}/work"]
only_reads = true
[variant.base]
"workload.tree" = "base"
[variant.head]
"workload.tree" = "head"
[design]
trial = "0.5s"
seed = 1
blocks = BLOCKS
metrics = ["cpu"]
carry-over = "tested"
"""

RECORD = """#!/bin/sh
# Stands in for a client of the service: keeps its words and the body it would send, and knows no comments.
printf '%s\\n' "$*" >> "$RECORD/calls"
for word; do
    case $word in *body*@*) cat "${word#*@}" > "$RECORD/body" ;; esac
done
"""


class Repository(msgspec.Struct):
    """A checkout with an experiment file, and what its jobs see."""

    path: Path
    base: str
    head: str
    environment: dict[str, str]
    record: Path
    """What the stand-in for the service was given."""

    def run(self, script: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """A step, as runners start it."""
        words = ["bash", "-e", "-o", "pipefail", "-c", script]
        whole = {**self.environment, **environment}
        return subprocess.run(words, cwd=self.path, env=whole, capture_output=True, text=True, timeout=300)


@pytest.fixture(params=[(1, 3), (8, 10)], ids=["undecided", "slower"])
def repository(request: pytest.FixtureRequest, tmp_path: Path) -> Repository:
    """Two commits: the second needs as many times the CPU time of the first. Three blocks can decide nothing."""
    times, blocks = request.param
    path = tmp_path / "project"
    path.mkdir()
    (path / "bench.toml").write_text(EXPERIMENT.replace("BLOCKS", str(blocks)))
    (path / "Makefile").write_text("work: work.c\n\t$(CC) -O1 -o $@ $<\n")
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "HOME": str(tmp_path), "LC_ALL": "C"}
    for name in ("AUTHOR", "COMMITTER"):
        own |= {f"GIT_{name}_NAME": "A U Thor", f"GIT_{name}_EMAIL": "author@example.com"}

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=path, env={**os.environ, **own}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    git("init", "-q")
    commits: list[str] = []
    for rounds in (10_000_000, times * 10_000_000):
        (path / "work.c").write_text(f"/* {len(commits)} */" + PROGRAM.replace("ROUNDS", str(rounds)))
        git("add", "-A")
        git("commit", "-q", "-m", "work: a change")
        commits.append(git("rev-parse", "HEAD"))
    tools = tmp_path / "tools"
    tools.mkdir()
    for client in ("gh", "curl"):
        (tools / client).write_text(RECORD)
        (tools / client).chmod(0o755)
    (tools / "iodelta").write_text(f"#!{sys.executable}\nfrom iodelta.cli.main import main\n\nmain()\n")
    (tools / "iodelta").chmod(0o755)
    record = tmp_path / "record"
    record.mkdir()
    own |= {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "RECORD": str(record),
        "IODELTA_STATE": str(tmp_path / "state"),
        "PYTHONPATH": str(ROOT / "src"),
        "OPENBLAS_NUM_THREADS": "1",
    }
    base, head = commits
    return Repository(path, base, head, own, record)


@pytest.fixture
def slower(request: pytest.FixtureRequest) -> bool:
    return "slower" in request.node.callspec.id


def filled(text: str, values: Mapping[str, str]) -> str:
    """Expressions replaced as GitHub does; one that is not known fails."""
    return re.sub(r"\$\{\{ *([\w.-]+) *\}\}", lambda found: values[found[1]], text)


def steps_of(action: Mapping[str, Any], given: Mapping[str, str], github: Mapping[str, str]) -> Iterator[Any]:
    """The steps that run, with their environment filled in."""
    values = {f"github.{name}": value for name, value in github.items()}
    for name, described in action["inputs"].items():
        values[f"inputs.{name}"] = given.get(name, filled(str(described.get("default", "")), values))
        assert values[f"inputs.{name}"] or not described.get("required")
    for step in action["runs"]["steps"]:
        name, wanted = re.fullmatch(r"([\w.-]+) != '()'", step["if"]).groups() if "if" in step else ("", None)  # type: ignore[union-attr]
        if wanted is None or values[name] != wanted:
            assert "${{" not in step["run"], "an expression in a script is an injection"
            assert step["shell"] == "bash"
            yield {**step, "env": {key: filled(value, values) for key, value in step.get("env", {}).items()}}


def test_the_action_installs_the_copy_of_iodelta_that_it_is_part_of(tmp_path: Path) -> None:
    """A name that nobody has taken in an index is anybody's to take."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    github = {"event.pull_request.base.sha": "1", "event.pull_request.number": "", "sha": "2", "token": ""}
    first = next(iter(steps_of(action, {"experiment": "bench.toml"}, {**github, "repository": "owner/project"})))
    (tmp_path / "python3").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "python3").chmod(0o755)
    own = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "GITHUB_ACTION_PATH": "/actions/owner/iodelta"}
    done = subprocess.run(
        ["bash", "-e", "-c", first["run"]], env={**own, **first["env"]}, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == ["-m", "pip", "install", "--quiet", "/actions/owner/iodelta"], done.stderr


def test_the_action_comments_the_verdict_and_fails_for_a_regression_only(
    repository: Repository, slower: bool, tmp_path: Path
) -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    github = {
        "event.pull_request.base.sha": repository.base,
        "event.pull_request.number": "7",
        "sha": repository.head,
        "token": "secret",
        "repository": "owner/project",
    }
    summary = tmp_path / "summary.md"
    printed = ""
    done = None
    for step in steps_of(action, {"experiment": "bench.toml", "install": ""}, github):
        done = repository.run(step["run"], {**step["env"], "GITHUB_STEP_SUMMARY": str(summary)})
        printed += done.stdout
        assert done.returncode == 0 or step["name"] == "Verdict", (step["name"], done.stdout, done.stderr)
    assert done is not None
    assert done.returncode == int(slower), done.stdout
    body = (repository.record / "body").read_text()
    assert body.startswith("<!-- iodelta -->\n## Does this change cost CPU time?")
    assert ("worse" in body) is slower
    assert "repos/owner/project/issues/7/comments" in (repository.record / "calls").read_text()
    assert body.endswith(summary.read_text())
    assert ("::error title=regression" in printed) is slower
    if not slower:
        assert "::notice title=inconclusive" in printed
        assert "::error" not in printed


def test_the_gitlab_example_shows_junit_and_comments_the_verdict(repository: Repository, slower: bool) -> None:
    (job,) = yaml.safe_load((ROOT / "examples/gitlab/.gitlab-ci.yml").read_text()).values()
    predefined = {
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": repository.base,
        "CI_COMMIT_SHA": repository.head,
        "CI_API_V4_URL": "https://gitlab.example/api/v4",
        "CI_PROJECT_ID": "3",
        "CI_MERGE_REQUEST_IID": "7",
        "IODELTA_TOKEN": "secret",
    }
    variables = {name: str(value) for name, value in job["variables"].items()}
    done = repository.run("\n".join(job["script"]), {**predefined, **variables})
    assert done.returncode == int(slower), done.stderr + done.stdout
    assert "## Does this change cost CPU time?" in (repository.record / "body").read_text()
    assert "merge_requests/7/notes" in (repository.record / "calls").read_text()
    parsed = JUnitXml.fromstring((repository.path / job["artifacts"]["reports"]["junit"]).read_bytes())
    assert (parsed.failures, parsed.errors) == (int(slower), 0)
    judged = [suite for suite in parsed if suite.name != "findings"]  # which a busy machine has
    assert [(suite.tests, suite.skipped) for suite in judged] == [(1, int(not slower))]
    assert json.loads((repository.path / "iodelta-ci-result/verdict.json").read_text())
