"""What share of a table's people the likeliest guesses of a key find, by how often its values occur in that table."""

from collections import Counter

import numpy as np

from veiltab.common.linkage.ladder import Part, Pass
from veiltab.common.linkage.row_keys import NormalRows, _cut

GUESSES = 10**6
DATES = {"": 85 * 365, "year": 85, "month": 12, "day": 30}
"""Values of a date or of a part of it, all as likely: a small table does not show how often each occurs."""


def most_found(key: str, rows: NormalRows, follows: dict[str, str], guesses: int = GUESSES) -> float:
    """Share of people whom the likeliest guesses find, components taken as independent.

    A field that follows from another one of the key, as a suburb from a postcode, is known with it. In a pass with "~"
    the guesses are of whole values.
    """
    step = Pass(1, key)
    uniform, joint = 1.0, np.ones(1)
    parts = [part for component in step.parts for part in component if follows.get(part.field) not in step.fields]
    for part in parts:
        uniform *= DATES[part.cut] if part.field == "birth" else 1
    uniform /= 2 if any(len(one) == 2 and one[0].field == "birth" for one in step.parts) else 1
    kept = int(np.ceil(guesses / uniform))
    for part in parts:
        if part.field != "birth":
            # Of two laws in descending order a pair is among the likeliest only if its places multiply to no more.
            pairs = [
                joint[: kept // place] * share for place, share in enumerate(law_of(part, rows), 1) if place <= kept
            ]
            joint = np.sort(np.concatenate(pairs))[::-1][:kept]
    return float(joint.sum())


def law_of(part: Part, rows: NormalRows) -> list[float]:
    """How often what a key takes of a field occurs, the most frequent first; rows that lack the field do not count."""
    values = [_cut(value, part.cut) for value in rows.values(part.field) if value]
    return [count / len(values) for _, count in Counter(values).most_common()]
