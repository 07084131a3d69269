"""The experiments by name; each is imported when it is needed."""

import importlib
from collections.abc import Mapping
from typing import cast

from veiltab.common.errors import NotFoundError
from veiltab.papers.experiment import Experiment

ALL = "all"
"""The name that stands for every experiment."""

_HOME = "veiltab.papers"

EXPERIMENTS: Mapping[str, str] = {
    "lin": f"{_HOME}.lin:EXPERIMENT",
    "biswas": f"{_HOME}.biswas:EXPERIMENT",
    "hu": f"{_HOME}.hu:EXPERIMENT",
    "must": f"{_HOME}.must:EXPERIMENT",
    "smith": f"{_HOME}.smith:EXPERIMENT",
}
"""Name -> "module:attribute"."""


def names_of(name: str) -> tuple[str, ...]:
    """Return the experiments that a name on the command line stands for.

    Raises:
        NotFoundError: no experiment has this name.
    """
    if name == ALL:
        return tuple(EXPERIMENTS)
    if name not in EXPERIMENTS:
        raise NotFoundError(
            f"no experiment is called {name!r}", where="NAME", remedy=f"Known: {', '.join(EXPERIMENTS)}, or {ALL}."
        )
    return (name,)


def load(name: str) -> Experiment:
    """Import and return one of EXPERIMENTS."""
    module, _, attribute = EXPERIMENTS[name].partition(":")
    return cast("Experiment", getattr(importlib.import_module(module), attribute))
