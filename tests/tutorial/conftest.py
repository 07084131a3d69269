"""`make docs-pictures` names the folder in which the tutorial's pictures are kept."""

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--pictures", type=Path, help="Folder in which to keep pictures of the pages.")


@pytest.fixture
def pictures(request: pytest.FixtureRequest) -> Path | None:
    folder: Path | None = request.config.getoption("--pictures")
    return folder
