"""The public description of a round of collection, the same at the researcher, the server and every node."""

import json
import re
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import Any

from veiltab.common.collection.oracles import Oracle, oracle_of
from veiltab.common.core.domain import symbol_dtype
from veiltab.common.core.numbers.rounding import parse_epsilon
from veiltab.common.core.texts.record_fields import same_fields
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.members import MAX_STRATA, check_once
from veiltab.common.study.naming import check_attribute_name, check_name

EVERYONE = "everyone"
"""Name of the one stratum of a study that has no strata."""

MAX_COUNTS = 2**22
"""Most counters of a round: strata times categories."""

MAX_POPULATION = 10**9
"""Most nodes of a stratum."""

LEAST_RATE = Decimal("1e-18")
"""Least probability of reporting."""

_RATE_DIGITS = 60
_SHOWN = 8
_ID = re.compile(r"[0-9a-f]{32}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_COIN = 2**64
_LAST_SECOND = 253_402_300_799


@lru_cache(maxsize=256)
def _oracle(name: str, size: int, parameters: tuple[tuple[str, int], ...]) -> Oracle:
    return oracle_of(name, size, dict(parameters))


class RoundState(Enum):
    """Whether a round takes reports."""

    OPEN = "open"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """One public group of nodes.

    Args:
        name: as the study file has it, or EVERYONE.
        population: nodes in it; the largest number of its tokens.
        rate: probability with which each of its nodes reports, in [1e-18, 1], of at most 60 digits.

    Raises:
        InvalidInputError: a value out of range.
    """

    name: str
    population: int
    rate: Decimal

    def __post_init__(self) -> None:
        check_name("stratum", self.name)
        if not 1 <= self.population <= MAX_POPULATION:
            raise InvalidInputError(
                f"a population of {self.population} is not between 1 and {MAX_POPULATION}", where=f"stratum {self.name}"
            )
        # Check before any exact arithmetic, in which a number such as 1e-999999999 has a billion digits.
        if (
            not (self.rate.is_finite() and LEAST_RATE <= self.rate <= 1)
            or len(self.rate.as_tuple().digits) > _RATE_DIGITS
        ):
            raise InvalidInputError(
                "the rate must be above 0 and at most 1",
                where=f"stratum {self.name}",
                remedy=f"It is the probability with which a node reports: {LEAST_RATE} to 1, of at most 60 digits.",
            )

    @property
    def coin(self) -> int:
        """The rate in units of 2^-64, rounded down: a node reports if its 64-bit word is below."""
        numerator, denominator = self.rate.as_integer_ratio()
        return numerator * _COIN // denominator

    @property
    def probability(self) -> Fraction:
        """The rate that runs, exactly."""
        return Fraction(self.coin, _COIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Everything public about a round.

    Args:
        round_id: 32 hexadecimal digits, chosen at random by the researcher.
        study_digest: SHA-256 of the study file, hexadecimal.
        size: categories d of the question.
        epsilon: most that one report costs its node, nats; pure, against everybody.
        oracle: name of the local randomiser.
        parameters: its exact whole-number parameters, by name.
        strata: one or more; a node belongs to one.
        deadline: Unix seconds after which the server takes no report.

    Raises:
        InvalidInputError: a value out of range, or a randomiser that exceeds epsilon.
    """

    round_id: str
    study_digest: str
    researcher: str
    question: str
    size: int
    epsilon: Decimal
    oracle: str
    parameters: tuple[tuple[str, int], ...]
    strata: tuple[Stratum, ...]
    deadline: int

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.round_id) or not _DIGEST.fullmatch(self.study_digest):
            raise InvalidInputError("the id is not 32 hexadecimal digits, or the study digest not 64")
        check_name("researcher", self.researcher)
        check_attribute_name(self.question)
        symbol_dtype(self.size)
        parse_epsilon(self.epsilon)
        if not 0 <= self.deadline <= _LAST_SECOND:
            raise InvalidInputError("the deadline is not a Unix time before the year 10000", where="deadline")
        if not 1 <= len(self.strata) <= MAX_STRATA or len(self.strata) * self.size > MAX_COUNTS:
            raise InvalidInputError(
                f"the round has no strata, more than {MAX_STRATA}, or more than {MAX_COUNTS} counters"
            )
        check_once("strata are named", [stratum.name for stratum in self.strata], "Name each stratum once.")
        if self.randomiser.epsilon > self.epsilon:
            raise InvalidInputError("the randomiser costs more than the round's epsilon", where="oracle")

    @property
    def randomiser(self) -> Oracle:
        """The local randomiser that every node runs."""
        return _oracle(self.oracle, self.size, self.parameters)

    @property
    def population(self) -> int:
        """All nodes n."""
        return sum(stratum.population for stratum in self.strata)

    def stratum(self, name: str) -> Stratum:
        """Return a stratum by name; a refusal does not repeat the name, which may be a value in the wrong column."""
        for stratum in self.strata:
            if stratum.name == name:
                return stratum
        names = ", ".join(stratum.name for stratum in self.strata[:_SHOWN])
        more = ", ..." if len(self.strata) > _SHOWN else ""
        raise InvalidInputError("no such stratum in this round", where="stratum", remedy=f"Strata: {names}{more}.")

    def to_json(self) -> str:
        """Return the canonical text of a round, for a database."""
        return json.dumps(
            {
                **same_fields(self, ("round_id", "study_digest", "researcher", "question", "size")),
                "epsilon": str(self.epsilon),
                "oracle": self.oracle,
                "parameters": dict(sorted(self.parameters)),
                "strata": [{"name": s.name, "population": s.population, "rate": str(s.rate)} for s in self.strata],
                "deadline": self.deadline,
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: str) -> "Round":
        """Return the round that `to_json` wrote."""
        facts: dict[str, Any] = json.loads(text)
        strata = facts.pop("strata")
        epsilon, parameters = Decimal(facts.pop("epsilon")), facts.pop("parameters")
        return cls(
            epsilon=epsilon,
            parameters=tuple(parameters.items()),
            strata=tuple(Stratum(name=s["name"], population=s["population"], rate=Decimal(s["rate"])) for s in strata),
            **facts,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundStatus:
    """The status of a round at the server.

    Args:
        closed: Unix seconds at which it closed; 0 while it is open.
        enrolled: tokens by stratum, in the round's order.
    """

    round: Round
    state: RoundState
    closed: int
    enrolled: tuple[int, ...]
    reports: tuple[int, ...]
