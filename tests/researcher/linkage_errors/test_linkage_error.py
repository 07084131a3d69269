"""Shares of wrong links: what is read, what is refused, and whose attributes they concern."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import refuses
from veiltab.common.core.domain import Attribute, Domain
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.linkage_errors.linkage_error import (
    LinkageErrors,
    LinkError,
    parse_linkage_error,
    read_report,
)

THREE = {"age": "registry", "sex": "registry", "wage": "bank", "drug": "hospital"}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("0.02", LinkError(share=0.02)),
        (".5", LinkError(share=0.5)),
        ("2e-2:0.005", LinkError(share=0.02, sd=0.005)),
        ("0.02:0", LinkError(share=0.02, least=0.0)),
        ("0.02:0.000", LinkError(share=0.02, least=0.0)),
        ("0:0.01", LinkError(share=0.0, sd=0.01)),
    ],
)
def test_a_share_is_read(text: str, error: LinkError) -> None:
    assert parse_linkage_error(text) == LinkageErrors(of=error)


@pytest.mark.parametrize("text", ["none", "0", "0.0", "0:0"])
def test_none_and_zero_correct_nothing(text: str) -> None:
    assert parse_linkage_error(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "None",
        "5%",
        "-0.01",
        "0.51",
        "1",
        "nan",
        "inf",
        "0.02:",
        ":0.01",
        "0.02:-1",
        "0.02:nan",
        "0.02:0.01:0",
        "0.02;0.01",
        "0,02",
        "estimate",
        "0_1",
        "0.02:0.6",
        "\u0660.\u0661",
        "1e-400000:0.02x",
    ],
)
def test_another_text_is_refused(text: str) -> None:
    with refuses(InvalidInputError, where="linkage error") as refused:
        parse_linkage_error(text)
    assert "0.02:0.005" in refused.value.remedy


def test_an_estimate_is_read_from_a_report_and_needs_one(tmp_path: Path) -> None:
    report = tmp_path / "links.json"
    record = {"lambda": 0.02, "lambda_chance": 0.005, "sd": 0.001, "recall": 0.97}
    report.write_text(json.dumps(record))
    known = LinkError(share=0.02, sd=0.001, least=0.005)
    assert parse_linkage_error("estimated", report) == LinkageErrors(of=known)
    report.write_text(json.dumps({"bank": record, "hospital": record}))
    assert read_report(report) == {"bank": known, "hospital": known}
    with pytest.raises(InvalidInputError, match="no estimate of its wrong links"):
        parse_linkage_error("estimated")
    with pytest.raises(InvalidInputError, match="not asked for"):
        parse_linkage_error("0.02", report)
    with pytest.raises(InvalidInputError, match="not asked for"):
        parse_linkage_error("none", report)


def test_the_files_of_several_curators_make_one_report(tmp_path: Path) -> None:
    record = {"lambda": 0.02, "lambda_chance": 0.005, "sd": 0.001}
    files = [tmp_path / "bank.json", tmp_path / "hospital.json"]
    for path in files:
        path.write_text(json.dumps({path.stem: record}))
    known = LinkError(share=0.02, sd=0.001, least=0.005)
    assert parse_linkage_error("estimated", files) == LinkageErrors(of={"bank": known, "hospital": known})
    assert parse_linkage_error("estimated", str(files[0])) == LinkageErrors(of={"bank": known})
    assert parse_linkage_error("estimated", files[:1]) == parse_linkage_error("estimated", files[0])
    with pytest.raises(InvalidInputError, match="or one that another names"):
        parse_linkage_error("estimated", [*files, files[0]])
    files[1].write_text(json.dumps(record))
    with pytest.raises(InvalidInputError, match="names no curator"):
        parse_linkage_error("estimated", files)


def test_a_report_may_have_a_row_for_each_category(tmp_path: Path) -> None:
    rows = {"f": {"lambda": 0.01, "sd": 0.002}, "m": {"lambda": 0.04, "sd": 0}}
    report = tmp_path / "links.json"
    report.write_text(json.dumps({"bank": {"by": "sex", "rows": rows}}))
    found = parse_linkage_error("estimated", report)
    assert found is not None
    assert found.attributes == ("sex",)
    sex = Attribute(name="sex", categories=("m", "f"))
    domain = Domain(attributes=(sex, Attribute(name="wage", categories=("0", "1", "2"))))
    (leg,) = found.legs({"sex": "registry", "wage": "bank"}, domain.names)
    shares, deviations = leg.shares(domain)
    assert (shares.tolist(), deviations.tolist()) == ([[0.04], [0.01]], [[0.0], [0.002]])
    assert leg.error.text == "shares of 0.01 to 0.04 by sex"
    other = Domain(attributes=(replace(sex, categories=("m", "f", "x")), domain.attributes[1]))
    with pytest.raises(InvalidInputError, match="not those of the categories of sex"):
        leg.shares(other)
    with pytest.raises(InvalidInputError, match="by sex, which is not an attribute of registry"):
        found.legs({"wage": "registry", "sex": "bank"}, ("wage", "sex"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"by": "sex", "rows": {}}',
        '{"rows": {"f": {"lambda": 0.1, "sd": 0}}}',
        '{"by": "sex", "rows": {"f": {"lambda": 0.1}}}',
        "[]",
        "{}",
        "3",
        '{"lambda": 0.02}',
        '{"lambda": 0.02, "lambda_chance": 0.03, "sd": 0}',
        '{"lambda": true, "lambda_chance": 0, "sd": 0}',
        '{"lambda": NaN, "lambda_chance": 0, "sd": 0}',
        '{"lambda": "0.02", "lambda_chance": 0, "sd": 0}',
        '{"bank": 0.02}',
        '{"lambda": 0.9, "lambda_chance": 0, "sd": 0}',
        '{"lambda": 0.02, "lambda_chance": 0, "sd": -1}',
        "[" * 100_000,
    ],
)
def test_a_file_that_is_no_report_is_refused(tmp_path: Path, text: str) -> None:
    report = tmp_path / "links.json"
    report.write_text(text)
    with pytest.raises(InvalidInputError) as refused:
        read_report(report)
    assert str(report) in str(refused.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read_report(tmp_path / "none.json")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInputError, match="not JSON"):
        read_report(tmp_path / "bytes")


def test_the_legs_of_a_table_are_the_attributes_that_links_bring() -> None:
    error = LinkError(share=0.02)
    two = {"age": "registry", "wage": "bank", "sex": "registry"}
    (leg,) = LinkageErrors(of=error).legs(two, ("sex", "wage"))
    assert (leg.curator, leg.names) == ("bank", ("wage",))
    (leg,) = LinkageErrors(of=error, hub="bank").legs(two, ("sex", "age", "wage"))
    assert (leg.curator, leg.names) == ("registry", ("sex", "age"))
    assert LinkageErrors(of=error, hub="bank").legs(two, ("wage",)) == ()
    bank, hospital = LinkageErrors(of=error, hub="registry").legs(THREE, ("wage", "drug"))
    assert (bank.curator, hospital.curator) == ("bank", "hospital")
    own = {"bank": error, "hospital": LinkError(share=0.0)}
    (leg,) = LinkageErrors(of=own, hub="registry").legs(THREE, ("wage", "drug"))
    assert leg.curator == "bank"


def test_legs_that_are_not_known_are_refused() -> None:
    error = LinkError(share=0.02)
    with pytest.raises(InvalidInputError, match="more than two curators"):
        LinkageErrors(of=error).legs(THREE, ("age", "wage"))
    with pytest.raises(InvalidInputError, match="nothing of the links with hospital"):
        LinkageErrors(of={"bank": error}, hub="registry").legs(THREE, ("age", "wage"))


@pytest.mark.parametrize("numbers", [(-0.1, 0.0, None), (0.6, 0.0, None), (0.1, -0.1, None), (0.1, 0.0, 0.2)])
def test_numbers_out_of_range_make_no_share(numbers: tuple[float, float, float | None]) -> None:
    share, sd, least = numbers
    with pytest.raises(InvalidInputError):
        LinkError(share=share, sd=sd, least=least)
