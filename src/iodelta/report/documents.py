"""Every JSON document iodelta prints: its schema, made from the structs it consists of, and how it is written.

A document's ``schema`` is ``iodelta.NAME/VERSION``. Fields may be added within a version; nothing is taken away or
given another meaning without a new one.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import math
import re
import sys
import textwrap
from collections.abc import Sequence
from typing import Any

import msgspec
import msgspec.inspect

from iodelta.part import documents, load


def written(document: object) -> bytes:
    """Return a document as indented JSON in ASCII, which cannot control a terminal; unknown and infinite numbers are
    null.
    """
    finite = _finite(msgspec.to_builtins(document, str_keys=True))
    try:
        text = msgspec.json.encode(finite).decode()
    except UnicodeEncodeError:  # half a surrogate pair, which some JSON readers accept
        text = msgspec.json.encode(_whole(finite)).decode()
    ascii_text = re.sub(r"[^\x00-\x7e]", _escaped, text)
    return msgspec.json.format(ascii_text.encode(), indent=1) + b"\n"


def _escaped(match: re.Match[str]) -> str:
    """Return a character as JSON escapes it: its UTF-16 code units, one or two."""
    data = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[at : at + 2].hex()}" for at in range(0, len(data), 2))


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {_whole(key): _whole(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return list(map(_whole, value))
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return value


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_finite, value))
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a document, each field with what its struct's source says of it.

    Raises KeyError for an unknown name.
    """
    document = documents()[name]
    (top,), components = described([load(document.struct)], "#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": name,
        "description": f"Printed by {document.printed_by}. Numbers that are not known, or infinite, are null.",
        **top,
        "$defs": components,
    }


def described(
    kinds: Sequence[Any], place: str
) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    """Return a schema for each of ``kinds``, and the parts that they share, which stand at ``place`` (``{name}``:
    which).
    """
    tops, components = msgspec.json.schema_components(kinds, ref_template=place)
    structs: dict[str, type] = {}
    for kind in kinds:
        structs |= _structs(kind)
    for part, made in components.items():
        _describe(made, structs.get(part))
    _nullable([tops, components])
    return tops, components


def _describe(described: dict[str, Any], kind: type | None) -> None:
    if kind is None:
        return
    if kind.__doc__ and not kind.__doc__.startswith(f"{kind.__name__}("):
        described["description"] = _prose(inspect.getdoc(kind) or "")
    own = field_docs(kind)
    for field, made in described.get("properties", {}).items():
        # A field whose type is a struct is described there.
        text = own.get(field) or ("" if "$ref" in made else FIELDS.get(field, ""))
        if text:
            described["properties"][field] = {**made, "description": text}


def _structs(kind: type) -> dict[str, type]:
    """Return every struct that a document is made of, by name."""
    structs: dict[str, type] = {}
    waiting: list[Any] = [msgspec.inspect.type_info(kind)]
    while waiting:
        part = waiting.pop()
        if isinstance(part, msgspec.inspect.StructType):
            struct = part.cls
            # msgspec names two structs of one name by their modules.
            whole = f"{struct.__module__}.{struct.__qualname__}"
            if whole in structs:
                continue
            structs[whole] = structs[struct.__name__] = struct
            waiting += [field.type for field in part.fields]
        elif isinstance(part, msgspec.inspect.Type):
            for name in ("types", "item_types", "item_type", "key_type", "value_type"):
                inner = getattr(part, name, ())
                waiting += inner if isinstance(inner, tuple) else [inner]
    return structs


@functools.cache
def field_docs(kind: type) -> dict[str, str]:
    """Field -> the text that stands below it in the class's source; for undocumented ones nothing."""
    if kind.__module__ not in sys.modules:
        return {}
    try:
        source = inspect.getsource(kind)
    except OSError:  # made by a call, not by a class statement
        return {}
    tree = ast.parse(textwrap.dedent(source))
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    docs = {}
    for field, text in itertools.pairwise(body):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(sentence))),
            ):
                docs[name] = _prose(sentence)
    return docs


def _prose(text: str) -> str:
    """Return a docstring as one paragraph of plain text."""
    return " ".join(text.replace("``", "`").split())


def _nullable(node: Any) -> None:
    """Numbers may be null wherever they stand."""
    if isinstance(node, dict):
        if node.get("type") == "number":
            node["type"] = ["number", "null"]
        for inner in node.values():
            _nullable(inner)
    elif isinstance(node, list | tuple):
        for inner in node:
            _nullable(inner)


