"""``python -m benchmarks.reading.coverage FOLDER``: format by version, what was read, what was refused and why."""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from pathlib import Path

from iodelta.errors import RequestError
from iodelta.ingest import Imported, read

FORMATS = ("json+", "json", "terse2", "terse3", "terse4", "terse5", "text", "log", "hist-log", "io_uring", "table")


def table(found: Imported, folder: Path) -> str:
    """The Markdown table: a row per format and version of fio, then one per reason to refuse."""
    files: dict[tuple[str, str], set[str]] = defaultdict(set)
    jobs: Counter[tuple[str, str]] = Counter()
    checks: Counter[tuple[str, str]] = Counter()
    for run in found.runs:
        for form in (run.format, *run.also):
            key = (form, run.fio_version or "not said")
            files[key].add(run.place.file)
            (jobs if form == run.format else checks)[key] += 1
    lines = [
        "| format | fio | files | jobs read | of a run read in a better format |",
        "|---|---|--:|--:|--:|",
        *(
            f"| {form} | {version} | {len(files[form, version])} | {jobs[form, version]} | {checks[form, version]} |"
            for form, version in sorted(files, key=lambda key: (FORMATS.index(key[0]), _natural(key[1])))
        ),
        "",
        "| refused | files | for example |",
        "|---|--:|---|",
    ]
    reasons: dict[str, list[str]] = defaultdict(list)
    for refusal in found.refusals:
        reasons[re.sub(r"\d+", "N", refusal.reason)].append(refusal.place.file)
    for reason, names in sorted(reasons.items()):
        lines.append(f"| {reason} | {len(names)} | {_within(names[0], folder)} |")
    told = {run.place.file for run in found.runs} | {stats.place.file for stats in found.device_stats}
    refused = {refusal.place.file for refusal in found.refusals}
    lines += [
        "",
        f"{len(told)} files read, {len(refused - told)} refused, {len(refused & told)} read in part; "
        f"{len(found.runs)} runs, {len(found.device_stats)} lines of read_stats.",
    ]
    return "\n".join(lines)


def _natural(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)[:4]]


def _within(name: str, folder: Path) -> str:
    return name.removeprefix(f"{folder}/").replace("|", "\\|")


def main() -> int:
    """Print the table of a folder."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reading.coverage", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    try:
        print(table(read([folder]), folder))
    except RequestError as error:
        print(error)
        return error.exit_code
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
