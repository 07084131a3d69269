"""The pages that plan a release and ask for it: what it would cost is shown before anybody can ask."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar
from urllib.parse import urlencode

from starlette.responses import Response

from veiltab.common.core.numbers.rounding import parse_delta, parse_epsilon
from veiltab.common.errors import InvalidInputError, VeiltabError
from veiltab.common.privacy.cards.guarantee_text import delta_text
from veiltab.common.privacy.planning.questions import MOST_PEOPLE, Quantity
from veiltab.common.privacy.shuffle import MAX_CELLS
from veiltab.common.web.forms import Form, whole_number
from veiltab.common.web.pages import Visit
from veiltab.researcher.console.desk import Desk
from veiltab.researcher.questions.cost import SHAPES, Cost, Wish, cost_of

_LONGEST_PURPOSE = 500
_LONGEST_LABEL = 100
_WHOLE = re.compile(r"[0-9][0-9 ,_']*")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Slider:
    """One number of the planning form.

    Args:
        unit: what it is, in words.
        is_whole: whether the number is a whole one.
    """

    name: str
    label: str
    unit: str
    least: str
    most: str
    is_whole: bool = False


SLIDERS = (
    Slider(name="population", label="Respondents n", unit="people", least="100", most="10000000", is_whole=True),
    Slider(
        name="cells", label="Cells K", unit="of one table without attributes", least="2", most="10000", is_whole=True
    ),
    Slider(name="epsilon", label="Epsilon", unit="nats", least="0.01", most="10"),
    Slider(name="delta", label="Delta", unit="empty for a pure epsilon", least="1e-12", most="1e-4"),
    Slider(name="error", label="Error", unit="a probability", least="0.0001", most="0.5"),
)


class PlanningPages:
    """Plans releases, and asks for them where the console is the researcher's.

    Args:
        desk: asks, and knows the study.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def show_plan(self, visit: Visit) -> Response:
        """Show the planning form, and the answer if something was asked."""
        values = _Values.of(visit.query, defaults=self._defaults())
        cost, problem = self._tried(lambda: self._cost(values.wish())) if visit.query.values else (None, None)
        return visit.render(
            "plan.html",
            values=values,
            sliders=SLIDERS,
            quantities=list(Quantity),
            shapes=SHAPES,
            attributes=self._desk.study.attributes,
            cost=cost,
            problem=problem,
            may_ask=self._desk.may_ask,
            ask_query=_ask_query(values, cost),
            budget=self._budget,
        )

    def show_ask(self, visit: Visit) -> Response:
        """Show the form that asks for a release; what it costs comes first, and the button to ask beside it."""
        values = _Values.of(visit.query, defaults=self._defaults() | {"error": "", "find": "error"})
        cost, problem = self._tried(lambda: self._cost(values.request())) if visit.query.values else (None, None)
        return visit.render(
            "ask.html",
            values=values,
            sliders=[one for one in SLIDERS if one.name in {"population", "epsilon", "delta"}],
            shapes=SHAPES,
            attributes=self._desk.study.attributes,
            cost=cost,
            problem=problem,
            budget=self._budget,
            curators=[one.name for one in self._desk.study.curators],
            longest_purpose=_LONGEST_PURPOSE,
            longest_label=_LONGEST_LABEL,
        )

    def ask(self, visit: Visit) -> Response:
        """Ask the curators for a release.

        Raises:
            InvalidInputError: something is missing, out of range, or too long.
            VeiltabError: the service does not answer, or refuses.
        """
        form = visit.form
        wish = _Values.of(form, defaults={}).request()
        purpose = _short(form.text("purpose"), "purpose", _LONGEST_PURPOSE)
        label = _short(form.text("label"), "label", _LONGEST_LABEL)
        # What the person saw before: a request that cannot be planned is not sent.
        self._cost(wish)
        if wish.epsilon is None:
            raise AssertionError("a request has an epsilon")
        release = self._desk.client.request(
            wish.attributes,
            epsilon=wish.epsilon,
            delta=wish.delta,
            workload=None if wish.is_one_table else wish.shape,
            population=wish.population,
            purpose=purpose,
            label=label,
            partial=form.text("partial") == "yes",
        )
        done = "This release was asked for before: it goes on." if release.continued else "The curators were asked."
        return visit.go_to(f"/releases/{release.id}", done)

    @property
    def _budget(self) -> str:
        study = self._desk.study
        delta = "" if study.budget_delta is None else f" at delta {delta_text(study.budget_delta)}"
        return f"epsilon {study.budget_epsilon.normalize():f}{delta}"

    def _cost(self, wish: Wish) -> Cost:
        """Return what a wish would cost, within the limit of one page."""
        return self._desk.calculations.run(partial(cost_of, wish, self._desk.study))

    def _defaults(self) -> dict[str, str]:
        study = self._desk.study
        return {
            "population": str(self._desk.last_population() or max(study.minimum_population, 1000)),
            "cells": "24",
            "epsilon": "0.5",
            "delta": "" if study.budget_delta is None else "1e-6",
            "error": "0.02",
            "find": Quantity.ERROR.value,
            "shape": "table",
        }

    def _tried(self, work: Callable[[], T]) -> tuple[T | None, VeiltabError | None]:
        """Return a result, or what stands against it: the form stays on the page."""
        try:
            return work(), None
        except VeiltabError as error:
            return None, error


