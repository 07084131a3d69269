"""What a row, a byte and a report cost each party, as measured: the units of `veiltab plan scale`.

They stand in `unit_costs.json`, as `make bench-costs` prints those of another machine. It measures all but starting,
certifying and memory. Every figure of CPU is user and system time.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any


class Way(StrEnum):
    """How reports reach the server: each on a connection of its own, as a phone's, or on one that is kept."""

    GRPC = "grpc"
    GRPC_KEPT = "grpc-kept"
    HTTPS = "https"
    HTTPS_KEPT = "https-kept"

    @property
    def is_https(self) -> bool:
        """Whether it is HTTPS, and not gRPC with mutual TLS."""
        return self in {Way.HTTPS, Way.HTTPS_KEPT}


@dataclass(frozen=True, slots=True)
class Costs:
    """Unit costs: of linking tables, or of collecting reports in one way.

    Args:
        source: what measured them, where and when.
        costs: name -> value, unit, and what it is about.
    """

    source: str
    costs: Mapping[str, Mapping[str, Any]]

    def __getitem__(self, name: str) -> float:
        """Return one of them."""
        value: float = self.costs[name]["value"]
        return value

    def measured(self, source: str, **values: float) -> "Costs":
        """Return the same with other values of some."""
        return Costs(source, {**self.costs, **{name: {**self.costs[name], "value": values[name]} for name in values}})

    def as_dict(self) -> dict[str, Any]:
        """Return source, and each cost with its unit."""
        return {"source": self.source, "costs": dict(self.costs)}


_SHIPPED = json.loads(Path(__file__).with_name("unit_costs.json").read_text("utf-8"))

TABLE_COSTS = Costs(**_SHIPPED["tables"])
"""What linking tables costs: CPU of each pass, and memory of each party, which no table's size changes."""

REPORT_COSTS = MappingProxyType({way: Costs(**_SHIPPED[way.value]) for way in Way})
"""What reports cost the server that come in each way."""
