"""Apply every rule to the evidence and turn its marks into findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from iodelta import plugins
from iodelta.audit.model import Audit, Evidence, Hit, Mark, Rule
from iodelta.audit.rules import (
    depth,
    device,
    ending,
    groups,
    host,
    order,
    report,
    sampling,
    shape,
    steady,
    units,
)
from iodelta.errors import IodeltaError, RequestError
from iodelta.ingest import Run
from iodelta.trial import Finding

RULES: tuple[Rule, ...] = (
    *ending.RULES,
    *units.RULES,
    *depth.RULES,
    *shape.RULES,
    *order.RULES,
    *report.RULES,
    *device.RULES,
    *sampling.RULES,
    *host.RULES,
    *steady.RULES,
    *groups.RULES,
)
"""All rules of iodelta, in the order in which findings are listed."""


FAILED = Rule(
    "plugin.failed",
    "warning",
    "a rule of a plugin cannot be used, or failed",
    "an installed plugin",
    "tell its author, or uninstall the package",
    lambda evidence: (),
)


def rules() -> tuple[Rule, ...]:
    """Return all rules; those of plugins come last."""
    return (
        *RULES,
        FAILED,
        *(plugin.made for plugin in plugins.sound("rule", unusable)),
    )


def audit(runs: Iterable[Run], *, rules: Sequence[Rule] | None = None) -> Audit:
    """Apply ``rules`` to runs and table rows from any source; the default is all rules, also those of plugins.

    Never raises because of the contents of runs.
    """
    evidence = Evidence(tuple(runs))
    if rules is not None:
        return Audit(evidence.runs, tuple(judge(evidence, rules)))
    return Audit(evidence.runs, (*judge(evidence, RULES), *_of_plugins(evidence)))


def unusable(name: str, made: object) -> str:
    """Return why a plugin's rule cannot be used; empty if it can."""
    if not isinstance(made, Rule):
        return "it is not made by iodelta.audit.model.rule"
    if wrong := plugins.misfit(made, Rule):
        return f"it is {wrong}"
    return (
        f"{made.id} is a rule of iodelta"
        if made.id in {rule.id for rule in RULES}
        else ""
    )


def _of_plugins(evidence: Evidence) -> Iterator[Hit]:
    """Yield the hits of plugins' rules. A rule that fails becomes a finding, and the others continue."""
    for plugin in plugins.plugins("rule", unusable) if evidence.runs else ():
        try:
            if plugin.trouble:
                raise RequestError(plugin.trouble)
            yield from checked(plugin.title, plugin.made, evidence)
        except IodeltaError as error:
            yield Hit(
                Finding(
                    FAILED.id,
                    FAILED.severity,
                    plugin.package,
                    error.what,
                    FAILED.remedy,
                ),
                (0,),
            )


def checked(title: str, rule: Rule, evidence: Evidence) -> list[Hit]:
    """Return the hits of a plugin's rule. Raises PluginError, beginning with ``title``, for what it does wrong."""
    marks = plugins.guarded(title, rule.find, Iterable[Mark])(evidence)
    for mark in marks:
        for run in (*mark.runs, *(repair.run for repair in mark.repairs)):
            if not 0 <= run < len(evidence.runs):
                raise plugins.PluginError(
                    f"{title} returned a mark about run {run} of {len(evidence.runs)}"
                )
        if not mark.runs:
            raise plugins.PluginError(f"{title} returned a mark about no run")
    return [_hit(rule, mark, evidence) for mark in marks]


def judge(evidence: Evidence, rules: Sequence[Rule]) -> Iterable[Hit]:
    """Return the hits of ``rules``, in their order."""
    return (
        _hit(rule, mark, evidence) for rule in rules for mark in rule.find(evidence)
    )


def _hit(rule: Rule, mark: Mark, evidence: Evidence) -> Hit:
    severity, place = mark.severity or rule.severity, evidence.place(mark.runs[0])
    return Hit(
        Finding(rule.id, severity, place, mark.explanation, rule.remedy),
        mark.runs,
        mark.repairs,
    )
