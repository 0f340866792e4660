"""The scenarios of the hostile benchmark: what is simulated, and which bounds must hold of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchmarks.verdicts.disturbances import (
    Disturbance,
    autoregressive,
    bursts,
    contaminated,
    drift,
    growing,
    heavy_tails,
    loaded,
    moving_average,
    normal,
    periodic,
    pink,
    recorded,
    throttled,
    two_modes,
    warm_up,
    whole_trials,
)
from benchmarks.verdicts.experiments import Setup
from benchmarks.verdicts.noise import RECORDED


@dataclass(frozen=True)
class Bound:
    """What must hold of one measure: at most ``most`` of the experiments (or a median so large), at least ``least``."""

    measure: str
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True)
class Scenario:
    """A setup, its place in the table and its bounds. Measures without a bound are shown all the same."""

    name: str
    group: str
    setup: Setup
    bounds: tuple[Bound, ...]
    shown: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Its name among all."""
        return f"{self.group}: {self.name}"

    @property
    def first(self) -> bool:
        """Whether it gets all experiments that are asked for: alarms are rare, and a projection is a yes or no."""
        return self.setup.null or self.setup.drawn


COVERED = (Bound("typical covered", least=0.945), Bound("total covered", least=0.945))
BOUNDED = 0.1
"""Stalls in fewer trials than this may not happen in a whole experiment: the stated bound of stalls speaks of them."""

STALLS_FOUND = {0.1: 0.5, 0.2: 0.8, 0.3: 0.9}
"""By share of the variant's trials that stall, in how many experiments of 80 blocks they must be called a regression:
stalls that fall on one variant alone k times have a p value of 2^-k, however deep they are."""

COVERED_WHERE_SEEN = (Bound("typical covered", least=0.945), Bound("total covered, a stall seen", least=0.945))
QUIET = (Bound("alarm", most=0.05), *COVERED)
SIGN = Bound("wrong sign", most=0.005)

LONG_RECORDINGS = ("busy-virtio-randread-qd4",)
"""Recordings with trials enough for 80 blocks at a place of their own; the others have 42 and 50."""

AT_MARGIN = (1 / 1.02 - 1, 0.02)
"""Changes whose log-ratio is exactly the margin of 2 %, worse and better."""

NOISES: dict[str, Disturbance] = {
    "normal, CV 2 %": normal(0.02),
    "normal, CV 5 %": normal(0.05),
    "normal, CV 10 %": normal(0.10),
    "t3, CV 2 %": heavy_tails(0.02),
    "2 % Cauchy, CV 2 %": contaminated(0.02, 0.02),
    "drift -20 %": drift(-0.2),
    "drift -60 %": drift(-0.6),
    "warm-up from -30 %": warm_up(0.3, 20),
    "AR(.9), sd 5 %": autoregressive(0.9, 0.05),
    "AR(.99), sd 5 %": autoregressive(0.99, 0.05),
    "two modes 5 % apart": two_modes(0.05),
    "two modes 30 % apart": two_modes(0.3),
    "late throttling -30 %": throttled(0.3),
    "GC -40 %, period 4, 2 long": whole_trials(0.4, 4, 2),
    "GC -40 %, period 8, 2 long": whole_trials(0.4, 8, 2),
    "GC -40 %, period 1.3, 0.5 long": periodic(0.4, 1.3, 0.5),
    "GC -40 %, period 7.3, 2 long": periodic(0.4, 7.3, 2),
    "MA(1), sd 5 %": moving_average(0.05),
    "duty cycle 2+2, 5 %": whole_trials(0.05, 4, 2),
    "duty cycle 2+2, 30 %": whole_trials(0.3, 4, 2),
    "1/f, sd 5 %": pink(0.05),
    "bursts of 2, -40 %": bursts(0.4, 0.1),
    "load of others, CV over 50 %": loaded(1.5, 4, 6),
    "noise that grows from 0.2 to 20 %": growing(0.002, 0.2),
}


