"""The study file: who takes part, which attributes there are and how raw values become categories.

Every party holds the same bytes; their SHA-256 is the version of the study, and parties with different digests refuse
one another. Everything in a study file is public among the parties: nothing in it may depend on data.
"""

import codecs
import hashlib
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from veiltab.common.core.domain import Domain, check_names
from veiltab.common.core.texts.nearest import known_names
from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import InvalidInputError
from veiltab.common.storage.files import check_writers
from veiltab.common.study.coding.rules import AttributeRule, NodeQuestion, attribute_rule, check_holders, question_rule
from veiltab.common.study.keys import key, optional_key, read_keys, read_table
from veiltab.common.study.limits import MAX_CELLS, MAX_RESPONDENTS, MAX_TABLES
from veiltab.common.study.members import (
    NORMALISE_STEPS,
    AnalystMember,
    CuratorMember,
    Member,
    NodeGroup,
    RelayMember,
    check_endpoints,
    check_epsilon_budget,
    check_once,
)
from veiltab.common.study.naming import check_name, check_one_of, check_title
from veiltab.common.study.toml_fields import Fields
from veiltab.common.study.toml_text import MOST_BYTES, parsed_toml_text

if TYPE_CHECKING:
    from veiltab.common.linkage.identity_rule import IdentityRule

