import tomllib
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veiltab.common.study.toml_text import toml_text


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
