"""A curator's draft: its part of a study, as it proposes it to the others.

A draft is the part of a study file that is about one curator, with [draft] in the place of [[curator]]: the curator's
address comes when drafts are merged, and the shapes of its ids are compared then.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from veiltab.common.errors import InvalidInputError
from veiltab.common.study.coding.rules import attribute_rule
from veiltab.common.study.fields import Fields
from veiltab.common.study.keys import DRAFT_TABLES
from veiltab.common.study.members import NORMALISE_STEPS, check_id_shapes, check_identification, check_once
from veiltab.common.study.naming import check_name
from veiltab.common.study.problems import Problem, file_problems
from veiltab.common.study.toml_text import parsed_toml_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A valid draft.

    Args:
        curator: the curator's name.
        id_columns: columns of its table that together name a respondent.
        normalise: steps applied to each of them before they are compared.
        id_shapes: how the ids of each column are written.
        attributes: [[attribute]] tables, as plain data; each is valid.
    """

    curator: str
    id_columns: tuple[str, ...]
    normalise: tuple[str, ...]
    id_shapes: tuple[str, ...]
    attributes: tuple[Mapping[str, object], ...]

    def __post_init__(self) -> None:
        check_name("curator", self.curator)
        check_identification(self.id_columns, self.normalise)
        check_id_shapes(self.id_shapes, self.id_columns)
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
        lambda: Draft(
            curator=head.text("curator"),
            id_columns=head.texts("id_columns"),
            normalise=head.texts("normalise", NORMALISE_STEPS),
            id_shapes=head.texts("id_shapes"),
            attributes=tuple(cast("list[dict[str, object]]", parsed["attribute"])),
        )
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
    readers = {"attribute": attribute_rule}
    return file_problems(data, DRAFT_TABLES, readers, lambda: draft_from_bytes(data, ""))
