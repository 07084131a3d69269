"""The sampling schemes by name."""

from dataclasses import fields

from veiltab.common.errors import InvalidInputError
from veiltab.common.schemes.must_ow import MustOW
from veiltab.common.schemes.must_wo import MustWO
from veiltab.common.schemes.must_ww import MustWW
from veiltab.common.schemes.poisson import Poisson
from veiltab.common.schemes.scheme import Scheme
from veiltab.common.schemes.with_replacement import WithReplacement
from veiltab.common.schemes.without_replacement import WithoutReplacement

_CLASSES: tuple[type[Scheme], ...] = (WithoutReplacement, Poisson, WithReplacement, MustOW, MustWO, MustWW)

SCHEMES: dict[str, type[Scheme]] = {scheme.name: scheme for scheme in _CLASSES}
"""wor, poisson, wr, must.ow, must.wo, must.ww."""


def scheme_class(name: str) -> type[Scheme]:
    """Return the class of a name.

    Raises:
        InvalidInputError: an unknown name.
    """
    if name not in SCHEMES:
        raise InvalidInputError(f"scheme {name!r} is not known", where="scheme", remedy=f"Known: {', '.join(SCHEMES)}.")
    return SCHEMES[name]


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
        certified = " and ".join(name for name, one in SCHEMES.items() if one.is_simple_random)
        raise InvalidInputError(f"a release with delta is certified for {certified}, not {scheme.name}", where="scheme")
