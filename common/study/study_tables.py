"""The tables that a study file may have, each with its keys: problems and the template are made of them."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from veiltab.common.dataclass import dataclass
from veiltab.common.study.coding.rules import WrittenRule, attribute_rule, question_rule
from veiltab.common.study.file import Study
from veiltab.common.study.identity_table import WrittenIdentity, identity_of
from veiltab.common.study.keys import Key, keys_of, read_table
from veiltab.common.study.members import AnalystMember, CuratorMember, Member, NodeGroup, RelayMember
from veiltab.common.study.toml_fields import Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class TableKeys:
    """One table of a file, or a list of tables.

    Args:
        meaning: for people, without a full stop.
        keys: by name, in the order of the reference.
        read: refuses a table that contradicts itself; None if it has a meaning only together with others.
        is_list: whether the file may have several, each under [[name]].
        is_needed: whether a file without it is refused, whatever else it holds.
    """

    meaning: str
    keys: Mapping[str, Key]
    read: Callable[[Fields], object] | None = None
    is_list: bool = False
    is_needed: bool = False


def _tables_of(record: type, meaning: str, *, is_list: bool = False, is_needed: bool = False) -> TableKeys:
    return TableKeys(
        meaning=meaning, keys=keys_of(record), read=partial(read_table, record), is_list=is_list, is_needed=is_needed
    )


_RULE_KEYS = keys_of(WrittenRule)

STUDY_TABLES: Mapping[str, TableKeys] = MappingProxyType(
    {
        "study": TableKeys(meaning="the study as a whole", keys=keys_of(Study), is_needed=True),
        "budget": TableKeys(
            meaning="what one curator may spend, over all releases and researchers; needed with curators",
            keys=keys_of(Study, "budget"),
        ),
        "release": TableKeys(meaning="how releases are made if a request does not say", keys=keys_of(Study, "release")),
        "identity": TableKeys(
            meaning="what names a person where the curators have no common number",
            keys=keys_of(WrittenIdentity),
            read=partial(identity_of, hub=""),
        ),
        "server": _tables_of(Member, "the cloud server", is_needed=True),
        "relay": _tables_of(RelayMember, 'what passes connections to parties whose endpoint is "relay"'),
        "curator": _tables_of(CuratorMember, "a curator; two or more", is_list=True),
        "researcher": _tables_of(Member, "a researcher; one or more", is_list=True, is_needed=True),
        "analyst": _tables_of(AnalystMember, "somebody who reads the releases of a researcher", is_list=True),
        "attribute": TableKeys(
            meaning="an attribute; needed with curators", keys=_RULE_KEYS, read=attribute_rule, is_list=True
        ),
        "nodes": _tables_of(NodeGroup, "the nodes of a collection, together"),
        "question": TableKeys(
            meaning="a question to the nodes; needed with nodes",
            keys={name: one for name, one in _RULE_KEYS.items() if name not in {"owner", "column"}},
            read=question_rule,
            is_list=True,
        ),
    }
)
"""The tables of a study file; [study], [budget] and [release] make the study only together."""
