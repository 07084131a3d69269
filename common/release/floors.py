"""What a study asks of every release, whatever a request chooses: each party refuses a release that gives less."""

from dataclasses import dataclass
from decimal import Decimal

from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.coalitions import PAIRS, Coalition
from veiltab.common.release.guarantees import release_card, release_test
from veiltab.common.release.receipts.canary_plan import HowTested
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.study.file import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Floors:
    """What a release gives at the least, as a study file says.

    Args:
        population: common respondents.
        tested: how well its server is tested.
        pair_epsilon: most that its card states for the pairs, nats; None for no limit.
        row_epsilon: most that its card states for desk with curators, nats; None for no limit.
    """

    population: int = 1
    tested: HowTested = HowTested.NOT
    pair_epsilon: Decimal | None = None
    row_epsilon: Decimal | None = None

    @classmethod
    def of(cls, study: Study) -> "Floors":
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
        test = release_test(release)
        if not test.tested.is_at_least(self.tested):
            raise InvalidInputError(
                f"{test.sentence}; the study asks for {self.tested.value!r}",
                where="canaries",
                remedy="Ask without a number of canaries, or for a smaller epsilon.",
            )
        limits = dict.fromkeys(PAIRS, self.pair_epsilon) | {Coalition.DESK_AND_CURATORS: self.row_epsilon}
        for coalition, most in limits.items():
            bound = None if most is None else release_card(release).bound(coalition)
            if most is not None and bound and (bound.epsilon is None or bound.epsilon > most):
                raise InvalidInputError(
                    f"{bound.name} would face {bound.limit}; the study allows epsilon {most}",
                    where="epsilon",
                    remedy="Ask for a smaller epsilon, or for another noise split.",
                )
