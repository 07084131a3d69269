"""The page that goes with a file of microdata: where its rows come from, what they keep, and how far that goes."""

from collections.abc import Mapping
from html import escape
from math import pi, prod, sqrt

import numpy as np

from veiltab.common.core.domain import Domain
from veiltab.common.dataclass import dataclass
from veiltab.common.privacy.cards.card import N_IS_EXACT, Bound
from veiltab.common.web.document import card_table, codebook_table, facts, page, table
from veiltab.researcher.drawing.pictures import CELLS_SHOWN
from veiltab.researcher.drawing.style import figure
from veiltab.researcher.estimates.estimation import Estimate
from veiltab.researcher.estimates.pooling import pooled
from veiltab.researcher.estimates.table_result import TableResult
from veiltab.researcher.microdata.comparison import distance, fractions_of
from veiltab.researcher.microdata.expectation import ExpectedError, measured_pairs
from veiltab.researcher.microdata.microdata_pictures import agreement_picture, graph_picture, pairs_picture
from veiltab.researcher.microdata.provenance import RELATION, WARNING, Provenance
from veiltab.researcher.model.fitting import Model
from veiltab.researcher.model.measurement import Axes, Floats, Table
from veiltab.researcher.model.row_drawing import Rows
from veiltab.researcher.report.report import conditional, survived
from veiltab.researcher.survival.follow_up import seeming_ending

PAIRS_LISTED = 200
"""Rows of the table of pairs; of more, those farthest from independence are listed."""


@dataclass(frozen=True, kw_only=True)
class MicrodataReport:
    """All that the page says; texts are plain and are escaped when the page is made.

    Args:
        owners: attribute -> the curator who holds it.
        model: that the rows were drawn from.
        expected: how far the file's pairs are from the true ones.
        card: the bounds of the epsilon card; the first is that of who reads the report.
        presence: who learns of whose presence, in words.
        dates: (what happened, when).
        truth: the true rows where they are known (a demonstration), or None.
    """

    title: str
    domain: Domain
    owners: Mapping[str, str]
    provenance: Provenance
    model: Model
    rows: Rows
    tables: tuple[TableResult, ...]
    expected: ExpectedError
    card: tuple[Bound, ...]
    presence: str
    dates: tuple[tuple[str, str], ...] = ()
    truth: Rows | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """One measured pair.

    Args:
        measured: Euclidean distance of the measured table from independence, less what noise adds.
        in_file: the same of the file's table.
        noise: total variation distance that the noise of the measurement alone shows.
        apart: total variation distance of the file's table from the measured one.
        error: of the file's table from the true one; None where that is not known.
    """

    axes: Axes
    measured: float
    in_file: float
    noise: float
    apart: float
    error: float | None


def render(report: MicrodataReport) -> str:
    """Return the page; the same bytes for the same input.

    Returns:
        A complete HTML document, to be written as UTF-8.
    """
    pairs = _pairs(report)
    followed, first = _survived(report)
    sections = [
        *(first or _first(report, pairs)),
        ("What the rows are", _what(report)),
        ("How far the pairs are from the truth", _errors(report, pairs)),
        ("Which attributes depend on each other", _graph(report)),
        ("Measured pairs beside the file's", _agreement(report, pairs)),
        ("What was released", _facts(report)),
        ("Who faces which epsilon", card_table(report.card, f"{N_IS_EXACT} {report.presence}")),
        ("Every pair", _listed(report, pairs)),
        ("Codebook", codebook_table(report.domain.codebook)),
    ]
    reader = report.card[0]
    lead = (
        f"{len(report.rows):,} rows of {len(report.domain.names)} attributes, drawn from a model of"
        f" {len({one.names for one in report.tables})} noisy tables about {report.provenance.respondents:,} people."
        f" The table of a pair is expected to be {_percent(report.expected.pairs)} from the true one on average."
        f"{followed} Guarantee against the {reader.name}: {reader.limit}."
    )
    return page(report.title, lead, sections)


