"""Tables of a demonstration in a terminal."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console

    from veiltab.common.privacy.cards.card import EpsilonCard
    from veiltab.researcher.analysis.result import Analysis
    from veiltab.researcher.estimates.estimation import TableEstimate

ROWS_SHOWN = 8
"""Rows of a result, so that it fits on a screen with the guarantee and what to do next."""

CELL_HEADINGS = ("cell", "estimate", "95% interval", "projected")
"""Of the columns of `cell_rows`, but the last."""


def console_of() -> "Console":
    """Return where a demonstration prints."""
    from rich.console import Console  # noqa: PLC0415 - not for --json

    # Piped output has no width; without one, long rows of a table would wrap.
    return Console(width=None if sys.stdout.isatty() else 100)


def print_table(console: "Console", title: str, headings: Sequence[str], rows: Sequence[tuple[str, ...]]) -> None:
    """Print rows under a title and headings; columns of numbers to the right."""
    from rich import box  # noqa: PLC0415 - not for --json
    from rich.markup import escape  # noqa: PLC0415 - not for --json
    from rich.table import Table  # noqa: PLC0415 - not for --json

    table = Table(title=escape(title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, show_edge=False)
    for number, heading in enumerate(headings):
        numeric = bool(rows) and rows[0][number].replace(".", "").replace(",", "").lstrip("-")[:1].isdigit()
        table.add_column(heading, justify="right" if numeric and number else "left", no_wrap=numeric)
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table)
    console.print()


def print_card(console: "Console", card: "EpsilonCard", *, verbose: bool) -> None:
    """Print who faces which epsilon, and if asked for also why."""
    rows = card.rows() if verbose else [(bound.name, bound.limit) for bound in card.bounds]
    print_table(console, "Epsilon card", ("adversary", "faces"), rows)


def print_costs(console: "Console", sizes: Mapping[str, int], steps: Iterable[tuple[str, float]]) -> None:
    """Print the bytes over each link and the seconds of each step."""
    links = [(link, f"{count:,}") for link, count in sorted(sizes.items())]
    print_table(console, "Bytes of columns and keys", ("link", "bytes"), links)
    print_table(console, "Seconds", ("step", "seconds"), [(step, f"{seconds:.3f}") for step, seconds in steps])


def print_more(console: "Console", count: int) -> None:
    """Say where the rows are that a short table leaves out."""
    if count:
        console.print(f"{count} more rows, seconds and bytes: --verbose. All of it as data: --json.\n")


def check_line(certificate: "Path", out: "Path") -> str:
    """Say how a certificate is checked."""
    options = f"--study {out / 'study.toml'} --authority {out / 'pki' / 'ca.pem'}"
    return f"Check it: veiltab verify {certificate} {options}"


def analysis_rows(ours: "Analysis", truth: "Analysis") -> list[tuple[str, ...]]:
    """Return each row of an analysis as it is printed, with the true value at the end."""
    rows = zip(ours.names, ours.notes, ours.estimate, ours.low, ours.high, truth.estimate, strict=True)
    return [
        (name, "-" if note else f"{value:.3f}", note or f"{low:.3f} to {high:.3f}", f"{true:.3f}")
        for name, note, value, low, high, true in rows
    ]


def analysis_records(ours: "Analysis", truth: "Analysis", name: str) -> list[dict[str, object]]:
    """Return each row of an analysis with the true value, ready for JSON; what the row is about is called `name`."""
    rows = zip(ours.names, ours.records(), truth.estimate.tolist(), strict=True)
    return [
        {name: text, **{key: record[key] for key in ("estimate", "low", "high")}, "truth": true}
        for text, record, true in rows
    ]


def cell_rows(estimate: "TableEstimate", truth: "NDArray[np.float64]") -> list[tuple[str, ...]]:
    """Return the cells of a table as they are printed, with the true fraction of each at the end."""
    return [
        (
            ", ".join(estimate.domain.categories_of(cell)),
            f"{estimate.raw[cell]:.4f}",
            f"{estimate.low[cell]:.4f} to {estimate.high[cell]:.4f}",
            f"{estimate.projected[cell]:.4f}",
            f"{fraction:.4f}",
        )
        for cell, fraction in enumerate(truth)
    ]