OF_MANY = ("normal, CV 5 %", "GC -40 %, period 4, 2 long")
OF_SIXTEEN = (*OF_MANY, "MA(1), sd 5 %", "drift -60 %")
OF_SIX = (*OF_SIXTEEN, "normal, CV 2 %", "t3, CV 2 %", "AR(.9), sd 5 %", "1/f, sd 5 %")
"""Noises of the larger matrices."""


def scenarios() -> list[Scenario]:
    """All of them, in the order of the table."""
    return [
        *_no_change(),
        *_plans(),
        *_families(),
        *_recorded(),
        *_equivalence(),
        *_stalls(),
        *_carry(),
        *_mirrored(),
        *_power(),
        *_bins(),
        *_projections(),
        *_second_round(),
    ]


def _no_change() -> list[Scenario]:
    found = [Scenario(name, "No change", Setup(noise), QUIET) for name, noise in NOISES.items()]
    uneven = Setup(normal(0.02), spread=(0.1**2 - 0.02**2) ** 0.5)
    return [*found, Scenario("variances 2 against 10 % (total truly +0.48 %)", "No change", uneven, QUIET)]


def _plans() -> list[Scenario]:
    found = []
    for blocks in (6, 8, 12, 20):
        for name, noise in NOISES.items():
            setup = Setup(noise, blocks=blocks)
            found.append(Scenario(f"{blocks} blocks: {name}", "No change, short plans", setup, QUIET))
    return found


def _families() -> list[Scenario]:
    """Of one comparison there is every noise above; the larger the matrix, the fewer can be paid for."""
    sizes = {3: (1, 3, tuple(NOISES)), 6: (3, 2, OF_SIX), 16: (8, 2, OF_SIXTEEN), 64: (32, 2, OF_MANY)}
    found = []
    for size, (cells, metrics, names) in sizes.items():
        for name in names:
            setup = Setup(NOISES[name], cells=cells, metrics=metrics)
            title = f"{size} comparisons ({cells} x {metrics}): {name}"
            found.append(Scenario(title, "No change, families", setup, QUIET[:1], ()))
    return found


def _recorded() -> list[Scenario]:
    """Six comparisons a time, as many blocks as the recording has trials for."""
    found = []
    for path in sorted(RECORDED.glob("*.json")):
        setup = Setup(recorded(path), cells=6, blocks=80 if path.stem in LONG_RECORDINGS else 20)
        name = f"6 comparisons (6 x 1), {setup.blocks} blocks: {path.stem}"
        bounds = (Bound("exit code 1", most=0.05), Bound("alarm", most=0.05))
        found.append(Scenario(name, "No change, recorded trials", setup, bounds, ()))
    return found


def _equivalence() -> list[Scenario]:
    found = []
    for name in ("normal, CV 2 %", "normal, CV 5 %", "t3, CV 2 %", "GC -40 %, period 4, 2 long"):
        for change in AT_MARGIN:
            bounds: tuple[Bound, ...] = (Bound("equivalent", most=0.025), SIGN, *COVERED)
            setup = Setup(NOISES[name], change=change)
            found.append(Scenario(f"{change:+.2%}: {name}", "A change of one margin", setup, bounds))
        for change in (1 / 1.03 - 1, 0.03):
            bounds = (Bound("equivalent", most=0.005), SIGN, *COVERED)
            setup = Setup(NOISES[name], change=change)
            found.append(Scenario(f"{change:+.2%}: {name}", "A change of 1.5 margins", setup, bounds))
    return found


def _stalls() -> list[Scenario]:
    found = []
    for share in (0.05, 0.1, 0.2, 0.3):
        for depth in (0.2, 0.5, 0.9):
            for cv in (0.005, 0.02):
                setup = Setup(normal(cv), stalls=share, depth=depth)
                held = share >= BOUNDED and abs(setup.total) >= setup.margin
                bounds: tuple[Bound, ...] = (Bound("equivalent", most=0.06),) if held else ()
                if share in STALLS_FOUND:
                    bounds = (Bound("regression", least=STALLS_FOUND[share]), *bounds)
                name = f"{share:.0%} of its trials lose {depth:.0%}, CV {cv:.1%}"
                never = Bound("equivalent in spite of the total", most=0.0)
                covered, shown = (COVERED, ()) if share >= BOUNDED else (COVERED_WHERE_SEEN, ("total covered",))
                found.append(Scenario(name, "The variant stalls", setup, (*bounds, never, SIGN, *covered), shown))
    flagged = Setup(normal(0.02), stalls=0.2, depth=0.3, flags=True)
    bounds = (Bound("regression", least=0.6), Bound("equivalent", most=0.06), SIGN, *COVERED)
    found.append(Scenario("20 % of its trials lose 30 % and are flagged", "The variant stalls", flagged, bounds))
    zeros = Setup(normal(0.02), change=-0.3, stalls=1 / 80, depth=1.0)
    bounds = (Bound("regression", least=0.98), SIGN, *COVERED)
    found.append(Scenario("-30 %, and 1 trial of 80 does nothing", "The variant stalls", zeros, bounds))
    return [*found, *_better_otherwise()]


