"""Options that several commands of ``iodelta policy`` share."""

from __future__ import annotations

import click

from iodelta.cli.delivery import FORMATS
from iodelta.cli.search_options import together
from iodelta.cli.shared_options import in_formats

FIVE = ("pid", "round-robin", "latency", "latency-rr", "queue")
"""The policies of the original benchmark: the default."""

FORMAT = in_formats(FORMATS)
BS = click.option(
    "--bs", default="4k", show_default=True, help="Block size, in fio's units."
)
JOBS = click.option(
    "--jobs",
    default=1,
    show_default=True,
    help="Number of jobs, each with its own pid and that depth.",
)
workload = together(
    click.option(
        "--policy",
        "policies",
        multiple=True,
        metavar="NAME[:KEY=VALUE,...]",
        help="A read policy. Repeatable.",
    ),
    click.option(
        "--rw",
        type=click.Choice(["randread", "read", "randrw", "rw"]),
        default="randread",
        show_default=True,
        help="Access pattern, with fio's names.",
    ),
    click.option(
        "--read-percent",
        type=click.IntRange(0, 100),
        help="Share of reads in mixed workloads (default: 70).",
    ),
    BS,
    click.option(
        "--iodepth",
        "iodepths",
        default="1,32",
        show_default=True,
        metavar="N,N",
        help="I/Os in flight of each job; a list measures each depth.",
    ),
    JOBS,
)
"""Policies x workloads, in this order in the help."""
