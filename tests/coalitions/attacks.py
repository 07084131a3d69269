"""The attacks of coalitions on one planted person, in whom two tables differ, and what they attain.

Both tables are small, and the attackers know everyone else's row: OTHERS is the cell of all of them. The planted person
is in HERE in one table and in THERE in the other, which differ in what bob holds: alice may take part in every
coalition. Bob's last symbol is that of people who are absent from his table, and alice is the hub: so the planted value
is presence, of which a column of more categories says no more.

An attack names the releases in which it says HERE; by Neyman and Pearson the best one at an epsilon says so
where the likelihood ratio of what the coalition holds exceeds e^epsilon, and attains

    delta = P(HERE | HERE) - e^epsilon P(HERE | THERE)

What is attained is bounded from below and from above by exact confidence bounds of Clopper and Pearson.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from math import comb, exp
from typing import assert_never

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from veiltab.common.core.mechanism import UNIT, TwoSidedNoise
from veiltab.common.privacy.cards.card import EpsilonCard
from veiltab.common.privacy.coalitions import Coalition, TwoSidedRelease

CELLS = 4
"""Two attributes of two categories: the cell is 2 alice's + bob's."""

HERE, THERE, OTHERS = 0, 1, 2

Array = NDArray[np.int64]
Law = NDArray[np.float64]
"""Probabilities of cells, shape (CELLS,), or of counts of cells, shape (rows + 1,) * CELLS."""


@dataclass(frozen=True, kw_only=True)
class Held:
    """What parties hold of many releases of one table, each field of shape (releases, rows), in order of the rows.

    Args:
        persons: curators: numbers of the persons; the planted one is 0.
        coins: curators: which rows they replaced.
        own: alice: her symbols as she encrypted them.
        sent: the server's copies of the ciphertext with the desk's keys: cells with the curators' noise alone.
        published: the desk: cells.
        ciphertext: the server's copies of bob's ciphertext.
    """

    persons: Array
    coins: NDArray[np.bool_]
    own: Array
    sent: Array
    published: Array
    ciphertext: Array

    def of(self, releases: NDArray[np.bool_]) -> "Held":
        return Held(**{field.name: getattr(self, field.name)[releases] for field in fields(self)})

    @property
    def has_planted(self) -> NDArray[np.bool_]:
        """In which releases the planted person was sampled."""
        sampled: NDArray[np.bool_] = (self.persons == 0).any(axis=1)
        return sampled

    def of_planted(self, values: NDArray[np.generic]) -> Array:
        """Return the values of the planted person's rows, which was sampled in all of the releases."""
        return np.asarray(values[self.persons == 0], np.int64)


def table(planted: int, population: int) -> Array:
    """Return the cells of a table of so many persons, the planted one first."""
    return np.array([planted] + [OTHERS] * (population - 1))


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One attack.

    Args:
        name: of it.
        says_here: in which releases it says HERE.
        attains: its delta, by enumeration; None where it is not enumerated.
    """

    name: str
    says_here: Callable[[Held], NDArray[np.bool_]]
    attains: float | None = None


def attacks(coalition: Coalition, release: TwoSidedRelease, epsilon: float) -> tuple[Attack, ...]:
    """Return the attacks of a coalition that has a bound, best at an epsilon."""
    noise, scheme = release.noise, release.scheme
    both, curators, server = (float(1 - kept) for kept in _retentions(noise))
    match coalition:
        case Coalition.ANALYST | Coalition.DESK:
            by_counts = _by_counts(scheme.population, scheme.sample, both, epsilon, lambda held: held.published)
            by_place = _by_place(lambda held: held.published)
            return (by_counts,) if coalition is Coalition.ANALYST else (by_counts, by_place)
        case Coalition.DESK_AND_SERVER:
            by_counts = _by_counts(scheme.population, scheme.sample, curators, epsilon, lambda held: held.sent)
            return (by_counts, _by_place(lambda held: held.sent))
        case Coalition.ANALYST_AND_CURATORS:
            return (_by_coins(scheme.sample, curators, server, epsilon),)
        case Coalition.DESK_AND_CURATORS:
            return (_by_row(curators, server, epsilon),)
        case Coalition.SERVER_AND_CURATORS:
            return (Attack(name="by ciphertext", says_here=lambda held: held.of_planted(held.ciphertext) == HERE % 2),)
        case Coalition.DESK_SERVER_AND_CURATOR:
            raise AssertionError("nothing protects against it")
        case _:
            assert_never(coalition)


def has_raw_row(held: Held) -> NDArray[np.bool_]:
    """Return in which releases the curators left the planted person's row, which was sampled in all, as it is."""
    return ~held.of_planted(held.coins).astype(np.bool_)


