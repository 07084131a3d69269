"""The image is built and every party serves."""

import pytest

from tests.compose.engine import Engine
from tests.compose.marks import COMPOSE, Remark
from tests.compose.stack import PARTIES, Stack

pytestmark = COMPOSE
MOST_MEGABYTES = 400


def test_an_engine_answers(engine: Engine, remark: Remark) -> None:
    version = engine.run("version", "--format", "{{.Server.Version}}").strip()
    remark(f"{version}, {'our own' if engine.own else 'of this machine'}")


def test_a_base_image_is_made_from_debian(engine: Engine, base_image: str | None, remark: Remark) -> None:
    if not engine.own or base_image is None:
        pytest.skip("the image has another base")
    remark(f"{_megabytes(engine, base_image)} MB")


def test_the_image_is_built(engine: Engine, image: str, remark: Remark) -> None:
    assert engine.run("run", "--rm", image, "--version").startswith("veiltab")
    size = _megabytes(engine, image)
    assert size <= MOST_MEGABYTES
    remark(f"{size} MB")


def test_every_party_serves(stack: Stack, remark: Remark) -> None:
    states = {party: stack.inspect(party)["State"]["Health"]["Status"] for party in PARTIES}
    assert set(states.values()) == {"healthy"}, states
    remark("by its own health check")


def _megabytes(engine: Engine, image: str) -> int:
    return int(engine.run("image", "inspect", "--format", "{{.Size}}", image)) // 10**6
