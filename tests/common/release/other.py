"""Every field of a spec and of a request, with another value than conftest's that is valid beside the rest."""

from decimal import Decimal
from typing import Any

from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.table_spec import Column

OTHER_SPEC: dict[str, Any] = {
    "release_id": "f" * 32,
    "study_digest": "0" * 64,
    "researcher": "rita",
    "columns": (Column(attribute="age", owner="alice", size=2), Column(attribute="salary", owner="bob", size=2)),
    "population": 1001,
    "sample": 399,
    "server_replacement": 2**64 - 1,
    "curator_replacement": 2**64 - 1,
    "canaries": 7,
    "epsilon": Decimal("0.2"),
    "scheme": "poisson",
    "sampling": Sampling.INDICES,
    "pad": Pad.OTP,
    "alignment": "0" * 32,
    "deadline": 2_000_000_001,
    "delta": Decimal("1e-6"),
    "stage": None,  # goes with a two-stage scheme, below
    "part_of": "e" * 32,
}
OTHER_REQUEST: dict[str, Any] = {
    "release_id": "f" * 32,
    "researcher": "rita",
    "attributes": ("salary", "sex"),
    "epsilon": Decimal("0.2"),
    "purpose": "health gap",
    "deadline": 2_000_000_001,
    "partial": True,
    "sampling": Sampling.INDICES,
    "pad": Pad.OTP,
    "sample": 1,
    "delta": Decimal("1e-6"),
    "max_local_epsilon": Decimal(3),
    "scheme": "poisson",
    "stage": 500,
    "noise_split": Decimal("0.25"),
    "max_pair_epsilon": Decimal(2),
    "canaries": 9,
    "tables": (("sex",), ("sex", "salary")),
    "repeats": 1,
}
GOES_WITH: dict[str, dict[str, Any]] = {
    "tables": {"delta": Decimal("1e-6")},
    "repeats": {"delta": Decimal("1e-6"), "tables": (("sex",), ("salary",))},
}
"""What a field of a request needs beside it."""
