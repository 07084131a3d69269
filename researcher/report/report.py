"""The result of a release as one HTML page that needs nothing else: no script, no font, no picture from elsewhere."""

from collections.abc import Sequence
from html import escape
from itertools import combinations
from math import floor, log10

import numpy as np
from numpy.typing import NDArray

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.cards.card import N_IS_EXACT, Bound
from veiltab.common.privacy.planning.planning import FEW_ROWS
from veiltab.common.web.document import card_table, codebook_table, facts, page, table
from veiltab.researcher.analysis.comparisons import conditional_shares
from veiltab.researcher.analysis.result import Analysis
from veiltab.researcher.drawing.drawable import Unit
from veiltab.researcher.drawing.pictures import (
    CELLS_SHOWN,
    CURVES,
    analysis_picture,
    estimates_picture,
    heat_map,
    largest,
    marginals_picture,
)
from veiltab.researcher.drawing.style import figure
from veiltab.researcher.estimates.estimation import Estimate, TableEstimate
from veiltab.researcher.estimates.independence import IndependenceTest, independence
from veiltab.researcher.estimates.people_present import PresentEstimate
from veiltab.researcher.numbers.means import means, means_by_each
from veiltab.researcher.status.release_status import TestResult
from veiltab.researcher.survival.curves import survival
from veiltab.researcher.survival.follow_up import seeming_ending

_CELLS_LISTED = 1000
"""Rows of the table of cells; of a larger release the largest estimates are listed."""

PairTests = list[tuple[tuple[str, str], IndependenceTest | str]]
"""Pairs of attributes, and their tests or why there is none."""

MINUS = "\N{MINUS SIGN}"
TIMES = " \N{MULTIPLICATION SIGN} "


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportInput:
    """All that a report says; texts are plain and are escaped when the page is made.

    Args:
        release_id: the release, as every party names it.
        owners: (attribute, curator who holds it), in any order.
        epsilon: what was asked for, as text.
        scheme: how rows were sampled, as text.
        pad: how columns were encrypted, as text.
        respondents: whom n counts, in words.
        presence: who learns of whose presence, in words.
        dates: (what happened, when), as text.
        card: the bounds of the epsilon card; the first is that of who reads the report.
        receipts: what the tests of the server showed; empty without canaries.
        truth: true fractions, shape (K,), float64, where they are known (a demonstration), or None.
        pair: the two attributes of the heat map; None takes the pair with the strongest association.
        level: false-alarm probability of each independence test.
    """

    title: str
    release_id: str
    estimate: TableEstimate
    owners: tuple[tuple[str, str], ...]
    epsilon: str
    scheme: str
    pad: str
    respondents: str
    presence: str
    dates: tuple[tuple[str, str], ...] = ()
    card: tuple[Bound, ...]
    receipts: tuple[TestResult, ...] = ()
    truth: NDArray[np.float64] | None = None
    pair: tuple[str, str] | None = None
    level: float = 0.05

    def __post_init__(self) -> None:
        names = set(self.estimate.domain.names)
        if not {attribute for attribute, _ in self.owners} >= names:
            raise InvalidInputError("an attribute of the report has no owner")
        if self.truth is not None and self.truth.shape != self.estimate.raw.shape:
            raise InvalidInputError("the true table and the estimate do not have the same cells")
        if self.pair is not None and (len(set(self.pair)) != 2 or not set(self.pair) <= names):
            raise InvalidInputError("two different attributes of the release were not given for the heat map")

    @property
    def released(self) -> Estimate:
        """The table as it was released, with people who are absent."""
        estimate = self.estimate.observed if isinstance(self.estimate, PresentEstimate) else self.estimate
        if not isinstance(estimate, Estimate):
            raise InvalidInputError("the table comes from several releases, or from a model, and so has no report")
        return estimate


def render(report: ReportInput) -> str:
    """Return the page; the same bytes for the same input.

    Returns:
        A complete HTML document, to be written as UTF-8.
    """
    tests = _pair_tests(report.estimate, report.level)
    followed, first = survived(report.estimate, tests)
    sections = [
        *(first or _first(report, tests)),
        *_means(report.estimate),
        ("Estimates", _estimates(report)),
        ("How to read this", _how_to_read(report)),
        ("One attribute at a time", _marginals(report)),
        *_dependence(report, tests),
        ("What was released", _facts(report)),
        ("Who faces which epsilon", card_table(report.card, f"{N_IS_EXACT} {report.presence}")),
        *([("Tests of the server", _results(report.receipts))] if report.receipts else []),
        ("Codebook", codebook_table(report.estimate.domain.codebook)),
        ("All cells", _cells(report)),
    ]
    estimate, reader = report.estimate, report.card[0]
    half = 50 * float(np.median(estimate.high - estimate.low))
    people = f"{'about ' * isinstance(estimate, PresentEstimate)}{estimate.design.people:,.0f} people"
    lead = (
        f"Joint distribution of {', '.join(estimate.domain.names)} of {people}. Half of the"
        f" {100 * estimate.confidence:g}% intervals of its {estimate.domain.cells:,} cells reach at most {half:.2g}"
        f" percentage points to each side.{followed} Guarantee against the {reader.name}: {reader.limit}."
    )
    return page(report.title, lead, sections)


