"""How a run ended, and why, in the tool's own words."""

from __future__ import annotations

import re
import shlex
import signal
from collections.abc import Sequence

from iodelta.trial import Finding, Severity
from iodelta.workload.model import FioRun

_ERROR_LINE = r"err=|error|fail|unable|can't|cannot|no such|permission|unrecognized|did you mean|disallowed|refus"


def ending(run: FioRun, lines: Sequence[str]) -> list[Finding]:
    """Return why fio did not end well, if so: ``fio.stopped``, ``fio.timeout`` or ``fio.failed``."""
    tool = run.request.tool
    if run.ended == "stopped":
        return [
            finding(run, "fio.stopped", "hard", "the run was stopped before its end")
        ]
    if run.ended == "timed out":
        text = f"{tool} was still running after {run.seconds:.0f} s and was ended; is the target hanging? {words_of(lines)}"
        return [finding(run, "fio.timeout", "hard", text.strip())]
    if run.exit_code < 0:
        return [
            finding(
                run,
                "fio.failed",
                "hard",
                f"{tool} was killed by {_signal(-run.exit_code)}",
            )
        ]
    if run.exit_code:
        text = f"{tool} ended with exit code {run.exit_code}: {words_of(lines)}"
        return [finding(run, "fio.failed", "hard", text)]
    return []


def finding(
    run: FioRun, rule: str, severity: Severity, text: str, remedy: str = ""
) -> Finding:
    """Return a finding about this run; a hard one says how to see it again unless ``remedy`` says better."""
    if severity == "hard" and not remedy:
        remedy = f"see what it says to: {shlex.join(run.args)}"
    return Finding(rule, severity, run.request.target, text, remedy)


def words_of(lines: Sequence[str]) -> str:
    """Return the tool's own explanation: its error lines, else its last line."""
    errors = [line for line in lines if re.search(_ERROR_LINE, line, re.I)]
    return "; ".join(dict.fromkeys((errors or lines[-1:])[:3])) or "it gave no reason"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
