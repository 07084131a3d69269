"""The template and the tables of docs/study-file.md, made from the keys: `python -m tests.study_page` writes them."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from veiltab.common.study.drafts.draft import DRAFT_TABLES
from veiltab.common.study.drafts.template import study_template
from veiltab.common.study.study_tables import STUDY_TABLES, TableKeys

PAGE = Path(__file__).parents[1] / "docs" / "study-file.md"
TEMPLATE = PAGE.with_name("study-template.toml")
EXAMPLE = study_template("wages")

_SAME = {
    "question": "The keys of an `[[attribute]]` but `owner`, `holders`, `several` and `column`.",
    "draft attribute": "The keys of an `[[attribute]]` of the study file.",
}


def page() -> str:
    """Return the page as the keys have it: the tables that the template lacks, up to the next part, and the draft's."""
    others = {
        name: table
        for name, table in STUDY_TABLES.items()
        if f"[{name}]" not in EXAMPLE.replace("[[", "[").replace("]]", "]").splitlines()
    }
    study, draft = "\n".join(_sections(others)), "\n".join(_sections(DRAFT_TABLES, "draft "))
    text = re.sub(r"(?s)### `\[identity\]`.*?(?=\n## )", lambda _: study, PAGE.read_text("utf-8"))
    return re.sub(r"(?s)### `\[draft\]`.*", lambda _: draft, text)


def _sections(tables: Mapping[str, TableKeys], kind: str = "") -> Iterator[str]:
    for name, table in tables.items():
        yield f"### `[[{name}]]`\n" if table.is_list else f"### `[{name}]`\n"
        yield f"{table.meaning[0].upper()}{table.meaning[1:]}.\n"
        yield _SAME.get(f"{kind}{name}", "") + "\n" if f"{kind}{name}" in _SAME else "\n".join(_rows(name, table))


def _rows(of: str, table: TableKeys) -> Iterator[str]:
    """Yield a table of the keys, without those that an earlier table of the file has just so."""
    earlier: dict[str, list[str]] = {}
    rows = list[str]()
    for name, key in table.keys.items():
        place = next((place for place, one in STUDY_TABLES.items() if one.keys.get(name) == key), of)
        if place == of:
            rows.append(f"| `{name}` | {key.kind.words} | {key.default or 'required'} | {key.meaning} |")
        else:
            earlier.setdefault(place, []).append(f"`{name}`")
    for place, names in earlier.items():
        yield f"As in `[{place}]`: {', '.join(names)}.\n"
    if rows:
        yield "\n".join(["| key | kind | without it | meaning |", "|---|---|---|---|", *rows, ""])


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    TEMPLATE.write_text(EXAMPLE, "utf-8")