def conditional(table: TableEstimate, pair: tuple[str, str], remark: str) -> tuple[str, str]:
    """Return the section that shows one attribute given another, with intervals.

    Args:
        pair: the two; the one with more categories is given, or the one that was not rounded.
        remark: of the pair, a sentence.
    """
    both = table.domain.subset(pair).attributes
    condition, attribute = (one.name for one in sorted(both, key=lambda one: (bool(one.number), -one.size)))
    part, is_mean = table.marginal([condition, attribute]), bool(both[0].number) != bool(both[1].number)
    analysis = means(part, attribute, [condition]) if is_mean else conditional_shares(part, [condition])
    return escape(f"{'mean of ' * is_mean}{attribute} given {condition}"), _analysis_figure(analysis, remark)


def survived(table: TableEstimate, tests: PairTests) -> tuple[str, list[tuple[str, str]]]:
    """Return the share without an event at the end of the follow-up, a sentence, and the section with the curve.

    Args:
        tests: of pairs; there is a curve for each category of the attribute that the event depends on most.

    Returns:
        "" and no section where no attributes seem to be a time and an event, or nobody is surely at risk.
    """
    ending = seeming_ending(table.domain)
    if ending is None or np.isnan((whole := survival(table, ending)).estimate[0]):
        return "", []
    end = int(np.isfinite(whole.estimate).sum()) - 1
    value, low, high = (_share(part[[end]], 1)[0] for part in (whole.estimate, whole.low, whole.high))
    few = {one.name for one in table.domain.attributes if not one.number and one.size <= len(CURVES)}
    groups = [
        (test.association, other)
        for pair, test in tests
        for other in few.intersection(pair) - {ending.event, ending.time}
        if not isinstance(test, str) and ending.event in pair
    ]
    curves = survival(table, ending, [max(groups)[1]]) if groups else whole
    curve = figure(
        lambda sheet: analysis_picture(curves, sheet).svg,
        f"By its name {ending.time} is the time to {ending.text}, or to the end of the follow-up. Steps: the share"
        f" without it, as it never rises; bands: {100 * curves.confidence:g}% intervals.",
    )
    sentence = (
        f" Share without {ending.text} by {ending.time} {whole.labels[whole.along][end]}: {value} ({low} to {high})."
    )
    return sentence, [(escape(f"S{curves.title[1:]}"), curve)]


def _analysis_figure(answer: Analysis, remark: str = "") -> str:
    """Return the picture of an analysis, and how to read it."""
    what = "mean" if answer.unit is Unit.NUMBER else "share"
    marks = f"Dot and bar: {what} with its {100 * answer.confidence:g}% interval."
    marks += " Open diamond: projected, where a share leaves 0 to 100%." if answer.leaves_range else ""
    scope = f" The first {CELLS_SHOWN} of {len(answer.estimate):,} rows." if len(answer.estimate) > CELLS_SHOWN else ""
    return figure(lambda sheet: analysis_picture(answer, sheet).svg, f"{remark} {marks}{scope}".strip())


def _facts(report: ReportInput) -> str:
    design, domain = report.released.design, report.released.domain
    mechanism = design.mechanism
    lines = [
        ("release", report.release_id),
        ("respondents n", f"{design.population:,}"),
        ("sampled rows m", f"{design.sample:,} ({100 * design.sample / design.population:.3g}% of n)"),
        ("cells K", f"{domain.cells:,} = {TIMES.join(map(str, domain.shape))}"),
        ("gamma' (exact, of what ran)", f"{float(mechanism.gamma):,.6g}"),
        ("replacement probability", f"{float(1 - mechanism.retention):.6g}"),
        ("epsilon", report.epsilon),
        ("sampling", report.scheme),
        ("encryption", report.pad),
        *([("study file, SHA-256", report.estimate.study_digest)] if report.estimate.study_digest else []),
        *report.dates,
    ]
    owners = dict(report.owners)
    attributes = [(a.name, owners[a.name], str(a.size), _listed(a.categories)) for a in domain.attributes]
    headings = ("attribute", "held by", "categories", "which")
    text = " ".join([report.respondents, *report.estimate.remarks])
    return f"{facts(lines)}\n<p>{escape(text)}</p>\n{table(headings, attributes, numeric={2})}"


