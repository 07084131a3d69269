"""The tables of docs/study-file.md, made from the keys: `python -m tests.study_page` writes them into the page."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from veiltab.common.study.drafts.draft import DRAFT_TABLES
from veiltab.common.study.study_tables import STUDY_TABLES, TableKeys

PAGE = Path(__file__).parents[1] / "docs" / "study-file.md"

_SAME = {
    "question": "The keys of [an attribute](#attribute) but `owner`, `holders`, `several` and `column`.",
    "draft attribute": "The keys of [an attribute](#attribute) of the study file.",
}


def page() -> str:
    """Return the page as the keys have it: each list of tables ends where the next part begins."""
    study, draft = "\n".join(_sections(STUDY_TABLES)), "\n".join(_sections(DRAFT_TABLES, "draft "))
    text = re.sub(r"(?s)(?<=## Tables\n\n).*?(?=\n## )", lambda _: study, PAGE.read_text("utf-8"))
    return re.sub(r"(?s)### `\[draft\]`.*", lambda _: draft, text)


def _sections(tables: Mapping[str, TableKeys], kind: str = "") -> Iterator[str]:
    for name, table in tables.items():
        yield f"### `[[{name}]]`\n" if table.is_list else f"### `[{name}]`\n"
        yield f"{table.meaning[0].upper()}{table.meaning[1:]}.\n"
        yield f"{_SAME.get(f'{kind}{name}') or _rows(table)}\n"


def _rows(table: TableKeys) -> str:
    rows = [
        f"| `{name}` | {key.kind.words} | {key.default or 'it must be there'} | {key.meaning} |"
        for name, key in table.keys.items()
    ]
    return "\n".join(["| key | kind | without it | meaning |", "|---|---|---|---|", *rows])


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