def says_here_of_raw_row(held: Held) -> NDArray[np.bool_]:
    """Say in which releases desk, server and a curator read HERE; nothing protects the rows that the curators left."""
    return np.asarray(held.of_planted(held.sent) == HERE)


# The attacks


def _retentions(noise: TwoSidedNoise) -> tuple[float, float, float]:
    curators = 1 - noise.curator_replacement / UNIT
    return float(noise.retention), curators, float(noise.server.retention)


def noisy(cell: int, replaced: float) -> Law:
    """Return the law of a cell that is replaced by a uniform one with a probability."""
    return np.asarray(replaced / CELLS + (1 - replaced) * (np.arange(CELLS) == cell))


def law_of_counts(rows: Sequence[Law]) -> Law:
    """Return the law of the counts of the cells of independent rows."""
    law = np.zeros((len(rows) + 1,) * CELLS)
    law[(0,) * CELLS] = 1
    for row in rows:
        # No count has reached the end yet, so nothing comes round.
        law = np.sum([row[cell] * np.roll(law, 1, axis=cell) for cell in range(CELLS)], axis=0)
    return law


def counts(cells: Array) -> Array:
    """Return the counts of the cells of every release, shape (releases, CELLS)."""
    return np.stack([(cells == cell).sum(axis=1) for cell in range(CELLS)], axis=1)


def _excess(here: Law, there: Law, epsilon: float) -> Law:
    """Return P(outcome | HERE) - e^epsilon P(outcome | THERE) where it is worth a saying, else 0."""
    difference = here - exp(epsilon) * there
    # Equal up to rounding: where the ratio is e^epsilon exactly, nothing is attained.
    difference[difference <= 1e-12 * here] = 0
    return difference


def _by_counts(population: int, sample: int, replaced: float, epsilon: float, cells: Callable[[Held], Array]) -> Attack:
    """Count the cells of rows in an order that is not known."""
    rest = [noisy(OTHERS, replaced)] * (sample - 1)
    share = sample / population
    here, there = (
        share * law_of_counts([noisy(planted, replaced), *rest])
        + (1 - share) * law_of_counts([noisy(OTHERS, replaced), *rest])
        for planted in (HERE, THERE)
    )
    excess = _excess(here, there, epsilon)
    return Attack(
        name="by counts", says_here=lambda held: excess[tuple(counts(cells(held)).T)] > 0, attains=float(excess.sum())
    )


def _by_place(cells: Callable[[Held], Array]) -> Attack:
    """Hope that the rows are in the order of the table."""
    return Attack(name="by place", says_here=lambda held: cells(held)[:, 0] == HERE)


def _by_coins(sample: int, curators: float, server: float, epsilon: float) -> Attack:
    """Count the cells, knowing the sample, which rows the curators replaced, and what alice put into these."""

    @lru_cache
    def excess(kept: int, zeros: int) -> Law:
        """Of a planted person that is kept, of so many others, and of so many replaced rows of alice's symbol 0."""
        replaced = [(noisy(2 * own, server) + noisy(2 * own + 1, server)) / 2 for own in (0, 1)]
        ones = sample - 1 - kept - zeros
        rest = [noisy(OTHERS, server)] * kept + [replaced[0]] * zeros + [replaced[1]] * ones
        here, there = (law_of_counts([noisy(planted, server), *rest]) for planted in (HERE, THERE))
        return _excess(here, there, epsilon)

    def says_here(held: Held) -> NDArray[np.bool_]:
        said = has_raw_row(held)
        kept = (~held.coins).sum(axis=1) - 1
        zeros = (held.coins & (held.own == 0)).sum(axis=1)
        seen = counts(held.published)
        said[said] = [
            excess(k, z)[tuple(count)] > 0
            for k, z, count in zip(kept[said].tolist(), zeros[said].tolist(), seen[said].tolist(), strict=True)
        ]
        return said

    attained = sum(
        (1 - curators)
        * comb(sample - 1, kept)
        * (1 - curators) ** kept
        * curators ** (sample - 1 - kept)
        * sum(comb(sample - 1 - kept, z) * excess(kept, z).sum() for z in range(sample - kept))
        / 2 ** (sample - 1 - kept)
        for kept in range(sample)
    )
    return Attack(name="by coins", says_here=says_here, attains=float(attained))


