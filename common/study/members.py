"""The parties of a study: names and endpoints, and what makes two rows of a curator's table the same respondent."""

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.coding.dates import check_first_year
from veiltab.common.study.forms import Forms, check_forms, sentence
from veiltab.common.study.keys import key, optional_key
from veiltab.common.study.naming import check_endpoint, check_name, check_one_of

NORMALISE_STEPS = ("strip", "casefold", "nfc")
"""Steps of id normalisation that run unless a study says otherwise, in their order."""

MOST_ZEROS = 64
"""Longest N of zfill."""

MAX_STRATA = 1000
"""Most strata of a study's nodes."""

RELAYED = "relay"
"""The endpoint of a party that is called through the study's relay."""

PARTY_NAME = key("a-z, 0-9 and inner hyphens; unique among all parties")
ID_COLUMNS = key("columns of its table that together name a respondent", "required, or `identity`")
IDENTITY = key(
    "with an [identity]: for each of its fields that the table has, the column, or the columns that make it up",
    "the ids name respondents",
)
DATE_ORDER = key('how its table writes a date of birth: "ymd", "dmy" or "mdy"')
FIRST_YEAR = key("the earliest year that two digits mean in a date of birth: with 1926, 25 is 2025", "years have four")
NORMALISE = key(
    "steps that make spellings of one id agree: white space around it, letter case, Unicode form C; also"
    ' "first" and "last" (keep the first or last group of digits), "digits" (keep digits alone), "integer" (0012 and'
    ' 12.0 are 12; what is not whole is refused) and "zfill:7" (zeros before what is shorter)'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A server or a researcher: its name and where its service listens."""

    name: str = field(metadata=PARTY_NAME)
    endpoint: str = field(metadata=key('host:port at which the others reach its service, or "relay"'))

    def __post_init__(self) -> None:
        check_name("name", self.name)
        if self.endpoint != RELAYED:
            check_endpoint(self.endpoint)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayMember:
    """The relay, through which parties are called that accept no connection."""

    name: str = field(default="relay", metadata=PARTY_NAME)
    endpoint: str = field(metadata=key("host:port at which all parties reach it, such as relay.example.org:443"))

    def __post_init__(self) -> None:
        check_name("name", self.name)
        check_endpoint(self.endpoint)


@dataclass(frozen=True, slots=True, kw_only=True)
class CuratorMember(Member):
    """A curator: its name, its endpoint, and what makes two rows the same respondent."""

    id_columns: tuple[str, ...] = field(default=(), metadata=ID_COLUMNS)
    identity: tuple[tuple[str, tuple[str, ...]], ...] = field(default=(), metadata=IDENTITY)
    date_order: str = field(default="ymd", metadata=DATE_ORDER)
    first_year: int | None = field(default=None, metadata=FIRST_YEAR)
    normalise: tuple[str, ...] = field(default=NORMALISE_STEPS, metadata=NORMALISE)
    forms: tuple[tuple[str, Forms], ...] = optional_key(
        (),
        "how its normalised ids are written, as its draft said: of each id column, or of an identity field, the rows"
        " of each form, such as 9999; `curator check` compares them",
        "nothing is compared",
    )
    most_ids: int | None = optional_key(
        None,
        "most ids that the hub takes from it in an oblivious join; each may be a guess",
        "twice as many as the hub has",
    )
    complete: bool = optional_key(
        default=False,
        meaning="whether it is publicly known that everybody of the hub is in its table; then its columns have no"
        ' category "absent"',
    )

    @property
    def dates(self) -> str:
        """How its table writes a date of birth, as `veiltab.common.linkage.normalisation.normaliser` takes it."""
        return self.date_order if self.first_year is None else f"{self.date_order}:{self.first_year}"

    @property
    def id_rule(self) -> str:
        """Its id columns, the steps of their normalisation, and how the ids are written, in words."""
        forms = f", written as {'; '.join(sentence(one) for _, one in self.forms)}" if self.forms else ""
        return f"{self.name} has {', '.join(self.id_columns)} by {', '.join(self.normalise) or 'no step'}{forms}"

    def __post_init__(self) -> None:
        Member.__post_init__(self)
        if self.most_ids is not None and self.most_ids < 1:
            raise InvalidInputError("most_ids must be at least 1", remedy="Give the most ids that its table may have.")
        if self.identity:
            check_identity(self.identity, self.date_order, self.id_columns)
            object.__setattr__(self, "id_columns", tuple(column for _, columns in self.identity for column in columns))
            object.__setattr__(self, "normalise", ())
        check_first_year(self.first_year)
        check_identification(self.id_columns, self.normalise)
        check_forms(self.forms, [name for name, _ in self.identity] or self.id_columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalystMember:
    """An analyst: it asks the service of its researcher, and runs none of its own."""

    name: str = field(metadata=PARTY_NAME)
    researcher: str = field(metadata=key("the researcher whose releases it reads"))

    def __post_init__(self) -> None:
        check_name("name", self.name)
        check_name("researcher", self.researcher)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """The nodes of a study: they share one certificate, so that a connection does not say which of them it is."""

    name: str = field(metadata=PARTY_NAME)
    budget_epsilon: Decimal = field(metadata=key("nats, for one node, over all rounds"))
    strata: tuple[str, ...] = optional_key((), "names of public groups of nodes", "one group")
    shares: tuple[tuple[str, Decimal], ...] = optional_key(
        (), "what the rounds of each researcher may cost one node", "equal shares"
    )

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
    if "first" in names and "last" in names:
        raise InvalidInputError("normalise has both first and last", remedy="Keep one group of digits.")


def check_identity(identity: Sequence[tuple[str, Sequence[str]]], date_order: str, ids: Sequence[str]) -> None:
    """Refuse ids beside an identity, fields without a column, a column twice, and an unknown order of dates."""
    if ids:
        raise InvalidInputError("there are ids and an identity", remedy="Keep id_columns or identity.")
    for name, columns in identity:
        if not columns:
            raise InvalidInputError(f"identity has no column for {name[:60]}", remedy="Name one, or leave it out.")
    check_identification([column for _, columns in identity for column in columns], ())
    check_one_of("date_order", date_order, ("ymd", "dmy", "mdy"))


def step_name(step: str) -> str:
    """Return the name of a step, without the number of zfill:N; refuse an unknown one."""
    name, colon, number = step.partition(":")
    if name != "zfill":
        check_one_of("normalise", step, (*NORMALISE_STEPS, "first", "last", "digits", "integer", "zfill:N"))
    elif not colon or not number.isascii() or not number.isdigit() or not 1 <= int(number) <= MOST_ZEROS:
        raise InvalidInputError(
            f"normalise has {step[:40]!r}, which names no length",
            remedy=f'Write it like "zfill:7", with 1 to {MOST_ZEROS} characters.',
        )
    return name


def zfill_width(steps: Sequence[str]) -> int:
    """Return the N of zfill:N among valid steps; 0 without it."""
    return next((int(step.partition(":")[2]) for step in steps if step.startswith("zfill:")), 0)


def check_epsilon_budget(epsilon: Decimal) -> None:
    """Refuse a budget's epsilon that protects nobody or cannot be met."""
    if not epsilon.is_finite() or not 0 < epsilon <= 1000:
        raise InvalidInputError(
            "the budget's epsilon is not above 0 and at most 1000", remedy="Give it in nats; a few nats are usual."
        )


def check_once(list_name: str, values: Sequence[str], remedy: str) -> None:
    """Refuse a list that names something twice."""
    for value, count in Counter(values).items():
        if count > 1:
            raise InvalidInputError(f"{list_name} {value!r} twice", remedy=remedy)


def check_endpoints(parties: Sequence[Member], relay: RelayMember | None, *, has_nodes: bool) -> None:
    """Refuse endpoints that two have, or that need a relay which is not there; the first party is the server."""
    endpoints = [party.endpoint for party in parties if party.endpoint != RELAYED]
    if relay is not None:
        endpoints.append(relay.endpoint)
    elif len(endpoints) < len(parties):
        raise InvalidInputError(
            'an endpoint is "relay", and there is no [relay]', remedy="Add [relay] with its endpoint, host:port."
        )
    if has_nodes and parties[0].endpoint == RELAYED:
        raise InvalidInputError(
            'the server\'s endpoint is "relay" in a study with nodes',
            remedy="Give it host:port: a relay has not room for thousands of nodes.",
        )
    check_once("parties listen at", endpoints, "Give each party its own endpoint.")
