"""Two registers of made people, with errors as clerks make them, and who is who.

Birth dates are uniform over 85 years, 3,000 postcodes are of different size, 35 % live in households of two with one
family name and postcode, 1 % are twins, .5 % have the name of a parent. The most frequent given names change from one
decade of birth to the next. Each register writes its people down on its own, with errors: `ErrorRates`.
"""

from collections.abc import Sequence
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from veiltab.common.dataclass import dataclass, fields
from veiltab.common.errors import InvalidInputError
from veiltab.play.registers.name_law import Draws, family_names, given_names

FIELDS = ("given", "family", "birth", "sex", "postcode")
"""Of a person, in the order of a row."""

Row = tuple[str, str, str, str, str]
"""A person as one register has it; "" is missing. The date is YYYY-MM-DD."""

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_FIRST_DAY, _DAYS = date(1935, 1, 1), 85 * 365
_POSTCODES = 3000
_POSTCODE_SHIFT = 150
_ROTATED = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRates:
    """How often a register is wrong, each as a share of its rows.

    Args:
        typo: a letter of the given name; the same for the family name.
        family: another family name, as after a marriage.
        swapped: the two names in one another's place.
        postcode: another postcode, as after a move.
    """

    typo: float = 0.04
    family: float = 0.02
    swapped: float = 0.005
    birth: float = 0.015
    postcode: float = 0.08
    sex: float = 0.002
    lacking: float = 0.01

    def times(self, factor: float) -> "ErrorRates":
        """Return all rates multiplied."""
        return ErrorRates(**{one.name: factor * getattr(self, one.name) for one in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Registers:
    """Two registers and the truth.

    Args:
        hub: rows of the hub.
        spoke: rows of the other one.
        hub_people: of each row of the hub, the person.
        spoke_people: of each row of the other one.
        twins: of each person, its twin; -1 without one.
    """

    hub: Sequence[Row]
    spoke: Sequence[Row]
    hub_people: NDArray[np.int64]
    spoke_people: NDArray[np.int64]
    twins: NDArray[np.int64]

    def common(self) -> int:
        """Return how many people stand in both."""
        return int(np.isin(self.hub_people, self.spoke_people).sum())


def made_registers(rows: int, seed: str, errors: ErrorRates | None = None, overlap: float = 0.8) -> Registers:
    """Make two registers of the same size.

    Args:
        rows: of each; at least 10.
        seed: any text; the same text makes the same registers.
        errors: of both registers; None for the usual ones.
        overlap: share of rows whose person stands in both.
    """
    if rows < 10 or not 0 <= overlap <= 1:
        raise InvalidInputError("there are fewer than 10 rows, or the overlap is not from 0 to 1")
    draws, rates = Draws(f"registers {seed}"), errors or ErrorRates()
    common = round(rows * overlap)
    people, twins = _people(draws, 2 * rows - common)
    order = draws.order("who is where", len(people))
    hub, spoke = order[:rows], np.concatenate([order[:common], order[rows:]])
    spoke = spoke[draws.order("rows of the spoke", rows)]
    return Registers(
        hub=_copy(people, hub, rates, Draws(f"hub {seed}")),
        spoke=_copy(people, spoke, rates, Draws(f"spoke {seed}")),
        hub_people=hub,
        spoke_people=spoke,
        twins=twins,
    )


def _people(draws: Draws, count: int) -> tuple[list[Row], NDArray[np.int64]]:
    """Return people as they are, and the twin of each, -1 without one."""
    sex = draws.below("sex", count, 2)
    born = draws.below("birth", count, _DAYS)
    given = np.where(sex == 0, given_names("f").draw(draws, "f", count), given_names("m").draw(draws, "m", count))
    given = np.where(given < _ROTATED, (given + 17 * (born // 3653)) % _ROTATED, given)
    family = family_names().draw(draws, "family", count)
    postcode = _postcodes(draws, "postcode", count)
    kin, twins = draws.uniform("kin", count), np.full(count, -1)
    for person in range(0, count - 1, 2):
        other = person + 1
        if kin[person] < 0.35 + 0.01 + 0.005:
            family[other], postcode[other] = family[person], postcode[person]
        if kin[person] < 0.01:
            born[other], twins[person], twins[other] = born[person], other, person
        elif kin[person] < 0.015:
            given[other], sex[other] = given[person], sex[person]
            born[other] = (born[person] + 25 * 365 + born[other] % 3650) % _DAYS
    names = [given_names("f").names, given_names("m").names]
    rows = [
        (
            str(names[sex[one]][given[one]]),
            str(family_names().names[family[one]]),
            (_FIRST_DAY + timedelta(days=int(born[one]))).isoformat(),
            "fm"[sex[one]],
            f"{postcode[one] + 10_000}",
        )
        for one in range(count)
    ]
    return rows, twins


def _postcodes(draws: Draws, label: str, count: int) -> NDArray[np.int64]:
    """Return postcodes: the k-th has people in proportion to 1 / (k + 150)."""
    up_to = np.cumsum(1 / (np.arange(_POSTCODES) + _POSTCODE_SHIFT))
    places: NDArray[np.int64] = np.searchsorted(up_to / up_to[-1], draws.uniform(label, count), side="right")
    return np.minimum(places, _POSTCODES - 1)


def _copy(people: Sequence[Row], who: NDArray[np.int64], rates: ErrorRates, draws: Draws) -> list[Row]:
    """Write people down with errors."""
    count = len(who)
    happens = {one.name: draws.uniform(one.name, count) < getattr(rates, one.name) for one in fields(rates)}
    typo_family = draws.uniform("typo in family", count) < rates.typo
    families = family_names().draw(draws, "new family", count)
    postcodes = _postcodes(draws, "new postcode", count)
    chance = draws.words("where", 4 * count).reshape(count, 4).tolist()
    rows = []
    for place, person in enumerate(who.tolist()):
        given, family, birth, sex, postcode = people[person]
        family = str(family_names().names[families[place]]) if happens["family"][place] else family
        given = _misspelt(given, chance[place][0]) if happens["typo"][place] else given
        family = _misspelt(family, chance[place][1]) if typo_family[place] else family
        if happens["swapped"][place]:
            given, family = family, given
        birth = _misdated(birth, chance[place][2]) if happens["birth"][place] else birth
        sex = "mf"["fm".index(sex)] if happens["sex"][place] else sex
        postcode = f"{postcodes[place] + 10_000}" if happens["postcode"][place] else postcode
        row = [given, family, birth, sex, postcode]
        if happens["lacking"][place]:
            row[chance[place][3] % len(FIELDS)] = ""
        rows.append((row[0], row[1], row[2], row[3], row[4]))
    return rows


def _misspelt(name: str, chance: int) -> str:
    """Return a name with one letter left out, put in, changed, or changed places with the next."""
    kind, chance = chance % 4, chance // 4
    place, chance = chance % len(name), chance // len(name)
    letter = _LETTERS[chance % len(_LETTERS)]
    match kind:
        case 0 if len(name) > 1:
            return name[:place] + name[place + 1 :]
        case 1:
            return name[:place] + letter + name[place:]
        case 2 if place + 1 < len(name):
            return name[:place] + name[place + 1] + name[place] + name[place + 2 :]
        case _:
            return name[:place] + letter + name[place + 1 :]


def _misdated(birth: str, chance: int) -> str:
    """Return a date with a wrong last digit of its year or day, a wrong month, or month and day in the other order."""
    year, month, day = (int(part) for part in birth.split("-"))
    kind, chance = chance % 4, chance // 4
    if kind == 0 and day <= 12 and day != month:
        month, day = day, month
    elif kind == 1:
        year += (chance % 9 + 1 + year) % 10 - year % 10
    elif kind == 2:
        month = (month + chance % 11) % 12 + 1
    else:
        day = day - day % 10 + (day + chance % 9 + 1) % 10
    return f"{year:04}-{month:02}-{min(max(day, 1), 28):02}"
