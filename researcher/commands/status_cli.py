"""How a release stands, as data and as lines of a terminal; and a line while somebody waits for it."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from veiltab.common.command.cli import note
from veiltab.common.observe.progress import without_figures
from veiltab.researcher.report.plain_data import foreseen_errors

if TYPE_CHECKING:
    from veiltab.common.release.spec import ReleaseSpec
    from veiltab.common.release.table_spec import TableSpec
    from veiltab.researcher.status.release_status import Status


_SAME_WORK_SECONDS = 10.0
"""Between two lines that say how far the same work is."""


class Watcher:
    """Prints a release's status to stderr when it changes; how far the same work is, from time to time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = ""
        self._printed = 0.0

    def __call__(self, status: "Status") -> None:
        """Print a status that says something else than the last one."""
        line, now = "; ".join(filter(None, (status.state.value, status.progress, status.waiting_for))), self._clock()
        is_same_work = without_figures(line) == without_figures(self._last)
        if line != self._last and not (is_same_work and now - self._printed < _SAME_WORK_SECONDS):
            note(f"{datetime.now(UTC):%H:%M:%S}  {line}")
            self._last, self._printed = line, now


def card_lines(spec: "TableSpec") -> list[str]:
    """Return the card of a release, a line a coalition."""
    from veiltab.common.privacy.cards.card import N_IS_EXACT
    from veiltab.common.release.guarantees import epsilon_card

    return [*(f"  {who}: {faces}" for who, faces in epsilon_card(spec).rows()), f"  {N_IS_EXACT}"]


def status_text(status: "Status") -> str:
    """Return a status for people."""
    request = f"{', '.join(status.attributes)} at epsilon {status.epsilon}"
    lines = [f"{status.release_id}  {status.label or '-'}  {status.state.value}  {request}"]
    if status.failure:
        advised = f"{status.failure.rstrip('.')}. {status.advice}" if status.advice else status.failure
        lines.append(f"  {advised}")
    if status.progress:
        lines.append(f"  {status.progress}")
    lines.extend(
        f"  {party}: {state.value}{', waits: ' + status.waits[party] if party in status.waits else ''}"
        for party, (state, _) in sorted(status.parties.items())
    )
    if status.spec is not None:
        lines.extend(_spec_lines(status.spec))
    lines.extend(f"  test by {receipt.tested_by}: {receipt.sentence()}" for receipt in status.receipts)
    return "\n".join(lines)


def _spec_lines(spec: "ReleaseSpec") -> list[str]:
    sizes, table = f"  n = {spec.population}, m = {spec.sample}", spec.only_table
    if table is not None:
        foreseen = foreseen_errors(table)
        error = f"  expected root-mean-square error of all cells together: {foreseen['root_mse']:.5f}"
        if not table.description.scheme.is_simple_random:
            error += f"; by simple random sampling (wor) at this epsilon: {foreseen['root_mse_of_wor']:.5f}"
        gamma = f"{float(table.mechanism.gamma):.4f}"
        return [f"{sizes}, K = {table.cells}, gamma = {gamma}", error, *card_lines(table)]
    again = f", up to {spec.repeats} of them a second time" if spec.repeats else ""
    return [f"{sizes}, {len(spec.tables)} tables{again}"]
