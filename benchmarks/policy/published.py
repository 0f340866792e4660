"""What was published of the gist's workload: by the benchmark itself, and by the study that simulated it."""

from __future__ import annotations

import msgspec

from benchmarks.policy.gist import GROUPS


class Published(msgspec.Struct, frozen=True):
    """IOPS by group as printed: by the benchmark itself, and by the study that simulated it."""

    gist: dict[str, tuple[float, ...]]
    columns: dict[str, dict[str, tuple[float, ...]]]


def _by_group(*rows: tuple[float, ...]) -> dict[str, tuple[float, ...]]:
    return dict(zip(GROUPS, rows, strict=True))


PUBLISHED = Published(
    gist=_by_group(
        (65, 241, 649, 702, 1181),
        (537, 1180, 1706, 2477, 3647),
        (255, 225, 236, 229, 265),
        (0, 38, 257, 585, 967),
        (505, 717, 833, 1562, 2437),
        (50, 192, 150, 199, 247),
    ),
    columns={
        "A": _by_group(
            (73, 68, 87, 85, 68),
            (558, 523, 611, 641, 691),
            (112, 164, 169, 165, 201),
            (35, 62, 50, 59, 64),
            (495, 487, 590, 605, 665),
            (110, 171, 153, 168, 189),
        ),
        "F": _by_group(
            (67, 168, 362, 650, 934),
            (564, 859, 1159, 1454, 1751),
            (144, 144, 144, 145, 144),
            (49, 121, 258, 516, 769),
            (519, 786, 1062, 1331, 1603),
            (136, 137, 137, 137, 137),
        ),
        "B": _by_group(
            (72, 185, 324, 752, 815),
            (591, 923, 1210, 1482, 2096),
            (115, 161, 140, 162, 196),
            (35, 143, 243, 449, 830),
            (513, 795, 1141, 1377, 1980),
            (107, 161, 136, 164, 185),
        ),
    },
)