def _better_otherwise() -> list[Scenario]:
    """Faster in a typical trial, and less work in all: how often it is called better before a stall was seen is what
    the stated bound of stalls leaves open."""
    found = []
    for share in (0.05, 0.1, 0.2):
        setup = Setup(normal(0.01), change=0.03, stalls=share, depth=0.9)
        bounds = (Bound("improvement, a stall seen", most=0.025), Bound("equivalent", most=0.06), *COVERED_WHERE_SEEN)
        name = f"{share:.0%} of its trials lose 90%, the others gain 3%, CV 1.0%"
        found.append(Scenario(name, "The variant stalls", setup, bounds, ("improvement", "regression")))
    return found


CARRY = "Carry-over, the variant itself equal"

MEMORY = {0.0: "", 0.5: ", half of it lasts", 0.8: ", 80 % of it lasts"}
"""How much of a debt each further trial leaves, and how that is written."""


def _carry() -> list[Scenario]:
    found = []
    shown = ("equivalent",)
    for cv in (0.01, 0.02):
        for debt, most in ((0.03, 0.08), (0.10, 0.02)):
            for memory, lasts in MEMORY.items():
                if (cv, memory) == (0.02, 0.0):
                    continue  # among those below
                setup = Setup(normal(cv), debt=debt, memory=memory)
                name = f"debt {debt:.0%}{lasts}, CV {cv:.0%}, plain blocks"
                bounds = (Bound("improvement", most=most),)
                found.append(Scenario(name, CARRY, setup, bounds, shown))
                setup, name = replace(setup, debt=-debt), name.replace("debt", "benefit")
                found.append(Scenario(name, CARRY, setup, (Bound("regression", most=most),), shown))
    alone = [*_stalls_after_the_baseline(), *_onto_the_baseline_alone()]
    return [*_carry_of_one_trial(), *found, *alone, *_carry_in_superblocks()]


def _onto_the_baseline_alone() -> list[Scenario]:
    """What the variant leaves is found by the baseline's trials alone: three of four follow one of its. A benefit so
    small that it is not seen passes for a regression: what would keep it out would keep real ones out as well."""
    found = []
    for cv in (0.01, 0.02):
        for debt, most in ((0.03, 0.08), (0.10, 0.02)):
            setup = Setup(normal(cv), debt=debt, onto_baseline=True)
            name = f"debt {debt:.0%} that the baseline alone finds, CV {cv:.0%}, plain blocks"
            found.append(Scenario(name, CARRY, setup, (Bound("improvement", most=most),), ("equivalent",)))
            bounds = (Bound("regression", most=most),) if debt > cv + 0.01 else ()
            setup, name = replace(setup, debt=-debt), name.replace("debt", "benefit")
            found.append(Scenario(name, CARRY, setup, bounds, ("regression", "equivalent")))
    return found


def _stalls_after_the_baseline() -> list[Scenario]:
    """What the baseline leaves is a stall now and then: three of four trials of the variant follow one of its."""
    found = []
    for share in (0.1, 0.2):
        setup = Setup(normal(0.02), stalls=share, depth=0.5, after_baseline=True)
        name = f"{share:.0%} of trials after the baseline lose 50%, CV 2%, plain blocks"
        found.append(Scenario(name, CARRY, setup, (Bound("regression", most=0.08),), ("equivalent",)))
    return found