def _first(report: MicrodataReport, pairs: tuple[_Pair, ...]) -> list[tuple[str, str]]:
    """Return the measured pair of two curators that depends most, of those that a picture holds, as a conditional."""
    names = report.domain.names
    linked = [
        pair
        for pair in pairs
        if len({report.owners[names[axis]] for axis in pair.axes}) == 2
        and prod(report.domain.shape[axis] for axis in pair.axes) <= CELLS_SHOWN
    ]
    if not linked:
        return []
    one, other = (names[axis] for axis in max(linked, key=lambda pair: pair.measured).axes)
    measured = _measured(report, (one, other))
    sentence = "As measured, before any model: of the pairs that two curators hold, one that depends strongly."
    return [conditional(pooled(measured, (one, other)), (one, other), sentence)] if measured else []


def _survived(report: MicrodataReport) -> tuple[str, list[tuple[str, str]]]:
    """Return what the tables with a time and an event say of survival, before any model; see `survived`."""
    ending = seeming_ending(report.domain)
    measured = _measured(report, (ending.time, ending.event)) if ending else []
    return survived(pooled(measured, (ending.time, ending.event)), []) if ending and measured else ("", [])


def _measured(report: MicrodataReport, pair: tuple[str, str]) -> list[Estimate]:
    """Return the tables of the page's attributes that have a pair."""
    return [
        Estimate(domain=report.domain.subset(table.names), design=table.design, counts=table.counts)
        for table in report.tables
        if {*pair} <= {*table.names} <= {*report.domain.names}
    ]


def _links(text: str) -> str:
    return f"<p>{escape(text)} Tables that are shown as measured have them still.</p>\n" if text else ""


def _what(report: MicrodataReport) -> str:
    return (
        f'<div class="read"><p><strong>{WARNING}</strong> No row of the file belongs to anybody, and no noise needs to'
        " be taken out of it: it is analysed as it is.</p>\n"
        f"<p><strong>Kept:</strong> {report.provenance.preserved}</p>\n"
        f"<p><strong>Not kept:</strong> {report.provenance.lost}</p>\n"
        f"{''.join(f'<p>{escape(sentence)}</p>' for sentence in report.provenance.coarse)}\n"
        f"{_links(report.provenance.links)}"
        "<p>For a number that is published with an interval, use the measured table itself where there is one"
        " (<code>veiltab researcher estimate</code>), or the replicate weights of the file: without them its rows do"
        " not show how far they are from the truth.</p></div>"
    )


def _errors(report: MicrodataReport, pairs: tuple[_Pair, ...]) -> str:
    expected = report.expected
    lines = [
        ("expected, mean over all pairs", _percent(expected.pairs)),
        ("of that, noise alone would give", _percent(expected.noise)),
    ]
    errors = [pair.error for pair in pairs if pair.error is not None]
    if errors:
        lines.append(("actual, mean over all pairs", _percent(float(np.mean(errors)))))
    note = (
        '<p class="note">Total variation distance: the share of people who would have to stand in another cell of the'
        " table of two attributes. The expected distance is an estimate: the noise of the release was drawn anew and"
        " a model fitted to it, and what the measured tables show of the model's own misfit was added.</p>"
    )
    return facts(lines) + note


def _graph(report: MicrodataReport) -> str:
    names = report.domain.names
    edges = [(names.index(one), names.index(other)) for one, other in report.model.graph]
    weights = np.array(
        [_dependence(report.model.marginal((names[a], names[b])), report.domain, a, b) for a, b in edges]
    )
    owners = [report.owners[name] for name in names]
    caption = (
        f"The {len(edges)} pairs that the model ({report.model.kind}) joins directly. The thicker a line, the farther"
        " the two are from independence. What no line joins depends through others, or not at all."
    )
    return figure(lambda sheet: graph_picture(names, owners, edges, weights, sheet), caption)


def _agreement(report: MicrodataReport, pairs: tuple[_Pair, ...]) -> str:
    count = len(report.domain.names)
    measured, in_file = np.full((count, count), np.nan), np.full((count, count), np.nan)
    for pair in pairs:
        for one, other in (pair.axes, pair.axes[::-1]):
            measured[one, other], in_file[one, other] = pair.measured, pair.in_file
    dependence = figure(
        lambda sheet: pairs_picture(report.domain.names, measured, in_file, sheet),
        "Distance of each pair from independence (root of the summed squares, in percent): above the diagonal as it was"
        " measured, less what noise adds; below it in the file. The picture of a good file is symmetric.",
    )
    noise, apart = (np.array([getattr(pair, name) for pair in pairs]) for name in ("noise", "apart"))
    errors = None if report.truth is None else np.array([pair.error for pair in pairs], np.float64)
    beside = figure(
        lambda sheet: agreement_picture(noise, apart, errors, sheet),
        "Each dot is a pair. A file that was right would differ from what was measured by the noise alone, and its dots"
        " would lie on the line; dots below it are pairs to which the model was fitted closely."
        + ("" if errors is None else " Open diamonds: distance from the truth, which only a demonstration knows."),
    )
    return dependence + beside


