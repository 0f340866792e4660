"""Tables of a history's database, and the way from each older version to the newest."""

from __future__ import annotations

import sqlalchemy as sa

VERSION = 3

TABLES = sa.MetaData()
VERSIONS = sa.Table(
    "iodelta_history", TABLES, sa.Column("version", sa.Integer, nullable=False)
)
EXPERIMENTS = sa.Table(
    "experiment",
    TABLES,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("sha", sa.Text, nullable=False),
    sa.Column("t", sa.Double, nullable=False, index=True),
    sa.Column("machine", sa.Text, nullable=False),
    sa.Column("epoch", sa.Text, nullable=False),
    sa.Column("facts", sa.Text, nullable=False),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("folder", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
)
SERIES = sa.Table(
    "series",
    TABLES,
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("cell", sa.Text, nullable=False),
    sa.Column("variant", sa.Text, nullable=False),
    sa.Column("better", sa.Text, nullable=False),
    sa.Column("unit", sa.Text, nullable=False),
    sa.Column("version", sa.Text, nullable=False, server_default=""),
)
SCANS = sa.Table(
    "scan",
    TABLES,
    sa.Column("series", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("version", sa.Text, nullable=False),
    sa.Column("found", sa.Text, nullable=False),
)
"""What a scan found in a series, and in which version of it; each night gives a series another version."""
POINTS = sa.Table(
    "point",
    TABLES,
    sa.Column("series", sa.BigInteger, sa.ForeignKey("series.id"), primary_key=True),
    sa.Column(
        "experiment",
        sa.Text,
        sa.ForeignKey("experiment.id", ondelete="CASCADE"),
        primary_key=True,
    ),
    *(sa.Column(name, sa.Double, nullable=False) for name in ("y", "se", "lag1")),
    sa.Column("n", sa.Integer, nullable=False),
    *(sa.Column(name, sa.Double) for name in ("r", "r_se")),
    sa.Column("flags", sa.Text, nullable=False, server_default=""),
)
sa.Index("point_experiment", POINTS.c.experiment)

MIGRATIONS: dict[int, tuple[str, ...]] = {
    1: ("ALTER TABLE point ADD COLUMN flags TEXT NOT NULL DEFAULT ''",),
    2: (
        "ALTER TABLE series ADD COLUMN version TEXT NOT NULL DEFAULT ''",
        "CREATE TABLE scan (series BIGINT NOT NULL PRIMARY KEY, version TEXT NOT NULL, found TEXT NOT NULL)",
    ),
}
"""Version -> statements that make the next version of it, the same for SQLite and PostgreSQL."""


def migrate(connection: sa.Connection, version: int) -> None:
    """Bring the tables from ``version`` to ``VERSION``, in the transaction of ``connection``."""
    for number in range(version, VERSION):
        for statement in MIGRATIONS[number]:
            connection.execute(sa.text(statement))
    if version != VERSION:
        connection.execute(VERSIONS.update().values(version=VERSION))
