"""Joint statistics of tables that nobody may hold whole.

The folders are links: what is imported as `veiltab.curator` stands in the folder `curator` of the project.

>>> from veiltab import Client
>>> client = Client("study.toml", identity="pki/researcher-rosa", name="rosa")  # doctest: +SKIP
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from veiltab.node.reporters.device import Node
    from veiltab.researcher.client.client import Client
    from veiltab.researcher.linkage_errors.linkage_error import links_of as links
    from veiltab.researcher.microdata.replicate_intervals import with_replicates
    from veiltab.researcher.questions.series import series

    __version__: str

__all__ = ["Client", "Node", "__version__", "links", "series", "with_replicates"]


def __getattr__(name: str) -> object:
    """Import a client, or look up the version, when it is asked for: what serves or performs tasks needs none of it."""
    match name:
        case "__version__":
            from importlib.metadata import version  # noqa: PLC0415 - not for parties that serve

            return version("veiltab")
        case "Client":
            from veiltab.researcher.client.client import Client  # noqa: PLC0415 - not for parties that serve

            return Client
        case "Node":
            from veiltab.node.reporters.device import Node  # noqa: PLC0415 - not for parties that serve

            return Node
        case "links":
            from veiltab.researcher.linkage_errors.linkage_error import links_of  # noqa: PLC0415 - not for parties that serve

            return links_of
        case "series":
            from veiltab.researcher.questions.series import series  # noqa: PLC0415 - not for parties that serve

            return series
        case "with_replicates":
            from veiltab.researcher.microdata.replicate_intervals import with_replicates  # noqa: PLC0415 - not for parties that serve

            return with_replicates
        case _:
            raise AttributeError(f"module 'veiltab' has no attribute {name!r}")
