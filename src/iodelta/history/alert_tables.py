"""Alerts in the database, for who reads it with SQL. They follow from points and log, and are written whole."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import sqlalchemy as sa

from iodelta.history.answers import Alert
from iodelta.history.store import Store

_tables = sa.MetaData()
ALERTS = sa.Table(
    "alert",
    _tables,
    sa.Column("id", sa.Text, primary_key=True),
    *(
        sa.Column(name, sa.Text, nullable=False)
        for name in ("kind", "state", "triage", "why", "range_word")
    ),
    sa.Column("opened", sa.Double, nullable=False),
    *(sa.Column(name, sa.Text) for name in ("last_good", "first_bad")),
    sa.Column("size", sa.Double),
    sa.Column("experiments", sa.Text, nullable=False),
)
STEPS = sa.Table(
    "step",
    _tables,
    sa.Column("alert", sa.Text, primary_key=True),
    sa.Column("series", sa.BigInteger, primary_key=True, autoincrement=False),
    *(
        sa.Column(name, sa.Text, nullable=False)
        for name in ("last_good", "first_bad", "followed")
    ),
    *(sa.Column(name, sa.Double, nullable=False) for name in ("size", "error", "z")),
)


def keep(store: Store, alerts: Sequence[Alert]) -> None:
    """Exactly these alerts, in one transaction. Raises MeasureError."""
    with store.writing() as connection:
        _tables.create_all(connection)
        for table in (STEPS, ALERTS):
            connection.execute(table.delete())
        for alert in alerts:
            connection.execute(ALERTS.insert().values(**_alert(alert)))
            for step in alert.steps:
                own = {
                    name: getattr(step, name)
                    for name in ("series", "size", "error", "z")
                }
                ends = {
                    "last_good": step.last_good.experiment,
                    "first_bad": step.first_bad.experiment,
                }
                connection.execute(
                    STEPS.insert().values(
                        alert=alert.id, followed=step.by, **own, **ends
                    )
                )


def _alert(alert: Alert) -> dict[str, object]:
    same = {
        name: getattr(alert, name)
        for name in ("id", "kind", "state", "triage", "why", "range_word", "opened")
    }
    return {
        **same,
        "last_good": alert.last_good.experiment if alert.last_good else None,
        "first_bad": alert.first_bad.experiment if alert.first_bad else None,
        "size": alert.steps[0].size if alert.steps else None,
        "experiments": msgspec.json.encode(alert.experiments).decode(),
    }
