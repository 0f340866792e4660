"""Results for a Python program: structs, polars frames, any format of a report, and a page in a notebook."""

from __future__ import annotations

import html
import io
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iodelta.errors import RequestError, needs_extra
from iodelta.report.stories.kinds import story_of
from iodelta.report.stories.story import Detail

if TYPE_CHECKING:
    import pandas
    import polars

    from iodelta.ingest.layouts import Layout
    from iodelta.report.formats.charts.model import Charts
    from iodelta.report.stories.kinds import Result
    from iodelta.study.audited import Audited
    from iodelta.study.cell import Compared
    from iodelta.study.comparison import Comparison as Compares
    from iodelta.study.experiment import Account
    from iodelta.trial import Finding, Trial
    from iodelta.verdict import Verdict

LARGEST = 95_000
"""Characters of a page in a notebook."""

HEIGHT = 480
"""Pixels of a page in a notebook, which scrolls."""


def framed(page: str) -> str:
    """Return a page in a frame: its style and its names touch nothing else in the notebook."""
    source = html.escape(page, quote=True)
    style = f"width:100%;height:{HEIGHT}px;border:1px solid #ccc"
    return f'<iframe srcdoc="{source}" sandbox="allow-scripts" style="{style}" title="iodelta"></iframe>'


def with_pictures(page: str, charts: Charts) -> str:
    """Return a page with as many of its charts, as SVG, as stay below ``LARGEST``; none without the extra pictures."""
    from iodelta.report.formats.charts.specs import drawn

    end = page.rindex("</body>")
    room = LARGEST - len(html.escape(page))
    pictures = []
    with suppress(RequestError):
        for figure in chain.from_iterable(figures for _, figures in charts):
            picture = drawn(figure) if figure.rows else ""
            room -= len(html.escape(picture))
            if room > 0:
                pictures.append(picture)
    return f"{page[:end]}{''.join(pictures)}{page[end:]}"


def frame_of(result: Result) -> polars.DataFrame:
    """Return the rows of a result, with the columns of ``--format csv``."""
    with needs_extra("frames", "a data frame"):
        import polars

    from iodelta.report.formats.render import rendered

    return polars.read_csv(
        io.BytesIO(rendered(result, "csv")), infer_schema_length=None
    )


class Told:
    """What every result can be asked."""

    def __init__(self, result: Result) -> None:
        self._result = result

    @property
    def answer(self) -> str:
        """Return the answer in a sentence or two, no stronger than the verdicts."""
        return story_of(self._result).answer

    @property
    def exit_code(self) -> int:
        """Return what the command would exit with: 0 nothing worse, 1 worse, 3 inconclusive, 4 nothing measured."""
        code: int = getattr(self._result, "exit_code")  # noqa: B009 (every result with a class here has one)
        return code

    def table(self) -> polars.DataFrame:
        """Return a row for each cell, variant and metric, with the columns of ``--format csv``."""
        return frame_of(self._result)

    def report(self, format: str = "markdown") -> str:
        """Return the report in a format of the command line: markdown, mail, csv, json, html, junit, ktap, github or
        bmf.

        Raises RequestError for another one, and for a format that this result has not.
        """
        if format == "html":
            return self._page()
        from iodelta.report.formats.render import BUILDS, TEXTS, rendered

        if format not in TEXTS | BUILDS:
            raise RequestError(
                f"not a format: {format!r}",
                remedy=f"use html, {', '.join(TEXTS | BUILDS)}",
            )
        return rendered(self._result, format, self._detail()).decode("utf-8", "replace")

    def _detail(self) -> Detail:
        return Detail()

    def _charts(self) -> Charts:
        return ()

    def _page(self) -> str:
        from iodelta.report.formats.html.pages import html_of

        return html_of(self._result, self._charts(), self._detail()).decode()

    def to_pandas(self) -> pandas.DataFrame:
        """``table()`` as a frame of pandas. Raises RequestError where pandas is not installed."""
        with needs_extra("pandas", "a pandas frame"):
            import pandas
        return pandas.DataFrame(self.table().to_dict(as_series=False))

    def _repr_html_(self) -> str:
        """Return the report's own page, its charts as pictures: a notebook would store the script that draws them each
        time.
        """
        from iodelta.report.formats.html.pages import html_of

        page = html_of(self._result, (), self._detail()).decode()
        return framed(with_pictures(page, self._charts()))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.answer}>"


