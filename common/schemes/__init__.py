"""Sampling schemes: whether and how often a sample contains each respondent."""

from veiltab.common.core.sampling import Rows
from veiltab.common.schemes.must_ow import MustOW
from veiltab.common.schemes.must_wo import MustWO
from veiltab.common.schemes.must_ww import MustWW
from veiltab.common.schemes.poisson import Poisson, poisson_size
from veiltab.common.schemes.registry import SCHEMES, check_certified, has_stage, scheme_class, scheme_of
from veiltab.common.schemes.scheme import Relation, Scheme, SizeLaw
from veiltab.common.schemes.with_replacement import WithReplacement
from veiltab.common.schemes.without_replacement import WithoutReplacement

__all__ = [
    "SCHEMES",
    "MustOW",
    "MustWO",
    "MustWW",
    "Poisson",
    "Relation",
    "Rows",
    "Scheme",
    "SizeLaw",
    "WithReplacement",
    "WithoutReplacement",
    "check_certified",
    "has_stage",
    "poisson_size",
    "scheme_class",
    "scheme_of",
]
