"""Dataclasses as the standard ones, but with methods that look up the fields.

The standard decorator compiles the source of six methods a class: .7 ms each, where a party loads 80 to 150 classes.
"""

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, FrozenInstanceError, asdict, astuple, field, fields, is_dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn

__all__ = ["asdict", "astuple", "dataclass", "field", "fields", "is_dataclass", "replace"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        bare: type | None = None, /, *, frozen: bool = False, eq: bool = True, **shape: bool
    ) -> type | Callable[[type], type]:
        """Return a class, or the decorator of some options: any but `init`, `order` and `unsafe_hash`."""
        has_repr = shape.pop("repr", True)

        def decorate(cls: type) -> type:
            own = vars(cls).keys()
            cls.__doc__ = cls.__doc__ or cls.__name__  # else the standard decorator makes one from the signature
            record = dataclasses.dataclass(init=False, repr=False, eq=False, **shape)(cls)
            methods = {"__init__": _initialiser(record), "__signature__": _Signature()}
            if has_repr:
                methods["__repr__"] = _representation(record)
            if eq:
                values = _values_of([one.name for one in fields(record) if one.compare])
                methods["__eq__"] = _equality(values)
                methods["__hash__"] = (lambda self: hash(values(self))) if frozen else None
            if frozen:
                methods |= {"__setattr__": _refuse_change, "__delattr__": _refuse_change, "__setstate__": _take_state}
            for name in methods.keys() - own:
                setattr(record, name, methods[name])
            return record

        return decorate if bare is None else decorate(bare)


class _Signature:
    """Is made when a class is asked for it."""

    def __get__(self, _: object, record: type[Any]) -> inspect.Signature:
        twin = dataclasses.make_dataclass(record.__name__, [(one.name, one.type, one) for one in fields(record)])
        return inspect.signature(twin)


def _initialiser(record: type[Any]) -> Callable[..., None]:
    every = fields(record)
    in_order = [one.name for one in every if one.init and not one.kw_only]
    constants = {one.name: one.default for one in every if one.default is not MISSING}
    makers = {one.name: one.default_factory for one in every if one.default_factory is not MISSING}
    names = [one.name for one in every if one.init or one.name in constants or one.name in makers]
    finish = attrgetter("__post_init__") if hasattr(record, "__post_init__") else None
    put, size, whole = object.__setattr__, len(names), frozenset(names)

    def __init__(self: object, /, *values: object, **named: object) -> None:  # noqa: N807 - a traceback shows it
        count = len(values) + len(named)
        if values:
            named |= zip(in_order, values, strict=False)
        is_wrong = len(named) < count
        if count < size:
            named = constants | {name: make() for name, make in makers.items() if name not in named} | named
        if is_wrong or len(named) != size or not whole.issuperset(named):
            raise TypeError(f"{record.__qualname__} takes {names} once each, not {len(values)} and {sorted(named)}")
        for name in names:
            put(self, name, named[name])
        if finish is not None:
            finish(self)()

    return __init__


def _values_of(names: list[str]) -> Callable[[object], object]:
    return attrgetter(*names) if len(names) > 1 else lambda self: tuple(getattr(self, name) for name in names)


def _equality(values: Callable[[object], object]) -> Callable[[object, object], bool]:
    return lambda self, other: values(self) == values(other) if type(other) is type(self) else NotImplemented


def _representation(record: type[Any]) -> Callable[[object], str]:
    names = [one.name for one in fields(record) if one.repr]
    return lambda self: f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


def _refuse_change(self: object, name: str, *_: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r} of {type(self).__qualname__}")


def _take_state(self: object, state: Mapping[str, object] | tuple[Mapping[str, object] | None, ...]) -> None:
    """Restore a pickled instance, which has a __dict__, slots or both."""
    for values in state if isinstance(state, tuple) else [state]:
        for name, value in (values or {}).items():
            object.__setattr__(self, name, value)
