"""`make bench-costs`: what studies take by the unit costs of this machine, written into docs/how-to/scale.md."""

import re
from pathlib import Path

from benchmarks.costs.reports import Way, measured_reports
from benchmarks.costs.study_costs import tables
from benchmarks.costs.tables import measured_tables
from veiltab.common.command.cli import note

_PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "scale.md"
_PLACE = re.compile(r"(?s)(?<=<!-- make bench-costs -->\n).*(?=<!-- end -->)")

if __name__ == "__main__":
    note("measuring the passes of a release")
    found = measured_tables()
    reports = {}
    for way in Way:
        note(f"measuring a round of collection over {way.value}")
        reports[way] = measured_reports(way)
    made = tables(found, reports)
    _PAGE.write_text(_PLACE.sub(lambda _: made, _PAGE.read_text("utf-8")), "utf-8")
    print(made)
