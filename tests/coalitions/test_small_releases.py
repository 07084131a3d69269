"""Every coalition of the card plays its best attack on many small releases, and attains no more than the card says."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from decimal import Decimal
from pathlib import Path

import pytest

from tests.coalitions import games
from tests.coalitions.attacks import HERE, THERE, Attained, Held, attained, has_raw_row, says_here_of_raw_row, summary
from tests.coalitions.games import Design
from tests.coalitions.mutants import no_noise_of_the_curators, no_pads, the_order_of_the_table
from tests.simulation.mutants import no_noise
from veiltab.common.privacy.coalitions import Coalition

ALPHA = 1e-3
"""Level of all bounds of one test together. What is flagged is played again: an honest run fails once in a million."""

RELEASES = 20_000
ORDER = Design(population=6, sample=6, epsilon=Decimal("0.5"), delta=Decimal("0.1"))
SAMPLE = Design(population=6, sample=3, epsilon=Decimal(1), delta=None)
BOUNDED = tuple(coalition for coalition in Coalition if coalition is not Coalition.DESK_SERVER_AND_CURATOR)


def play(folder: Path, design: Design, releases: int = RELEASES) -> tuple[Held, Held]:
    """Play on both tables."""
    persons = games.drawn_persons(design, releases)
    return games.played(folder, design, HERE, persons), games.played(folder, design, THERE, persons)


def results(folder: Path, design: Design, releases: int = RELEASES) -> list[Attained]:
    here, there = play(folder, design, releases)
    level = ALPHA / len(BOUNDED)
    return [one for who in BOUNDED for one in attained(who, design.release, design.card, here, there, level=level)]


@pytest.mark.long
@pytest.mark.parametrize("design", [ORDER, SAMPLE], ids=str)
def test_no_coalition_attains_more_than_the_card_says(
    tmp_path: Path, design: Design, record_property: Callable[[str, object], None]
) -> None:
    first = results(tmp_path, design)
    if not all(one.is_within_bound and one.is_as_enumerated for one in first):
        first = results(tmp_path, design)
    record_property("figure", f"{RELEASES} releases a table, {design}: {summary(first)}")
    assert [str(one) for one in first if not one.is_within_bound] == []
    # The attacks are as strong as they can be, by enumeration; so the bounds that they keep say something.
    assert [str(one) for one in first if not one.is_as_enumerated] == []


Mutant = Callable[[], AbstractContextManager[None]]
FLAGGED: Mapping[Mutant, set[Coalition]] = {
    no_noise_of_the_curators: {Coalition.ANALYST, Coalition.DESK, Coalition.DESK_AND_SERVER},
    no_noise: {Coalition.ANALYST, Coalition.DESK, Coalition.ANALYST_AND_CURATORS, Coalition.DESK_AND_CURATORS},
    the_order_of_the_table: {Coalition.DESK, Coalition.DESK_AND_SERVER},
    no_pads: {Coalition.SERVER_AND_CURATORS},
}
"""Which protection is switched off, and who attains more than the card says."""

IN_EVERY_RUN = {no_noise_of_the_curators, no_pads}
"""Those of them that are no long tests."""


@pytest.mark.parametrize(
    "mutant",
    [pytest.param(mutant, marks=() if mutant in IN_EVERY_RUN else pytest.mark.long) for mutant in FLAGGED],
    ids=lambda mutant: mutant.__name__,
)
def test_a_protection_that_is_switched_off_is_flagged(
    tmp_path: Path, mutant: Mutant, record_property: Callable[[str, object], None]
) -> None:
    with mutant():
        found = [one for one in results(tmp_path, ORDER, 8000) if not one.is_within_bound]
    record_property("figure", f"{mutant.__name__}: {summary(found)}")
    assert {one.coalition for one in found} == FLAGGED[mutant]


def test_desk_server_and_a_curator_read_every_row_that_the_curators_left(tmp_path: Path) -> None:
    for held, planted in zip(play(tmp_path, ORDER, 4000), (HERE, THERE), strict=True):
        raw = has_raw_row(held)
        assert 0.5 < raw.mean() < 0.8  # 1 - r_c is .648
        assert (says_here_of_raw_row(held.of(raw)) == (planted == HERE)).all()
