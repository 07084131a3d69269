"""Running studies that tests share: each test asks for releases of its own."""

from collections.abc import Iterator

import pytest

from tests.protocol.world import ALICE, BOB, CLOUD, PACE, ROSA, World, launcher, made_world


@pytest.fixture(scope="session")
def village(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Two curators, the server and two researchers, all running; nobody may stop them."""
    world = made_world(tmp_path_factory.mktemp("village") / "study")
    with world.local:
        world.local.start_all()
        yield world


@pytest.fixture(scope="session")
def mortal_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Two curators, the server and one researcher.

    A column of 1500 bytes travels in four pieces, and drivers wait less long than they do in earnest.
    """
    world = made_world(tmp_path_factory.mktemp("mortal") / "study")
    world.local.launcher = launcher(PACE)
    with world.local:
        yield world


@pytest.fixture
def mortal(mortal_world: World) -> World:
    """Two curators, the server and one researcher, all running; they may be killed."""
    mortal_world.ensure(ALICE, BOB, CLOUD, ROSA)
    return mortal_world
