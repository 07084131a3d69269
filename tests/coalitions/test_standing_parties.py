"""Every coalition of the card plays against real processes over TLS, with what its members keep and fetch."""

import asyncio
import os
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from tests.coalitions.attacks import (
    HERE,
    THERE,
    Attained,
    Held,
    attained,
    counts,
    has_raw_row,
    says_here_of_raw_row,
    summary,
)
from tests.coalitions.standing import NAMES, PLANTED, Standing, guessed_column, standing
from tests.coalitions.test_small_releases import ALPHA, BOUNDED, ORDER
from tests.protocol.test_secrets import files_of, found, logs_of
from tests.protocol.world import ALICE, BOB, CLOUD, ROSA
from veiltab.common.privacy.coalitions import Coalition

pytestmark = pytest.mark.long

RELEASES = int(os.environ.get("VEILTAB_COALITION_RELEASES", "60"))
"""Releases of each table; some five to ten a second."""

MOST = 700
"""Releases for which the largest budget of a study lasts."""

CANARIES = 100


def play(folder: Path, releases: int, *, canaries: int, changes: str = "") -> tuple[Held, Held]:
    """Play on both tables."""
    here, there = (
        _joined(
            [
                _played(folder / f"{planted}-{start}", planted, min(MOST, releases - start), canaries, changes)
                for start in range(0, releases, MOST)
            ]
        )
        for planted in (HERE, THERE)
    )
    return here, there


def _played(folder: Path, planted: int, releases: int, canaries: int, changes: str) -> Held:
    folder.mkdir()
    with standing(folder, ORDER, planted, canaries=canaries, changes=changes) as parties:
        made = parties.released(releases)
        held = parties.held(made)
        assert np.array_equal(parties.counts_of_analyst(made), counts(held.published)), "an analyst sees the counts"
        return held


def _joined(parts: list[Held]) -> Held:
    return Held(**{field.name: np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Held)})


def results(games: tuple[Held, Held], *coalitions: Coalition) -> list[Attained]:
    """Return what coalitions attain, at ALPHA together."""
    level = ALPHA / len(coalitions)
    return [one for who in coalitions for one in attained(who, ORDER.release, ORDER.card, *games, level=level)]


@pytest.mark.timeout(7200)
def test_no_coalition_of_real_parties_attains_more_than_the_card_says(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    for attempt in ("first", "second"):  # an honest run fails once in a million
        (tmp_path / attempt).mkdir()
        games = play(tmp_path / attempt, RELEASES, canaries=CANARIES)
        seen = results(games, *BOUNDED)
        if all(one.is_within_bound and one.is_as_enumerated for one in seen):
            break
    record_property("figure", f"{RELEASES} releases a table over TLS, {ORDER}: {summary(seen)}")
    assert [str(one) for one in seen if not one.is_within_bound] == []
    assert [str(one) for one in seen if not one.is_as_enumerated] == []
    for held, planted in zip(games, (HERE, THERE), strict=True):
        assert (says_here_of_raw_row(held.of(has_raw_row(held))) == (planted == HERE)).all(), "no protection"


@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    ("changes", "releases", "coalitions"),
    [
        ("no-curator-noise", 70, {Coalition.DESK_AND_SERVER}),
        ("no-server-noise", 400, {Coalition.ANALYST_AND_CURATORS, Coalition.DESK_AND_CURATORS}),
    ],
)
def test_a_side_that_adds_no_noise_is_flagged(
    tmp_path: Path,
    changes: str,
    releases: int,
    coalitions: set[Coalition],
    record_property: Callable[[str, object], None],
) -> None:
    # Without canaries: with them the curators refuse the server first.
    games = play(tmp_path, releases, canaries=0, changes=changes)
    flagged = [one for one in results(games, *coalitions) if not one.is_within_bound]
    record_property("figure", f"{changes}, {releases} releases a table over TLS: {summary(flagged)}")
    assert {one.coalition for one in flagged} == coalitions


@pytest.fixture(scope="module")
def parties(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    """A deployment of which releases are made."""
    with standing(tmp_path_factory.mktemp("parties"), ORDER, HERE, canaries=CANARIES) as parties:
        yield parties


def test_no_curator_can_test_guesses_of_the_server_s_noise(parties: Standing) -> None:
    (release_id,) = parties.released(1)
    (opened,) = asyncio.run(parties.opened([release_id]))
    assert asyncio.run(guessed_column(parties, release_id, opened, opened.salt)) == opened.published[NAMES[0]]
    assert asyncio.run(guessed_column(parties, release_id, opened, b"")) is None
    salt = {"salt": opened.salt}
    assert found(files_of(parties.world, ALICE) | files_of(parties.world, BOB) | logs_of(parties.world), salt) == []


def test_a_desk_keeps_counts_alone_and_the_server_nobody_s_id_or_key(parties: Standing) -> None:
    releases = parties.released(3)
    opened = asyncio.run(parties.opened(releases))
    parties.world.wait_until(lambda: not parties.world.leftovers())
    keys = {f"{number} {name}": key for number, one in enumerate(opened) for name, key in one.keys.items()}
    columns = {f"{number} {name}": data for number, one in enumerate(opened) for name, data in one.published.items()}
    canary_keys = {f"{number} canaries": one.canary_key for number, one in enumerate(opened)}
    raw = {
        f"{release_id} {name}": (parties.kept / release_id / name).read_bytes()
        for release_id in releases
        for name in NAMES
    }
    ids = {"planted": PLANTED.encode()}
    desk, server = files_of(parties.world, ROSA), files_of(parties.world, CLOUD)
    assert found(server, columns), "what is searched for can be found"
    assert found(desk, keys, columns, raw, canary_keys, ids) == []
    assert found(server, keys, raw, canary_keys, ids) == []
    assert found(logs_of(parties.world), keys, columns, raw, canary_keys, ids) == []
