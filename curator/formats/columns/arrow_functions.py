"""The functions of `pyarrow.compute`, which is imported when one is called: tables of plain texts need none."""

from importlib import import_module
from types import FunctionType


def __getattr__(name: str) -> FunctionType:
    return getattr(import_module("pyarrow.compute"), name)  # type: ignore[no-any-return]