def _carry_in_superblocks() -> list[Scenario]:
    """What lasts: a counted trial is on its way to the variant's state, whose change is the one that is deployed."""
    found = []
    for debt, opposite in ((0.03, "improvement"), (0.1, "improvement"), (-0.03, "regression"), (-0.1, "regression")):
        for memory, lasts in MEMORY.items():
            for conditioning in (1, 3):
                setup = Setup(normal(0.01), debt=debt, memory=memory, superblocks=True, conditioning=conditioning)
                kind = "debt" if debt > 0 else "benefit"
                name = f"{kind} {abs(debt):.0%}{lasts}, CV 1%, superblocks with {conditioning} uncounted"
                found.append(Scenario(name, CARRY, setup, _deployed(setup, opposite), ("typical covered",)))
    none = Setup(normal(0.01), superblocks=True)
    bounds = (Bound("alarm", most=0.05), Bound("direct alarm", most=0.05), Bound("equivalent", least=0.9))
    return [*found, Scenario("none, CV 1%, superblocks", CARRY, none, bounds)]


def _deployed(setup: Setup, opposite: str) -> tuple[Bound, ...]:
    """What is deployed must be in the interval that is given of it, however little of it is seen at the first looks."""
    covered = Bound("deployed covered", least=0.945)
    return (Bound("direct alarm", most=0.05), Bound(opposite, most=0.005), Bound("equivalent", most=0.025), covered)


def _carry_of_one_trial() -> list[Scenario]:
    found = []
    for debt, most in ((0.03, 0.08), (0.10, 0.02)):
        plain = Setup(normal(0.02), debt=debt)
        bounds: tuple[Bound, ...] = (Bound("improvement", most=most),)
        shown = ("regression", "equivalent")
        found.append(Scenario(f"{debt:.0%}, plain blocks", CARRY, plain, bounds, shown))
        paired = replace(plain, superblocks=True)
        bounds = (
            Bound("direct alarm", most=0.05),
            Bound("total covered", least=0.945),
            Bound("typical covered", least=0.945),
            Bound("improvement", most=0.005),
        )
        name = f"{debt:.0%}, superblocks"
        found.append(Scenario(name, CARRY, paired, bounds, shown))
    return found


def _mirrored() -> list[Scenario]:
    """Folders made before drew one order for two blocks, ABBA or BAAB, and are judged by that."""
    group = "Mirrored orders of older folders"
    found = []
    for name in OF_SIXTEEN:
        setup = Setup(NOISES[name], mirrored=True)
        found.append(Scenario(f"no change: {name}", group, setup, QUIET))
    for debt, most in ((0.03, 0.08), (0.10, 0.02)):
        for memory, lasts in MEMORY.items():
            setup = Setup(normal(0.01), debt=debt, memory=memory, mirrored=True)
            name = f"debt {debt:.0%}{lasts}, CV 1%"
            found.append(Scenario(name, group, setup, (Bound("improvement", most=most),), ("equivalent",)))
            setup, name = replace(setup, debt=-debt), name.replace("debt", "benefit")
            found.append(Scenario(name, group, setup, (Bound("regression", most=most),), ("equivalent",)))
    return found


def _power() -> list[Scenario]:
    group = "Power and size"
    found = []
    for cv, change, share, blocks in ((0.02, -0.02, 0.98, 22), (0.05, -0.05, 0.995, 22)):
        bounds: tuple[Bound, ...] = (
            Bound("regression", least=share),
            Bound("median blocks", most=blocks),
            SIGN,
            *COVERED,
        )
        found.append(Scenario(f"{change:+.0%}, CV {cv:.0%}", group, Setup(normal(cv), change=change), bounds))
    modes = Setup(two_modes(0.3), change=-0.1)
    bounds = (Bound("regression", least=0.9), SIGN, *COVERED)
    found.append(Scenario("-10 %, two modes 30 % apart", group, modes, bounds))
    for cv in (0.02, 0.05, 0.10):
        setup = Setup(normal(cv), change=AT_MARGIN[0])
        bounds = (Bound("size said / true", least=0.9, most=1.15), SIGN)
        found.append(Scenario(f"size of -1.96 %, CV {cv:.0%}", group, setup, bounds, ("regression",)))
    return found


