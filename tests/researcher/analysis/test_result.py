"""Results in a terminal, a notebook, a frame and a picture: the same numbers, and every text escaped."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.researcher.analysis.simulated import DOMAIN, EDUCATION_BY_SALARY, exact, simulated
from tests.worlds.domains import domain_of
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.analysis.comparisons import conditional_shares
from veiltab.researcher.analysis.result import CANNOT_BE_SAID, NO_LOWER_LIMIT, NO_UPPER_LIMIT, Analysis
from veiltab.researcher.drawing.drawable import Unit
from veiltab.researcher.estimates.pooling import pooled
from veiltab.researcher.estimates.table import write

NASTY = "<script>alert('$x$')</script>"
HOSTILE = domain_of(**{NASTY: ("low", "mid", "<b>high</b>"), "estimate": ("less", "=1+1")})
MADE = Analysis(
    title="made",
    labels={"coefficient": ("a", "b", "c", "d", "e")},
    unit=Unit.NUMBER,
    estimate=np.array([2.0, 3.0, np.nan, 1.5, 4.0]),
    low=np.array([1.0, 2.0, np.nan, 0.0, 0.0]),
    high=np.array([3.0, np.inf, np.nan, np.inf, 9.0]),
    neutral=1.0,
    confidence=0.9,
    is_measured=True,
    study_digest="ab" * 32,
)


def test_notes_say_what_is_missing() -> None:
    assert MADE.notes == ("", NO_UPPER_LIMIT, CANNOT_BE_SAID, CANNOT_BE_SAID, "")
    logs = replace(MADE, neutral=0.0, low=np.array([-np.inf, 2.0, np.nan, -np.inf, -1.0]))
    assert logs.notes == (NO_LOWER_LIMIT, NO_UPPER_LIMIT, CANNOT_BE_SAID, CANNOT_BE_SAID, "")
    text = MADE.text().splitlines()
    assert text[2].split() == ["coefficient", "estimate", "low", "high", "note"]
    assert text[3].split() == ["a", "2.0", "1.0", "3.0"]
    assert "no limit" in text[4]
    assert text[5].split()[:4] == ["c", "-", "-", "-"]
    assert text[-1] == "Intervals at 90%, each on its own."


def test_a_coefficient_of_a_small_unit_keeps_its_digits() -> None:
    """Years and Euros stand in one model."""
    small = np.array([2.0, 3.0, np.nan, 1.5, 0.0043]), np.array([1.0, 2.0, np.nan, 0.0, -0.002])
    made = replace(MADE, estimate=small[0], low=small[1], high=np.array([3.0, np.inf, np.nan, np.inf, 0.011]))
    assert made.text().splitlines()[7].split() == ["e", "0.004", "-0.002", "0.011"]


def test_frames_name_their_source_and_survive_a_file(tmp_path: Path) -> None:
    frame = MADE.frame()
    assert frame.attrs == {"title": "made", "confidence": 0.9, "measured": True, "study_digest": "ab" * 32}
    for suffix in (".csv", ".parquet", ".json"):
        write(frame, tmp_path / f"made{suffix}")
    assert pd.read_parquet(tmp_path / "made.parquet").attrs == frame.attrs
    plain = json.loads((tmp_path / "made.json").read_text(), parse_constant=pytest.fail)
    numbers = dict.fromkeys(("estimate", "low", "high"))
    assert plain["rows"][2] == {"coefficient": "c", **numbers, "note": CANNOT_BE_SAID}


def test_records_have_no_numbers_that_json_lacks() -> None:
    assert json.loads(json.dumps(MADE.records(), allow_nan=False))[1] == {
        "labels": {"coefficient": "b"},
        "estimate": 3.0,
        "low": 2.0,
        "high": None,
        "note": NO_UPPER_LIMIT,
    }


def test_texts_are_escaped_wherever_they_come_from() -> None:
    estimate = replace(exact(EDUCATION_BY_SALARY, DOMAIN), domain=HOSTILE)
    found = conditional_shares(estimate, [NASTY])
    assert list(found.frame().columns) == [NASTY, "estimate_", "estimate", "low", "high", "projected", "note"]
    pages = [one._repr_html_() for one in (found, estimate, found.plot(), estimate.plot())]
    for html in pages:
        assert "<script" not in html
        assert "<b>" not in html
        assert "&lt;b&gt;high" in html
    assert "<script" not in replace(found, title=NASTY, remarks=(NASTY,))._repr_html_()


def test_projected_shares_are_shown_where_a_raw_one_leaves_its_range() -> None:
    raw, low = np.array([0.25, 0.75, -0.125, 1.125]), np.array([0.0, 0.5, 0.0, 1.0])
    within = replace(
        MADE,
        unit=Unit.SHARE,
        labels={"group": tuple("aabb")},
        neutral=None,
        estimate=raw,
        low=low,
        high=np.array([0.5, 1.0, 0.5, 1.0]),
        projected=raw,
    )
    beyond = replace(within, projected=np.array([0.25, 0.75, 0.0, 1.0]))
    assert within.text().splitlines()[2].split() == ["group", "estimate", "low", "high"]
    assert beyond.text().splitlines()[2].split() == ["group", "estimate", "low", "high", "projected"]
    assert beyond.text().splitlines()[5].split() == ["b", "-12.5%", "0.0%", "50.0%", "0.0%"]
    assert [list(one.frame()["projected"])[2] for one in (within, beyond)] == [-0.125, 0.0]
    assert beyond.records()[2]["projected"] == 0.0
    assert "projected" in beyond.plot().svg
    assert "projected" not in within.plot().svg


def test_pictures_are_drawn_and_saved(tmp_path: Path) -> None:
    (estimate,) = simulated(EDUCATION_BY_SALARY, DOMAIN, "a sample of 3,300 at epsilon 1", runs=1, seed=91)
    pictures = [estimate.plot(), conditional_shares(estimate, ["education"]).plot(), MADE.plot()]
    for number, picture in enumerate(pictures):
        picture.save(tmp_path / f"{number}.png")
        assert (tmp_path / f"{number}.png").read_bytes().startswith(b"\x89PNG")
    assert MADE.plot().svg == MADE.plot()._repr_html_()
    with pytest.raises(InvalidInputError, match=r"End the name in one of .svg, .png"):
        MADE.plot().save(tmp_path / "made.pdf")
    unsaid = replace(MADE, estimate=np.full(5, np.nan), low=np.full(5, np.nan), high=np.full(5, np.nan))
    assert unsaid.plot().svg.startswith("<svg")


def test_a_result_prints_as_its_table_and_shows_itself_in_one_line() -> None:
    estimate = exact(EDUCATION_BY_SALARY, DOMAIN)
    assert str(MADE) == MADE.text()
    assert repr(MADE) == "<Analysis: made, 5 rows>"
    lines = str(estimate).splitlines()
    assert lines[0].split() == list(estimate.frame().columns)
    assert len(lines) == 1 + estimate.domain.cells + 2
    assert repr(estimate) == "<Estimate of education, salary: 6 cells>"


def test_the_axes_of_a_picture_can_be_restyled() -> None:
    (axes,) = MADE.plot().axes()
    axes.set_title("my own")
    assert axes.figure.axes == [axes]


def test_estimates_of_one_and_of_several_releases_are_shown_alike() -> None:
    both = simulated(EDUCATION_BY_SALARY, DOMAIN, "a sample of 3,300 at epsilon 1", runs=2, seed=92)
    together = pooled(both)
    assert list(both[0].frame().columns) == [*together.frame().columns, "noisy_count"]
    np.testing.assert_allclose(together.frame()["estimate_rows"], 45_222 * together.raw)
    assert "6,600 noisy rows" in together._repr_html_()


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="differ in length"):
        replace(MADE, low=np.zeros(4))
    with pytest.raises(InvalidInputError, match="differ in length"):
        replace(MADE, labels={"coefficient": ("a",)})


def test_labels_that_are_whole_numbers_are_numbers_in_a_frame() -> None:
    labels = {"year": ("3", "4", "3", "4"), "code": ("07", "08", "07", "08"), "odd": ("1", "3", "1", "3")}
    many = np.zeros(4)
    frame = replace(MADE, labels=labels, estimate=many, low=many, high=many).frame()
    assert [frame[name].tolist() for name in labels] == [[3, 4, 3, 4], *map(list, list(labels.values())[1:])]