def _results(results: Sequence[TestResult]) -> str:
    rows = [
        (result.tested_by, f"{result.canaries:,}", result.expectation, "passed" if result.passed else "failed")
        for result in results
    ]
    headings = ("tested by", "canaries", "expected to change", "result")
    note = (
        '<p class="note">The curators hid rows of known symbols, canaries, among those that they sent. Which of them '
        "changed, and how, shows whether the server added its noise. Each curator tested its own columns, and all "
        "columns together, before it gave a key; the desk tested again. How many changed is not shown: it would tell "
        "of the rows. Canaries are not counted in the estimates.</p>"
    )
    return table(headings, rows, numeric={1, 2}) + note


def _how_to_read(report: ReportInput) -> str:
    estimate = report.estimate
    percent = f"{100 * estimate.confidence:g}%"
    total = _share(np.array([estimate.root_mse]), 2)[0]
    return (
        f'<div class="read"><p>Some rows were replaced by random ones before anybody could read them. The '
        f"<strong>raw estimate</strong> takes the average effect of that out again. It is <strong>unbiased</strong>: "
        f"over many releases its errors cancel, in sums of cells too. A small share may come out negative. Use "
        f"it for sums, differences and tests.</p>\n"
        f"<p>The <strong>projected</strong> value belongs to the nearest table without negative shares. It is "
        f"<strong>biased</strong>, small cells in particular, but never farther from the truth over all cells "
        f"together. Use it where a proper distribution is needed. Standard errors and intervals are those of the raw "
        f"estimate.</p>\n"
        f"<p>An interval holds the true share of its own cell in about {percent} of all releases like this one; over "
        f"many cells some intervals miss. It covers both the sampling of rows and the noise. An interval is cut to "
        f"0 and 100%, where every true share lies. The expected distance of "
        f"the raw table from the true one (root of the summed squared errors) is about {total}.</p></div>"
    )


def _estimates(report: ReportInput) -> str:
    cells = report.estimate.domain.cells
    scope = f"The {CELLS_SHOWN} largest of {cells:,} cells. " if cells > CELLS_SHOWN else ""
    marks = "Dot and bar: raw estimate and its interval. Open diamond: projected."
    truth = "" if report.truth is None else " Long upright stroke: truth."
    caption = f"{scope}{marks}{truth}"
    few = f'<p class="note">{FEW_ROWS}</p>' if report.estimate.has_few_rows else ""
    return figure(lambda sheet: estimates_picture(report.estimate, report.truth, sheet).svg, caption) + few


def _marginals(report: ReportInput) -> str:
    rows: list[Sequence[str]] = []
    for name in report.estimate.domain.names:
        one = report.estimate.marginal([name])
        cells = largest(one.raw, _CELLS_LISTED)
        numbers = _cell_texts(one, cells, None)
        rows += [(name, one.domain.categories_of(int(c))[0], *row) for c, row in zip(cells, numbers, strict=True)]
    headings = ("attribute", "category", "estimate", "se", "interval", "projected", "people, about")
    rounded = any(attribute.number for attribute in report.estimate.domain.attributes)
    note = "Marks as above." + " Of numbers: shares of the points to which they were rounded." * rounded
    picture = figure(lambda sheet: marginals_picture(report.estimate, report.truth, sheet), note)
    return picture + table(headings, rows, numeric=set(range(2, 7)))


def _first(report: ReportInput, tests: PairTests) -> list[tuple[str, str]]:
    """Return one attribute given another; nothing if there is one attribute only, whose distribution comes next."""
    if not tests:
        return []
    pair, remark = _shown_pair(report, tests)
    return [conditional(report.estimate, pair, remark)]


def _means(estimate: TableEstimate) -> list[tuple[str, str]]:
    """Return a section for each attribute of numbers: its mean, of all and by group."""
    numbers = [attribute.name for attribute in estimate.domain.attributes if attribute.number]
    return [(escape(f"Mean of {name}"), _analysis_figure(means_by_each(estimate, name))) for name in numbers]


def _shown_pair(report: ReportInput, tests: PairTests) -> tuple[tuple[str, str], str]:
    """Return the pair that was asked for, or else the one that depends most, and what to say of the choice."""
    done = [test for _, test in tests if isinstance(test, IndependenceTest)]
    strongest = max(done, key=lambda test: (test.association, test.statistic), default=None)
    if report.pair or strongest is None:
        return report.pair or tests[0][0], ""
    return (strongest.left[0], strongest.right[0]), "It is the pair with the strongest estimated association."