def _bins() -> list[Scenario]:
    group = "Printed percentiles"
    found = []
    for cv in (0.0, 0.002, 0.02):
        setup = Setup(normal(cv), binned=True)
        found.append(Scenario(f"no change, CV {cv:.1%}", group, setup, QUIET, ("no word",)))
        setup = Setup(normal(cv), change=0.016, binned=True)
        found.append(Scenario(f"+1.6 %, CV {cv:.1%}", group, setup, (SIGN, *COVERED), ("no word",)))
    return found


def _projections() -> list[Scenario]:
    """What a range is said to hold is an average over the changes that nine blocks leave possible, so it has bounds
    where the truth is drawn; at one truth it holds what it holds."""
    group, measures = "Projection at the first look", ("stops in the projected range", "share said of the range")
    honest: tuple[Bound, ...] = (
        Bound("stops there, less the share said", least=-0.05, most=0.05),
        Bound("stops in the projected range", least=0.55, most=0.65),
    )
    found = [Scenario("any change, any noise", group, Setup(normal(0.02), drawn=True), honest, measures)]
    for cv, change in ((0.02, 0.0), (0.02, -0.01), (0.05, 0.0), (0.05, -0.02), (0.05, -0.03), (0.10, -0.05)):
        setup = Setup(normal(cv), change=change)
        found.append(Scenario(f"{change:+.0%}, CV {cv:.0%}", group, setup, (), measures))
    return found


SECOND = "Second round: what the row says, and losses that begin late"


def _second_round() -> list[Scenario]:
    """What the bounds above did not catch. A change right after each change of variant alone is not one of its own."""
    found = []
    for loss in (0.05, 0.1, 0.2, 0.5):
        for begins in (5, 15):
            setup = Setup(normal(0.02), change=-loss, blocks=30, begins=begins)
            bounds: tuple[Bound, ...] = (
                Bound("regression", least=0.9 if loss > 0.05 else 0.7),
                Bound("begins within 2 blocks", least=0.8),
            )
            found.append(Scenario(f"-{loss:.0%} from block {begins} of 30", SECOND, setup, bounds))
    first = Setup(normal(0.02), change=-0.3, blocks=30, ends=3)
    found.append(Scenario("-30% in the first 3 blocks of 30", SECOND, first, (Bound("has a course", least=0.9),)))
    for switched in (0.03, -0.03, 0.1, -0.1):
        for cv in (0.01, 0.02):
            setup = Setup(normal(cv), switched=switched)
            name = f"{switched:+.0%} only after a change of variant, CV {cv:.0%}"
            found.append(Scenario(name, SECOND, setup, (), ("improvement", "regression", "equivalent")))
            paired = replace(setup, superblocks=True)
            shown = ("equivalent", "improvement", "regression")
            found.append(Scenario(f"{name}, superblocks", SECOND, paired, (), shown))
    for runs in (1, 2, 4, 8):
        setup = Setup(normal(0.02), stalls=0.1, depth=0.9, runs=runs)
        bounds = (Bound("equivalent beyond its stated bound", most=0.06),)
        found.append(
            Scenario(f"10% stalls of 90% in runs of {runs}", SECOND, setup, bounds, ("equivalent", "regression"))
        )
    lasting = Setup(normal(0.02), change=-0.02, debt=0.03, memory=0.5)
    found.append(Scenario("-2% and a debt of 3% over two trials", SECOND, lasting, (Bound("equivalent", most=0.06),)))
    for blocks in (12, 80):
        setup = Setup(normal(0.02), modes=0.1, blocks=blocks)
        found.append(
            Scenario(f"two speeds of equal mean, {blocks} blocks", SECOND, setup, (), ("regression", "improvement"))
        )
    for margins in (1, 2, 5):
        for cv in (0.01, 0.02, 0.05, 0.1):
            setup = Setup(normal(cv), change=-0.02 * margins)
            bounds = (Bound("corrected / true", least=0.9, most=1.15),)
            found.append(Scenario(f"corrected size of {margins} margins, CV {cv:.0%}", SECOND, setup, bounds))
    return found
