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


def spoke_report(work: SpokeLinking, line: HubLine, table: TableRows) -> LinkageReport:
    """Return what a spoke knows after a linkage.

    Args:
        work: its part in it.
        table: its own.
    """
    candidates = np.bincount(work.passes, minlength=len(line.passes) + 1)
    linked = np.bincount(work.passes[work.accepted], minlength=len(line.passes) + 1)
    left = len(work.passes) - np.cumsum(candidates[1:])
    moved, placebo = work.placebo(line)
    passes = tuple(
        PassCount(
            key=one.key,
            runs=one.runs,
            matches=one.matches,
            linked=int(linked[number]),
            left=int(left[number - 1]),
            placebo=placebo.get(number),
        )
        for number, one in enumerate(line.passes, 1)
    )
    bits = np.zeros((0, 8), np.bool_) if work.agreed is None else work.agreed
    is_apart = work.crowded[work.pairs]
    respondents = np.cumsum(table.kept()) - 1
    return LinkageReport(
        is_hub=False,
        rows=len(work.passes),
        hub_rows=line.rows,
        links=len(work.accepted),
        passes=passes,
        agreed=None if work.agreed is None else _agreed(work.agreed),
        pairs=len(bits),
        by_number=_by_number(bits[~is_apart]),
        by_form=_by_form(bits[~is_apart], list(compress(work.forms, ~is_apart))),
        crowd=(int(np.count_nonzero(work.crowded[work.accepted])), *_by_number(bits[is_apart])),
        dated=work.dated,
        rates=match_rates(respondents[work.accepted], table),
        ties=work.ties[0],
        tied=work.ties[1],
        incomplete=work.incomplete,
        placebo_rows=moved,
    )


def _agreed(bits: NDArray[np.bool_]) -> tuple[int, ...]:
    """Return the counts of `quality.Agreement` in its order."""
    given, family, birth, postcode, swapped_given, swapped_family = bits.T[:6]
    both = birth & postcode
    swapped = ~given & ~family & swapped_given & swapped_family & both
    counted = (
        given & family & both,
        given & family & birth,
        given & family & postcode,
        given & ~family & both,
        ~given & family & both,
        swapped,
    )
    return tuple(int(np.count_nonzero(one)) for one in counted)


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
