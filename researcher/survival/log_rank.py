"""The log-rank test (Mantel 1966): do groups have the same hazard of an event at every time?

    U_g = sum_i (D_gi - N_gi D_i / N_i),    V_gh = sum_i (N_gi / N_i) (1_{g=h} - N_hi / N_i) D_i (N_i - D_i) / N_i

with shares D and N (see `follow_up`). For n respondents drawn from groups with equal hazards U has the covariance
V / n; what noise and the sample add is that of a contrast of the table, and independent of it given the respondents. So

    W = U' (V / n + Cov(T_hat(dU)))^-1 U  ->  chi-square with G - 1 degrees of freedom,

the last group being determined by the others. Of bins half of those censored in one are gone before its events.
"""

from collections.abc import Mapping

import numpy as np

from veiltab.common.errors import InvalidInputError
from veiltab.researcher.estimates.chi_square import chi_square_tail, quadratic_form
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.survival.follow_up import FollowUp


def log_rank(followed: FollowUp) -> Mapping[str, float]:
    """Return the statistic, its degrees of freedom and its p-value.

    Nothing of one group, of a table from a model, or where surely not two groups are at risk.
    """
    groups = len(followed.events)
    if groups < 2 or not isinstance(followed.part, TableEstimate):
        return {}
    gone_first = 0.0 if followed.times.are_exact else 0.5
    events, risk = followed.events, followed.at_risk(gone_first)
    all_events, all_risk = events.sum(axis=0), risk.sum(axis=0)
    # Where surely not two groups are left nothing is compared.
    counts = (followed.reached.sum(axis=0) >= 2) & (np.cumprod(all_risk > 0) > 0)
    if not counts.any():
        return {}
    inverse = np.divide(1.0, all_risk, out=np.zeros_like(all_risk), where=counts)
    events, all_events, share = events * counts, all_events * counts, risk * inverse
    hazard = all_events * inverse
    difference = (events - share * all_events).sum(axis=1)[:-1]
    own = np.eye(groups)[:-1, :, None]
    # Slopes of U_g in D_hi, and in N_hi: shape (G - 1, G, K).
    by_event = (own - share[:-1, None]) * counts
    by_risk = -(own - share[:-1, None]) * hazard
    slopes = followed.through_risk(by_event, by_risk, gone_first)
    spread = np.clip(hazard * (1.0 - hazard), 0.0, None) * np.clip(all_risk, 0.0, None)
    chance = np.diag(share[:-1] @ spread) - (share[:-1] * spread) @ share[:-1].T
    covariances = chance / followed.part.design.people + followed.part.contrast_covariance(followed.contrasts(*slopes))
    try:
        statistic = quadratic_form(difference, covariances)
    except InvalidInputError:
        return {}
    return {
        "log-rank statistic": statistic,
        "degrees of freedom": float(groups - 1),
        "p-value": chi_square_tail(statistic, groups - 1),
    }
