"""Domains of made tables."""

from collections.abc import Sequence

from veiltab.common.core.domain import Attribute, Domain


def domain_of(*sizes: int, **attributes: Sequence[str]) -> Domain:
    """Return a domain of attributes a, b, c, ... of these sizes, and of those with these categories."""
    numbered = {name: tuple(map(str, range(size))) for name, size in zip("abcdefghij", sizes, strict=False)}
    return Domain(
        attributes=tuple(
            Attribute(name=name, categories=tuple(categories)) for name, categories in (numbered | attributes).items()
        )
    )
