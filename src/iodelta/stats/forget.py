"""Give back the memory of patterns that are kept between tests."""

from __future__ import annotations

from iodelta.stats import effect, replay


def forget_patterns() -> None:
    """Drop all sign patterns that were kept, which tests of the same number of blocks share.

    Those of 200 blocks take up to 100 MiB. A command ends soon; a server that judges now and then calls this afterwards.
    """
    for kept in (effect.sign_flips, replay.kept_replays):
        kept.cache_clear()
