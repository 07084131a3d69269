"""A closed round as one HTML page."""

from datetime import UTC, datetime
from html import escape

import numpy as np
from numpy.typing import NDArray

from veiltab.common.collection.round import RoundStatus
from veiltab.common.core.numbers.confidence import CONFIDENCE
from veiltab.common.study.file import Study
from veiltab.common.web.document import card_table, facts, page, table
from veiltab.researcher.collection.guarantee import bounds, centre, centre_text
from veiltab.researcher.collection.results.round_picture import VALUES_SHOWN, frequencies_picture
from veiltab.researcher.collection.round_text import excess_text, weight_text
from veiltab.researcher.drawing.style import figure
from veiltab.researcher.frequency.frequencies import Frequencies, estimate
from veiltab.researcher.frequency.tally import Tally


def report_page(  # noqa: PLR0913, PLR0917 - what a report depends on
    study: Study,
    status: RoundStatus,
    tally: Tally,
    estimator: str | None = None,
    confidence: float = CONFIDENCE,
    truth: NDArray[np.float64] | None = None,
) -> str:
    """Return the HTML report of a closed round.

    Args:
        study: source of the title and the question.
        estimator: by default the one that fits the rates.
        truth: true counts, shape (d,) (nodes), where they are known (a demonstration).
    """
    result = estimate(tally, estimator, confidence)
    spec = status.round
    rates = ", ".join(f"{s.name} {s.rate}" for s in spec.strata[:8]) + (", ..." if len(spec.strata) > 8 else "")
    rows = facts(
        (
            ("round", spec.round_id),
            ("question", f"{spec.question} ({spec.size:,} values)"),
            ("nodes n", f"{spec.population:,}"),
            ("reports", f"{sum(status.reports):,}"),
            ("probability of reporting", rates if len(spec.strata) > 1 else str(spec.strata[0].rate)),
            ("randomiser", spec.oracle),
            ("study file, SHA-256", spec.study_digest),
            ("epsilon of a report", str(spec.randomiser.epsilon.normalize())),
            ("closed", f"{datetime.fromtimestamp(status.closed, UTC):%Y-%m-%d %H:%M} UTC"),
        )
    )
    caption = _caption(result, shown_truth=truth is not None)
    sections = (
        ("What was collected", rows),
        ("Who faces which epsilon", card_table(bounds(status), centre_text(centre(status, result)))),
        ("How to read this", _how_to_read(result, excess_text(tally), weight_text(status))),
        ("Estimates", figure(lambda sheet: frequencies_picture(result, truth, sheet), caption)),
        ("All values", _numbers(result, truth)),
    )
    lead = f"How many of {spec.population:,} nodes hold each value, from {sum(status.reports):,} randomised reports."
    return page(f"{study.title}: {spec.question}", lead, sections)


def _how_to_read(result: Frequencies, excess: str, weight: str) -> str:
    beware = " ".join(sentence for sentence in (result.biased, result.warning, excess) if sentence)
    percent = f"{100 * result.confidence:g}%"
    return (
        f'<div class="read"><p>Every node perturbed its value itself, and reported only with some probability. The '
        f"estimate ({result.estimator}) takes the average effect of both out again; a small share may come out "
        f"negative. Use it for sums and differences. The <strong>projected</strong> value belongs to the nearest "
        f"distribution without negative shares; it is biased, small shares in particular.</p>\n"
        f"<p>An interval holds the true share of its own value in about {percent} of all rounds like this one. It "
        f"covers both the nodes' coins and their randomisation."
        f"{f' <strong>{escape(beware)}</strong>' if beware else ''} {escape(weight)}</p></div>"
    )


def _caption(result: Frequencies, *, shown_truth: bool) -> str:
    scope = (
        f"The {VALUES_SHOWN} largest of {len(result.labels):,} values. " if len(result.labels) > VALUES_SHOWN else ""
    )
    truth = " Black steps: truth." if shown_truth else ""
    return f"{scope}Dot and bar: estimate and its interval. Open diamond: projected.{truth}"


def _numbers(result: Frequencies, truth: NDArray[np.float64] | None) -> str:
    parts = [
        result.fractions,
        result.shares(result.standard_errors),
        result.shares(result.low),
        result.shares(result.high),
    ]
    parts += [result.shares(result.projected), *([] if truth is None else [result.shares(truth)])]
    headings = (
        "value",
        "estimate",
        "se",
        "low",
        "high",
        "projected",
        "nodes, about",
        *(["truth"] if truth is not None else []),
    )
    rows = []
    for place, label in enumerate(result.labels):
        shares = [f"{100 * part[place]:.3f}%" for part in parts]
        nodes = f"{result.counts[place]:,.0f}"
        rows.append((label, *shares[:5], nodes, *shares[5:]))
    return table(headings, rows, numeric=set(range(1, len(headings))))
