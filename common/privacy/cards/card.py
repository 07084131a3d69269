"""The epsilon card: the guarantee against each coalition. It is shown before any approval and beside every result."""

from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import cached_property, lru_cache

from veiltab.common.core.numbers.rounding import bound_text, upward
from veiltab.common.core.texts.record_fields import same_fields
from veiltab.common.dataclass import dataclass, replace
from veiltab.common.privacy.cards.guarantee_text import delta_text, guarantee_text, odds_text
from veiltab.common.privacy.coalitions import Coalition, TwoSidedRelease, order_epsilon
from veiltab.common.privacy.description import ReleaseDescription

_DIGITS = Context(prec=30, rounding=ROUND_HALF_EVEN)

N_IS_EXACT = (
    "n, the number of rows of the hub, is published exactly, and no epsilon protects who is among them: the bounds hold"
    " where one person's row says something else, not where a row of the hub is added or removed."
)
"""What no card bounds."""

OMITTED = "if the server omits what its tests may miss"
"""When the second of two guarantees holds instead of the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What one coalition faces (neighbours: substitution of one respondent's row, in the columns of others).

    Args:
        epsilon: nats, an upper bound; 0 if it learns nothing, None if nothing protects.
        delta: that comes with epsilon; 0 for a pure epsilon.
        per_row: whether epsilon is that of each released row by itself, whose person is known.
        has_several: whether a person may have several such rows.
        other: another (epsilon, delta) that holds as well, if there is one.
        if_omitted: (epsilon, delta) if the server leaves out as much noise as its tests may miss, by a coin of its own
            for each row; None where nobody says, or no other noise protects.
        note: what it sees, or why.
    """

    roles: tuple[str, ...]
    epsilon: Decimal | None = None
    delta: Decimal = Decimal(0)
    per_row: bool = False
    has_several: bool = False
    other: tuple[Decimal, Decimal] | None = None
    if_omitted: tuple[Decimal, Decimal] | None = None
    note: str

    @property
    def name(self) -> str:
        """The coalition in words."""
        return (
            " with ".join(self.roles) if len(self.roles) < 3 else f"{', '.join(self.roles[:-1])} and {self.roles[-1]}"
        )

    @property
    def person_epsilon(self) -> Decimal:
        """Epsilon of all that is released of a person, nats; infinite where nothing bounds it."""
        return Decimal("Infinity") if self.epsilon is None or self.has_several else self.epsilon

    @property
    def guarantee(self) -> str:
        """The sharpest guarantee: one epsilon of two digits, rounded up, and its delta."""
        if self.epsilon is None:
            return "no protection"
        return f"{guarantee_text(self.epsilon, self.delta)}{self._of_rows(' a row')}"

    @property
    def limit(self) -> str:
        """What limits what it learns: its guarantee, and the factor of the odds."""
        if self.epsilon is None:
            return self.guarantee
        if self.epsilon == 0 and self.delta == 0:
            return "nothing"
        own = f"{self.guarantee}; {odds_text(self.epsilon)}"
        return own if self.if_omitted is None else f"{own}; {guarantee_text(*self.if_omitted)} {OMITTED}"

    @property
    def in_full(self) -> str:
        """What it faces with every digit: both guarantees where two hold, and why."""
        return f"{self.limit_in_full}: {self.note}" if self.epsilon else self.faces

    @property
    def limit_in_full(self) -> str:
        """What limits what it learns, with every digit: both guarantees where two hold."""
        if not self.epsilon:
            return "they learn nothing" if self.limit == "nothing" else self.limit
        second = "" if self.other is None else f", and {_guarantee(*self.other)} (both hold)"
        omitted = "" if self.if_omitted is None else f"; {_guarantee(*self.if_omitted)} {OMITTED}"
        return f"{_guarantee(self.epsilon, self.delta)}{self._of_rows(' per row')}{second}{omitted}"

    def _of_rows(self, unit: str) -> str:
        return f"{unit}{', and a person may have several' if self.has_several else ''}" if self.per_row else ""

    @property
    def faces(self) -> str:
        """What it faces, and why, in words."""
        return f"{self.limit} ({self.note})"

    def as_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        return {
            "coalition": list(self.roles),
            **same_fields(self, ("epsilon", "delta", "per_row", "note")),
            "other": _plain(self.other),
            "in_words": self.limit,
            "if_server_omits": _plain(self.if_omitted),
        }


def _plain(guarantee: tuple[Decimal, Decimal] | None) -> dict[str, Decimal] | None:
    return None if guarantee is None else {"epsilon": guarantee[0], "delta": guarantee[1]}


def _guarantee(epsilon: Decimal, delta: Decimal) -> str:
    if delta == 0:
        return f"epsilon = {upward(epsilon)} (pure)"
    return f"(epsilon, delta) = ({upward(epsilon)}, {bound_text(delta, 3)})"


@dataclass(frozen=True, kw_only=True)
class EpsilonCard:
    """The guarantees of a release by coalition."""

    bounds: tuple[Bound, ...]

    def bound(self, coalition: Coalition) -> Bound:
        """Return what a coalition faces."""
        (line,) = (each for each in self.bounds if each.roles == coalition.roles)
        return line

    def rows(self) -> tuple[tuple[str, str], ...]:
        """Return (coalition, what it faces) in words, one row a coalition."""
        return tuple((each.name, each.faces) for each in self.bounds)

    @cached_property
    def rows_in_full(self) -> tuple[tuple[str, str], ...]:
        """(coalition, what it faces) with every digit, as a certificate states it."""
        return tuple((each.name, each.in_full) for each in self.bounds)


