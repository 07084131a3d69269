"""What every coalition of roles faces: the views of a release whose noise has two sides, and the bound of each.

The curators toss a coin C_t a row from the release's secret seed; where it shows 1, every curator replaces its own
symbol by a uniform one. The server then replaces whole rows by coins of its own (see TwoSidedNoise). The bound of a
coalition is that of the release as it appears to who knows what the coalition knows together:

    analyst, or desk            counts, or rows in secret order      Theorem A at gamma(r), m of n rows
    desk with the server        rows with the curators' noise alone  Theorem A at gamma(r_c); n of n rows if it samples
    analyst with curators       counts, sample, coins C              Theorem A at gamma(r_s), m of m rows, each present
                                                                     with probability 1 - r_c
    desk with curators          rows with persons, coins C           ln gamma(r_s) for each row
    server with curators        ciphertext of the others' columns    nothing
    desk, server and a curator  rows without noise, with persons     no protection

docs/coalitions.md has the proofs, and says who may lie in which row.

Relation: substitution of one respondent's row, n public; of what others than the coalition hold of it.
"""

from decimal import Decimal
from enum import Enum
from fractions import Fraction
from math import floor

from veiltab.common.core.mechanism import UNIT, TwoSidedNoise
from veiltab.common.dataclass import dataclass, replace
from veiltab.common.privacy.description import ReleaseDescription
from veiltab.common.privacy.shuffle import MAX_CELLS, MAX_SAMPLE
from veiltab.common.schemes import Scheme, scheme_of


class Coalition(Enum):
    """Who puts together what they see, by role; "curators" are any of them but one."""

    ANALYST = ("analyst",)
    DESK = ("desk",)
    DESK_AND_SERVER = ("desk", "server")
    ANALYST_AND_CURATORS = ("analyst", "curators")
    DESK_AND_CURATORS = ("desk", "curators")
    SERVER_AND_CURATORS = ("server", "curators")
    DESK_SERVER_AND_CURATOR = ("desk", "server", "curator")

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles, as files name them."""
        return tuple(self.value)


PAIRS = (Coalition.DESK_AND_SERVER, Coalition.ANALYST_AND_CURATORS)
"""The coalitions that a cap on pairs is about."""

PAIR_EPSILON, ROW_EPSILON = Decimal(3), Decimal(12)
"""Most that is usual for the pairs, and for a respondent's rows against desk and curators, nats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoSidedRelease:
    """A release with noise of the curators and of the server.

    Args:
        scheme: how rows are sampled.
        is_sampled_by_server: whether the curators upload everyone and the server draws the sample.
    """

    scheme: Scheme
    noise: TwoSidedNoise
    is_sampled_by_server: bool = False

    @property
    def row_epsilon(self) -> Decimal:
        """What a row loses to who knows its person and the curators' coins: ln gamma(r_s), nats, rounded up."""
        return self._view(self.scheme, self.noise.server.gamma).local_epsilon

    @property
    def seen_by_desk(self) -> ReleaseDescription:
        """The release as its desk sees it if the server is honest."""
        return self._view(self.scheme, self.noise.gamma)

    def seen_by(self, coalition: Coalition) -> ReleaseDescription | None:
        """Return the release as a coalition sees it; None where that is not a release with a bound for a respondent."""
        match coalition:
            case Coalition.ANALYST | Coalition.DESK:
                return self.seen_by_desk
            case Coalition.DESK_AND_SERVER:
                if (curators := self.noise.curators) is None:
                    return None
                n = self.scheme.population
                return self._view(_rows(n) if self.is_sampled_by_server else self.scheme, curators.gamma)
            case Coalition.ANALYST_AND_CURATORS:
                if not self.scheme.is_simple_random:
                    return None
                presence = Fraction(UNIT - self.noise.curator_replacement, UNIT)
                return self._view(_rows(self.scheme.sample), self.noise.server.gamma, presence)
            case Coalition.DESK_AND_CURATORS | Coalition.SERVER_AND_CURATORS | Coalition.DESK_SERVER_AND_CURATOR:
                return None

    def seen_with_share(self, share: Fraction) -> ReleaseDescription | None:
        """Return the release as the desk sees it if the server adds only a share of its noise; None without any noise.

        Every row keeps its noise by a coin of its own: 1 - r = (1 - r_c)(1 - r_s share), r_s share rounded down.

        Source: docs/coalitions.md.
        """
        replacement = floor(share * self.noise.server_replacement)
        law = replace(self.noise, server_replacement=replacement) if replacement else self.noise.curators
        return None if law is None else self._view(self.scheme, law.gamma)

    def _view(self, scheme: Scheme, gamma: Fraction, presence: Fraction = Fraction(1)) -> ReleaseDescription:
        return ReleaseDescription(scheme=scheme, cells=self.noise.cells, gamma=gamma, presence=presence)


def order_epsilon(view: ReleaseDescription, delta: Decimal) -> Decimal | None:
    """Return epsilon (nats, rounded up) of a view at a delta by the order certificate; None without a certificate."""
    if view.gamma == 1 or view.scheme.sample > MAX_SAMPLE or view.cells > MAX_CELLS:
        return None
    certificate = view.order_certificate
    return None if certificate is None else Decimal(certificate.epsilon(float(delta)))


def _rows(count: int) -> Scheme:
    """Return the scheme that takes all of `count` rows."""
    return scheme_of("wor", population=count, sample=count)