def _dependence(report: ReportInput, tests: PairTests) -> list[tuple[str, str]]:
    """Return the heat map and the tests; nothing if there is one attribute only."""
    if not tests:
        return []
    pair, remark = _shown_pair(report, tests)
    caption = f"Raw estimate of the share of all respondents; a stronger blue is more. {remark}".strip()
    picture = figure(lambda sheet: heat_map(report.estimate.marginal(pair), sheet), caption)
    headings = ("pair", "statistic", "df", "p-value", "association", "verdict")
    note = (
        f'<p class="note">Wald chi-square tests with the covariance of noise and sampling. Each has a false-alarm '
        f"probability of about {report.level:g} of its own. Association is Cramér's V less what noise adds: 0 is none, "
        f"1 is complete.</p>"
    )
    rows = [_texts_of_test(names, test) for names, test in tests]
    return [
        (f"{escape(pair[0])} and {escape(pair[1])}", picture),
        ("Which attributes depend on each other", table(headings, rows, numeric={1, 2, 3, 4}) + note),
    ]


def _pair_tests(estimate: TableEstimate, level: float) -> PairTests:
    """Test every pair of attributes for dependence; where that is impossible keep the reason."""
    outcomes: PairTests = []
    for left, right in combinations(estimate.domain.names, 2):
        try:
            outcomes.append(((left, right), independence(estimate, [left], [right], level=level)))
        except InvalidInputError as error:
            outcomes.append(((left, right), str(error)))
    return outcomes


def _texts_of_test(names: tuple[str, str], test: IndependenceTest | str) -> tuple[str, ...]:
    """Return a pair and its test as texts: statistic, degrees of freedom, p-value, association and verdict."""
    pair = TIMES.join(names)
    if isinstance(test, str):
        return (pair, "-", "-", "-", "-", test)
    p_value = "< 0.0001" if test.p_value < 1e-4 else f"{test.p_value:.4f}"
    verdict = "dependent" if test.dependent else "no dependence shown"
    if test.approximate:
        verdict += " (rough: few rows)"
    return (pair, f"{test.statistic:,.1f}", str(test.degrees), p_value, test.strength(2), verdict)


def _cells(report: ReportInput) -> str:
    estimate = report.estimate
    cells = largest(estimate.raw, _CELLS_LISTED)
    rows = [
        (*estimate.domain.categories_of(int(cell)), *row)
        for cell, row in zip(cells, _cell_texts(estimate, cells, report.truth), strict=True)
    ]
    truth = () if report.truth is None else ("truth",)
    headings = (*estimate.domain.names, "estimate", "se", "interval", "projected", "people, about", *truth)
    first = len(estimate.domain.names)
    note = f'<p class="note">The {_CELLS_LISTED:,} largest of {estimate.domain.cells:,} cells.</p>'
    listed = table(headings, rows, numeric=set(range(first, len(headings))))
    return (note if len(cells) < estimate.domain.cells else "") + listed


def _cell_texts(
    estimate: TableEstimate, cells: NDArray[np.intp], truth: NDArray[np.float64] | None
) -> list[tuple[str, ...]]:
    """Return cells as texts: estimate, se, interval, projected, people and, where known, the truth.

    Args:
        truth: true fractions, shape (K,), float64, or None.
    """
    typical = 100 * float(np.median(estimate.se))
    digits = min(max(1 - floor(log10(typical)), 1), 8) if typical > 0 else 2
    low, high = _share(estimate.low[cells], digits), _share(estimate.high[cells], digits)
    columns = [
        _share(estimate.raw[cells], digits),
        _share(estimate.se[cells], digits),
        [f"{a} to {b}" for a, b in zip(low, high, strict=True)],
        _share(estimate.projected[cells], digits),
        [f"{people:,.0f}".replace("-", MINUS) for people in np.rint(estimate.rows[0][cells]) + 0.0],
    ]
    if truth is not None:
        columns.append(_share(truth[cells], digits))
    return list(zip(*columns, strict=True))


def _share(fractions: NDArray[np.float64], digits: int) -> list[str]:
    """Return fractions as percentages with a typographic minus and no negative zero."""
    return [f"{round(100 * float(f), digits) + 0.0:.{digits}f}%".replace("-", MINUS) for f in fractions]


def _listed(categories: Sequence[str], limit: int = 12) -> str:
    more = f", … ({len(categories) - limit} more)" if len(categories) > limit else ""
    return ", ".join(categories[:limit]) + more
