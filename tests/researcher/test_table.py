"""A result survives every file kind, keeps its categories, and never loses an attribute to a statistic's name."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.rooms import DEMO, SOURCE, rooms
from tests.worlds.domains import domain_of
from veiltab.common.core.domain import Attribute
from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.estimates.estimation import Estimate, ReleaseDesign
from veiltab.researcher.estimates.table import SUFFIXES, labelled, statistics, to_frame, to_records, write

DIGEST = "ab" * 32
COUNTS = np.array([40, 10, 5, 25, 15, 5])
NUMBERS = ["estimate", "se", "low", "high", "projected"]
ROWS = ["estimate_rows", "se_rows", "low_rows", "high_rows", "noisy_count"]


def make_estimate(first: str = "smoker", second: str = "town") -> Estimate:
    domain = domain_of(**{first: ("yes", "no"), second: ("Zürich", 'a "quoted", one', "b\nc")})
    design = ReleaseDesign(population=1000, sample=100, mechanism=GammaDiagonal(cells=6, replacement=2**62))
    return Estimate(domain=domain, design=design, counts=COUNTS, study_digest=DIGEST)


def test_frame_has_one_row_a_cell_in_c_order() -> None:
    estimate = make_estimate()
    frame = to_frame(estimate)
    assert list(frame.columns) == ["smoker", "town", *NUMBERS, *ROWS]
    assert [tuple(row) for row in frame[["smoker", "town"]].to_numpy()] == [
        estimate.domain.categories_of(cell) for cell in range(6)
    ]
    np.testing.assert_array_equal(frame["noisy_count"], COUNTS)
    np.testing.assert_array_equal(frame["estimate"], estimate.raw)
    np.testing.assert_allclose(frame["estimate_rows"], 1000 * estimate.raw)
    assert frame["estimate_rows"].sum() == pytest.approx(1000)


def test_attributes_are_ordered_categoricals_of_the_study() -> None:
    frame = to_frame(make_estimate())
    dtype = frame["town"].dtype
    assert isinstance(dtype, pd.CategoricalDtype)
    assert dtype.ordered
    assert list(dtype.categories) == ["Zürich", 'a "quoted", one', "b\nc"]


@pytest.mark.parametrize(
    ("categories", "numbers"),
    [
        (("-1", "0", "1"), [-1, 0, 1]),
        (("1998", "1999", "2000"), [1998, 1999, 2000]),
        (("01", "02", "03"), None),
        (("1", "2", "4"), None),
        (("0", "1", "missing"), None),
        (("²", "3", "4"), None),
    ],
)
def test_consecutive_whole_numbers_are_numbers(categories: tuple[str, ...], numbers: list[int] | None) -> None:
    column = labelled(np.array([2, 0, 1, 2]), Attribute(name="years", categories=categories))
    if numbers is None:
        assert isinstance(column, pd.Categorical)
    else:
        assert pd.Series(column).tolist() == [numbers[place] for place in (2, 0, 1, 2)]
        assert pd.Series(column).dtype == np.int64


def test_truth_stands_beside_the_estimate() -> None:
    truth = np.full(6, 1 / 6)
    assert to_records(make_estimate(), truth)[0]["truth"] == pytest.approx(1 / 6)
    assert "truth" not in statistics(make_estimate())
    with pytest.raises(InvalidInputError, match="same cells"):
        statistics(make_estimate(), np.full(5, 0.2))


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        (("noisy_count", "se"), ["noisy_count_", "se_"]),
        (("noisy_count", "noisy_count_"), ["noisy_count__", "noisy_count_"]),
        (("noisy_count_", "noisy_count"), ["noisy_count_", "noisy_count__"]),
        (("estimate_rows", "town"), ["estimate_rows_", "town"]),
    ],
)
def test_attribute_named_like_a_statistic_keeps_a_column_of_its_own(names: tuple[str, str], columns: list[str]) -> None:
    frame = to_frame(make_estimate(*names))
    assert list(frame.columns) == [*columns, *NUMBERS, *ROWS]
    np.testing.assert_array_equal(frame["noisy_count"], COUNTS)


def test_records_are_plain_and_complete() -> None:
    estimate = make_estimate()
    records = json.loads(json.dumps(to_records(estimate)))
    assert len(records) == 6
    assert records[4]["labels"] == {"smoker": "no", "town": 'a "quoted", one'}
    assert records[4]["noisy_count"] == 15
    assert records[4]["estimate"] == estimate.raw[4]
    assert set(records[4]) == {"labels", *NUMBERS, *ROWS}


def test_parquet_keeps_everything(tmp_path: Path) -> None:
    frame = to_frame(make_estimate())
    write(frame, tmp_path / "result.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "result.parquet"), frame)


def test_csv_and_json_keep_every_digit(tmp_path: Path) -> None:
    frame = to_frame(make_estimate())
    write(frame, tmp_path / "result.CSV")
    write(frame, tmp_path / "result.json")
    plain = frame.astype({"smoker": str, "town": str})
    read = pd.read_csv(tmp_path / "result.CSV")
    pd.testing.assert_frame_equal(read, plain.assign(study_digest=DIGEST), check_exact=True)
    written = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    pd.testing.assert_frame_equal(pd.DataFrame(written["rows"]), plain, check_exact=True)


def test_every_file_names_the_study_file_and_its_categories(tmp_path: Path) -> None:
    estimate = make_estimate().marginal(["town"])
    codebook = {"town": ["Zürich", 'a "quoted", one', "b\nc"]}
    for suffix in SUFFIXES:
        write(to_frame(estimate), tmp_path / f"result{suffix}")
    written = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert (written["study_digest"], written["codebook"]) == (DIGEST, codebook)
    attrs = pd.read_parquet(tmp_path / "result.parquet").attrs
    assert (attrs["study_digest"], attrs["codebook"]) == (DIGEST, codebook)
    read = pd.read_csv(tmp_path / "result.csv")
    assert (set(read["study_digest"]), list(read["town"])) == ({DIGEST}, codebook["town"])


FORMULAS = ("=1+2", "@SUM(1)", "+cmd|' /C calc'!A0", "-2+3", "--5", "\N{FULLWIDTH EQUALS SIGN}1", "\N{MINUS SIGN}a")
PLAIN = ("-5", "+5", "-0.25", "1+2", "a=b")


def test_no_text_of_a_csv_is_a_formula_and_numbers_stay_numbers(tmp_path: Path) -> None:
    texts = (*FORMULAS, *PLAIN)
    domain = domain_of(text=texts)
    design = ReleaseDesign(population=1000, sample=60, mechanism=GammaDiagonal(cells=12, replacement=2**62))
    counts = np.array([60, *[0] * 11])
    frame = to_frame(Estimate(domain=domain, design=design, counts=counts))
    assert (frame["estimate"] < 0).any()
    write(frame, tmp_path / "result.csv")
    with (tmp_path / "result.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["text"] for row in rows] == [*(f"'{text}" for text in FORMULAS), *PLAIN]
    assert [float(row["estimate"]) for row in rows] == list(frame["estimate"])
    write(frame, tmp_path / "result.json")
    cells = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))["rows"]
    assert [cell["text"] for cell in cells] == list(texts)


def test_an_attribute_named_like_the_study_file_s_digest_keeps_its_column(tmp_path: Path) -> None:
    write(to_frame(make_estimate("study_digest")), tmp_path / "result.csv")
    read = pd.read_csv(tmp_path / "result.csv")
    assert list(read["study_digest_"]) == ["yes"] * 3 + ["no"] * 3
    assert set(read["study_digest"]) == {DIGEST}


@pytest.mark.parametrize("name", ["result.xlsx", "result", "result.csv.gz"])
def test_other_suffixes_are_refused_by_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInputError, match=r"\.csv, \.parquet, \.json"):
        write(to_frame(make_estimate()), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["csv", "parquet", "json"])
def test_place_that_cannot_be_written_is_named(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "missing" / f"result.{suffix}"
    with pytest.raises(InvalidInputError, match="there is no such folder") as refusal:
        write(to_frame(make_estimate()), path)
    assert refusal.value.where == str(path.parent)


CODED = {"researcher/collection/token_file.py", "researcher/api/formats.py"}
"""They write tokens in hexadecimal digits, and codes of SDMX."""


def test_every_writer_of_csv_knows_formulas() -> None:
    for room in set(rooms()) - {DEMO}:
        for path in (SOURCE / room).rglob("*.py"):
            text, name = path.read_text(), str(path.relative_to(SOURCE))
            if re.search(r"csv\.writer\(|\.to_csv\(|CSVWriter|write_csv\(", text) and name not in CODED:
                assert "plain_cell" in text, name
