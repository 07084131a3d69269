"""The choice of an oracle at one central guarantee: each with the largest epsilon of a report that keeps it."""

from collections.abc import Callable, Sequence
from decimal import ROUND_FLOOR, Decimal
from math import exp, inf, log, nextafter

from veiltab.common.collection.choosing import Choice, ranked
from veiltab.common.collection.oracles import ORACLE_NAMES, Oracle, oracle_for
from veiltab.common.core.numbers.rounding import parse_delta, parse_epsilon
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.threshold_search import largest_allowed
from veiltab.researcher.collection.shuffling import certificate_of, undominated

_STEP = Decimal("1e-9")


def choose_centrally(  # noqa: PLR0913 - one argument a quantity
    size: int,
    cap: Decimal,
    *,
    central: Decimal,
    delta: Decimal,
    crowds: Sequence[tuple[int, int]],
    population: int,
    rate: float,
    among: Sequence[str] = ORACLE_NAMES,
) -> Choice:
    """Rank oracles by variance, each with the largest epsilon of a report up to a cap that keeps a central guarantee.

    Args:
        size: number of values d, 2 to 65536.
        cap: largest epsilon of a report, nats, pure.
        central: epsilon against an adversary who sees only the counts, nats.
        crowds: (nodes, expected reports) of each stratum.
        rate: see `choose`.
        among: names of the oracles to rank.

    Raises:
        InvalidInputError: an argument out of range, or no oracle keeps the guarantee.

    Source: Biswas, Cormode, Maple, Section 6 (ii), which asks which oracle is best at one central guarantee.
    """
    parse_epsilon(central)
    worst = undominated([(nodes, max(1, reports)) for nodes, reports in crowds])
    share = nextafter(float(parse_delta(delta)), 0.0)

    def keeps(oracle: Oracle) -> float:
        """Return ln(delta of the counts / delta asked for), at most 0 where the guarantee is kept."""
        reached = max(certificate_of(oracle, *crowd).delta(float(central)) for crowd in worst)
        return log(reached / share) if reached > 0 else -inf

    oracles = [_largest(name, size, cap, central, keeps) for name in among]
    return ranked(oracles, epsilon=cap, population=population, rate=rate)


def _largest(name: str, size: int, cap: Decimal, central: Decimal, keeps: Callable[[Oracle], float]) -> Oracle:
    """Return the oracle of a kind with the largest epsilon up to the cap that keeps the guarantee."""

    def oracle_at(logarithm: float) -> Oracle:
        epsilon = Decimal(exp(logarithm)).quantize(_STEP, rounding=ROUND_FLOOR)
        return oracle_for(name, size, min(cap, max(epsilon, least)))

    # What is central for every node alone is central for all.
    least = min(cap, central)
    top = log(float(cap)) + 1e-9
    oracle = oracle_at(largest_allowed(log(float(least)), log(float(least)) + 1, top, lambda x: keeps(oracle_at(x))))
    if keeps(oracle) > 0:
        raise InvalidInputError(
            f"oracle {name} keeps no central epsilon of {central}",
            where="--central-epsilon",
            remedy="Raise --central-epsilon or --delta.",
        )
    return oracle
