"""The stripe cache of RAID 5 arrays; this kernel may have no md, so they are drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from iodelta import knob
from iodelta.errors import RequestError

from .rooted import Rooted, on_sda, target

CACHE = "/sys/block/md5/md/stripe_cache_size"


@pytest.fixture
def raid5(tmp_path: Path) -> Rooted:
    files = {CACHE: "256", "/sys/block/md5/md/uuid": "aa:bb"}
    for disk in ("md5", "dm-0", "sda"):
        files |= {f"/sys/class/block/{disk}/dev": "9:0", f"/sys/class/block/{disk}/size": "8"}
    files |= {"/sys/class/block/dm-0/slaves/md5/x": "", "/sys/class/block/md5/slaves/sda/x": ""}
    return Rooted(tmp_path, files)


@pytest.mark.parametrize("disk", ["md5", "dm-0"])
def test_the_stripe_cache_of_an_array_is_set_wherever_it_is_below_the_target(raid5: Rooted, disk: str) -> None:
    cache = knob.knob("md.stripe_cache_size", raid5, target(disk))
    assert cache.available() is None
    saved = cache.save()
    assert saved.disks == (("md5", "md/uuid aa:bb"),)
    cache.apply("8192")
    cache.verify("8192")
    knob.restore(raid5, saved)
    assert raid5.writes == [(CACHE, "8192"), (CACHE, "256")]


@pytest.mark.parametrize("value", ["16", "32769", "lots", "-1", "1e4", "9" * 5000])
def test_sizes_outside_what_md_takes_are_refused(raid5: Rooted, value: str) -> None:
    with pytest.raises(RequestError, match="17 to 32768"):
        knob.knob("md.stripe_cache_size", raid5, target("md5")).check(value)


def test_a_target_on_no_such_array_says_so(raid5: Rooted) -> None:
    assert "needs an md array" in str(on_sda("md.stripe_cache_size", raid5).available())