def _facts(report: MicrodataReport) -> str:
    provenance = report.provenance
    twice = len(report.tables) - len({one.names for one in report.tables})
    lines = [
        ("release", provenance.release),
        ("respondents n", f"{provenance.respondents:,}"),
        (
            "tables",
            f"{len(report.tables) - twice}, and {twice} of them a second time" if twice else f"{len(report.tables)}",
        ),
        ("epsilon, all tables together", provenance.epsilon),
        ("delta", provenance.delta or "0"),
        ("neighbouring tables", RELATION),
        ("model", report.model.kind),
        ("rows", f"{provenance.rows:,}"),
        ("study file, SHA-256", provenance.study_digest),
        ("description of the release, SHA-256", provenance.release_digest),
        *report.dates,
    ]
    owned = [(a.name, report.owners[a.name], str(a.size)) for a in report.domain.attributes]
    return f"{facts(lines)}\n<p></p>\n{table(('attribute', 'held by', 'categories'), owned, numeric={2})}"


def _listed(report: MicrodataReport, pairs: tuple[_Pair, ...]) -> str:
    listing = sorted(pairs, key=lambda pair: -pair.measured)[:PAIRS_LISTED]
    joined = {frozenset(names) for names in report.model.graph}
    rows = []
    for pair in listing:
        names = tuple(report.domain.names[axis] for axis in pair.axes)
        rows.append(
            (
                " \N{MULTIPLICATION SIGN} ".join(names),
                "direct" if frozenset(names) in joined else "",
                *(_percent(value) for value in (pair.measured, pair.in_file, pair.noise, pair.apart)),
                *([] if pair.error is None else [_percent(pair.error)]),
            )
        )
    headings = [
        "pair",
        "in the graph",
        "measured dependence",
        "in the file",
        "noise of the measurement",
        "file from the measured pair",
    ]
    headings += [] if report.truth is None else ["file from the true pair"]
    scope = f'<p class="note">The {len(listing):,} most dependent of {len(pairs):,} pairs.</p>'
    return (scope if len(listing) < len(pairs) else "") + table(headings, rows, numeric=set(range(2, len(headings))))


def _pairs(report: MicrodataReport) -> tuple[_Pair, ...]:
    """Return every pair that was measured."""
    shape, pairs = report.domain.shape, []
    for axes, pair_table in measured_pairs(report.model).items():
        shares = fractions_of(report.rows, shape, axes)
        noise = pair_table.values.size / sqrt(2 * pi * pair_table.weight)
        pairs.append(
            _Pair(
                axes=axes,
                measured=_measured_dependence(pair_table),
                in_file=_dependence(shares, report.domain, *axes),
                noise=noise,
                apart=distance(pair_table.values.reshape(-1), shares),
                error=None if report.truth is None else distance(fractions_of(report.truth, shape, axes), shares),
            )
        )
    return tuple(pairs)


def _dependence(fractions: Floats, domain: Domain, one: int, other: int) -> float:
    """Return the Euclidean distance of a pair from independence."""
    return float(np.linalg.norm(_from_independence(fractions.reshape(domain.shape[one], domain.shape[other]))))


def _measured_dependence(table: Table) -> float:
    """Return the Euclidean distance of a measured pair from independence, without what noise adds to its square."""
    rows, columns = table.values.shape
    square = float(np.sum(_from_independence(table.values) ** 2)) - (rows - 1) * (columns - 1) / table.weight
    return sqrt(max(square, 0.0))


def _from_independence(square: Floats) -> Floats:
    apart: Floats = square - np.outer(square.sum(axis=1), square.sum(axis=0))
    return apart


def _percent(share: float) -> str:
    return f"{100 * share:.2f}%"
