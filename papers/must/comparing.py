"""How far a number may lie from a printed one: by its rounding, and by chance where both are simulated."""

from veiltab.papers.experiment import Comparison, Verdict
from veiltab.papers.must.printed import PAPER

_BY_CHANCE = "within 4 standard errors of the two simulations"

ERRORS = 4.0
"""Largest deviation that counts as chance, in standard errors; of 200 numbers, one exceeds it in one of 80 replays."""


def rounding(printed: str) -> float:
    """Return half a unit of the last printed digit, and a thousandth of it more for numbers on the edge."""
    return 0.5005 * 10.0 ** -len(printed.partition(".")[2])


def exact(  # noqa: PLR0913, PLR0917 - one argument a fact
    what: str, table: str, printed: str, ours: float | None, reason: str = "", otherwise: Verdict = Verdict.PAPER_ERRS
) -> Comparison:
    """Compare a number that is computed without chance.

    Args:
        what: the quantity and its setting.
        table: such as "Table 3".
        printed: as the paper has it, digit by digit.
        reason: why they differ, if they do.
        otherwise: what such a difference means.
    """
    return _compared(what, table, printed, ours, rounding(printed), reason, "", otherwise)


def simulated(  # noqa: PLR0913, PLR0917 - one argument a fact
    what: str,
    table: str,
    printed: str,
    ours: float,
    error: float,
    reason: str = "",
    otherwise: Verdict = Verdict.PAPER_ERRS,
) -> Comparison:
    """Compare a number that is simulated.

    Args:
        what: the quantity and its setting.
        table: such as "Table 6".
        printed: as the paper has it.
        error: standard error of the difference, the paper's share included.
        reason: why they differ, if they do.
        otherwise: what such a difference means.
    """
    allowance = rounding(printed) + ERRORS * error
    return _compared(what, table, printed, ours, allowance, reason, _BY_CHANCE, otherwise)


def _compared(  # noqa: PLR0913, PLR0917 - one argument a fact
    what: str,
    table: str,
    printed: str,
    ours: float | None,
    tolerance: float,
    reason: str,
    note: str,
    otherwise: Verdict,
) -> Comparison:
    agrees = ours is not None and abs(ours - float(printed)) <= tolerance
    return Comparison(
        what=what,
        source=f"{PAPER}, {table}",
        printed=float(printed),
        ours=ours,
        tolerance=tolerance,
        note=note if agrees else reason or "more than rounding and chance allow",
        otherwise=otherwise if reason else Verdict.NOT_EXPLAINED,
    )