def advised_delta(population: int) -> Decimal:
    """Return min(1e-6, n^-1.1), to two digits downward: small beside the chance of naming one respondent."""
    power = _DIGITS.power(Decimal(population), Decimal("-1.1"))
    return min(Decimal("1e-6"), Decimal(f"{_DIGITS.multiply(power, Decimal('0.95')):.1e}"))


def delta_warning(delta: Decimal, population: int) -> str:
    """Return a sentence where a delta is not small beside one respondent; else nothing."""
    if delta * population < 1:
        return ""
    return (
        f"Delta {delta_text(delta)} is not below 1/n = {1 / population:.3g}: who publishes the row of one respondent"
        f" keeps it too. Advised: {delta_text(advised_delta(population))} or less."
    )


@lru_cache(maxsize=256)
def card_of(
    release: TwoSidedRelease,
    *,
    delta: Decimal | None = None,
    pure: Decimal | None = None,
    one_time: bool = False,
    least_noise: Fraction | None = None,
) -> EpsilonCard:
    """Return the card of a release.

    Each coalition has the better of its pure epsilon and of epsilon by the secret order, all at the same delta; so none
    has less than one of its members.

    Args:
        delta: of the request; None if it asked for a pure epsilon: the advised delta then.
        pure: pure epsilon against the desk, nats, if more is known than the release's own bound.
        one_time: whether the pads are one-time pads.
        least_noise: the largest share of the server's noise at which its tests find that some is missing; None where
            nobody says.
    """
    at = delta or advised_delta(release.scheme.population)
    desk = _bound(release.seen_by_desk, Coalition.DESK, at, note="", pure=pure)
    addition = "" if delta or desk.other is None else f"; {guarantee_text(desk.other[0], None)} without a delta"
    if least_noise is not None:
        desk = replace(desk, if_omitted=_if_omitted(release, at, least_noise))
    return EpsilonCard(
        bounds=(
            replace(desk, roles=Coalition.ANALYST.roles, note=f"counts, if the server is honest{addition}"),
            replace(desk, note=f"rows in an order that it does not know, if the server is honest{addition}"),
            _of_server(release, at),
            _of_curators(release, at),
            Bound(
                roles=Coalition.DESK_AND_CURATORS.roles,
                epsilon=release.row_epsilon,
                per_row=True,
                has_several=not release.scheme.is_simple_random,
                note="rows with their persons; the server's noise alone protects",
            ),
            bound_of_ciphertext(one_time=one_time),
            EVERYTHING,
        )
    )


def bound_of_ciphertext(*, one_time: bool = False) -> Bound:
    """Return what the server faces with curators, of any releases."""
    return Bound(
        roles=Coalition.SERVER_AND_CURATORS.roles,
        epsilon=Decimal(0),
        note="the other columns stay encrypted, and their ciphertext does not depend on the data"
        if one_time
        else "the other columns stay encrypted with ChaCha20",
    )


EVERYTHING = Bound(
    roles=Coalition.DESK_SERVER_AND_CURATOR.roles,
    note="the order, the coins, the keys and the unperturbed ciphertext together are the raw rows",
)
"""What the desk, the server and a curator face together, of any releases."""


def _if_omitted(release: TwoSidedRelease, delta: Decimal, least_noise: Fraction) -> tuple[Decimal, Decimal] | None:
    """Return what the desk faces if the server adds only a share of its noise; None without any noise at all.

    Source: docs/coalitions.md (omission by coins of its own for each row is Theorem A at the lesser probability).
    """
    view = release.seen_with_share(least_noise)
    if view is None:
        return None
    bound = _bound(view, Coalition.DESK, delta, note="")
    return None if bound.epsilon is None else (bound.epsilon, bound.delta)


def _of_server(release: TwoSidedRelease, delta: Decimal) -> Bound:
    pair = Coalition.DESK_AND_SERVER
    if (view := release.seen_by(pair)) is None:
        note = "the curators add no noise, so together they hold the raw rows"
        return Bound(roles=pair.roles, note=note)
    return _bound(view, pair, delta, note="rows with the curators' noise alone, whatever the server does")


def _of_curators(release: TwoSidedRelease, delta: Decimal) -> Bound:
    pair = Coalition.ANALYST_AND_CURATORS
    if (view := release.seen_by(pair)) is None:
        note = "the sample is known, and a respondent may be in it several times"
        return Bound(roles=pair.roles, epsilon=release.row_epsilon, per_row=True, has_several=True, note=note)
    return _bound(view, pair, delta, note="counts, the sample, and which rows the curators replaced")


def _bound(
    view: ReleaseDescription, coalition: Coalition, delta: Decimal, *, note: str, pure: Decimal | None = None
) -> Bound:
    """Return the bound by the order with the pure one beside it, or the pure one if the order adds nothing."""
    purely = view.pure_epsilon if pure is None else pure
    by_order = order_epsilon(view, delta)
    if by_order is None or Decimal(upward(by_order)) >= Decimal(upward(purely)):
        return Bound(roles=coalition.roles, epsilon=purely, note=note)
    return Bound(roles=coalition.roles, epsilon=by_order, delta=delta, other=(purely, Decimal(0)), note=note)