@dataclass(frozen=True, slots=True, kw_only=True)
class _Values:
    """What the fields of a planning form hold, as text; see `Wish`."""

    find: str
    shape: str
    attributes: tuple[str, ...]
    population: str
    cells: str
    epsilon: str
    delta: str
    error: str

    @classmethod
    def of(cls, form: Form, *, defaults: dict[str, str]) -> "_Values":
        """Read a form."""

        def text(name: str) -> str:
            return form.text(name, defaults.get(name, ""))[:100]

        return cls(
            find=text("find"),
            shape=text("shape"),
            attributes=form.texts("attributes"),
            population=text("population"),
            cells=text("cells"),
            epsilon=text("epsilon"),
            delta=text("delta"),
            error=text("error"),
        )

    def wish(self) -> Wish:
        """Return what is asked.

        Raises:
            InvalidInputError: a field that cannot be read.
        """
        if self.find not in {one.value for one in Quantity} or self.shape not in SHAPES:
            raise InvalidInputError("the page has no such choice", where="planning", remedy="Choose on the page.")
        return Wish(
            shape=self.shape,
            attributes=self.attributes,
            cells=_whole(self.cells, "cells", 2, MAX_CELLS),
            asked=Quantity(self.find),
            population=_whole(self.population, "population", 1, MOST_PEOPLE),
            epsilon=parse_epsilon(self.epsilon) if self.epsilon else None,
            delta=parse_delta(self.delta) if self.delta else None,
            error=_probability(self.error),
        )

    def request(self) -> Wish:
        """Return what is to be asked for: attributes and an epsilon are needed.

        Raises:
            InvalidInputError: a field that is missing or cannot be read.
        """
        if not self.attributes:
            raise InvalidInputError("no attribute was chosen", where="attributes", remedy="Choose at least one.")
        return replace(self, find=Quantity.ERROR.value, cells="", error="").wish()


def _ask_query(values: _Values, cost: Cost | None) -> str:
    """Return the query of the form that asks for what was planned; empty where it cannot be asked for."""
    if cost is None or not values.attributes or not cost.feasible:
        return ""
    fields: dict[str, str | Sequence[str]] = {
        "shape": values.shape,
        "attributes": values.attributes,
        "population": str(cost.population),
        "epsilon": f"{cost.epsilon:f}",
        "delta": "" if cost.delta is None else str(cost.delta),
    }
    return urlencode(fields, doseq=True)


def _whole(text: str, where: str, least: int, most: int) -> int | None:
    """Return a whole number, which may have separators between its thousands; None for an empty field."""
    if not text:
        return None
    number = whole_number(re.sub(r"[ ,_']", "", text), least, most) if _WHOLE.fullmatch(text) else None
    if number is None:
        raise InvalidInputError(f"this is a whole number from {least:,} to {most:,}", where=where)
    return number


def _probability(text: str) -> float | None:
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        raise InvalidInputError("the error must lie between 0 and 1", where="error")
    return value


def _short(text: str, where: str, longest: int) -> str:
    if len(text) > longest:
        raise InvalidInputError(f"this has at most {longest} characters, not {len(text)}", where=where)
    return text
