"""A curator's draft: its part of a study, as it proposes it to the others.

A draft is the part of a study file that is about one curator, with [draft] in the place of [[curator]]: the curator's
address comes when drafts are merged, and the shapes of its ids are compared then.
"""

from collections.abc import Mapping
from typing import cast

from veiltab.common.dataclass import dataclass, field, replace
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.coding.dates import check_first_year
from veiltab.common.study.coding.rules import attribute_rule
from veiltab.common.study.forms import Forms, check_forms
from veiltab.common.study.keys import keys_of, optional_key, read_keys
from veiltab.common.study.members import (
    DATE_ORDER,
    FIRST_YEAR,
    ID_COLUMNS,
    IDENTITY,
    NORMALISE,
    NORMALISE_STEPS,
    PARTY_NAME,
    check_identification,
    check_identity,
    check_once,
    step_name,
)
from veiltab.common.study.naming import check_name
from veiltab.common.study.problems import Problem, file_problems
from veiltab.common.study.study_tables import STUDY_TABLES, TableKeys
from veiltab.common.study.toml_fields import Fields
from veiltab.common.study.toml_text import parsed_toml_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A valid draft.

    Args:
        attributes: [[attribute]] tables, as plain data; each is valid.
    """

    curator: str = field(metadata=PARTY_NAME)
    id_columns: tuple[str, ...] = field(default=(), metadata=ID_COLUMNS)
    identity: tuple[tuple[str, tuple[str, ...]], ...] = field(default=(), metadata=IDENTITY)
    date_order: str = field(default="ymd", metadata=DATE_ORDER)
    first_year: int | None = field(default=None, metadata=FIRST_YEAR)
    normalise: tuple[str, ...] = field(default=NORMALISE_STEPS, metadata=NORMALISE)
    forms: tuple[tuple[str, Forms], ...] = optional_key(
        (),
        "how the ids of each id column, or the identity fields, are written: the rows of each form, such as 9999;"
        " merging compares them",
        "merging with ids needs it",
    )
    distinct_after: tuple[str, ...] = optional_key(
        (), "steps of `normalise` after which all ids of the table still differ; merging proposes no others"
    )
    attributes: tuple[Mapping[str, object], ...]

    def __post_init__(self) -> None:
        check_name("curator", self.curator)
        if self.identity:
            check_identity(self.identity, self.date_order, self.id_columns)
        else:
            check_identification(self.id_columns, self.normalise)
            if self.forms and [*dict(self.forms)] != [*self.id_columns]:
                raise InvalidInputError("forms are not of the id columns", remedy="Give the forms of each id column.")
        for step in self.distinct_after:
            step_name(step)
        check_forms(self.forms, [name.partition(":")[0] for name, _ in self.identity] or self.id_columns)
        check_first_year(self.first_year)
        check_once("attributes are named", self.names, "Give each attribute its own name.")
        for attribute in self.attributes:
            if attribute["owner"] != self.curator:
                raise InvalidInputError(
                    f"attribute {attribute['name']} has another owner than {self.curator}",
                    remedy="A draft has the attributes of its own curator.",
                )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its attributes."""
        return tuple(str(attribute["name"]) for attribute in self.attributes)


DRAFT_TABLES: Mapping[str, TableKeys] = {
    "draft": TableKeys(meaning="whose draft it is, and what its ids are", keys=keys_of(Draft), is_needed=True),
    "attribute": replace(STUDY_TABLES["attribute"], meaning="an attribute of this curator", is_needed=True),
}
"""The tables of a curator's draft, as `veiltab study draft` writes it."""


def draft_from_bytes(data: bytes, where: str) -> Draft:
    """Return the draft that a file's bytes describe; `where` names the file in messages.

    Raises:
        InvalidInputError: they describe none.
    """
    parsed = parsed_toml_text(data, where)
    root = Fields(parsed, where)
    head = root.table("draft")
    for fields in root.tables("attribute"):
        attribute_rule(fields)
    draft = root.checked(
        lambda: Draft(attributes=tuple(cast("list[dict[str, object]]", parsed["attribute"])), **read_keys(Draft, head))
    )
    head.finish()
    root.finish()
    return draft


def is_draft(data: bytes) -> bool:
    """Return whether the bytes are those of a draft, valid or not: they have a table [draft]."""
    try:
        return "draft" in parsed_toml_text(data, "")
    except InvalidInputError:
        return False


def draft_problems(data: bytes) -> tuple[Problem, ...]:
    """Return all problems of a draft's bytes, in the order of their lines; none if it is valid."""
    return file_problems(data, DRAFT_TABLES, lambda: draft_from_bytes(data, ""))