FIELDS = {
    "account": "What was done; empty when it failed.",
    "adjusted": "The typical change without the part of it that carry-over may be.",
    "after": "Of the variant.",
    "ahead": "The variant with the better estimate.",
    "alarms": "Comparisons of a variant with itself that were called a change.",
    "allowed": "Values that it may be set to.",
    "alone": "The word of this comparison alone, without correction for the others.",
    "alpha": "Bound of the chance to call a change where there is none, both directions, all looks.",
    "conditioning": "Of a trial: whether it is uncounted, because it only brings about its variant's state in a superblock. "
    "Of a design: how many such trials each variant has.",
    "attempt": "0 for the block as planned, then one more for each repetition.",
    "background": "The command of a background load, word by word; empty without one.",
    "background_fio": "fio's options of a background load.",
    "backgrounds": "Background loads: condition and command.",
    "balance_p": "Binomial p of the balance between regressions and improvements.",
    "baseline": "Name of the side that the others are compared with.",
    "baseline_first": "Of each block, whether the baseline ran before the variant.",
    "baseline_sd": "Standard deviation of the baseline's logarithms.",
    "basis": "What the words rest on: blocks, replicates or single runs.",
    "before": "Of the baseline.",
    "behind": "The variant with the worse estimate.",
    "best": "Variants that no other is shown to beat.",
    "better": "Which way is better: higher or lower.",
    "between": "Noise between trials.",
    "beyond": "I/Os that were slower.",
    "block": "Number of the block, from 0.",
    "block_numbers": "Numbers of the blocks that were judged.",
    "blocks": "Blocks that count: one trial of every variant each.",
    "boot": "Id of the boot.",
    "bs": "Block size in bytes.",
    "budget": "Seconds for everything.",
    "bytes": "Bytes moved.",
    "cell": "Name of the cell: a workload under a condition.",
    "cells": "Names of cells.",
    "centre": "Centre of the speed, a logarithm.",
    "change": "Relative change; -0.02 is 2 % less.",
    "column": "Heading of the column.",
    "carry-over": "What is done about what one trial leaves to the next; empty: by workload.",
    "comparisons": "Comparisons in the family: cells x variants; the metrics of one are tested together.",
    "condition": "Name of the condition; empty without one.",
    "conditions": "Conditions under which the cells are measured; empty without any.",
    "context_switches": "Context switches of fio's processes.",
    "count": "How many.",
    "cuts": "Values between the speeds.",
    "depth": "I/Os in flight.",
    "device": "Kernel name of the block device.",
    "differing": "What differs between the environments, likely confounders first.",
    "deployed": "In superblocks that have not reached their state: the range of the change for somebody who deploys the variant.",
    "direct": "Whether fio bypassed the page cache.",
    "disk": "Kernel name of the disk.",
    "distinct": "Whether the simultaneous interval excludes 0.",
    "drift": "Noise that comes from drift over the session.",
    "dropped": "I/Os that fio dropped.",
    "ended": "Ids of the processes that were ended, or when it ended (Unix seconds).",
    "error": "Why it failed, or fio's error number; empty or 0 when it did not.",
    "explanation": "What is wrong with the number, in a sentence.",
    "extension": "Looks added after the end; they spend the reserve.",
    "family": "How many comparisons are corrected for: each, holm or screen.",
    "fast": "Relative change of the faster speed.",
    "file": "Path of the file it was read from, as given.",
    "files": "Files, or how many.",
    "findings": "What is wrong or worth knowing; empty if there is nothing.",
    "fio": "fio's command line; PART marks what differs.",
    "fio_version": "Version of fio that made it.",
    "folder": "Name of the experiment folder.",
    "format": "Format it was read from.",
    "group": "What it stands together with.",
    "handling": "How the family of comparisons was corrected for: each, holm or screen.",
    "high": "Upper end of the interval; null: not bounded.",
    "host": "Machine that it was measured on, where known.",
    "hour": "The same in an hour.",
    "improvements": "Improvements among the words.",
    "index": "Place, from 0.",
    "iodepth": "fio's iodepth.",
    "ioengine": "fio's engine.",
    "iops": "I/Os per second.",
    "ios": "I/Os completed.",
    "item": "The item itself, as {item} stands for it; of a commit its full hash.",
    "jobname": "fio's name of the job.",
    "jobs": "Parallel jobs.",
    "kept": "Comparisons that a screen kept; null without one.",
    "kind": "Direction (read, write, trim, mixed), or what sort of thing it is.",
    "knob": "Name of the knob.",
    "knobs": "Settings by knob.",
    "last": "Whether no look follows.",
    "level": "Confidence level of the interval, a share.",
    "likely": "Whether it alone can explain a different result.",
    "line": "Line in the file; 0 for the whole.",
    "looks": "Numbers of blocks at which the data are looked at.",
    "low": "Lower end of the interval; null: not bounded.",
    "margin": "The relative change that matters, a share.",
    "mean_ns": "Mean latency, ns.",
    "members": "Members of the mirror, in the order given.",
    "mended": "What was meant.",
    "metric": "Name of the metric: read.iops, read.lat.p99 and so on.",
    "modes": "The speeds, the slowest first.",
    "n": "How many.",
    "name": "What it is called.",
    "needed": "Total number of blocks that an undecided comparison will probably need.",
    "night": "Smallest change seen with 90 % power in a night of 8 hours.",
    "notes": "What a reader should know of it.",
    "numjobs": "fio's numjobs.",
    "options": "fio's options, as fio spells them.",
    "order": "Variants in the order in which they run.",
    "outcome": "holds, false or untestable.",
    "p": "p value, or the percentile as a share.",
    "p50_ns": "Median latency, ns.",
    "p999_ns": "99.9th percentile of latency, ns.",
    "p99_ns": "99th percentile of latency, ns.",
    "parts": "What differs of fio's command line: name and words.",
    "path": "Path as the user wrote it.",
    "paths": "Paths as they were given.",
    "percent": "The percentile, as in 99.9.",
    "percentiles": "Percentiles as fio printed them, by percent.",
    "phrase": "The word in finer terms.",
    "place": "Where it was found: file and line, trial or cell.",
    "policies": "Read policies, one by one.",
    "policy": "The read policy, with its parameters where they were given.",
    "position": "Place within its block, from 0.",
    "present": "Its present value.",
    "problem": "What is in the way; empty when nothing is.",
    "question": "What was asked, in the user's words.",
    "ramp": "Seconds before a trial that do not count.",
    "read_iops": "Reads per second.",
    "read_ios": "Reads completed, from diskstats.",
    "reason": "Why not; empty when there is no reason against it.",
    "refusals": "What could not be read, and why; empty when everything could.",
    "regressions": "Regressions among the words.",
    "remedy": "What to do about it.",
    "repairs": "Cells of tables that can be mended; empty when none can.",
    "repo": "Path of the git repository.",
    "reserve": "Share of alpha kept for an extension.",
    "resolution": "How finely it is known.",
    "rounds": "Rounds of the schedule: a block of every cell each.",
    "rule": "Id of the rule.",
    "run": "The command that repeats everything, or the place of the run in the list.",
    "runs": "How many runs, or which, by their place in the list of runs.",
    "runtime": "Seconds asked for.",
    "runtime_ms": "Milliseconds that fio measured over.",
    "rw": "fio's rw.",
    "says": "What the numbers allow to be said, in words.",
    "schema": "Name and version of this document.",
    "sd": "Standard deviation.",
    "seconds": "Wall time in seconds.",
    "seed": "Seed of order and random numbers.",
    "sentence": "One sentence that the numbers bear out.",
    "settings": "What variants and conditions set: name and settings.",
    "severity": "hard (not to be believed), warning or note.",
    "share": "Change of the share of seconds at the faster speed, or share of the seconds.",
    "short": "I/Os that came back short.",
    "size": "How much of the target is used, as fio spells sizes; empty for all of it.",
    "slow": "Relative change of the slower speed.",
    "stalls": "Trials that stalled, and the share of stalls that the trials do not exclude.",
    "started": "When it began, Unix seconds.",
    "state": "complete, interrupted, running (or killed), or failed and why.",
    "step": "Whether more blocks could decide it: continue, waiting, decided or exhausted.",
    "switches": "Context switches per I/O.",
    "system_ns": "Kernel CPU time per I/O, ns.",
    "ten_minutes": "The same in ten minutes.",
    "text": "The text itself.",
    "title": "The item as a reader knows it.",
    "trial": "Seconds of one trial, or its number.",
    "trials": "Trials that count, or how many.",
    "type": "Which kind of subject it is.",
    "unit": "Unit of the values: IOPS, B/s, ns, ratio.",
    "unmatched": "Cells that only one side has.",
    "value": "The estimate.",
    "variant": "Name of the variant.",
    "variant_sd": "Standard deviation of the variant's logarithms.",
    "variant_value": "The variant's value as measured, in the metric's unit.",
    "variants": "Names of variants, or the variants themselves.",
    "visits": "How often the speed was entered.",
    "what": "Dotted name of what differs.",
    "why": "Why it matters.",
    "within": "Noise within a trial.",
    "word": "regression, improvement, equivalent, inconclusive (or no verdict).",
    "workload": "What fio was asked to do.",
    "write_iops": "Writes per second.",
    "write_ios": "Writes completed, from diskstats.",
    "written": "What was written.",
}
"""Field -> what it means."""
