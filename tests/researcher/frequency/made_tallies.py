"""Tallies of a design."""

import numpy as np
from numpy.typing import ArrayLike

from veiltab.researcher.frequency.design import RoundDesign
from veiltab.researcher.frequency.tally import Tally


def tally_of(design: RoundDesign, counts: ArrayLike, reports: ArrayLike) -> Tally:
    return Tally(
        counts=np.array(counts),
        reports=np.array(reports),
        populations=design.populations,
        rates=design.rates,
        p=design.p,
        q=design.q,
    )
