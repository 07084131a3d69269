import asyncio
from collections.abc import Callable

import pytest

from tests.worlds.parties import BOB, RITA
from veiltab.common.errors import ConflictError
from veiltab.common.rpc.health import wait_until_serving
from veiltab.common.rpc.parties.identity import Identity, Party
from veiltab.common.rpc.waiting import retries


def test_a_party_that_starts_is_asked_ever_as_often(
    identity_of: Callable[[Party], Identity], monkeypatch: pytest.MonkeyPatch
) -> None:
    bounds: list[float] = []

    class Jitter:
        def uniform(self, _low: float, high: float) -> float:
            bounds.append(high)
            if len(bounds) == 9:
                raise ConflictError("enough")
            return 0.0

    monkeypatch.setattr(retries, "_jitter", Jitter())
    with pytest.raises(ConflictError, match="enough"):
        asyncio.run(wait_until_serving(identity_of(RITA), BOB, "localhost:1", within=60.0))
    assert bounds == [0.1] * 9
