"""What a function of microdata is, and how far from the truth it may be, by the replicate weights of the file.

    q_0 +- t_M sqrt(T + v),    T = 1/M sum_i (q_i - q_0)^2,    v = (G - 1)/G sum_g (q_(g) - mean)^2

q_0 and q_i are the function with the weight and with each of the M replicate weights (replicate_weights.py). q_(g) is
the function without group g of G = 20 groups of rows (a jackknife): v is how far q_0 lies from that of endless rows, as
if they were a simple random sample. They are spread more evenly, so it is somewhat less.

Source: Wolter, Introduction to variance estimation (2007), chapters 3 and 4.
"""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from veiltab.common.core.numbers.confidence import CONFIDENCE
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.extras import importing
from veiltab.researcher.drawing.drawable import NOT_COVERED
from veiltab.researcher.microdata.replicate_weights import student_quantile
from veiltab.researcher.model.measurement import Floats

if TYPE_CHECKING:
    import pandas as pd

GROUPS = 20
"""G."""

LIMIT = (
    "They know of no dependence among more attributes than a measured table has: of three, where pairs were measured."
)
"""What every interval leaves out, whatever the data."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WithReplicates:
    """A function of microdata with its intervals.

    Args:
        table: a row for each number: estimate, se, low, high.
        replicates: M.
        effective_share: of the rows that the weights leave, 1 / (N sum w^2) with sum w = 1, on average (0..1).
        confidence: probability that an interval holds the truth.
        remark: what the file says of its intervals, and of which attributes no table knows; empty if nothing.
    """

    table: "pd.DataFrame"
    replicates: int
    effective_share: float
    confidence: float
    remark: str

    def __repr__(self) -> str:
        return f"<WithReplicates: {len(self.table)} numbers by {self.replicates} replicates>"

    def __str__(self) -> str:
        """Return the table, and what its intervals rest on."""
        return (
            f"{self.table}\n{self.confidence:.0%} intervals by {self.replicates} replicates"
            f" (t with {self.replicates} degrees); their weights are worth {self.effective_share:.0%} of the rows."
            f"\n{LIMIT} {self.remark}".rstrip()
        )


def with_replicates(
    frame: "pd.DataFrame", function: Callable[["pd.DataFrame", Floats], Any], *, confidence: float = CONFIDENCE
) -> WithReplicates:
    """Return a function of microdata with intervals that know of the noise and the model.

    with_replicates(frame, lambda rows, w: np.average(rows["salary"] == ">50K", weights=w))

    Args:
        frame: with replicate weights, as `Microdata.frame` makes it or a package reads the file.
        function: of the rows and of a weight for each (some are 0): a number, a Series or a mapping of numbers. It is
            called once, once a replicate, 20 times more, and once without each attribute, to see which it takes.
        confidence: probability that an interval holds the truth.

    Raises:
        InvalidInputError: no replicate weights, numbers that are not finite or differ in count, or a confidence
            outside (0, 1).
    """
    if not 0.0 < confidence < 1.0:
        raise InvalidInputError(f"the confidence is {confidence}, not between 0 and 1")
    weight, *others = _columns(frame)

    base = frame[weight].to_numpy(np.float64)
    groups = np.arange(len(frame)) % GROUPS
    estimate = _numbers(function, frame, base)
    replicates = [_numbers(function, frame, frame[name].to_numpy(np.float64)) for name in others]
    without = [_numbers(function, frame, base * (groups != group)) for group in range(GROUPS)]
    if any(len(one) != len(estimate) for one in (*replicates, *without)):
        raise InvalidInputError("the function gives a different count of numbers for different weights")
    noise = np.mean((np.array(replicates) - estimate.to_numpy()) ** 2, axis=0)
    sampling = (GROUPS - 1) * np.var(without, axis=0)
    se = np.sqrt(noise + sampling)
    half = student_quantile((1 + confidence) / 2, len(others)) * se
    squares = [float(np.mean(frame[name].to_numpy(np.float64) ** 2)) for name in others]
    return WithReplicates(
        table=estimate.to_frame("estimate").assign(se=se, low=estimate - half, high=estimate + half),
        replicates=len(others),
        effective_share=float(np.mean(1 / np.array(squares))),
        confidence=confidence,
        remark=f"{frame.attrs.get('replicates', {}).get('remark', '')} {_not_covered(function, frame, base)}".strip(),
    )


def _numbers(
    function: Callable[["pd.DataFrame", Floats], Any], frame: "pd.DataFrame", weights: Floats
) -> "pd.Series[float]":
    with importing("researcher", "a data frame"):
        import pandas as pd  # noqa: PLC0415 - not where the extra is missing

    values = function(frame, weights)
    series = pd.Series(values if isinstance(values, Mapping | pd.Series) else np.atleast_1d(values), dtype=np.float64)
    if not np.isfinite(series).all():
        raise InvalidInputError("the function gives a number that is not finite")
    return series


def _not_covered(function: Callable[["pd.DataFrame", Floats], Any], frame: "pd.DataFrame", weights: Floats) -> str:
    """Say which attributes a function takes, if no measured table has all of them, and what is lost of its numbers."""
    tables = [set(names) for names in frame.attrs.get("tables", ())]
    whole, inputs = _numbers(function, frame, weights), set[str]()
    for name in set().union(*tables) & set(frame.columns):
        try:
            values = _numbers(function, frame.drop(columns=name), weights)
        except Exception:  # noqa: BLE001 - a function of an attribute may fail in any way without it
            inputs.add(name)
        else:
            inputs |= set() if values.equals(whole) else {name}
    begins = tuple(f"The standard deviation of {name} is" for name in inputs)
    lost = " ".join(sentence for sentence in frame.attrs.get("coarse", ()) if sentence.startswith(begins))
    if not tables or any(inputs <= table for table in tables):
        return lost
    together = ", ".join(name for name in frame.columns if name in inputs)
    return (
        f"No table was measured that has {together} together: a share of all of them, or a model of more than pairs of"
        f" them, is {NOT_COVERED}. Ask for such a table. {lost}"
    )


def _columns(frame: "pd.DataFrame") -> list[str]:
    """Return the names of the weight and of the replicate weights: as the file says, or by their spelling."""
    listing = frame.attrs.get("replicates")
    if isinstance(listing, Mapping):
        return [listing["weight"], *listing["columns"]]
    others = [name for name in frame.columns if re.fullmatch(r"replicate_+[0-9]+", str(name))]
    weights = [name for name in frame.columns if re.fullmatch(r"weight_*", str(name))]
    if not others or not weights:
        raise InvalidInputError(
            "the frame has no replicate weights",
            where="frame",
            remedy="Draw the rows with `veiltab researcher synthesise --replicates 20`, and keep the weights' columns.",
        )
    return [weights[-1], *others]
