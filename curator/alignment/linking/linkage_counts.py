"""What a curator counts in a linkage, for the report that stays with it."""

from collections import Counter
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from veiltab.curator.alignment.linking.agreement import HubLine
from veiltab.curator.alignment.linking.link_spoke import SpokeLinking
from veiltab.curator.linkage.linkage_report import FormCount, LinkageReport, PassCount, match_rates
from veiltab.curator.table.table_rows import TableRows


def hub_report(line: HubLine) -> LinkageReport:
    """Return what a hub knows of a linkage: what it states."""
    passes = tuple(PassCount(key=one.key, runs=one.runs, matches=one.matches) for one in line.passes)
    return LinkageReport(is_hub=True, rows=line.rows, hub_rows=line.rows, passes=passes)


def spoke_report(linking: SpokeLinking, line: HubLine, table: TableRows) -> LinkageReport:
    """Return what a spoke knows after a linkage.

    Args:
        linking: its part in it.
        table: its own.
    """
    candidates = np.bincount(linking.passes, minlength=len(line.passes) + 1)
    links = np.bincount(linking.passes[linking.accepted], minlength=len(line.passes) + 1)
    rest = len(linking.passes) - np.cumsum(candidates[1:])
    placebo_rows, placebo = linking.placebo(line)
    passes = tuple(
        PassCount(
            key=one.key,
            runs=one.runs,
            matches=one.matches,
            linked=int(links[number]),
            left=int(rest[number - 1]),
            placebo=placebo.get(number),
        )
        for number, one in enumerate(line.passes, 1)
    )
    bits = np.zeros((0, 8), np.bool_) if linking.agreed is None else linking.agreed
    is_apart = linking.crowded[linking.pairs]
    respondents = np.cumsum(table.mask()) - 1
    return LinkageReport(
        is_hub=False,
        rows=len(linking.passes),
        hub_rows=line.rows,
        links=len(linking.accepted),
        passes=passes,
        agreed=None if linking.agreed is None else _agreed(linking.agreed),
        pairs=len(bits),
        by_number=_by_number(bits[~is_apart]),
        by_form=_by_form(bits[~is_apart], list(compress(linking.forms, ~is_apart))),
        crowd=(int(np.count_nonzero(linking.crowded[linking.accepted])), *_by_number(bits[is_apart])),
        dated=linking.dated,
        rates=match_rates(respondents[linking.accepted], table),
        ties=linking.ties[0],
        tied=linking.ties[1],
        incomplete=linking.incomplete,
        placebo_rows=placebo_rows,
    )


def _agreed(bits: NDArray[np.bool_]) -> tuple[int, ...]:
    """Return the counts of `quality.Agreement` in its order."""
    given, family, birth, postcode, swapped_given, swapped_family = bits.T[:6]
    both = birth & postcode
    swapped = ~given & ~family & swapped_given & swapped_family & both
    masks = (
        given & family & both,
        given & family & birth,
        given & family & postcode,
        given & ~family & both,
        ~given & family & both,
        swapped,
    )
    return tuple(int(np.count_nonzero(one)) for one in masks)


def _by_number(bits: NDArray[np.bool_]) -> tuple[int, int]:
    """Return the pairs in which both rows have a number that no key takes, and those of them in which it differs."""
    both = bits[:, 7]
    return int(np.count_nonzero(both)), int(np.count_nonzero(both & ~bits[:, 6]))


def _by_form(bits: NDArray[np.bool_], forms: list[str]) -> tuple[FormCount, ...]:
    """Count the pairs in which both rows have a number that no key takes by how it is written here."""
    tested, wrong = Counter[str](), Counter[str]()
    for form, is_same, is_there in zip(forms, bits[:, 6].tolist(), bits[:, 7].tolist(), strict=False):
        tested[form] += is_there
        wrong[form] += is_there and not is_same
    counts = tested.most_common()
    return tuple(FormCount(form=form, tested=rows, differ=wrong[form]) for form, rows in counts if rows)
