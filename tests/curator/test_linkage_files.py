"""What `veiltab curator linkage` writes: each file by itself, and none if anything is refused."""

import pytest

from tests.curator.made_curators import Terminal, terminal_fixture  # noqa: F401 - fixtures
from tests.curator.test_rates_release import world_fixture  # noqa: F401 - fixtures
from veiltab.common.errors import InvalidInputError


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--checked", "5", "--wrong", "9"), "there are more wrong links than tested ones"),
        (("--for-researcher", "ladder.svg"), "two options name the same file"),
        (("--for-researcher", "links.json", "--checked", "5"), "go together"),
        (("--sample", "5", "--to", "sample.csv"), "it is not known where the table is"),
    ],
)
def test_a_command_that_is_refused_writes_nothing(world: Terminal, options: tuple[str, ...], said: str) -> None:
    before = {*world.folder.iterdir()}
    places = [str(world.folder / one) if "." in one else one for one in options]
    code, _, errors = world.run("linkage", "--picture", str(world.folder / "ladder.svg"), *places)
    assert (code, said in errors) == (InvalidInputError.exit_code, True), errors
    assert {*world.folder.iterdir()} == before
