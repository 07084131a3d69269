import subprocess
import sys
import tomllib
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rooms import rooms
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.toml_text import parsed_toml_text, toml_text


def test_what_is_written_is_read_back() -> None:
    file: dict[str, Any] = {
        "version": 2,
        "names": ["a", "b"],
        "study": {"id": "a", "title": 'quoted "\\ \n\x7f ü', "open": True, "minimum_population": 2},
        "budget": {"epsilon": Decimal("0.10"), "delta": Decimal("1e-6")},
        "attribute": [
            {"name": "sex", "categories": ["f", "m"], "recode": {"1 = 2": "f", "": "m"}, "bins": [0, 30]},
            {"name": "age", "missing_values": []},
        ],
    }
    assert tomllib.loads(toml_text(file), parse_float=Decimal) == file


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_can_be_written(text: str) -> None:
    file = {"study": {"title": text, "recode": {text: text}}}
    assert tomllib.loads(toml_text(file)) == file


def test_what_no_study_file_holds_is_refused() -> None:
    with pytest.raises(TypeError, match="a study file holds no float"):
        toml_text({"budget": {"epsilon": 0.1}})


DOTS = ".".join("a" * 40_000)
LARGE = {
    "a key": f"{DOTS} = 1",
    "a key of quotes": ".".join(["''"] * 40_000) + " = 1",
    "a header": f"[{DOTS}]",
    "an inline table": f"a = {{ {DOTS} = 1 }}",
    "a key behind quotes": f'a = """b""""\n{DOTS} = 1\nc = ""',
    "brackets": "a = " + "[" * 400_000,
    "braces": "a = " + "{a=" * 300_000,
    "a hexadecimal number": f"a = 0x{'f' * 1_000_000}",
    "a long key": f"{'a' * 1_000_000} = 1",
    "too many bytes": "#" * 1_100_000,
}
READ = """
import resource, sys
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.toml_text import parsed_toml_text
resource.setrlimit(resource.RLIMIT_AS, (2**29, 2**29))
try:
    parsed_toml_text(sys.stdin.buffer.read(), "study.toml")
except InvalidInputError as error:
    print(error)
"""


@pytest.mark.parametrize("shape", LARGE)
def test_no_small_file_takes_much_memory(shape: str) -> None:
    """The parser's memory grows with the square of a key's parts: 78 KiB took 6.2 GB."""
    done = subprocess.run([sys.executable, "-c", READ], input=LARGE[shape].encode(), capture_output=True, check=False)
    told = done.stdout.decode()
    assert (done.returncode, told[:11]) == (0, "study.toml:"), done.stderr
    assert any(
        words in told for words in ("more than 8 parts (at line", "more than 20 deep", "than 200 characters", "MiB")
    )


def test_what_people_write_is_within_the_bounds() -> None:
    texts = f'"{DOTS}", \'{DOTS}\', """{DOTS}\n[[[[""", \'\'\'"{DOTS}\'\'\''
    table = f'a.b.c.d.e.f.g.h = [{texts}, "\\\\", 1.5, [[{{ "{"k" * 300}" = 1 }}]]] # {DOTS}'
    file = f"{table}\r\n[b.c]\nwhen = 2030-01-15T12:00:00.5\n"
    assert parsed_toml_text(file.encode(), "x") == tomllib.loads(file, parse_float=Decimal)


PIECES = ('"', '""', '"""', "'", "''", "'''", "\\", "\n", "\r\n", "#", "a", ".", "=", " ", "[", "]", "{", "}", ",")
NINE = ".".join("a" * 9)


@settings(deadline=None, max_examples=400)
@given(st.lists(st.sampled_from([*PIECES, " = ", f"\n{NINE} = 1\n", NINE, 'a = """', "a = '''", 'a = "']), max_size=30))
def test_no_key_of_more_parts_reaches_the_parser(pieces: list[str]) -> None:
    """Whatever quotes stand before it: what the parser reads as a key, the bounds have read as one."""
    longest, parser = 0, tomllib._parser  # type: ignore[attr-defined] # private
    original = parser.parse_key

    def parse_key(*of: Any) -> Any:  # noqa: ANN401 - those of the original
        nonlocal longest
        position, key = original(*of)
        longest = max(longest, len(key))
        return position, key

    with mock.patch.object(parser, "parse_key", parse_key), suppress(InvalidInputError):
        parsed_toml_text("".join(pieces).encode(), "x")
    assert longest <= 8


def test_nothing_else_parses_what_others_wrote() -> None:
    """The ready studies are files of the package."""
    root = Path(__file__).parents[3]
    sources = (path for folder in rooms() for path in (root / folder).rglob("*.py"))
    found = {str(path.relative_to(root)) for path in sources if "tomllib" in path.read_text("utf-8")}
    ready = {f"play/studies/{name}.py" for name in ("adult_tables", "linked_tables", "templates")}
    assert found == {"common/study/toml_text.py", *ready}