class Experiment(Told):
    """The folder of an experiment, complete or still being measured, or a bundle of one."""

    def __init__(self, path: Path) -> None:
        from iodelta.bundle.packed import opened
        from iodelta.report.derived import charted

        folder = opened(path)
        self._source, self._path = path, folder.path
        self._account, self._drawn = charted(folder)
        super().__init__(self._account)

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._path

    @property
    def account(self) -> Account:
        """Everything that its report says, as in ``verdict.json``."""
        return self._account

    @property
    def question(self) -> str:
        """Return what the experiment asks."""
        return self._account.plan.experiment.question

    @property
    def state(self) -> str:
        """``complete``, ``budget``, ``interrupted``, ``failed: ...`` or ``running``."""
        return self._account.state

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Return one for each cell, variant and metric."""
        return self._account.judgement.verdicts

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return what makes numbers of it untrustworthy."""
        from iodelta.report.stories.statements import all_findings

        return tuple(all_findings(self._account))

    def trials(self) -> polars.DataFrame:
        """Return a row for each trial and direction, as in ``trials.parquet``: latencies in ns, sizes in bytes."""
        from iodelta.report.derived import frame_of as of_trials

        return of_trials(self._trials())

    def histograms(self) -> polars.DataFrame:
        """Latencies in fio's bins: trial, cell, variant, block, direction, which latency, edges of the bin in ns
        (``low`` belongs to it, ``high`` does not), and the I/Os in it."""
        with needs_extra("frames", "a data frame"):
            import polars

        names = ("trial", "cell", "variant", "block", "direction", "latency")
        kinds = (
            polars.Int64,
            polars.String,
            polars.String,
            polars.Int64,
            polars.String,
            polars.String,
        )
        schema = dict(
            zip(
                (*names, "low", "high", "ios"),
                (*kinds, *([polars.Int64] * 3)),
                strict=True,
            )
        )
        rows = list(chain.from_iterable(map(_bins, self._trials())))
        return polars.DataFrame(rows, schema=schema, orient="row")

    def _trials(self) -> list[Trial]:
        from iodelta.bundle.packed import opened
        from iodelta.study.judging import judged

        trials = judged(opened(self._source)).trials
        return [trials[number] for number in sorted(trials)]

    def _charts(self) -> Charts:
        return self._drawn


def _bins(trial: Trial) -> Iterator[tuple[Any, ...]]:
    from iodelta.trial import bin_edges

    named = (trial.number, trial.cell, trial.variant, trial.block)
    for direction in trial.directions:
        for what in ("lat", "clat", "slat"):
            latency = getattr(direction, what)
            if latency is None or latency.histogram is None:
                continue
            for index, count in zip(
                latency.histogram.indexes, latency.histogram.counts, strict=True
            ):
                low, high = bin_edges(index)
                yield (*named, direction.kind, what, low, high, count)


class Comparison(Told):
    """Two sides or more, of any origin."""

    def __init__(
        self, result: Compares, layouts: list[Layout], baseline: str | None
    ) -> None:
        super().__init__(result)
        self._compares, self._layouts, self._baseline = result, layouts, baseline

    @property
    def compared(self) -> tuple[Compared, ...]:
        """Return one for each cell, metric and variant, with its word and why."""
        return self._compares.compared

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return what makes numbers of it untrustworthy."""
        return self._compares.findings

    def _charts(self) -> Charts:
        from iodelta.report.formats.html.pages import charts_of

        return charts_of(
            self._compares, self._layouts, self._compares.paths, self._baseline
        )


class Audit(Told):
    """What the rules find in results."""

    def __init__(self, result: Audited) -> None:
        super().__init__(result)
        self._audited = result

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings of rules, sentences and false claims."""
        claims = (claim.finding() for claim in self._audited.claims)
        hits = (hit.finding for hit in self._audited.hits)
        return (
            *hits,
            *self._audited.findings,
            *(finding for finding in claims if finding is not None),
        )
