"""What hub and spoke count in a linkage, for the report that stays with them."""

from collections import Counter
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from veiltab.curator.alignment.linking.agreement import HubLine
from veiltab.curator.alignment.linking.hub_work import HubWork
from veiltab.curator.alignment.linking.spoke_work import SpokeWork
from veiltab.curator.linkage.linkage_report import FormCount, LegCount, LinkageReport, PassCount, match_rates
from veiltab.curator.table.table_rows import TableRows


def report_of(work: HubWork | SpokeWork, line: HubLine, rows: NDArray[np.int64], table: TableRows) -> LinkageReport:
    """Return what is known after a linkage.

    Args:
        work: one's own part in it.
        rows: those that all curators link, by their places among the respondents.
        table: one's own.
    """
    shown = [PassCount(key=one.key, runs=one.runs, matches=one.matches) for one in line.passes]
    rates = match_rates(rows, table)
    if isinstance(work, HubWork):
        legs = tuple(
            LegCount(curator=spoke, links=links, elements=sum(work.asked[spoke].values()))
            for spoke, links in work.accepted.items()
        )
        return LinkageReport(
            is_hub=True,
            rows=line.rows,
            hub_rows=line.rows,
            links=len(rows),
            passes=tuple(shown),
            legs=legs,
            rates=rates,
            incomplete=work.incomplete,
        )
    candidates = np.bincount(work.numbers, minlength=len(shown) + 1)
    linked = np.bincount(work.numbers[work.accepted], minlength=len(shown) + 1)
    left = len(work.numbers) - np.cumsum(candidates[1:])
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
        for number, one in enumerate(shown, 1)
    )
    bits = np.zeros((0, 8), np.bool_) if work.agreed is None else work.agreed
    is_apart = work.crowded[work.pairs]
    return LinkageReport(
        is_hub=False,
        rows=len(work.numbers),
        hub_rows=line.rows,
        links=len(rows),
        legs=(LegCount(curator=work.hub, links=len(work.accepted), elements=work.elements),),
        passes=passes,
        agreed=None if work.agreed is None else _agreed(work.agreed),
        pairs=len(bits),
        by_number=_by_number(bits[~is_apart]),
        by_form=_by_form(bits[~is_apart], list(compress(work.forms, ~is_apart))),
        crowd=(int(np.count_nonzero(work.crowded[work.accepted])), *_by_number(bits[is_apart])),
        dated=work.dated,
        rates=rates,
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
    found = tested.most_common()
    return tuple(FormCount(form=form, tested=rows, differ=wrong[form]) for form, rows in found if rows)