__all__ = [
    "NORMALISE_STEPS",
    "AnalystMember",
    "AttributeRule",
    "CuratorMember",
    "Member",
    "NodeGroup",
    "NodeQuestion",
    "Study",
    "attribute_rule",
    "load_study",
    "read_file",
    "study_from_bytes",
]

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A valid study: of curators with tables, of nodes with one value each, or both.

    Args:
        digest: SHA-256 of the study file's bytes, in hexadecimal.
        source: the study file's bytes.
        budget_epsilon: 0 without curators.
        curators: two or more; none if there are nodes only.
        attributes: in study order, which is the order of every release.
        analysts: those who read the releases of a researcher; none if researchers read them alone.
        nodes: the nodes, if there are any.
        questions: what they may be asked.
        identity: what names a person where curators have no common number; None if they have one.
        relay: through it parties are called that accept no connection; None if every party does.

    Raises:
        InvalidInputError: if the parts contradict one another.
    """

    id: str = field(metadata=key("a-z, 0-9 and inner hyphens; it stands in certificates"))
    title: str = field(metadata=key("one line for people"))
    digest: str
    source: bytes = field(repr=False, compare=False)
    minimum_population: int = optional_key(100, "fewest rows of the hub in a release")
    minimum_noise_split: Decimal = optional_key(
        Decimal(0), "least part of the noise that a request may leave to the curators"
    )
    minimum_tested: str = optional_key(
        "not", 'how well the server of a release is tested at the least: "enough", "too little" or "not"'
    )
    maximum_pair_epsilon: Decimal | None = optional_key(
        None, "most that a card may state for desk with server, and for analyst with curators", "no limit"
    )
    maximum_row_epsilon: Decimal | None = optional_key(
        None, "most that a card may state for desk with curators", "no limit"
    )
    maximum_cells: int = optional_key(100_000, "most cells of a table of a release")
    maximum_tables: int = optional_key(1000, "most tables of a release")
    maximum_respondents: int = optional_key(
        MAX_RESPONDENTS, "most rows of a curator's table; more respondents are not taken from any other curator"
    )
    hub: str = optional_key(
        "",
        "the curator whose rows are the rows of every table; that a person is in its table is not protected, and every"
        " other curator learns which of its own people the hub has",
        "refused, with curators",
    )
    alignment: str = optional_key(
        "oblivious",
        'how the others find their people among those of the hub: "oblivious", or "tokens", which is faster and lets'
        " each of them test every name that it can think of",
    )
    left_out: str = optional_key(
        "local",
        'whether results say how many rows of each curator miss a value and were left out: "stated", or'
        ' "local" if only the curator sees that',
    )
    noise_split: Decimal | None = optional_key(
        None, "the curators' part of the noise if a request does not say, from 0 to below 1", "that of the version"
    )
    canaries: int | None = optional_key(
        None, "rows that test the server if a request does not say", "as many as the test needs"
    )
    budget_epsilon: Decimal = field(metadata=key("nats, above 0 and at most 1000", table="budget", name="epsilon"))
    budget_delta: Decimal | None = optional_key(
        None,
        "with it, releases have prices whose squares add up; 1e-6 is usual",
        "none: pure epsilons are added up",
        table="budget",
        name="delta",
    )
    month_share: Decimal | None = optional_key(
        None,
        "part of the budget that all releases of one calendar month (UTC) may take together, such as 0.1",
        "all of it",
        table="budget",
    )
    sampling: str = optional_key("seed", 'how curators share a sample: "seed" or "indices"', table="release")
    pad: str = optional_key("chacha20", 'how columns are encrypted: "chacha20" or "otp"', table="release")
    server: Member
    curators: tuple[CuratorMember, ...]
    researchers: tuple[Member, ...]
    attributes: tuple[AttributeRule, ...]
    analysts: tuple[AnalystMember, ...] = ()
    nodes: NodeGroup | None = None
    questions: tuple[NodeQuestion, ...] = ()
    identity: "IdentityRule | None" = None
    relay: RelayMember | None = None

    def __post_init__(self) -> None:
        check_name("id", self.id)
        check_title(self.title)
        check_one_of("sampling", self.sampling, ("seed", "indices"))
        check_one_of("pad", self.pad, ("chacha20", "otp"))
        check_one_of("alignment", self.alignment, ("oblivious", "tokens"))
        check_one_of("left_out", self.left_out, ("local", "stated"))
        check_one_of("minimum_tested", self.minimum_tested, ("enough", "too little", "not"))
        _check_numbers(self)
        _check_parties(self)
        _check_researchers(self)
        _check_attributes(self)
        _check_questions(self)
        _check_identity(self)
        rules = (rule.with_absent(absent=self.may_lack(rule.owner)) for rule in self.attributes)
        object.__setattr__(self, "attributes", tuple(rules))

    def may_lack(self, curator: str) -> bool:
        """Whether people of the hub may be absent from a curator's table."""
        return curator != self.hub and not self.curator(curator).complete

    def curator(self, name: str) -> CuratorMember:
        """Return a curator by name."""
        return self._named("curator", {one.name: one for one in self.curators}, name)

    def analyst(self, name: str) -> AnalystMember:
        """Return an analyst by name."""
        return self._named("analyst", {one.name: one for one in self.analysts}, name)

    def analysts_of(self, researcher: str) -> tuple[AnalystMember, ...]:
        """Return the analysts of a researcher."""
        return tuple(analyst for analyst in self.analysts if analyst.researcher == researcher)

    def question(self, name: str) -> NodeQuestion:
        """Return a question by name."""
        return self._named("question", {one.name: one for one in self.questions}, name)

    def share_of(self, researcher: str) -> Fraction:
        """Return what the rounds of one researcher together may cost one node (nats); 0 if there are none."""
        if self.nodes is None or researcher not in {one.name for one in self.researchers}:
            return Fraction(0)
        if self.nodes.shares:
            return Fraction(dict(self.nodes.shares).get(researcher, 0))
        return Fraction(self.nodes.budget_epsilon) / len(self.researchers)

    def attributes_of(self, owner: str) -> tuple[AttributeRule, ...]:
        """Return the attributes that a curator holds, alone or with others, in study order."""
        name = self.curator(owner).name
        return tuple(rule for rule in self.attributes if name in rule.holders)

    def domain(self, names: Iterable[str]) -> Domain:
        """Return the domain of some attributes, always in study order; C order of its cells is thus agreed."""
        check_names(names)
        attributes = tuple(names)
        check_once("the release names attribute", attributes, "Name each attribute once.")
        owners = {rule.name: rule.owner for rule in self.attributes}
        for name in attributes:
            self._named("attribute", owners, name)
        return Domain(attributes=tuple(rule.attribute for rule in self.attributes if rule.name in attributes))

    def owner_of(self, name: str) -> str:
        """Return the curator that owns an attribute."""
        return self._named("attribute", {rule.name: rule.owner for rule in self.attributes}, name)

    def _named(self, kind: str, members: Mapping[str, Found], name: str) -> Found:
        if name in members:
            return members[name]
        remedy = known_names(f"{kind.capitalize()}s", list(members), name)
        raise InvalidInputError(f"no {kind} {name[:60]!r}", where=f"study {self.id}", remedy=remedy)


