"""The picture of a card: every coalition in words, the same bytes for the same numbers."""

import re
from decimal import Decimal
from pathlib import Path

import pytest

from veiltab.common.core.mechanism import UNIT, TwoSidedNoise
from veiltab.common.privacy.cards.card import card_of
from veiltab.common.privacy.coalitions import TwoSidedRelease
from veiltab.common.privacy.planning.planning import plan_release
from veiltab.common.schemes import scheme_of
from veiltab.deploy.plan.card_picture import draw_card

ROOT = Path(__file__).parents[2]


def texts(picture: Path) -> list[str]:
    return re.findall(r"<text [^>]*>([^<]*)</text>", picture.read_text())


def test_the_picture_in_the_documentation_is_that_of_its_plan(tmp_path: Path) -> None:
    plan = plan_release(
        population=45222, cells=24, epsilon=Decimal("0.5"), delta=Decimal("1e-6"), noise_split=Decimal("0.5")
    )
    drawn = tmp_path / "card.svg"
    draw_card(card_of(plan.release, delta=plan.delta, pure=plan.pure_epsilon), drawn)
    assert texts(drawn) == texts(ROOT / "docs/pictures/card.svg")
    for text in (
        "analyst",
        "desk with server",
        "epsilon 0.77 at delta 1e-6",
        "epsilon 0.79 at delta 1e-6",
        "epsilon 6.6 a row",
        "nothing",
        "no protection",
    ):
        assert text in texts(drawn)


@pytest.mark.parametrize("scheme", ["wor", "wr"])
def test_a_card_without_order_or_noise_of_curators_is_drawn_too(tmp_path: Path, scheme: str) -> None:
    noise = TwoSidedNoise(cells=4, curator_replacement=0, server_replacement=UNIT)
    release = TwoSidedRelease(scheme=scheme_of(scheme, population=9, sample=3), noise=noise)
    drawn, again = tmp_path / "card.svg", tmp_path / "again.svg"
    draw_card(card_of(release), drawn)
    draw_card(card_of(release), again)
    assert drawn.read_bytes() == again.read_bytes()
    assert texts(drawn).count("no protection") == 2
    # All rows are replaced, so most coalitions learn nothing.
    assert texts(drawn).count("nothing") == 5
