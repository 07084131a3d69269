"""`make bench-costs`: the unit costs of `veiltab plan scale` as this machine has them, as JSON."""

import json

from benchmarks.costs.reports import measured_reports
from benchmarks.costs.tables import measured_tables
from veiltab.common.command.cli import note
from veiltab.deploy.plan.scale.costs import Way

if __name__ == "__main__":
    note("measuring the passes of a release")
    found = {"tables": measured_tables().as_dict()}
    for way in Way:
        note(f"measuring a round of collection over {way.value}")
        found[way.value] = measured_reports(way).as_dict()
    print(json.dumps(found, indent=2))