def load_study(path: Path) -> Study:
    """Read a study file.

    Raises:
        InvalidInputError: it cannot be read or is not a valid study; the message names the table, the key and the fix.
    """
    data = read_file(path, is_own=True)
    try:
        return study_from_bytes(data, str(path))
    except InvalidInputError as error:
        remedy = f"{error.remedy} `veiltab study check {path}` shows everything that is wrong, with its line.".lstrip()
        raise InvalidInputError(error.problem, where=error.where, remedy=remedy) from None


def read_file(path: Path, kind: str = "study file", *, is_own: bool = False) -> bytes:
    """Read the bytes of a file that people write, and of one that is too large its beginning.

    Args:
        kind: what it is, in a refusal.
        is_own: whether a file that others may write is refused.

    Raises:
        InvalidInputError: it cannot be read, or others may write it.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if is_own:
            check_writers(path)
    except OSError as error:
        raise InvalidInputError(
            f"the {kind} cannot be read ({error.strerror})", where=str(path), remedy=f"Give the path of a {kind}."
        ) from None
    return data


def study_from_bytes(data: bytes, where: str) -> Study:
    """Return the study that a file's bytes describe, a byte order mark apart; `where` names the file in messages."""
    return _study(Fields(parsed_toml_text(data, where), where), data.removeprefix(codecs.BOM_UTF8))


def _study(root: Fields, source: bytes) -> Study:
    """Read the whole file; `root` is its outermost table."""
    has_curators = root.holds("curator", object)
    head, budget = root.table("study"), root.table("budget", required=has_curators)
    release = root.table("release", required=False)
    values: dict[str, Any] = {"budget_epsilon": Decimal(0), **read_keys(Study, head)}
    values |= read_keys(Study, budget, "budget", without=() if has_curators else ("budget_epsilon",))
    values |= read_keys(Study, release, "release")
    study = root.checked(
        lambda: Study(
            digest=hashlib.sha256(source).hexdigest(),
            source=source,
            server=read_table(Member, root.table("server")),
            curators=tuple(read_table(CuratorMember, one) for one in root.tables("curator", required=False)),
            researchers=tuple(read_table(Member, one) for one in root.tables("researcher")),
            attributes=tuple(attribute_rule(one) for one in root.tables("attribute", required=False)),
            analysts=tuple(read_table(AnalystMember, one) for one in root.tables("analyst", required=False)),
            nodes=read_table(NodeGroup, root.table("nodes")) if root.holds("nodes", object) else None,
            questions=tuple(question_rule(one) for one in root.tables("question", required=False)),
            identity=_identity(root, values.get("hub", "")) if root.holds("identity", object) else None,
            relay=read_table(RelayMember, root.table("relay")) if root.holds("relay", object) else None,
            **values,
        )
    )
    for fields in (head, budget, release, root):
        fields.finish()
    return study


def _identity(root: Fields, hub: str) -> "IdentityRule":
    from veiltab.common.study.identity_table import identity_of  # noqa: PLC0415 - not for studies with ids

    return identity_of(root.table("identity"), hub)


def _check_identity(study: Study) -> None:
    """Refuse curators with an identity without the study's, and what contradicts it."""
    if study.identity is not None or any(curator.identity for curator in study.curators):
        from veiltab.common.study.identity_table import check_identities  # noqa: PLC0415 - not for studies with ids

        check_identities(study.identity, study.curators)


def _check_fewest(study: Study) -> None:
    if not 1 <= study.minimum_population <= 10**12:
        raise InvalidInputError("minimum_population is not at least 1", remedy="100 is a usual value.")
    if not 0 <= study.minimum_noise_split < 1:
        raise InvalidInputError("minimum_noise_split is not from 0 to below 1", remedy="0.25 leaves requests a choice.")
    if any(most is not None and most <= 0 for most in (study.maximum_pair_epsilon, study.maximum_row_epsilon)):
        raise InvalidInputError("maximum_pair_epsilon or maximum_row_epsilon is not above 0", remedy="Leave it out.")


