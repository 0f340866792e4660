"""Small git repositories whose commits have a speed, and iodelta asked about them in this process."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from iodelta.cli.attribute import command as attribute_command
from iodelta.cli.bisect import command as bisect_command

EXACT = ("--exact", "0.1%", "--margin", "1%", "--better", "higher", "--seed", "1")
READ = ("--measure", "sh bench.sh", *EXACT)
"""The speed is a file's text: a measure that repeats exactly, so that a search takes few runs."""

BENCH = """\
speed=$(cat speed)
case $speed in
hang) sleep 60 ;;
rubbish) echo many ;;
crash) exit 3 ;;
*) echo "running..."; echo "$speed" ;;
esac
"""


class Toy:
    """A repository in which every commit is given a speed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self.git("init", "-q", "-b", "main")
        for key, value in (("user.name", "A Tester"), ("user.email", "tester@example.org"), ("gc.auto", "0")):
            self.git("config", key, value)
        (path / "bench.sh").write_text(BENCH)

    def git(self, *args: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> str:
        """Output of git, which must succeed."""
        done = subprocess.run(["git", *args], cwd=self.path, input=stdin, capture_output=True, check=False, env=env)
        assert done.returncode == 0, f"git {args}: {done.stderr.decode()}"
        return done.stdout.decode(errors="replace").strip()

    def commit(self, speed: object, subject: str = "", **files: str) -> str:
        """One commit more; its hash."""
        (self.path / "speed").write_text(f"{speed}\n")
        for name, text in files.items():
            (self.path / name).write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", subject or f"speed {speed}")
        return self.git("rev-parse", "HEAD")

    def commits(self, *speeds: object) -> list[str]:
        """A commit for every speed."""
        return [self.commit(speed, f"change {n}: speed {speed}") for n, speed in enumerate(speeds)]

    def untouched(self) -> str:
        """All that a search must leave as it is: checkout, index, refs, stash, worktrees."""
        index = (self.path / ".git" / "index").read_bytes().hex()
        files = {
            str(path.relative_to(self.path)): path.read_bytes().hex()
            for path in sorted(self.path.rglob("*"))
            if path.is_file() and ".git" not in path.relative_to(self.path).parts
        }
        state = [self.git(*words) for words in (("status", "--porcelain"), ("for-each-ref",), ("worktree", "list"))]
        return json.dumps([index, files, state, self.git("symbolic-ref", "HEAD")])


class Done:
    """A finished command."""

    def __init__(self, code: int, out: str, err: str, error: BaseException | None) -> None:
        self.code, self.out, self.err, self.error = code, out, err, error

    @property
    def json(self) -> Any:
        """The output of --format json."""
        return json.loads(self.out)


def bisect(*args: object) -> Done:
    """``iodelta bisect``; an IodeltaError becomes the ``error``, anything else is raised."""
    return run(bisect_command, *args)


def searched(repo: Toy, good: str, folder: Path, *more: object) -> Done:
    """``iodelta bisect`` from a good commit to HEAD, by the speed that ``bench.sh`` says unless ``more`` says how."""
    how = EXACT if "--measure" in more else READ
    return bisect("--repo", repo.path, "--good", good, "--bad", "HEAD", "--folder", folder, *more, *how)


def shown(folder: Path) -> Any:
    """The state of a search as a document."""
    return run(bisect_command, folder, "--show", "--format", "json").json


def attribute(*args: object) -> Done:
    """``iodelta attribute``, in the same way."""
    return run(attribute_command, *args)


def run(command: Any, *args: object) -> Done:
    """Any command, in the same way."""
    from iodelta.errors import IodeltaError

    done = CliRunner().invoke(command, [str(arg) for arg in args])
    if done.exception is not None and not isinstance(done.exception, SystemExit | IodeltaError):
        raise done.exception
    error = done.exception if isinstance(done.exception, IodeltaError) else None
    code = error.exit_code if error else done.exit_code
    return Done(code, done.stdout, done.stderr, error)


def log(folder: Path) -> list[dict[str, Any]]:
    """The whole lines of a search's log."""
    data = (folder / "log.jsonl").read_bytes()
    return [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]


def asked(folder: Path) -> list[str]:
    """The items that were answered, in order."""
    return [line["item"] for line in log(folder) if line["type"] == "answered"]
