"""Sampling without replacement."""

from typing import ClassVar

from veiltab.common.dataclass import dataclass
from veiltab.common.schemes.scheme import Relation, SizeLaw
from veiltab.common.schemes.simple_random import SimpleRandom


@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutReplacement(SimpleRandom):
    """m different respondents, every set of m equally likely."""

    name: ClassVar[str] = "wor"
    title: ClassVar[str] = "without replacement"
    relation: ClassVar[Relation] = Relation.SUBSTITUTION
    size_law: ClassVar[SizeLaw] = SizeLaw.FIXED