def _check_numbers(study: Study) -> None:
    """Refuse limits and budgets that protect nobody or cannot be met."""
    _check_fewest(study)
    for name, least, most, remedy in (
        ("maximum_cells", 2, MAX_CELLS, "100000 is a usual value."),
        ("maximum_tables", 1, MAX_TABLES, "1000 is a usual value."),
        ("maximum_respondents", 1, MAX_RESPONDENTS, "Give somewhat more than the largest table has."),
    ):
        if not least <= getattr(study, name) <= most:
            raise InvalidInputError(f"{name} is not between {least} and {most}", remedy=remedy)
    if study.curators:
        check_epsilon_budget(study.budget_epsilon)
    if study.noise_split is not None and not 0 <= study.noise_split < 1:
        raise InvalidInputError("noise_split is not from 0 to below 1", remedy="0.5 is a usual value.")
    if study.canaries is not None and study.canaries < 0:
        raise InvalidInputError("canaries is below 0", remedy="Without it, the plan of a release chooses them.")
    if study.budget_delta is not None and not 0 < study.budget_delta < 1:
        raise InvalidInputError("the budget's delta is not between 0 and 1", remedy="1e-6 is usual.")
    if study.month_share is not None and not 0 < study.month_share <= 1:
        raise InvalidInputError("month_share is not above 0 and at most 1", remedy="0.1 lasts ten months at least.")


def _check_parties(study: Study) -> None:
    """Refuse too few parties, and names or endpoints used twice."""
    if len(study.curators) < 2 and (study.curators or study.nodes is None):
        raise InvalidInputError("fewer than two curators", remedy="Add a [[curator]] table for each.")
    if not study.researchers:
        raise InvalidInputError("no researcher", remedy="Add a [[researcher]] table.")
    parties = (study.server, *study.curators, *study.researchers)
    names = [party.name for party in parties] + [analyst.name for analyst in study.analysts]
    names += [study.nodes.name] if study.nodes else []
    names += [study.relay.name] if study.relay else []
    check_once("parties are named", names, "Names are unique among all parties.")
    _check_hub(study)
    check_endpoints(parties, study.relay, has_nodes=study.nodes is not None)


def _check_hub(study: Study) -> None:
    """Refuse curators without a hub, and a hub that is none of them or says that it is complete."""
    names = [curator.name for curator in study.curators]
    if study.curators and study.hub not in names:
        raise InvalidInputError(
            f"hub = {study.hub[:60]!r} is not a curator" if study.hub else "hub is not there",
            remedy="Name the curator whose list of people is no secret to the others: its rows are the rows of every"
            f" table. {known_names('Curators', names, study.hub)}",
        )
    if any(curator.complete and curator.name == study.hub for curator in study.curators):
        problem, remedy = f"hub = {study.hub!r} is complete", "Leave `complete` out: its rows are those of all tables."
        raise InvalidInputError(problem, remedy=remedy)


def _check_researchers(study: Study) -> None:
    """Refuse an analyst of somebody, or a share of the nodes' budget for somebody, who is not a researcher."""
    names = [researcher.name for researcher in study.researchers]
    shares = study.nodes.shares if study.nodes else ()
    for what, name in (
        *((f"analyst {one.name} has the researcher", one.researcher) for one in study.analysts),
        *(("[nodes] has a share for", name) for name, _ in shares),
    ):
        if name not in names:
            raise InvalidInputError(
                f"{what} {name[:60]!r}, who is not a researcher", remedy=known_names("Researchers", names, name)
            )


def _check_attributes(study: Study) -> None:
    """Refuse attributes named twice, owned by no curator, or none at all."""
    if study.curators and not study.attributes:
        raise InvalidInputError("no attribute", remedy="Add an [[attribute]] table for each.")
    check_once("attributes are named", [rule.name for rule in study.attributes], "Give each attribute its own name.")
    curators = [curator.name for curator in study.curators]
    for rule in study.attributes:
        check_holders(rule, curators, [name for name in curators if not study.may_lack(name)])
        if rule.others and study.identity is not None:
            raise InvalidInputError(
                f"attribute {rule.name} has several holders, and people are linked without a common number",
                remedy="Holders need a common number: leave [identity] out, or give the attribute an owner.",
            )


def _check_questions(study: Study) -> None:
    """Refuse nodes that are asked nothing, and questions that nobody answers or that are named twice."""
    if bool(study.questions) != (study.nodes is not None):
        raise InvalidInputError(
            "[nodes] and [[question]] go together", remedy="Give both: who answers, and what they are asked."
        )
    check_once("questions are named", [q.name for q in study.questions], "Give each question its own name.")
