"""Each class is made of one body twice: by the decorator of veiltab, and by the standard one."""

import copy
import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from veiltab.common.dataclass import dataclass, field

FROZEN = {"frozen": True, "slots": True}
SHAPES: tuple[dict[str, bool], ...] = (
    FROZEN,
    FROZEN | {"kw_only": True},
    FROZEN | {"eq": False, "weakref_slot": True},
    {"repr": False},
    {},
)


def outcome(act: Callable[[], object]) -> object:
    try:
        return act()
    except (TypeError, AttributeError) as error:
        return type(error)


def behaviour(decorate: Callable[[type], Any]) -> list[Any]:
    class Point:
        """A point."""

        x: int
        y: float = 1.5
        seen: list[int] = field(default_factory=list, compare=False)
        norm: float = field(init=False, repr=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "norm", abs(self.x) + self.y)

    made = decorate(Point)
    wider = decorate(type("Wider", (made,), {"extra": 0, "__annotations__": {"extra": int}, "__repr__": lambda _: "w"}))
    other_end = type("OtherEnd", (made,), {"__post_init__": lambda self: object.__setattr__(self, "norm", -1.0)})
    alone, none = (decorate(type("Few", (), {"__annotations__": names})) for names in ({"x": float}, {}))
    one, nan = made(x=2), float("nan")
    calls: list[Callable[[], object]] = [
        lambda: made(1, 2.0, [3]).seen,
        made,
        lambda: made(1, 2, [], 4),
        *(lambda named=named: made(1, **named) for named in ({"x": 1}, {"z": 2}, {"norm": 2.0})),
        lambda: (one == made(x=2), one == made(x=3), one == 2, made(x=1).seen is made(x=1).seen),
        lambda: made(y=1.0, seen=[], z=2),
        lambda: (repr(wider(x=1, extra=2)), wider(x=1).extra, wider(x=2) == one),
        lambda: hash(one) == hash(made(x=2)),
        lambda: (one.x, one.y, one.norm, one.seen, repr(one).partition(" object")[0], str(inspect.signature(made))),
        lambda: (dataclasses.replace(one, x=5).norm, dataclasses.asdict(one), copy.deepcopy(one).norm),
        lambda: vars(one),
        lambda: other_end(x=1).norm,
        lambda: (
            alone(nan) == alone(nan),
            alone(nan) == alone(float("nan")),
            hash(alone(1)) == hash((1,)),
            none() == none(),
        ),
        lambda: setattr(one, "x", 3),
        lambda: delattr(one, "y"),
    ]
    return [outcome(call) for call in calls]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_class_behaves_as_the_standard_decorator_makes_it(shape: dict[str, bool]) -> None:
    assert behaviour(dataclass(**shape)) == behaviour(dataclasses.dataclass(**shape))
    assert behaviour(dataclass) == behaviour(dataclasses.dataclass)
