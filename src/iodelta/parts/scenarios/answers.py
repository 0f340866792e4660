"""What ``iodelta scenario list`` and ``show`` answer, as data."""

from __future__ import annotations

import msgspec

from iodelta.parts.scenarios.model import Need, Scenario


class Offered(msgspec.Struct, frozen=True):
    """One scenario, and whether it can run."""

    name: str
    title: str
    """What it asks, in one line."""
    missing: tuple[Need, ...]
    """What this machine lacks for it; empty when it can run."""


class ScenarioListAnswer(msgspec.Struct, frozen=True):
    """Every scenario there is."""

    scenarios: tuple[Offered, ...]
    """In the order of the list."""
    schema: str = "iodelta.scenario-list/1"


class ScenarioAnswer(msgspec.Struct, frozen=True):
    """One scenario in full."""

    name: str
    title: str
    about: str
    """Whose question it was, and what a small run of it can and cannot say."""
    makes: str
    """What it makes on the machine, and removes again."""
    missing: tuple[Need, ...]
    """What this machine lacks for it; empty when it can run."""
    experiment: str
    """The experiment file; ``@NAME@`` marks what is known only after everything was made."""
    schema: str = "iodelta.scenario/1"


def offered(scenario: Scenario, missing: tuple[Need, ...]) -> Offered:
    """Its line in the list."""
    return Offered(scenario.name, scenario.title, missing)


def answer(
    scenario: Scenario, missing: tuple[Need, ...], *, full: bool
) -> ScenarioAnswer:
    """Return all that there is to say before it runs."""
    text = scenario.text({}, full=full)
    return ScenarioAnswer(
        scenario.name, scenario.title, scenario.about, scenario.makes, missing, text
    )
