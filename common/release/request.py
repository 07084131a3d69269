"""A researcher's request to the curators."""

import re
from dataclasses import dataclass, fields
from decimal import Decimal

from veiltab.common.core.canonical import canonical_text, read_canonical
from veiltab.common.core.rounding import parse_epsilon
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.noise_split import DEFAULT_SPLIT, check_split
from veiltab.common.release.modes import Pad, Sampling, check_modes

RELEASE_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRequest:
    """A researcher's request to the curators; the release id is the idempotency key.

    Args:
        release_id: 32 hexadecimal digits.
        researcher: who asks.
        attributes: the requested ones, in study order.
        epsilon: pure epsilon, nats.
        purpose: for the people who decide.
        deadline: Unix seconds after which an unfinished release is abandoned.
        partial: continue with the granted attributes if some are denied.
        sampling: how the curators agree on a sample.
        pad: source of the pads.
        sample: rows to sample (for Poisson on average), or None for the planner's choice.
        delta: of the guarantee; None asks for a pure epsilon.
        max_local_epsilon: most that ln gamma may be, nats; None for no cap.
        scheme: name of the sampling scheme.
        stage: rows after stage one of a two-stage scheme.
        noise_split: s in [0, 1): the curators' part of the noise, 1 - r_c = (1 - r)^s.
        max_pair_epsilon: most epsilon against the server with the desk, and against analysts with curators; nats.
        canaries: rows that test the server, or None for as many as the plan needs.
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
    sample: int | None = None
    delta: Decimal | None = None
    max_local_epsilon: Decimal | None = None
    scheme: str = "wor"
    stage: int | None = None
    noise_split: Decimal = DEFAULT_SPLIT
    max_pair_epsilon: Decimal | None = None
    canaries: int | None = None

    def __post_init__(self) -> None:
        if not RELEASE_ID.fullmatch(self.release_id):
            raise InvalidInputError("a release id is 32 hexadecimal digits", where="release id")
        if not self.attributes or len(set(self.attributes)) != len(self.attributes):
            raise InvalidInputError("a request names at least one attribute, and none twice", where="attributes")
        parse_epsilon(self.epsilon)
        check_modes(self.scheme, self.sampling, self.delta)
        if self.sample is not None and self.sample < 1:
            raise InvalidInputError("a sample has at least 1 row", where="sample")
        if self.stage is not None and self.stage < 1:
            raise InvalidInputError("the first stage must take at least 1 row", where="stage")
        if self.max_local_epsilon is not None:
            parse_epsilon(self.max_local_epsilon, what="max_local_epsilon")
        check_split(self.noise_split)
        if self.max_pair_epsilon is not None:
            parse_epsilon(self.max_pair_epsilon, what="max_pair_epsilon")
        if self.canaries is not None and self.canaries < 0:
            raise InvalidInputError("the number of canaries is 0 or more", where="canaries")
        # The terminals of the people who decide show these lines.
        for field in fields(self):
            text = getattr(self, field.name)
            if isinstance(text, str) and (len(text) > 1000 or not text.isprintable()):
                raise InvalidInputError(
                    f"a {field.name} is a line of at most 1000 printable characters", where=field.name
                )

    def to_json(self) -> str:
        """Return the canonical text."""
        return canonical_text(self)

    def asked(self) -> str:
        """Return the canonical text without the id and the deadline."""
        return canonical_text(self, without=frozenset({"release_id", "deadline"}))

    @classmethod
    def from_json(cls, text: str) -> "ReleaseRequest":
        """Read back what `to_json` wrote."""
        return read_canonical(cls, text)
