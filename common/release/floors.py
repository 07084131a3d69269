"""What a study asks of every release, whatever a request chooses: each party refuses a release that gives less."""

from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.coalitions import PAIR_EPSILON, PAIRS, ROW_EPSILON, Coalition
from veiltab.common.release.guarantees import release_card, release_test
from veiltab.common.release.receipts.canary_plan import HowTested
from veiltab.common.release.spec import ReleaseSpec

if TYPE_CHECKING:
    from veiltab.common.study.file import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """Where a release gives less: what it gives, what is asked of it, the field, and what to do."""

    gives: str
    demand: str
    where: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Floors:
    """What a release gives at the least, as a study file says.

    Args:
        population: n, rows of the hub.
        tested: how well its server is tested.
        pair_epsilon: most that its card states for the pairs, nats; None for no limit.
        row_epsilon: most that its card states for desk with curators, nats; None for no limit.
    """

    population: int = 1
    tested: HowTested = HowTested.NOT
    pair_epsilon: Decimal | None = None
    row_epsilon: Decimal | None = None

    @classmethod
    def of(cls, study: "Study") -> "Floors":
        """Return the floors of a study."""
        return cls(
            population=study.minimum_population,
            tested=HowTested(study.minimum_tested),
            pair_epsilon=study.maximum_pair_epsilon,
            row_epsilon=study.maximum_row_epsilon,
        )

    def check(self, release: ReleaseSpec) -> None:
        """Refuse a release that gives less; of several tables, a limit of epsilon takes some seconds of work.

        Raises:
            InvalidInputError: names what it gives, and what the study asks for.
        """
        if release.population < self.population:
            raise InvalidInputError(
                f"the curators share fewer respondents than the {self.population} that the study asks for",
                where="population",
            )
        for lack in self.lacks(release):
            raise InvalidInputError(f"{lack.gives}; the study {lack.demand}", where=lack.where, remedy=lack.remedy)

    def lacks(self, release: ReleaseSpec) -> Iterator[Lack]:
        """Yield where a release is tested less, or a coalition faces more."""
        if self.tested is not HowTested.NOT and not (test := release_test(release)).tested.is_at_least(self.tested):
            remedy = "Ask without a number of canaries, for a smaller epsilon, or for a sample that the curators draw."
            yield Lack(gives=test.sentence, demand=f"asks for {self.tested.value!r}", where="canaries", remedy=remedy)
        limits = dict.fromkeys(PAIRS, self.pair_epsilon) | {Coalition.DESK_AND_CURATORS: self.row_epsilon}
        for coalition, most in limits.items():
            if most is not None and (bound := release_card(release).bound(coalition)).person_epsilon > most:
                gives, allows = f"{bound.name} would face {bound.limit}", f"allows epsilon {most}"
                remedy = "Ask for a smaller epsilon, another noise split, or rows without replacement."
                yield Lack(gives=gives, demand=allows, where="epsilon", remedy=remedy)


USUAL = Floors(tested=HowTested.ENOUGH, pair_epsilon=PAIR_EPSILON, row_epsilon=ROW_EPSILON)
"""What rules approve unless they say otherwise."""
