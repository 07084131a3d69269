"""The experiments by name; each is imported when it is needed."""

import importlib
from collections.abc import Mapping
from typing import cast

from veiltab.common.errors import NotFoundError
from veiltab.common.extras import importing
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
    """Import and return one of EXPERIMENTS.

    Raises:
        NotFoundError: its module is not part of this installation.
    """
    module, _, attribute = EXPERIMENTS[name].partition(":")
    try:
        with importing("papers", "a replay"):
            loaded = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise NotFoundError(
            f"this installation does not have the experiment {name}", where=module, remedy="Install veiltab anew."
        ) from None
    return cast("Experiment", getattr(loaded, attribute))