def _by_row(curators: float, server: float, epsilon: float) -> Attack:
    """Read the planted person's row, unless the curators replaced it."""
    excess = _excess(noisy(HERE, server), noisy(THERE, server), epsilon)
    return Attack(
        name="by row",
        says_here=lambda held: has_raw_row(held) & (held.of_planted(held.published) == HERE),
        attains=float((1 - curators) * excess.sum()),
    )


# What they attain


@dataclass(frozen=True, kw_only=True)
class Attained:
    """What an attack attained in games on both tables.

    Args:
        attack: which one.
        coalition: whose.
        epsilon: at which, nats.
        bound: delta of the coalition's bound at this epsilon.
        least: lower confidence bound of the delta attained.
        greatest: upper one.
    """

    attack: Attack
    coalition: Coalition
    epsilon: float
    bound: float
    least: float
    greatest: float

    @property
    def is_within_bound(self) -> bool:
        """Whether what the attack is sure to attain is within the bound."""
        return self.least <= self.bound

    @property
    def is_as_enumerated(self) -> bool:
        """Whether the attack attains what it should against the noise of the release, as far as one can tell."""
        return self.attack.attains is None or self.least <= self.attack.attains <= self.greatest

    def __str__(self) -> str:
        who = "+".join(self.coalition.roles)
        best = "" if self.attack.attains is None else f", best {self.attack.attains:.4f}"
        return (
            f"{who} {self.attack.name}: delta({self.epsilon:.3f}) {self.least:.4f} to {self.greatest:.4f}{best},"
            f" bound {self.bound:.4f}"
        )


def summary(results: Sequence[Attained]) -> str:
    """Say what each coalition is sure to attain at the epsilon where that is most."""
    most = {one.coalition: one for one in sorted(results, key=lambda one: one.least)}
    return "; ".join(
        f"{'+'.join(who.roles)} {max(most[who].least, 0):.3f} of {most[who].bound:.3f} at {most[who].epsilon:.2f}"
        for who in Coalition
        if who in most
    )


def bounds(coalition: Coalition, release: TwoSidedRelease, card: EpsilonCard) -> list[tuple[float, float]]:
    """Return (epsilon, delta) that a coalition faces: what its card says, and its view's profile about it."""
    stated = card.bound(coalition)
    assert stated.epsilon is not None
    points = [(float(stated.epsilon), float(stated.delta))]
    if stated.other is not None:
        points.append((float(stated.other[0]), float(stated.other[1])))
    if (view := release.seen_by(coalition)) is not None:
        points += [(part * points[0][0], view.delta(part * points[0][0])) for part in (0.5, 0.75)]
    return points


def attained(  # noqa: PLR0913 - one argument a quantity
    coalition: Coalition, release: TwoSidedRelease, card: EpsilonCard, here: Held, there: Held, *, level: float
) -> Iterator[Attained]:
    """Play all attacks of a coalition on releases of both tables.

    Args:
        coalition: who plays.
        release: what ran.
        card: what it promises.
        here: what the parties hold of releases of the table with HERE.
        there: of the other one.
        level: probability that any of the bounds is wrong, at the most.
    """
    if "curators" in coalition.roles:  # it knows in which releases the planted person is
        here, there = here.of(here.has_planted), there.of(there.has_planted)
    played = [
        (epsilon, delta, attack)
        for epsilon, delta in bounds(coalition, release, card)
        for attack in attacks(coalition, release, epsilon)
    ]
    for epsilon, delta, attack in played:
        first, second = (_interval(attack.says_here(held), level / (2 * len(played))) for held in (here, there))
        yield Attained(
            attack=attack,
            coalition=coalition,
            epsilon=epsilon,
            bound=delta,
            least=first[0] - exp(epsilon) * second[1],
            greatest=first[1] - exp(epsilon) * second[0],
        )


def _interval(said: NDArray[np.bool_], level: float) -> tuple[float, float]:
    """Return exact confidence bounds of a probability; either is wrong with probability level / 2."""
    n, k = len(said), int(said.sum())
    low = beta.ppf(level / 2, k, n - k + 1) if k else 0.0
    high = beta.isf(level / 2, k + 1, n - k) if k < n else 1.0
    return float(low), float(high)
