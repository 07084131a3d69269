"""Running studies that tests share: each test asks for releases of its own."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.protocol.village import Rules
from tests.protocol.world import ALICE, BOB, CLOUD, PACE, ROSA, World, launcher, made_world


@pytest.fixture(scope="session")
def village(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Two curators, the server and two researchers, all running; nobody may stop them."""
    world = made_world(tmp_path_factory.mktemp("village") / "study", rules=Rules(alignment="oblivious"))
    with world.local:
        world.local.start_all()
        yield world


@pytest.fixture(scope="session")
def mortal_worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], World]]:
    """Return what gives two curators, the server and one researcher: others once half of their budget is spent.

    A column of 1500 bytes travels in four pieces, and drivers wait less long than they do in earnest.
    """
    with ExitStack() as running:
        made = list[World]()

        def world() -> World:
            if not made or made[-1].spent("alice") > made[-1].local.study.budget_epsilon / 2:
                running.close()
                made.append(made_world(tmp_path_factory.mktemp("mortal") / "study"))
                made[-1].local.launcher = launcher(PACE)
                running.enter_context(made[-1].local)
            return made[-1]

        yield world


@pytest.fixture
def mortal(mortal_worlds: Callable[[], World]) -> World:
    """Two curators, the server and one researcher, all running; they may be killed."""
    world = mortal_worlds()
    world.ensure(ALICE, BOB, CLOUD, ROSA)
    return world
