"""The study file that somebody without tables begins with: valid as it stands, every key beside its meaning."""

import textwrap
from collections.abc import Mapping, Sequence

from veiltab.common.study.keys import Key
from veiltab.common.study.study_tables import STUDY_TABLES, TableKeys

_EXAMPLES: Mapping[str, Sequence[Mapping[str, str]]] = {
    "study": [{"id": '"ID"', "title": '"What the study is about"', "hub": '"alice"'}],
    "budget": [{"epsilon": "3.0", "delta": "1e-6"}],
    "release": [{}],
    "server": [{"name": '"cloud"', "endpoint": '"cloud.example.org:7400"'}],
    "curator": [
        {"name": '"alice"', "endpoint": '"alice.example.org:7401"', "id_columns": '["id"]'},
        {"name": '"bob"', "endpoint": '"bob.example.org:7402"', "id_columns": '["person"]'},
    ],
    "researcher": [{"name": '"rosa"', "endpoint": '"rosa.example.org:7410"'}],
    "attribute": [
        {
            "name": '"education"',
            "owner": '"alice"',
            "categories": '["school", "college"]',
            "recode": '{ "HS" = "school", "BA" = "college" }',
        },
        {"name": '"wage"', "owner": '"bob"', "column": '"monthly_wage"', "bins": "[0, 2000, 4000, 1000000]"},
    ],
}
"""The tables of the template, each with the keys that are written; its first one names the others in comments."""

_WIDTH = 110


def study_template(study_id: str) -> str:
    """Return a study file to be edited."""
    lines = ["# A study file: every party gets the same bytes. Nothing in it may depend on anybody's data.", ""]
    for name, tables in _EXAMPLES.items():
        keys = STUDY_TABLES[name]
        for place, example in enumerate(tables):
            lines += _comment(f"{keys.meaning[0].upper()}{keys.meaning[1:]}.") if place == 0 else []
            lines.append(f"[[{name}]]" if keys.is_list else f"[{name}]")
            lines += _key_lines(keys, example, with_others=place == 0)
            lines.append("")
    return "\n".join(lines).replace('"ID"', f'"{study_id}"', 1)


def _key_lines(table_keys: TableKeys, example: Mapping[str, str], *, with_others: bool) -> list[str]:
    """Return the keys that are written; with the others, what these are and what holds without them."""
    lines: list[str] = []
    for name, key in table_keys.keys.items():
        if with_others:
            lines += _comment(_meaning(name, key, is_written=name in example))
        if name in example:
            lines.append(f"{name} = {example[name]}")
    return lines


def _meaning(name: str, key: Key, *, is_written: bool) -> str:
    if is_written:
        return f"{key.meaning}:"
    return f"{name} ({key.kind.words}; without it: {key.default}): {key.meaning}"


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text, _WIDTH)]
