"""The public description of one table of a release, as it runs; the same object at every party.

Plain data, valid by itself. `guarantees` checks that it keeps the requested epsilon.
"""

import re
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from veiltab.common.core.domain import symbol_dtype
from veiltab.common.core.mechanism import GammaDiagonal, TwoSidedNoise
from veiltab.common.core.numbers.rounding import parse_epsilon
from veiltab.common.core.texts.canonical import KeptRecord, canonical_digest, read_canonical
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.description import ReleaseDescription
from veiltab.common.release.modes import Pad, Sampling, check_modes
from veiltab.common.release.request import RELEASE_ID, ReleaseRequest
from veiltab.common.schemes import scheme_of
from veiltab.common.study.limits import MAX_CELLS
from veiltab.common.study.naming import check_attribute_name, check_name

if TYPE_CHECKING:
    from veiltab.common.study.file import Study

_DIGEST = re.compile(r"[0-9a-f]{64}")
ALIGNMENT_ID = re.compile(r"[0-9a-f]{32}")
"""The name of an alignment."""

PLACE_BYTES = 8
"""Bytes of a row's place, or of a canary's number, on disk and on the wire."""

MAX_CANARIES = 2**32
"""Most canaries of a release."""


PART = "+"
"""Between attribute and holder in the name of a part; neither of them can have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a release: attribute, the curator that holds it, alphabet size K_a.

    A column of several holders is the sum of theirs mod K_a (see `symbols.add_holders`): each uploads a part of it.

    Args:
        owner: the curator that holds it, or the first of its holders, which has its canaries.
        others: the other holders, in study order; None of a column of one holder.
    """

    attribute: str
    owner: str
    size: int
    others: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        # They become file names and appear in reports; a spec may come from another party.
        check_attribute_name(self.attribute)
        for holder in self.holders:
            check_name("owner", holder)
        if len(set(self.holders)) != len(self.holders):
            raise InvalidInputError("a holder is listed twice", where=f"attribute {self.attribute}")
        symbol_dtype(self.size)

    @property
    def holders(self) -> tuple[str, ...]:
        """The curators that each upload a part of it: its owner, then the others."""
        return (self.owner, *(self.others or ()))

    def part_of(self, holder: str) -> str:
        """Return the name of a holder's part: the attribute, and for others than the owner `+` and the holder."""
        return self.attribute if holder == self.owner else f"{self.attribute}{PART}{holder}"

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of all parts, in order of the holders."""
        return tuple(map(self.part_of, self.holders))

    def byte_length(self, rows: int) -> int:
        """Length of `rows` symbols of this column, in bytes."""
        return rows * symbol_dtype(self.size).itemsize


@dataclass(frozen=True, kw_only=True)
class Spec(KeptRecord):
    """What a release and each of its tables state alike.

    What follows from the fields is worked out once: a party asks for it at every step of a release.

    Args:
        release_id: 32 hexadecimal digits; of a release, chosen at random by the researcher.
        study_digest: SHA-256 of the study file, hexadecimal.
        columns: the released ones, in study order.
        population: n, rows of the hub.
        sample: sampled rows m of each table.
        epsilon: the requested one of all tables together, nats; pure unless there is a delta.
        scheme: name of the sampling scheme of each table; "wor" is uniform without replacement.
        sampling: how the curators agree on a sample.
        alignment: keyed digest of the tokens of the rows, hexadecimal.
        deadline: Unix seconds after which an unfinished release is abandoned.
        delta: the requested one of all tables together; None asks for a pure epsilon.
        stage: rows after stage one of a two-stage scheme.
    """

    release_id: str
    study_digest: str
    researcher: str
    columns: tuple[Column, ...]
    population: int
    sample: int
    epsilon: Decimal
    scheme: str
    sampling: Sampling
    pad: Pad
    alignment: str
    deadline: int
    delta: Decimal | None = None
    stage: int | None = None

    @cached_property
    def owners(self) -> frozenset[str]:
        """The curators with columns in it."""
        return frozenset(self._columns_of)

    @cached_property
    def _columns_of(self) -> dict[str, tuple[Column, ...]]:
        """The columns that each curator holds."""
        names = dict.fromkeys(holder for column in self.columns for holder in column.holders)
        return {name: tuple(column for column in self.columns if name in column.holders) for name in names}

    @property
    def alike(self) -> dict[str, Any]:
        """The fields of this class, by name."""
        return {name: getattr(self, name) for name in Spec.__dataclass_fields__}

    def to_json(self) -> str:
        """Return the canonical text, which is stored and covered by the digest."""
        return self.text

    def digest(self) -> bytes:
        """Return the SHA-256 of the canonical text."""
        return self._digest

    @cached_property
    def _digest(self) -> bytes:
        return canonical_digest(self.text)


@dataclass(frozen=True, kw_only=True)
class TableSpec(Spec):
    """Everything public about one table as it runs; the server and the desk know a release by its tables.

    Args:
        server_replacement: r_s in units of 2^-64, 1..2^64: the server replaces a row with this probability.
        curator_replacement: r_c in units of 2^-64: the curators' noise, before the pad; 0 for none.
        canaries: rows of known symbols that travel among the data, to test the server.
        part_of: id of the release that this is a table of; empty if it runs under the id of its release.
    """

    server_replacement: int
    curator_replacement: int
    canaries: int
    part_of: str = ""

    def __post_init__(self) -> None:
        if self.part_of and not RELEASE_ID.fullmatch(self.part_of):
            raise InvalidInputError("the release id is not 32 hexadecimal digits", where="part of")
        if not RELEASE_ID.fullmatch(self.release_id):
            raise InvalidInputError("the release id is not 32 hexadecimal digits", where="release id")
        if not _DIGEST.fullmatch(self.study_digest) or not ALIGNMENT_ID.fullmatch(self.alignment):
            raise InvalidInputError("the digest is not hexadecimal, or of another length", where="release spec")
        check_name("researcher", self.researcher)
        if not 2 <= self.cells <= MAX_CELLS:
            raise InvalidInputError(f"the release has {self.cells} cells, not 2 to {MAX_CELLS}", where="cells")
        if len({column.attribute for column in self.columns}) != len(self.columns):
            raise InvalidInputError("an attribute is listed twice", where="columns")
        parse_epsilon(self.epsilon)
        check_modes(self.scheme, self.sampling, self.delta)
        if not 0 <= self.canaries <= MAX_CANARIES:
            raise InvalidInputError(
                f"the release has more than {MAX_CANARIES} canaries, or fewer than 0", where="canaries"
            )
        # The scheme and the mechanism refuse impossible sizes.
        _ = self.description

    @property
    def cells(self) -> int:
        """Cells K of the joint table."""
        product = 1
        for column in self.columns:
            product *= column.size
        return product

    @property
    def mechanism(self) -> TwoSidedNoise:
        """The noise of the curators and of the server, one law to anyone who knows no coins."""
        return _mechanism(self.cells, self.curator_replacement, self.server_replacement)

    @property
    def server_mechanism(self) -> GammaDiagonal:
        """The mechanism that the server runs."""
        return self.mechanism.server

    @cached_property
    def description(self) -> ReleaseDescription:
        """The description for the accountants."""
        return _description(self.scheme, self.population, self.sample, self.stage, self.mechanism)

    @property
    def data_rows(self) -> int:
        """Rows of data that the curators upload: the sample, or everyone if the server samples."""
        return self.population if self.sampling.is_by_server else self.sample

    @property
    def uploaded_rows(self) -> int:
        """Rows that the curators upload: data and canaries."""
        return self.data_rows + self.canaries

    @property
    def ciphertext_bytes(self) -> int:
        """Length of all that the curators upload."""
        return sum(column.byte_length(self.uploaded_rows) * len(column.holders) for column in self.columns)

    @property
    def published_rows(self) -> int:
        """Rows that the server publishes: all that were uploaded, or m of them if it samples.

        Where it samples, canaries may be among the m; the rest is a smaller sample of the same law, whose guarantees
        are those of m at the least.
        """
        return self.sample if self.sampling.is_by_server else self.uploaded_rows

    @property
    def place_bytes(self) -> int:
        """Most bytes of the places that the server or the desk keeps: of canaries, and of sampled rows."""
        if not self.sampling.is_by_server:
            return PLACE_BYTES * self.canaries
        # Beside the place of a canary that was sampled lies its number.
        return PLACE_BYTES * (self.published_rows + 2 * min(self.canaries, self.published_rows))

    def column(self, attribute: str) -> Column:
        """Return the column of an attribute."""
        for column in self.columns:
            if column.attribute == attribute:
                return column
        raise InvalidInputError(f"attribute {attribute!r} is not in this release", where="attribute")

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts of all columns; a column of one holder has one."""
        return tuple(part for column in self.columns for part in column.parts)

    def column_of_part(self, part: str) -> Column:
        """Return the column that a part belongs to."""
        return self.column(part.partition(PART)[0])

    def columns_of(self, curator: str) -> tuple[Column, ...]:
        """Return the columns that a curator holds, alone or with others."""
        return self._columns_of.get(curator, ())

    @classmethod
    def from_json(cls, text: str) -> "TableSpec":
        """Read back what `to_json` wrote."""
        return read_canonical(cls, text)


@lru_cache(maxsize=256)
def _mechanism(cells: int, curators: int, server: int) -> TwoSidedNoise:
    """Return the noise of many releases, once; `curators` and `server` are the probabilities of replacement."""
    return TwoSidedNoise(cells=cells, curator_replacement=curators, server_replacement=server)


@lru_cache(maxsize=256)
def _description(
    name: str, population: int, sample: int, stage: int | None, noise: TwoSidedNoise
) -> ReleaseDescription:
    scheme = scheme_of(name, population=population, sample=sample, stage=stage)
    return ReleaseDescription(scheme=scheme, cells=noise.cells, gamma=noise.gamma)


def requested_columns(request: ReleaseRequest, study: "Study") -> tuple[Column, ...]:
    """Return the columns that a request asks for, in study order."""
    return tuple(
        Column(attribute=rule.name, owner=rule.owner, size=rule.attribute.size, others=rule.others or None)
        for rule in study.attributes
        if rule.name in request.attributes
    )
