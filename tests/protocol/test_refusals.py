"""Releases that cannot be: each ends with what is wrong and where, and nothing is charged for it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import pytest

from tests.protocol.village import FREE, TWO, Rules, made_people, write_table
from tests.protocol.world import ALICE, BOB, CLOUD, PACE, ROSA, Answer, Who, World, launcher, made_world
from veiltab.common.errors import DeniedError
from veiltab.researcher.client.release import Release


@pytest.fixture(scope="module")
def strict_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Two curators with a small budget, the server and one researcher."""
    world = made_world(tmp_path_factory.mktemp("strict") / "study", rules=Rules(budget="10"))
    world.local.launcher = launcher(PACE)
    with world.local:
        yield world


@pytest.fixture
def strict(strict_world: World) -> World:
    """All of them running, each on the right table and study file."""
    strict_world.ensure(ALICE, BOB, CLOUD, ROSA)
    return strict_world


def spent(world: World) -> list[Decimal]:
    """Return what every curator's ledger says is spent."""
    return [world.spent(name) for name in ("alice", "bob")]


def refused(world: World, code: int, *said: str, attributes: tuple[str, ...] = FREE, options: str = "") -> Answer:
    """Ask for a release, see it refused with some words and without a value or an id, and see nothing charged."""
    before = spent(world)
    words = options.split()
    epsilon = words.pop(words.index("--epsilon") + 1) if "--epsilon" in words else "4"
    words = [word for word in words if word != "--epsilon"]
    answer = world.ask(attributes, "--wait", "--timeout", "20", "--label", world.label(), *words, epsilon=epsilon)
    assert answer.code == code, answer.errors
    for words_said in said:
        assert words_said in answer.errors
    assert answer.data.get("error", {}).get("problem", "") in answer.errors
    assert not world.mentions(answer.errors)
    assert spent(world) == before
    return answer


def with_table(world: World, path: Path) -> None:
    """Let Alice serve another table."""
    world.local.tables["alice"] = path
    world.restart(ALICE)


def refused_in_time(world: World, said: str, options: str = "") -> None:
    """Ask until the curators have compared the tables that there are now, as `refused`."""
    asked = ("--wait", "--timeout", "20", *options.split())
    world.wait_until(lambda: said in world.ask(FREE, *asked, "--label", world.label()).errors, seconds=40)
    refused(world, DeniedError.exit_code, said, options=options)


@pytest.mark.long
def test_a_curator_whose_rows_somebody_deleted_ends_and_reads_its_table_at_the_next_start(
    strict: World, tmp_path: Path
) -> None:
    (strict.local.state_folder(*BOB) / "run" / "table").unlink()
    right = strict.local.tables["alice"]
    names = [name for name, owner in TWO.items() if owner == "alice"]
    try:
        with_table(strict, write_table(tmp_path / "others.csv", [made_people(60, 5, prefix="stranger")], names, 1))
        assert strict.ended(BOB, 60)
        assert strict.local.wait_for_end(*BOB) == 5
        said = strict.log(BOB).splitlines()[-1]
        assert "altered or deleted the rows of the table, in the folder `run`. Start the curator again" in said
        strict.start(BOB)
    finally:
        with_table(strict, right)
    # Both have the right tables again; other tests of this study count on a budget of which nothing is spent.
    refused_in_time(strict, "1 to n = 1500 rows, not 1501", options="--advanced sample=1501")


@pytest.mark.parametrize("who", [pytest.param(who, marks=pytest.mark.long) for who in (BOB, CLOUD, ROSA)])
def test_a_party_with_another_study_file_is_named(strict: World, who: Who) -> None:
    right = strict.local.study_path.read_bytes()
    try:
        strict.local.study_path.write_bytes(right + b"# changed\n")
        strict.restart(who)
        strict.local.study_path.write_bytes(right)
        said = "the release is of another study file than the server's" if who == CLOUD else "has another study file"
        # The researcher's own service compares files with its client before anybody is asked.
        code, remedy = (2, "Give the study file that it has") if who == ROSA else (6, "the same bytes")
        refused(strict, code, said, remedy)
    finally:
        strict.local.study_path.write_bytes(right)
        strict.restart(who)


def test_the_budget_is_never_overdrawn(strict: World) -> None:
    assert spent(strict) == [0, 0]
    with strict.client() as client, ThreadPoolExecutor(5) as pool:

        def outcome(release: Release) -> bool:
            try:
                release.wait(30)
            except DeniedError as error:
                assert "the release needs epsilon 4.000000; of the budget of 10 there is " in str(error)  # noqa: PT017 - some are granted
                return False
            return True

        releases = [client.request(("region",), epsilon="4", label=strict.label()) for _ in range(5)]
        granted = sum(pool.map(outcome, releases))
    assert granted <= 2
    assert sorted(strict.charges("alice")) == sorted(strict.charges("bob"))
    assert spent(strict) == [4 * granted] * 2
    rest = Decimal(10 - 4 * granted)
    over = str(rest + 1)
    answer = refused(
        strict,
        3,
        f"privacy budget: the release needs epsilon {over}.000000; of the budget of 10 there is {rest}.000000 left",
        "Ask for a smaller epsilon.",
        options=f"--epsilon {over}",
    )
    assert answer.data["error"]["reason"] == "DENIED"
    last = strict.ask(("region",), "--wait", "--label", strict.label(), epsilon=str(rest))
    assert last.code == 0, last.errors
    for name in ("alice", "bob"):
        listed = strict.curator_command("ledger", name).data
        assert (listed["spent"], listed["remaining"], len(listed["entries"])) == (10, 0, granted + 1)
