"""A fleet for Python programs: one experiment on many hosts, and what they say together."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from iodelta.api.hosts import How, chosen_of, measured
from iodelta.api.results import Told
from iodelta.errors import pasted

if TYPE_CHECKING:
    from iodelta.fleet.answers import FleetStatusAnswer
    from iodelta.fleet.host import FleetHost
    from iodelta.report.formats.charts.model import Charts
    from iodelta.study.fleet import FleetAccount, FleetRow


def agreed(paths: Sequence[str]) -> FleetAccount:
    """Return what the hosts in these folders say together. Raises RequestError, MeasureError."""
    from iodelta.fleet.measured import hosts_in
    from iodelta.study.fleet import fleet_account

    again = f"iodelta fleet report {' '.join(map(pasted, paths))}"
    folders, left = hosts_in(tuple(paths))
    return fleet_account(folders, (again,), left)


class Agreement(Told):
    """Whether hosts that measured one plan agree: everywhere, on average, or depending on the machine."""

    def __init__(self, account: FleetAccount) -> None:
        super().__init__(account)
        self._account = account

    @property
    def rows(self) -> tuple[FleetRow, ...]:
        """Return one for each cell, variant and metric: its word, every host, and what they say together."""
        return self._account.rows

    @property
    def account(self) -> FleetAccount:
        """Everything that its report says."""
        return self._account

    def _charts(self) -> Charts:
        from iodelta.report.formats.charts.changes import charts_of_fleet

        return charts_of_fleet(self._account)


class FleetRun:
    """One experiment, measured on the hosts of a fleet."""

    def __init__(self, status: FleetStatusAnswer, path: Path) -> None:
        self.status = status
        """Every host: its state, its trials, and why it is not done."""
        self.path = path
        """The fleet folder, which holds the experiment folder of each host."""

    @property
    def exit_code(self) -> int:
        """0 every host is done, 3 some are still to be measured, 4 some could not be."""
        return self.status.exit_code

    def agreement(self) -> Agreement:
        """Return what the hosts that were measured say together. Raises RequestError where none was."""
        return Agreement(agreed([str(self.path)]))

    def __repr__(self) -> str:
        hosts = ", ".join(f"{host.name} {host.state}" for host in self.status.hosts)
        return f"<FleetRun: {self.path}: {hosts}>"


class Fleet:
    """The hosts of an inventory."""

    def __init__(self, inventory: str | os.PathLike[str]) -> None:
        self._inventory = Path(inventory)
        self.hosts()

    def hosts(self, expression: str = "") -> tuple[FleetHost, ...]:
        """Return those that an expression names, as ``--hosts`` does; all without one. Raises RequestError."""
        return chosen_of(self._inventory, expression or None)

    def run(
        self,
        path: str | os.PathLike[str],
        *,
        hosts: str = "",
        folder: str | os.PathLike[str] | None = None,
        destroy: Sequence[str] = (),
        scheduler: str = "",
        at_once: int = 50,
        in_use: str = "wait",
        patience: str = "15m",
        allow_commands: bool = False,
    ) -> FleetRun:
        """Measure an experiment file on each host, or continue the fleet folder at ``path``, as ``iodelta fleet run``
        does. Ctrl-C ends it cleanly. Raises RequestError, RefusedError, MeasureError."""
        how = How(
            destroy=tuple(destroy),
            scheduler=scheduler,
            at_once=at_once,
            in_use=in_use,
            patience=patience,
            allow_commands=allow_commands,
        )
        place = Path(folder) if folder is not None else None
        status = measured(
            Path(path), place, lambda: self.hosts(hosts), hosts or None, how
        )
        return FleetRun(status, Path(status.folder))

    def __repr__(self) -> str:
        return f"<Fleet: {', '.join(host.name for host in self.hosts())}>"
