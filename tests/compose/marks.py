"""What every test of the containers is, and says."""

from collections.abc import Callable

import pytest

COMPOSE = [pytest.mark.compose, pytest.mark.long, pytest.mark.timeout(2400)]
"""To be the `pytestmark` of a module: the first test of a run builds an image."""

Remark = Callable[[str], None]
"""What the fixture `remark` is: it prints a text beside the test's result."""
