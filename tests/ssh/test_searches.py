"""Searches and reproductions over SSH: what is built and decided is here, what is measured and set is there."""

from __future__ import annotations

import pytest
from acceptance.stand import Stand, kinds, queue, set_queue

from .host import Host

pytestmark = [pytest.mark.root, pytest.mark.fio, pytest.mark.beside, pytest.mark.xdist_group("ssh")]

READ = ("--rw=randread", "--bs=4k", "--direct=1", "--ioengine=libaio", "--iodepth=4")


def test_a_search_sets_and_measures_on_the_host_and_tells_the_author_of_its_system(stand: Stand, host: Host) -> None:
    """Limits of 400, 401 and 40 reads/s: the third is the culprit, and a throttle repeats exactly enough: to be taken
    for it, the second would have to stand still for three quarters of its trial."""
    node = stand.loop()
    set_queue(node, "scheduler", "kyber")
    limits = ("--item", "400", "--item", "401", "--item", "40", "--set", "cgroup.io_max=riops={item}")
    how = ("--exact", "90%", "--margin", "50%", "--first", "--seed", "1", "--trial", "1s", "--set")
    done = stand.run(
        *("bisect", *limits, *how, "block.scheduler=none", "--machine", "ssh:there", "--target", node),
        *("--folder", "search", "--", *READ),
    )
    assert done.code == 1, done
    assert "One culprit of 2 candidates: 40: read.iops" in done.out
    [session] = kinds(stand.place / "search/trials", "session")
    assert session["machine"] == "ssh:there"
    assert queue(node, "scheduler") == "kyber"
    assert not list((host.state / "pending").glob("*"))
    mail = stand.run("report", "search", "--format", "mail")
    assert f"  target: {node} (block" in mail.out
    assert all(f"  {name}: " in mail.out for name in ("CPU", "kernel", "fio")), mail


def test_a_command_that_prints_the_number_is_not_sent_to_a_host(stand: Stand) -> None:
    what = ("bisect", "--item", "1", "--item", "2", "--measure", "true", "--better", "lower")
    done = stand.run(*what, "--machine", "ssh:there", "--folder", "search")
    assert done.code == 2
    assert "--measure 'ssh HOST ...'" in done.err
    assert not (stand.place / "search").exists()
