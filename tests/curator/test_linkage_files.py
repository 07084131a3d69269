"""What `veiltab curator linkage` writes: each file by itself, and none if anything is refused."""

import numpy as np
import pytest

from tests.curator.made_curators import Terminal, terminal_fixture  # noqa: F401 - fixtures
from veiltab.common.errors import InvalidInputError
from veiltab.curator.linkage.linkage_report import LinkageReport, PassCount
from veiltab.curator.linkage.linkages import Linkages, LinkedSample

IDENTITY = b"""
[identity]
fields = ["given", "family", "birth", "sex", "postcode"]
"""
COLUMNS = b'identity = { given = "g", family = "f", birth = "b", sex = "s", postcode = "p" }'


@pytest.fixture(name="world")
def world_fixture(terminal: Terminal) -> Terminal:
    """A spoke of a study with identity fields, as after a linkage."""
    text = terminal.study.read_bytes()
    text = text.replace(b'id_columns = ["id"]', COLUMNS)
    terminal.study.write_bytes(text + IDENTITY)
    report = LinkageReport(
        is_hub=False,
        rows=1000,
        hub_rows=2000,
        links=650,
        passes=(PassCount(key="given family birth sex", runs=True, matches=0, linked=650, left=0),),
    )
    none = np.empty(0, np.int64)
    with terminal.store() as store:
        sample = LinkedSample(rows=none, numbers=none, content_digest="")
        Linkages(store.connection, store.audit).record("a" * 32, report, sample)
    return terminal


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
