"""The sampling schemes by name."""

from dataclasses import fields
from importlib import import_module

from veiltab.common.errors import InvalidInputError
from veiltab.common.schemes.scheme import Scheme

SCHEMES = {
    "wor": "veiltab.common.schemes.without_replacement:WithoutReplacement",
    "poisson": "veiltab.common.schemes.poisson:Poisson",
    "wr": "veiltab.common.schemes.with_replacement:WithReplacement",
    "must.ow": "veiltab.common.schemes.must_ow:MustOW",
    "must.wo": "veiltab.common.schemes.must_wo:MustWO",
    "must.ww": "veiltab.common.schemes.must_ww:MustWW",
}
"""Name of a scheme -> "module:class"; a module loads with the first release that its scheme samples."""


def scheme_class(name: str) -> type[Scheme]:
    """Return the class of a name.

    Raises:
        InvalidInputError: an unknown name.
    """
    if name not in SCHEMES:
        raise InvalidInputError(f"scheme {name!r} is not known", where="scheme", remedy=f"Known: {', '.join(SCHEMES)}.")
    module, _, kind = SCHEMES[name].partition(":")
    scheme: type[Scheme] = getattr(import_module(module), kind)
    return scheme


def scheme_of(name: str, *, population: int, sample: int, stage: int | None = None) -> Scheme:
    """Return the scheme of a name.

    Raises:
        InvalidInputError: an unknown name, a missing or needless stage, or sizes that the scheme forbids.
    """
    kind = scheme_class(name)
    sizes = {"population": population, "sample": sample}
    if has_stage(kind):
        if stage is None:
            raise InvalidInputError("the size of the first stage was not given", where=f"scheme {name}")
        sizes["stage"] = stage
    elif stage is not None:
        raise InvalidInputError("a first stage was given for a scheme of one stage", where=f"scheme {name}")
    return kind(**sizes)


def has_stage(scheme: type[Scheme]) -> bool:
    """Return whether a scheme has the size of a first stage among its own."""
    return "stage" in {field.name for field in fields(scheme)}


def check_certified(scheme: type[Scheme]) -> None:
    """Refuse a release with delta under a scheme that has no order certificate.

    Raises:
        InvalidInputError: the scheme is not simple random.
    """
    if not scheme.is_simple_random:
        certified = " and ".join(name for name in SCHEMES if scheme_class(name).is_simple_random)
        raise InvalidInputError(f"a release with delta is certified for {certified}, not {scheme.name}", where="scheme")
