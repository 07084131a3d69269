"""A researcher's request to the curators."""

import re
from decimal import Decimal
from enum import Enum

from veiltab.common.core.numbers.rounding import parse_epsilon
from veiltab.common.core.texts.canonical import KeptRecord, canonical_text, read_canonical
from veiltab.common.dataclass import dataclass, fields
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.planning.noise_split import DEFAULT_SPLIT, check_split
from veiltab.common.release.modes import Pad, Sampling, check_modes

RELEASE_ID = re.compile(r"[0-9a-f]{32}")

_OF_ONE_CALL = frozenset({"release_id", "deadline"})
"""Fields in which two requests for the same may differ."""

_LONGEST_SHOWN = 60


@dataclass(frozen=True, kw_only=True)
class ReleaseRequest(KeptRecord):
    """A researcher's request to the curators; the release id is the idempotency key.

    Args:
        release_id: 32 hexadecimal digits.
        attributes: the requested ones, in study order.
        epsilon: pure epsilon, nats.
        purpose: for the people who decide.
        deadline: Unix seconds after which an unfinished release is abandoned.
        partial: continue with the granted attributes if some are denied.
        sampling: how the curators agree on a sample.
        sample: rows to sample (for Poisson on average), or None for the planner's choice.
        delta: of the guarantee; None asks for a pure epsilon.
        max_local_epsilon: most that ln gamma may be, nats; None for no cap.
        scheme: name of the sampling scheme.
        stage: rows after stage one of a two-stage scheme.
        noise_split: s in [0, 1): the curators' part of the noise, 1 - r_c = (1 - r)^s.
        max_pair_epsilon: most epsilon against the server with the desk, and against analysts with curators; nats.
        canaries: rows that test the server, or None for as many as the plan needs; of each table.
        tables: attributes of each table of a release of several, in study order; none for one table of all attributes.
        repeats: so many of the tables may be released a second time, chosen after the first results.
    """

    release_id: str
    researcher: str
    attributes: tuple[str, ...]
    epsilon: Decimal
    purpose: str = ""
    deadline: int
    partial: bool = False
    sampling: Sampling = Sampling.SEED
    pad: Pad = Pad.CHACHA20
    sample: int | None = None
    delta: Decimal | None = None
    max_local_epsilon: Decimal | None = None
    scheme: str = "wor"
    stage: int | None = None
    noise_split: Decimal = DEFAULT_SPLIT
    max_pair_epsilon: Decimal | None = None
    canaries: int | None = None
    tables: tuple[tuple[str, ...], ...] = ()
    repeats: int = 0

    def __post_init__(self) -> None:
        if not RELEASE_ID.fullmatch(self.release_id):
            raise InvalidInputError("the release id is not 32 hexadecimal digits", where="release id")
        if not self.attributes or len(set(self.attributes)) != len(self.attributes):
            raise InvalidInputError("the request has no attribute, or one of them twice", where="attributes")
        parse_epsilon(self.epsilon)
        check_modes(self.scheme, self.sampling, self.delta)
        if self.sample is not None and self.sample < 1:
            raise InvalidInputError("a sample of fewer than 1 row was asked for", where="sample")
        if self.stage is not None and self.stage < 1:
            raise InvalidInputError("the first stage must take at least 1 row", where="stage")
        if self.max_local_epsilon is not None:
            parse_epsilon(self.max_local_epsilon, what="max_local_epsilon")
        check_split(self.noise_split)
        if self.max_pair_epsilon is not None:
            parse_epsilon(self.max_pair_epsilon, what="max_pair_epsilon")
        if self.canaries is not None and self.canaries < 0:
            raise InvalidInputError("the number of canaries is below 0", where="canaries")
        _check_tables(self)
        # The terminals of the people who decide show these lines.
        for one in fields(self):
            text = getattr(self, one.name)
            if isinstance(text, str) and (len(text) > 1000 or not text.isprintable()):
                raise InvalidInputError(
                    f"the {one.name} is longer than 1000 characters, or not one printable line", where=one.name
                )

    def to_json(self) -> str:
        """Return the canonical text."""
        return self.text

    def text_without_id(self) -> str:
        """Return the canonical text without the id and the deadline."""
        return canonical_text(self, without=_OF_ONE_CALL)

    def unlike(self, other: "ReleaseRequest") -> tuple[str, ...]:
        """Return what another request asks for otherwise, such as "epsilon (1, now 2)", but for its id and deadline."""
        return tuple(
            f"{one.name} ({_readable(getattr(self, one.name))}, now {_readable(getattr(other, one.name))})"
            for one in fields(self)
            if one.name not in _OF_ONE_CALL and getattr(self, one.name) != getattr(other, one.name)
        )

    @classmethod
    def from_json(cls, text: str) -> "ReleaseRequest":
        """Read back what `to_json` wrote."""
        return read_canonical(cls, text)


def _readable(value: object) -> str:
    """Return a value of a request as a person reads it."""
    match value:
        case None | "" | ():
            return "none"
        case Enum():
            return str(value.value)
        case tuple():
            return " ".join(",".join(one) if isinstance(one, tuple) else str(one) for one in value)[:_LONGEST_SHOWN]
        case _:
            return str(value)[:_LONGEST_SHOWN]


def _check_tables(request: ReleaseRequest) -> None:
    """Refuse tables that are not a workload of its attributes, and what several tables cannot be asked with."""
    if not request.tables:
        if request.repeats:
            raise InvalidInputError("repeats were asked for of a release of one table", where="repeats")
        return
    if len(request.attributes) < 2 or len(request.tables) < 2:
        raise InvalidInputError(
            "fewer than two tables, or two attributes, were asked for",
            where="tables",
            remedy="Ask for one table by its attributes alone.",
        )
    if len(set(request.tables)) != len(request.tables):
        raise InvalidInputError("a table is listed twice", where="tables", remedy="Ask for repeats instead.")
    for table in request.tables:
        if not table or table != tuple(name for name in request.attributes if name in table):
            raise InvalidInputError(
                f"the table {', '.join(table)} does not list some of the attributes in their order, each once",
                where="tables",
            )
    if {name for table in request.tables for name in table} != set(request.attributes):
        raise InvalidInputError("an attribute is in no table", where="tables")
    if not 0 <= request.repeats <= len(request.tables):
        raise InvalidInputError("more tables are to be repeated than there are, or fewer than 0", where="repeats")
    _check_fits_tables(request)


def _check_fits_tables(request: ReleaseRequest) -> None:
    if request.delta is None:
        raise InvalidInputError("no delta was given for several tables", where="delta", remedy="1e-6 is usual.")
    if request.scheme != "wor" or request.stage is not None:
        raise InvalidInputError("several tables have another scheme than without replacement", where="scheme")
    for name in ("max_local_epsilon", "max_pair_epsilon"):
        if getattr(request, name) is not None:
            raise InvalidInputError(
                "several tables cannot be asked with a cap", where=name, remedy="Ask for a smaller epsilon."
            )
