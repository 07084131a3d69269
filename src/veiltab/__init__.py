"""Joint statistics of tables that nobody may hold whole.

The folders are links: what is imported as `veiltab.curator` stands in the folder `curator` of the project.

>>> from veiltab import Client
>>> client = Client("study.toml", identity="pki/researcher-rosa")  # doctest: +SKIP
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from veiltab.node.reporters.device import Node
    from veiltab.researcher.client.client import Client
    from veiltab.researcher.linkage_errors.linkage_error import parse_linkage_error as links
    from veiltab.researcher.microdata.replicate_intervals import with_replicates
    from veiltab.researcher.questions.series import series

    __version__: str

__all__ = ["Client", "Node", "__version__", "links", "series", "with_replicates"]

_PLACES = {
    "Client": ("veiltab.researcher.client.client", "Client"),
    "Node": ("veiltab.node.reporters.device", "Node"),
    "links": ("veiltab.researcher.linkage_errors.linkage_error", "parse_linkage_error"),
    "series": ("veiltab.researcher.questions.series", "series"),
    "with_replicates": ("veiltab.researcher.microdata.replicate_intervals", "with_replicates"),
}


def __getattr__(name: str) -> object:
    """Import a client, or look up the version, when it is asked for: what serves or performs tasks needs none of it."""
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - not for parties that serve

        return version("veiltab")
    if name not in _PLACES:
        raise AttributeError(f"module 'veiltab' has no attribute {name!r}")
    module, attribute = _PLACES[name]
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    return __all__
