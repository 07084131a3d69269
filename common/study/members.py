"""The parties of a study: names and endpoints, and what makes two rows of a curator's table the same respondent."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from veiltab.common.errors import InvalidInputError
from veiltab.common.study.fields import Fields
from veiltab.common.study.id_shapes import check_id_shape
from veiltab.common.study.naming import check_endpoint, check_name, check_one_of

NORMALISE_STEPS = ("strip", "casefold", "nfc")
"""Steps of id normalisation that run unless a study says otherwise, in their order."""

NUMBER_STEPS = ("digits", "integer", "zfill")
"""Steps that run after them if a study names them, in their order: keep digits alone; make whole numbers of 0012 and
12.0; write zeros before what is shorter than N characters, by "zfill:N"."""

MOST_ZEROS = 64
"""Longest N of zfill."""

MAX_STRATA = 1000
"""Most strata of a study's nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A server or a researcher: its name and where its service listens (host:port)."""

    name: str
    endpoint: str

    def __post_init__(self) -> None:
        check_name("name", self.name)
        check_endpoint(self.endpoint)


@dataclass(frozen=True, slots=True, kw_only=True)
class CuratorMember(Member):
    """A curator: its name, its endpoint, and what makes two rows the same respondent.

    Args:
        name: the curator's name.
        endpoint: host:port of its service.
        id_columns: columns of its table that together name a respondent.
        normalise: steps applied to each of them before they are compared, of NORMALISE_STEPS and NUMBER_STEPS.
        id_shapes: how the normalised ids of each column were written when the study was made; empty if it does not say.
        most_ids: that it may show to the others in a private alignment; None for twice the receiver's own.
    """

    id_columns: tuple[str, ...]
    normalise: tuple[str, ...] = NORMALISE_STEPS
    id_shapes: tuple[str, ...] = ()
    most_ids: int | None = None

    def __post_init__(self) -> None:
        Member.__post_init__(self)
        if self.most_ids is not None and self.most_ids < 1:
            raise InvalidInputError("most_ids must be at least 1", remedy="Give the most ids that its table may have.")
        check_identification(self.id_columns, self.normalise)
        if self.id_shapes:
            check_id_shapes(self.id_shapes, self.id_columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalystMember:
    """An analyst: it asks the service of its researcher, and runs none of its own.

    Args:
        name: the analyst's name.
        researcher: the researcher whose releases it reads.
    """

    name: str
    researcher: str

    def __post_init__(self) -> None:
        check_name("name", self.name)
        check_name("researcher", self.researcher)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """The nodes of a study: they share one certificate, so that a connection does not say which of them it is.

    Args:
        name: the name in that certificate.
        budget_epsilon: what all rounds of the study together may cost one node (nats).
        strata: names of the public groups that nodes belong to; empty if there is one group.
        shares: researcher -> what its rounds together may cost one node; empty for equal shares of the budget.
    """

    name: str
    budget_epsilon: Decimal
    strata: tuple[str, ...] = ()
    shares: tuple[tuple[str, Decimal], ...] = ()

    def __post_init__(self) -> None:
        check_name("name", self.name)
        check_epsilon_budget(self.budget_epsilon)
        check_once("strata names", self.strata, "List each stratum once.")
        for stratum in self.strata:
            check_name("stratum", stratum)
        if len(self.strata) > MAX_STRATA:
            raise InvalidInputError(f"more than {MAX_STRATA} strata", remedy="Use coarser groups.")
        if any(share < 0 for _, share in self.shares):
            raise InvalidInputError("a share of the budget is below 0", remedy="0 allows a researcher no rounds.")
        if sum(Fraction(share) for _, share in self.shares) > Fraction(self.budget_epsilon):
            raise InvalidInputError(
                "the shares are more than budget_epsilon together", remedy="Lower them, or raise the budget."
            )


def check_identification(id_columns: Sequence[str], normalise: Sequence[str]) -> None:
    """Refuse id columns that name nothing, or steps that are unknown; each stands once."""
    if not id_columns or not all(name.strip() == name != "" for name in id_columns):
        raise InvalidInputError("id_columns names no column", remedy='List one or more, such as ["id"].')
    check_once("id_columns names", id_columns, "List each id column once.")
    names = [step_name(step) for step in normalise]
    check_once("normalise names", names, "List each step once.")
    if "digits" in names and "integer" in names:
        raise InvalidInputError(
            "normalise has both digits and integer", remedy="Keep one: digits would make 120 of 12.0, and integer 12."
        )


def step_name(step: str) -> str:
    """Return the name of a step, without the number of zfill:N; refuse an unknown one."""
    name, colon, number = step.partition(":")
    if name != "zfill":
        check_one_of("normalise", step, (*NORMALISE_STEPS, "digits", "integer", "zfill:N"))
    elif not colon or not number.isascii() or not number.isdigit() or not 1 <= int(number) <= MOST_ZEROS:
        raise InvalidInputError(
            f"normalise has {step[:40]!r}, which names no length",
            remedy=f'Write it like "zfill:7", with 1 to {MOST_ZEROS} characters.',
        )
    return name


def zfill_width(steps: Sequence[str]) -> int:
    """Return the N of zfill:N among valid steps; 0 without it."""
    return next((int(step.partition(":")[2]) for step in steps if step.startswith("zfill:")), 0)


def check_id_shapes(shapes: Sequence[str], id_columns: Sequence[str]) -> None:
    """Refuse texts that are no shapes, and more or fewer than there are id columns."""
    if len(shapes) != len(id_columns):
        raise InvalidInputError("id_shapes are not as many as id_columns", remedy="Give one shape a column.")
    for shape in shapes:
        check_id_shape(shape)


def check_epsilon_budget(epsilon: Decimal) -> None:
    """Refuse a budget's epsilon that protects nobody or cannot be met."""
    if not epsilon.is_finite() or not 0 < epsilon <= 1000:
        raise InvalidInputError(
            "the budget's epsilon is not above 0 and at most 1000", remedy="Give it in nats; a few nats are usual."
        )


def check_once(what: str, values: Sequence[str], remedy: str) -> None:
    """Refuse a list that names something twice."""
    for value, count in Counter(values).items():
        if count > 1:
            raise InvalidInputError(f"{what} {value!r} twice", remedy=remedy)


def party_of(fields: Fields) -> Member:
    """Read a [server] or [[researcher]] table."""
    party = fields.checked(lambda: Member(name=fields.text("name"), endpoint=fields.text("endpoint")))
    fields.finish()
    return party


def curator_of(fields: Fields) -> CuratorMember:
    """Read a [[curator]] table."""
    curator = fields.checked(
        lambda: CuratorMember(
            name=fields.text("name"),
            endpoint=fields.text("endpoint"),
            id_columns=fields.texts("id_columns"),
            normalise=fields.texts("normalise", NORMALISE_STEPS),
            id_shapes=fields.texts("id_shapes", ()),
            most_ids=fields.integer("most_ids") if fields.holds("most_ids", object) else None,
        )
    )
    fields.finish()
    return curator


def analyst_of(fields: Fields) -> AnalystMember:
    """Read an [[analyst]] table."""
    analyst = fields.checked(lambda: AnalystMember(name=fields.text("name"), researcher=fields.text("researcher")))
    fields.finish()
    return analyst
