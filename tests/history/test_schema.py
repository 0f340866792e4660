"""A history of an older version is brought up to date with all that is in it, or stays as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa
from nights import night
from test_store import server, url

from iodelta.errors import MeasureError, RequestError
from iodelta.history import place, schema
from iodelta.history.store import Store
from iodelta.probe.mounts import Mount

__all__ = ["server", "url"]

FIRST = """
CREATE TABLE experiment (
    id TEXT NOT NULL, sha TEXT NOT NULL, t DOUBLE PRECISION NOT NULL, machine TEXT NOT NULL, epoch TEXT NOT NULL,
    facts TEXT NOT NULL, subject TEXT NOT NULL, folder TEXT NOT NULL, state TEXT NOT NULL, PRIMARY KEY (id)
);
CREATE TABLE iodelta_history (version INTEGER NOT NULL);
INSERT INTO iodelta_history VALUES (1);
CREATE TABLE series (
    id BIGINT NOT NULL, "key" TEXT NOT NULL, cell TEXT NOT NULL, variant TEXT NOT NULL, better TEXT NOT NULL,
    unit TEXT NOT NULL, PRIMARY KEY (id)
);
CREATE TABLE point (
    series BIGINT NOT NULL, experiment TEXT NOT NULL, y DOUBLE PRECISION NOT NULL, se DOUBLE PRECISION NOT NULL,
    lag1 DOUBLE PRECISION NOT NULL, n INTEGER NOT NULL, r DOUBLE PRECISION, r_se DOUBLE PRECISION,
    PRIMARY KEY (series, experiment),
    FOREIGN KEY(series) REFERENCES series (id),
    FOREIGN KEY(experiment) REFERENCES experiment (id) ON DELETE CASCADE
);
CREATE INDEX ix_experiment_t ON experiment (t);
CREATE INDEX point_experiment ON point (experiment);
INSERT INTO experiment VALUES ('experiment-1', 'sha-1', 1700086400.0, 'stor3', 'e', '{"fio.version":"fio-3.33"}',
    '{"repo":"linux","commit":"01","describe":"v6.1","dirty":false,"labels":{}}', '/runs/1', 'complete');
INSERT INTO experiment VALUES ('experiment-2', 'sha-2', 1700172800.0, 'stor3', 'e', '{"fio.version":"fio-3.33"}',
    '{"repo":"linux","commit":"02","describe":"v6.2","dirty":false,"labels":{}}', '/runs/2', 'complete');
INSERT INTO series VALUES (1200581707026039469,
    '@key', 'randread 4k', 'new', 'higher', 'IOPS');
INSERT INTO point VALUES (1200581707026039469, 'experiment-1', 11.25, 0.01, 0.0, 12, 0.5, 0.004);
INSERT INTO point VALUES (1200581707026039469, 'experiment-2', 11.5, 0.01, 0.0, 12, NULL, NULL);
"""
"""What version 1 wrote, statement by statement."""

KEY = (
    '{"machine":"stor3","options":[["tool","fio"],["bs","4k"],["rw","randread"]],"condition":[],"knobs":[],"role":"",'
    '"metric":"read.iops","target":"block","twin":""}'
)


def old(url: str) -> None:
    """Make a history of version 1 there."""
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        for statement in FIRST.replace("@key", KEY).split(";\n"):
            if statement.strip():
                connection.exec_driver_sql(statement)
    engine.dispose()


def version(url: str) -> int:
    """The version of a database, read without iodelta."""
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT version FROM iodelta_history").scalar_one()
    engine.dispose()
    return int(found)


def test_a_history_of_the_first_version_keeps_its_points_and_takes_new_ones(url: str) -> None:
    old(url)
    store = Store(url)
    (line,) = store.lines()
    assert [(point.y, point.r, point.describe, point.flags) for point in line.points] == [
        (11.25, 0.5, "v6.1", ()),
        (11.5, None, "v6.2", ()),
    ]
    assert version(url) == schema.VERSION
    assert store.add(night(3)) == "added"
    assert [len(line.points) for line in store.lines()] == [3]  # the same series: its key has not changed
    store.close()


def test_what_is_made_anew_and_what_was_brought_up_to_date_have_the_same_columns(url: str, tmp_path: Path) -> None:
    old(url)
    other = f"sqlite:///{tmp_path / 'other.db'}"
    for where in (url, other):
        store = Store(where)
        store.prepare()
        store.close()

    def columns(place: str) -> dict[str, set[str]]:
        engine = sa.create_engine(place)
        found = sa.inspect(engine)
        tables = {name: {column["name"] for column in found.get_columns(name)} for name in found.get_table_names()}
        engine.dispose()
        return tables

    assert columns(url) == columns(other)


def test_a_migration_that_fails_leaves_the_old_version_whole(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old(url)
    store = Store(url)
    broken = (*schema.MIGRATIONS[1], "ALTER TABLE nothing ADD COLUMN x TEXT")
    with monkeypatch.context() as patched:
        patched.setitem(schema.MIGRATIONS, 1, broken)
        with pytest.raises(MeasureError, match="cannot use the history"):
            store.prepare()
    assert version(url) == 1
    assert len(store.lines()[0].points) == 2
    store.close()


def test_every_older_version_has_its_way() -> None:
    assert sorted(schema.MIGRATIONS) == list(range(1, schema.VERSION))


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs", "9p"])
def test_a_file_on_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    local = Mount("8:1", "/", "/", "ext4", "/dev/sda1", ())
    far = Mount("0:50", "/", str(tmp_path / "far"), kind, "server:/export", ())
    monkeypatch.setattr(place, "mounts", lambda machine: (local, far))
    with pytest.raises(RequestError, match=f"{kind} is a network file system"):
        Store(f"sqlite:///{tmp_path / 'far' / 'history.db'}").prepare()
    assert list(tmp_path.iterdir()) == []
    Store(f"sqlite:///{tmp_path / 'history.db'}").prepare()
    assert (tmp_path / "history.db").exists()
