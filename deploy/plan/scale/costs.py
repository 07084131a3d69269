"""What a row, a byte and a report cost each party, as measured: the units of `veiltab plan scale`.

Every figure of CPU is user and system time. `make bench-costs` measures all of them anew but starting,
certifying and memory.
"""

from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any


def _cost(unit: str) -> Any:  # noqa: ANN401 - a field of a dataclass
    return field(metadata={"unit": unit})


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Unit costs with where they come from.

    Args:
        source: what measured them, where and when.
    """

    source: str

    def as_dict(self) -> dict[str, Any]:
        """Return source, and each cost with its unit."""
        units = {
            one.name: {"value": getattr(self, one.name), "unit": one.metadata["unit"]}
            for one in fields(self)
            if one.metadata
        }
        return {"source": self.source, "costs": units}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCosts(Costs):
    """What linking tables costs: CPU of each pass, and memory of each party, which no table's size changes.

    Args:
        start_curator, start_server, start_researcher: starting a process, and a release of hardly any rows.
        load: reading, normalising and keeping an id.
        load_symbol: the same of a value.
        order: a row's token, and its way into the order of all tokens.
        order_symbol: a symbol's way into that order.
        stream: digest, TLS and gRPC, and a file at one's own end.
        search: looking for a peer's token among one's own.
        keep: writing and digesting a common respondent.
        keep_symbol: the same of a symbol.
        draw: the priority of a respondent.
        pick: putting a sampled row in its secret order.
        encrypt: noise, pad and digest of a sampled symbol.
        perturb: checking a symbol, and the server's noise.
        count: digest, decryption and tabulation of a symbol.
        page: a byte that is written to a page of memory that is new to the machine, as all of a large table's are.
        cut: opening one of the files of which a section is read; their number rises with that of the rows.
        certify: the epsilon cards of the certificate of a release of one table.
        curator, server, researcher: memory of its own that a process takes.
        worker: memory of each process that computes beside a curator's, one a core; small tables need none.
    """

    start_curator: float = _cost("s of CPU")
    start_server: float = _cost("s of CPU")
    start_researcher: float = _cost("s of CPU")
    load: float = _cost("ns a row")
    load_symbol: float = _cost("ns a row and attribute")
    order: float = _cost("ns a row")
    order_symbol: float = _cost("ns a row and attribute")
    stream: float = _cost("ns a byte, at either end")
    search: float = _cost("ns a row of a peer's table")
    keep: float = _cost("ns a common respondent")
    keep_symbol: float = _cost("ns a common respondent and attribute")
    draw: float = _cost("ns a respondent and draw")
    pick: float = _cost("ns a sampled row")
    encrypt: float = _cost("ns a sampled row and column")
    perturb: float = _cost("ns a symbol")
    count: float = _cost("ns a symbol")
    page: float = _cost("ns a byte that is written")
    cut: float = _cost("us a file and section")
    certify: float = _cost("ms for each root of sampled rows")
    curator: float = _cost("bytes of memory")
    server: float = _cost("bytes of memory")
    researcher: float = _cost("bytes of memory")
    worker: float = _cost("bytes of memory")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCosts(Costs):
    """What collecting reports in one way costs the server.

    Args:
        report: taking a report, its connection included where it has one of its own.
        received, sent: bytes on the link for it.
        enrol: taking the digest of a token.
        token_bytes: of a token in the database.
        flush: until a transaction is on the disk.
    """

    report: float = _cost("us of CPU a report")
    received: float = _cost("bytes a report")
    sent: float = _cost("bytes a report")
    enrol: float = _cost("us of CPU a token")
    token_bytes: float = _cost("bytes of disk a token")
    flush: float = _cost("seconds a transaction")


TABLE_COSTS = TableCosts(
    source="measured on 2026-11-22, 2 cores of AMD EPYC",
    start_curator=1.6,
    start_server=0.7,
    start_researcher=0.75,
    load=120.0,
    load_symbol=11.0,
    order=88.0,
    order_symbol=3.7,
    stream=2.0,
    search=22.0,
    keep=28.0,
    keep_symbol=1.7,
    draw=7.3,
    pick=50.0,
    encrypt=8.2,
    perturb=2.1,
    count=2.4,
    page=1.8,
    cut=60.0,
    certify=0.4,
    curator=250e6,
    server=90e6,
    researcher=110e6,
    worker=80e6,
)
"""Those of a machine that was measured."""

_GRPC = ReportCosts(
    source="measured on 2026-11-22, 2 cores of AMD EPYC",
    report=1550.0,
    received=2790.0,
    sent=3810.0,
    enrol=5.5,
    token_bytes=81.0,
    flush=0.002,
)

REPORT_COSTS = MappingProxyType(
    {
        Way.GRPC: _GRPC,
        Way.GRPC_KEPT: replace(_GRPC, report=460.0, received=149.0, sent=75.0),
        Way.HTTPS: replace(_GRPC, report=650.0, received=854.0, sent=1140.0),
        Way.HTTPS_KEPT: replace(_GRPC, report=145.0, received=239.0, sent=214.0),
    }
)
"""The same of reports, for each way."""
