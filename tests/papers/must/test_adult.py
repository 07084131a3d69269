"""Adult from files of the published form: which rows are kept, in what order, and what is made of them."""

from pathlib import Path

import numpy as np
import pytest

from veiltab.common.errors import InvalidInputError
from veiltab.papers.must.adult import has_adult, read_split
from veiltab.papers.must.classification import metrics_of

KEPT = 41292
IN_TEST = 13788
POOR = "25, Private, 100, 11th, 8, Never-married, Sales, Own-child, Black, Male, 0, 0, 40, United-States, <=50K"
RICH = (
    "50, Local-gov, 200, Masters, 16, Married-AF-spouse, Craft-repair, Wife, White, Female, 10, 5, 80, United-States,"
)
DROPPED = (
    "90, Private, 900, 11th, 16, Divorced, Sales, Unmarried, White, Male, 99, 99, 99, Cuba, <=50K",
    "90, Private, 900, 11th, 16, Divorced, ?, Unmarried, White, Male, 99, 99, 99, United-States, <=50K",
)


def written(folder: Path, *, kept: int = KEPT) -> Path:
    """A rich row first in either file, then poor ones; two rows that do not count in each."""
    test = [
        "|1x3 Cross validator",
        f"{RICH} >50K.",
        *(f"{line}." for line in DROPPED),
        *[f"{POOR}."] * (IN_TEST - 1),
        "",
    ]
    data = [f"{RICH} >50K", *DROPPED, *[POOR] * (kept - IN_TEST - 1), "", ""]
    (folder / "adult.test").write_text("\n".join(test), "utf-8")
    (folder / "adult.data").write_text("\n".join(data), "utf-8")
    return folder


def test_rows_are_kept_split_and_scaled_as_in_the_paper(tmp_path: Path) -> None:
    split = read_split(written(tmp_path))
    assert split.train.shape == (30969, 14)
    assert split.test.shape == (10323, 14)
    # The rows of adult.test come first.
    assert np.flatnonzero(split.train_income).tolist() == [0, IN_TEST]
    assert split.test_income.sum() == 0
    assert split.train[0].tolist() == [1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1, 0, 0, 1]
    assert split.train[1] == pytest.approx([1, 0.5, 1, 0.5, 0.5, 0, 0, 1, 0, 0, 0.5, 1, 0, 0])
    leaky = split.with_label()
    assert leaky.train[:, -1].tolist() == split.train_income.tolist()
    assert leaky.train.shape == (30969, 15)
    assert leaky.test.shape == (10323, 15)


def test_other_files_are_refused(tmp_path: Path) -> None:
    assert not has_adult(None)
    assert not has_adult(tmp_path)
    with pytest.raises(InvalidInputError, match="not the Adult files"):
        read_split(tmp_path)
    assert has_adult(written(tmp_path, kept=IN_TEST + 2))
    with pytest.raises(InvalidInputError, match="41292"):
        read_split(tmp_path)
    (tmp_path / "adult.data").write_text(POOR.replace("25", "old"), "utf-8")
    with pytest.raises(InvalidInputError, match="not the Adult files"):
        read_split(tmp_path)


def test_metrics_are_those_of_the_confusion_table() -> None:
    said = np.array([1, 1, 1, 0, 0, 0, 0, 0, 0, 0], np.bool_)
    true = np.array([1, 1, 0, 1, 1, 1, 0, 0, 0, 0], np.bool_)
    # 2 hits, 1 alarm, 3 misses, 4 rejections.
    assert metrics_of(said, true) == pytest.approx([0.6, 2 / 5, 4 / 5, 2 / 3, 4 / 7, 0.5])
    nothing = np.zeros(10, np.bool_)
    assert metrics_of(nothing, true) == pytest.approx([0.5, 0, 1, 0, 0.5, 0])
