"""Reports, one type for each oracle. Only the oracle can check a report: see Oracle.check."""

from veiltab.common.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Category:
    """A report of k-ary randomised response: one value 0..d-1."""

    symbol: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bits:
    """A report of unary encoding: value i is bit i % 8, lowest first, of byte i // 8; bits beyond d are zero."""

    bits: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Hashed:
    """A report of local hashing: the public seed of the node's own hash function, and a symbol 0..g-1."""

    seed: bytes
    symbol: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Subset:
    """A report of subset selection: w values in increasing order, each as one symbol of symbol_dtype(d)."""

    values: bytes


Report = Category | Bits | Hashed | Subset
