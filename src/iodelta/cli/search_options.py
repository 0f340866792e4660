"""Options that ``bisect`` and ``attribute`` share."""

from __future__ import annotations

MEASURING = """
--artifact PATH*      A file that the build produces and that is kept. Repeatable.
--put COMMAND         Command that installs the build, before every measurement.
--measure COMMAND     Command that prints the number (default: run fio).
--workload
--allow-commands
--better higher|lower  Whether a higher or a lower number is better.
--machine
--clock wall|instructions
                      What to measure: wall time, or instructions through a kernel (--machine vm --set kernel={built}).
--target
--size
--trial
--ramp
--metric NAME         The metric to follow, such as read.iops or read.lat.mean.
--destroy
--wait
--repeat NUMBER:1..1000 [1]
                      Number of runs per visit, which are averaged.
""".strip()
"""How an item is made ready and measured."""

TIME_LIMITS = """
--build-timeout TIME [2h]
                      A build that takes longer counts as hung.
--put-timeout TIME [10m]
                      The same limit for --put.
--measure-timeout TIME [10m]
                      The same limit for --measure.
""".strip()
