"""Every file of a result is readable by its user alone, whatever the umask."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.researcher.test_table import make_estimate
from veiltab.common.web.document import write_page
from veiltab.researcher.drawing.style import write_picture
from veiltab.researcher.estimates.table import SUFFIXES, to_frame, write


@pytest.fixture(autouse=True)
def _open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.parametrize(
    "name", [*(f"table{suffix}" for suffix in SUFFIXES), "page.html", "picture.svg", "picture.png"]
)
def test_a_file_of_a_result_is_its_users_alone(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.touch(0o666)
    if name == "page.html":
        write_page("<!DOCTYPE html>", path)
    elif path.stem == "picture":
        write_picture(path, (1, 1), lambda _: None, option="--plot")
    else:
        write(to_frame(make_estimate()), path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.stat().st_size
    assert list(tmp_path.iterdir()) == [path]
