"""How many people of a register the likeliest guesses of a default key find: by the laws of the made registers."""

from collections import defaultdict

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.worlds.studies import FIELDS
from veiltab.common.linkage.ladder import FieldKind, Part, Pass, default_ladder
from veiltab.common.linkage.row_keys import _cut
from veiltab.play.registers.name_law import NameLaw, family_names, given_names
from veiltab.play.registers.people import _POSTCODE_SHIFT, _POSTCODES

GUESSES = 10**6
YEARS, DAYS = 85, 365
Law = NDArray[np.float64]


def cut_law(law: NameLaw, cut: str) -> Law:
    """The law of what a key takes of a name, the likeliest value first."""
    found: defaultdict[str, float] = defaultdict(float)
    for name, share in zip(_cut(law.names.tolist(), cut), np.diff(law.up_to, prepend=0).tolist(), strict=True):
        found[name] += share
    return np.sort(np.array(list(found.values())))[::-1]


UNIFORM = {
    Part("sex"): 2,
    Part("birth"): YEARS * DAYS,
    Part("birth", "year"): YEARS,
    Part("birth", "month"): 12,
    Part("birth", "day"): DAYS / 12,
}
"""How many values a part has that are all as likely."""


def law_of(part: Part) -> Law:
    """The law of another part."""
    if part == Part("postcode"):
        shares: Law = 1 / (np.arange(_POSTCODES) + _POSTCODE_SHIFT)
        return np.asarray(shares / shares.sum())
    return cut_law({"given": given_names("f"), "family": family_names()}[part.field], part.cut)


def most_found(key: str, guesses: int) -> float:
    """Share of people whom the likeliest guesses find, at most: names of one sex, components independent."""
    uniform, laws = 1.0, list[Law]()
    for component in Pass(1, key).parts:
        for part in component:
            uniform *= UNIFORM.get(part, 1)
            laws += [] if part in UNIFORM else [law_of(part)]
        # Of two parts of a date in either order one guess stands for two; names in the other order are hardly names.
        uniform /= 2 if len(component) == 2 and component[0].field == "birth" else 1
    kept = int(np.ceil(guesses / uniform))
    joint = np.ones(1)
    for law in laws:
        joint = np.sort(np.outer(joint[:kept], law[:kept]).ravel())[::-1][:kept]
    return float(joint.sum())


@pytest.mark.parametrize("without", [(), ("sex",), ("postcode",), ("sex", "postcode")])
def test_a_million_guesses_of_a_default_key_find_few_people(without: tuple[str, ...]) -> None:
    kinds = {name: FieldKind(name) for name in FIELDS if name not in without}
    worst = {key: most_found(key, GUESSES) for key in default_ladder(kinds)}
    assert max(worst.values()) < 0.015, worst


def test_keys_that_are_left_out_would_be_found() -> None:
    assert most_found("birth postcode sex", GUESSES) > 0.015
    assert most_found("given family birth:month birth:day sex", GUESSES) > 0.015
    assert most_found("given family:1 birth sex", GUESSES) > 0.015
