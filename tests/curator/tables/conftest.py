"""The study of the tables here."""

import pytest

from tests.curator.tables.test_forms import STUDY
from veiltab.common.study.file import Study, study_from_bytes


@pytest.fixture(scope="module")
def study() -> Study:
    return study_from_bytes(STUDY, "s.toml")
