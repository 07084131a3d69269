"""Requests have the parameters of the records that take them, and read values by their types alone."""

import inspect
from collections.abc import Callable
from decimal import Decimal
from enum import Enum

import pytest

from tests.conftest import refuses
from veiltab.common.errors import InvalidInputError
from veiltab.common.release.modes import Sampling
from veiltab.common.release.tables import Workload
from veiltab.researcher.api.vocabulary import Parameter, parameters_of, read
from veiltab.researcher.client.client import Client
from veiltab.researcher.client.release import Release
from veiltab.researcher.questions.cost import Wish

RECORDS = (Client.request, Wish, Release.synthesise)


@pytest.mark.parametrize("record", RECORDS)
def test_every_field_is_a_parameter_with_words_of_its_own(record: Callable[..., object]) -> None:
    found = parameters_of(record, ("progress",))
    names = [name for name in inspect.signature(record).parameters if name not in {"self", "progress"}]
    assert [one.name for one in found] == names
    assert all(one.description and one.schema["type"] for one in found)


def test_exact_numbers_are_texts_and_choices_are_listed() -> None:
    known = {one.name: one for one in parameters_of(Client.request)}
    assert {name for name, one in known.items() if one.is_required} == {"epsilon"}
    assert known["epsilon"].schema["type"] == known["delta"].schema["type"] == "string"
    assert known["workload"].schema == {"type": "string", "enum": ["pairs", "linked"]}
    assert known["tables"].schema["items"]["items"] == {"type": "string"}
    assert known["scheme"].schema["default"] == "wor"
    assert known["partial"].schema == {"type": "boolean", "default": False}


def of(kind: type) -> Parameter:
    return Parameter(name="x", kind=kind, default=None, is_required=False, description="x")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (str, " a&b ", " a&b "),
        (int, "-7", -7),
        (float, ".5", 0.5),
        (float, "3", 3.0),
        (bool, "true", True),
        (Decimal, "1e-6", Decimal("1e-6")),
        (Sampling, "seed", Sampling.SEED),
    ],
)
def test_a_text_of_a_query_is_read(kind: type, text: str, value: object) -> None:
    found = of(kind).from_texts([text])
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (int, "1.5"),
        (int, "1e3"),
        (int, ""),
        (int, "9" * 30),
        (float, "nan"),
        (float, "inf"),
        (float, "1e400"),
        (float, "x"),
        (bool, "True"),
        (bool, "1"),
        (Decimal, "NaN"),
        (Decimal, "-1"),
        (Decimal, "1_0"),
        (Decimal, "1e99999"),
        (Sampling, "SEED"),
    ],
)
def test_another_text_is_refused(kind: type, text: str) -> None:
    with pytest.raises(InvalidInputError, match="this is not"):
        of(kind).from_texts([text])


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (str, 1),
        (int, True),
        (int, 1.0),
        (float, "1"),
        (float, True),
        (bool, 0),
        (Decimal, 0.1),
        (Decimal, 1),
        (tuple[str, ...], "a"),
        (tuple[str, ...], [1]),
        (tuple[tuple[str, ...], ...], [["a"], "b"]),
        (Workload, None),
        (str, None),
    ],
)
def test_a_value_of_another_type_is_refused(kind: type, value: object) -> None:
    with refuses(InvalidInputError, where="x"):
        of(kind).from_json(value)


def test_lists_become_tuples() -> None:
    assert of(tuple[str, ...]).from_texts(["a", "b"]) == ("a", "b")
    assert of(tuple[tuple[str, ...], ...]).from_json([["a"], ["b", "c"]]) == (("a",), ("b", "c"))
    with pytest.raises(InvalidInputError, match="more than once"):
        of(str).from_texts(["a", "b"])


def test_names_are_known_and_none_is_missing() -> None:
    known = parameters_of(Client.request)
    with pytest.raises(InvalidInputError, match="'epsilom' is not asked for"):
        read(known, {"epsilom": "1", "epsilon": "1"}, Parameter.from_json)
    with refuses(InvalidInputError, where="epsilon"):
        read(known, {"label": "a"}, Parameter.from_json)


def test_refusals_name_the_choices() -> None:
    class Kind(Enum):
        ONE = "one"

    with pytest.raises(InvalidInputError, match="a text of one"):
        of(Kind).from_texts(["two"])
