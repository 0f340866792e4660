"""Tables of a history's database, and the way from each older version to the newest: SQL of SQLite and PostgreSQL."""

from __future__ import annotations

import sqlalchemy as sa

VERSION = 3

SCHEMA = """
CREATE TABLE iodelta_history (version INTEGER NOT NULL);
CREATE TABLE experiment (
    id TEXT NOT NULL PRIMARY KEY, sha TEXT NOT NULL, t DOUBLE PRECISION NOT NULL, machine TEXT NOT NULL,
    epoch TEXT NOT NULL, facts TEXT NOT NULL, subject TEXT NOT NULL, folder TEXT NOT NULL, state TEXT NOT NULL
);
CREATE INDEX ix_experiment_t ON experiment (t);
CREATE TABLE series (
    id BIGINT NOT NULL PRIMARY KEY, key TEXT NOT NULL, cell TEXT NOT NULL, variant TEXT NOT NULL,
    better TEXT NOT NULL, unit TEXT NOT NULL, version TEXT NOT NULL DEFAULT ''
);
CREATE TABLE scan (series BIGINT NOT NULL PRIMARY KEY, version TEXT NOT NULL, found TEXT NOT NULL);
CREATE TABLE point (
    series BIGINT NOT NULL REFERENCES series (id),
    experiment TEXT NOT NULL REFERENCES experiment (id) ON DELETE CASCADE,
    y DOUBLE PRECISION NOT NULL, se DOUBLE PRECISION NOT NULL, lag1 DOUBLE PRECISION NOT NULL, n INTEGER NOT NULL,
    r DOUBLE PRECISION, r_se DOUBLE PRECISION, flags TEXT NOT NULL DEFAULT '', PRIMARY KEY (series, experiment)
);
CREATE INDEX point_experiment ON point (experiment)
"""
"""``scan`` is what a scan found in a series, and in which version of it; each night gives a series another version."""

ALERTS = """
CREATE TABLE IF NOT EXISTS alert (
    id TEXT NOT NULL PRIMARY KEY, kind TEXT NOT NULL, state TEXT NOT NULL, triage TEXT NOT NULL, why TEXT NOT NULL,
    range_word TEXT NOT NULL, opened DOUBLE PRECISION NOT NULL, last_good TEXT, first_bad TEXT, size DOUBLE PRECISION,
    experiments TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS step (
    alert TEXT NOT NULL, series BIGINT NOT NULL, last_good TEXT NOT NULL, first_bad TEXT NOT NULL,
    followed TEXT NOT NULL, size DOUBLE PRECISION NOT NULL, error DOUBLE PRECISION NOT NULL, z DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (alert, series)
);
DELETE FROM step;
DELETE FROM alert
"""
"""Alerts follow from points and log, and are written whole."""

MIGRATIONS: dict[int, tuple[str, ...]] = {
    1: ("ALTER TABLE point ADD COLUMN flags TEXT NOT NULL DEFAULT ''",),
    2: (
        "ALTER TABLE series ADD COLUMN version TEXT NOT NULL DEFAULT ''",
        "CREATE TABLE scan (series BIGINT NOT NULL PRIMARY KEY, version TEXT NOT NULL, found TEXT NOT NULL)",
    ),
}
"""Version -> statements that make the next version of it."""


def migrate(connection: sa.Connection, version: int) -> None:
    """Bring the tables from ``version`` to ``VERSION``, in the transaction of ``connection``."""
    for number in range(version, VERSION):
        for statement in (
            *MIGRATIONS[number],
            f"UPDATE iodelta_history SET version = {number + 1}",
        ):
            connection.exec_driver_sql(statement)
