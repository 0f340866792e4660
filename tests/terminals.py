"""Commands on a terminal, which tests have none of."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def on_terminal(*words: str, cwd: Path, term: str = "xterm", around: Mapping[str, str] = os.environ) -> str:
    """What a command prints on a terminal of 80 columns."""
    program = [sys.executable, "-c", "from iodelta.cli.main import main; main()", *words]
    environment = {**around, "COLUMNS": "80", "TERM": term, "PYTHONIOENCODING": "utf-8"}
    leader, follower = pty.openpty()
    with subprocess.Popen(program, cwd=cwd, env=environment, stdout=follower, stderr=follower) as process:
        os.close(follower)
        parts = []
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:  # the other side has closed it
                break
            if not part:
                break
            parts.append(part)
        assert process.wait() == 0
    os.close(leader)
    return b"".join(parts).decode()
