"""``--repo``: the commit that is checked out, as the table ``[subject]`` of an experiment file."""

from __future__ import annotations

import re

from iodelta.errors import RequestError


def checked_out(path: str) -> dict[str, str | bool]:
    """Repository, commit, ``git describe`` and whether tracked files differ from it. Raises RequestError."""
    from iodelta.bisect.git import Repository
    from iodelta.machine import LocalMachine

    repository = Repository.open(LocalMachine(), path)

    def said(*words: str) -> str:
        done = repository.git(*words)
        if done.returncode:
            return ""
        return done.text.strip()

    commit = said("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if not commit:
        raise RequestError(
            "the repository has no commit",
            place=path,
            remedy="commit what you measure, or leave --repo out",
        )
    top = repository.path.rstrip("/")
    return {
        "repo": _without_password(said("config", "--get", "remote.origin.url"))
        or top.rpartition("/")[2],
        "commit": commit,
        "describe": said("describe", "--tags", "--always"),
        "dirty": bool(said("status", "--porcelain", "--untracked-files=no")),
    }


def _without_password(url: str) -> str:
    """Return an address without the user and password that it may hold."""
    return re.sub(r"^([a-z+]+://)[^/@]*@", r"\1", url.replace("\n", " "))
