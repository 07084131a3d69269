"""A release's public description and where it stands; the same object at every party."""

import hashlib
import json
import re
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction

from common.domain import symbol_dtype
from common.errors import InvalidInputError
from common.mechanism import GammaDiagonal
from common.naming import check_attribute_name, check_name
from common.planning import Plan
from common.privacy.amplification import check_sizes, pure_epsilon
from common.privacy.card import EpsilonCard
from common.privacy.rounding import exp_below, ln_above, parse_epsilon

RELEASE_ID = re.compile(r"[0-9a-f]{32}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_ALIGNMENT = re.compile(r"[0-9a-f]{32}")
MAX_CELLS = 2**22
"""Largest joint table of a release; a study sets its own limit below it."""


class ReleaseState(Enum):
    """Where a release stands at one party; the order of the first six is the order of the steps."""

    REQUESTED = "requested"
    APPROVED = "approved"
    PLANNED = "planned"
    CHARGED = "charged"
    UPLOADING = "uploading"
    PERTURBING = "perturbing"
    READY = "ready"
    EXPIRED = "expired"
    DENIED = "denied"
    FAILED = "failed"

    @property
    def finished(self) -> bool:
        """Whether nothing more will happen by itself."""
        return self in {ReleaseState.READY, ReleaseState.EXPIRED, ReleaseState.DENIED, ReleaseState.FAILED}

    @property
    def unsuccessful(self) -> bool:
        """Whether the release ended without a result here."""
        return self in {ReleaseState.EXPIRED, ReleaseState.DENIED, ReleaseState.FAILED}


class Sampling(Enum):
    """How the curators come to the same sample."""

    SEED = "seed"
    INDICES = "indices"


class Pad(Enum):
    """Where a column's pad comes from, and so what its key is: 32 bytes, or the pad itself."""

    CHACHA20 = "chacha20"
    OTP = "otp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a release: attribute, the curator that holds it, alphabet size K_a."""

    attribute: str
    owner: str
    size: int

    def __post_init__(self) -> None:
        # Both become names of files and stand in reports; a spec may come from another party.
        check_attribute_name(self.attribute)
        check_name("owner", self.owner)
        symbol_dtype(self.size)

    def byte_length(self, rows: int) -> int:
        """Length of `rows` symbols of this column, in bytes."""
        return rows * symbol_dtype(self.size).itemsize


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseSpec:
    """Everything public about a release; its digest is compared by all curators before data moves.

    Args:
        release_id: 32 hexadecimal digits, chosen at random by the researcher.
        study_digest: SHA-256 of the study file, hexadecimal.
        researcher: who asked.
        columns: what is released, in study order.
        population: common respondents n.
        sample: sampled rows m.
        replacement: r64; the server replaces a row with probability r64 / 2^64.
        epsilon: pure epsilon asked for, nats.
        scheme: "wor", uniform without replacement.
        sampling: how the curators come to the same sample.
        pad: where the pads come from.
        alignment: keyed digest of the common respondents, hexadecimal.
        deadline: Unix seconds after which an unfinished release is abandoned.
    """

    release_id: str
    study_digest: str
    researcher: str
    columns: tuple[Column, ...]
    population: int
    sample: int
    replacement: int
    epsilon: Decimal
    scheme: str
    sampling: Sampling
    pad: Pad
    alignment: str
    deadline: int

    def __post_init__(self) -> None:
        if not RELEASE_ID.fullmatch(self.release_id):
            raise InvalidInputError("a release id is 32 hexadecimal digits", where="release id")
        if not _DIGEST.fullmatch(self.study_digest) or not _ALIGNMENT.fullmatch(self.alignment):
            raise InvalidInputError("a digest is not the hexadecimal digits of one", where="release spec")
        check_name("researcher", self.researcher)
        if self.scheme != "wor":
            raise InvalidInputError(f"sampling scheme {self.scheme!r} is not known", remedy="Known: wor.")
        if not 2 <= self.cells <= MAX_CELLS:
            raise InvalidInputError(f"a release has 2 to {MAX_CELLS} cells, not {self.cells}", where="cells")
        if len({column.attribute for column in self.columns}) != len(self.columns):
            raise InvalidInputError("an attribute is listed twice", where="columns")
        parse_epsilon(self.epsilon)
        check_sizes(population=self.population, sample=self.sample)
        if self.guaranteed_epsilon > self.epsilon:
            raise InvalidInputError("the replacement probability is too small for the epsilon", where="replacement")

    @property
    def cells(self) -> int:
        """Cells K of the joint table."""
        product = 1
        for column in self.columns:
            product *= column.size
        return product

    @property
    def mechanism(self) -> GammaDiagonal:
        """The mechanism that the server runs."""
        return GammaDiagonal(cells=self.cells, replacement=self.replacement)

    @property
    def guaranteed_epsilon(self) -> Decimal:
        """Pure epsilon of the mechanism that runs (nats, upper bound, never above what was asked for)."""
        gamma = self.mechanism.gamma
        bound = pure_epsilon(gamma, population=self.population, sample=self.sample)
        # The bound is rounded up, perhaps past epsilon; whether the mechanism keeps epsilon is decided exactly.
        kept = 1 + Fraction(self.sample, self.population) * (gamma - 1) <= exp_below(self.epsilon)
        return min(bound, self.epsilon) if kept else bound

    @property
    def card(self) -> EpsilonCard:
        """Who faces which epsilon."""
        return EpsilonCard(epsilon=self.guaranteed_epsilon, local_epsilon=ln_above(self.mechanism.gamma))

    def column(self, attribute: str) -> Column:
        """Return the column of an attribute."""
        for column in self.columns:
            if column.attribute == attribute:
                return column
        raise InvalidInputError(f"attribute {attribute!r} is not in this release", where="attribute")

    def columns_of(self, owner: str) -> tuple[Column, ...]:
        """Return the columns of one curator."""
        return tuple(column for column in self.columns if column.owner == owner)

    def as_dict(self) -> dict[str, object]:
        """Return the canonical plain form: what is stored, and what the digest covers."""
        return {
            "release_id": self.release_id,
            "study_digest": self.study_digest,
            "researcher": self.researcher,
            "columns": [[c.attribute, c.owner, c.size] for c in self.columns],
            "population": self.population,
            "sample": self.sample,
            "replacement": self.replacement,
            "epsilon": str(self.epsilon),
            "scheme": self.scheme,
            "sampling": self.sampling.value,
            "pad": self.pad.value,
            "alignment": self.alignment,
            "deadline": self.deadline,
        }

    def to_json(self) -> str:
        """Return the canonical text."""
        return json.dumps(self.as_dict(), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "ReleaseSpec":
        """Read back what `to_json` wrote."""
        plain = json.loads(text)
        plain["columns"] = tuple(Column(attribute=a, owner=o, size=s) for a, o, s in plain["columns"])
        plain["epsilon"] = Decimal(plain["epsilon"])
        plain["sampling"] = Sampling(plain["sampling"])
        plain["pad"] = Pad(plain["pad"])
        return cls(**plain)

    def digest(self) -> bytes:
        """Return the SHA-256 of the canonical text."""
        return hashlib.sha256(self.to_json().encode()).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRequest:
    """What a researcher asks of the curators; the release id is the idempotency key.

    Args:
        release_id: 32 hexadecimal digits.
        researcher: who asks.
        attributes: what is asked for, in study order.
        epsilon: pure epsilon, nats.
        purpose: for the persons who decide.
        deadline: Unix seconds after which an unfinished release is abandoned.
        partial: go on with what is granted when some attributes are denied.
        sampling: how the curators come to the same sample.
        pad: where the pads come from.
        sample: rows to sample, or None for the planner's choice.
    """

    release_id: str
    researcher: str
    attributes: tuple[str, ...]
    epsilon: Decimal
    purpose: str
    deadline: int
    partial: bool
    sampling: Sampling
    pad: Pad
    sample: int | None

    def __post_init__(self) -> None:
        if not RELEASE_ID.fullmatch(self.release_id):
            raise InvalidInputError("a release id is 32 hexadecimal digits", where="release id")
        if not self.attributes or len(set(self.attributes)) != len(self.attributes):
            raise InvalidInputError("a request names at least one attribute, and none twice", where="attributes")
        parse_epsilon(self.epsilon)
        if self.sample is not None and self.sample < 1:
            raise InvalidInputError("a sample has at least 1 row", where="sample")
        # It is printed on the terminals of those who decide, who must see what they decide about.
        if len(self.purpose) > 1000 or not self.purpose.isprintable():
            raise InvalidInputError("a purpose is a line of at most 1000 printable characters", where="purpose")

    def to_json(self) -> str:
        """Return the canonical text."""
        return json.dumps({"release_id": self.release_id, "deadline": self.deadline} | self._asked(), sort_keys=True)

    def asked(self) -> str:
        """Return the canonical text of what is asked for, whatever the id and the deadline."""
        return json.dumps(self._asked(), sort_keys=True)

    def _asked(self) -> dict[str, object]:
        return {
            "researcher": self.researcher,
            "attributes": list(self.attributes),
            "epsilon": str(self.epsilon),
            "purpose": self.purpose,
            "partial": self.partial,
            "sampling": self.sampling.value,
            "pad": self.pad.value,
            "sample": self.sample,
        }

    @classmethod
    def from_json(cls, text: str) -> "ReleaseRequest":
        """Read back what `to_json` wrote."""
        plain = json.loads(text)
        plain["attributes"] = tuple(plain["attributes"])
        plain["epsilon"] = Decimal(plain["epsilon"])
        plain["sampling"] = Sampling(plain["sampling"])
        plain["pad"] = Pad(plain["pad"])
        return cls(**plain)


def spec_of(
    request: ReleaseRequest, columns: tuple[Column, ...], plan: Plan, *, study_digest: str, alignment: str
) -> ReleaseSpec:
    """Put a request, what was granted of it, and the plan together."""
    return ReleaseSpec(
        release_id=request.release_id,
        study_digest=study_digest,
        researcher=request.researcher,
        columns=columns,
        population=plan.population,
        sample=plan.sample,
        replacement=plan.mechanism.replacement,
        epsilon=request.epsilon,
        scheme="wor",
        sampling=request.sampling,
        pad=request.pad,
        alignment=alignment,
        deadline=request.deadline,
    )
