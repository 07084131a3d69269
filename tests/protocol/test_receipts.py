"""Curators test the server that perturbs a release, over real processes: honest ones, and others."""

import asyncio
import secrets
import time
from decimal import Decimal
from hashlib import sha256

import pytest

from tests.protocol.village import FREE
from tests.protocol.wire import answer, connection
from tests.protocol.world import ALICE, BOB, ROSA, Who, World
from veiltab.common.core.canaries import CanaryPlaces, places_key
from veiltab.common.errors import FailedReleaseError
from veiltab.common.release.messages.release_messages import receipt_from_proto, request_to_proto
from veiltab.common.release.receipts.testing import is_right
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.rpc.parties.identity import Role
from veiltab.server.release.perturbation import SALT
from veiltab.v1 import curator_pb2, curator_pb2_grpc

CANARIES = 2000


def asked(world: World) -> str:
    """Send a request with canaries to all curators, past the researcher's service; return the release's id."""
    wanted = ReleaseRequest(
        release_id=secrets.token_hex(16),
        researcher="rosa",
        attributes=FREE,
        epsilon=Decimal(4),
        deadline=int(time.time()) + 3600,
        canaries=CANARIES,
    )
    message = curator_pb2.ProposeReleaseRequest(study_digest=world.local.study.digest, request=request_to_proto(wanted))

    async def send() -> None:
        for curator in world.local.tables:
            async with connection(world, ROSA, (Role.CURATOR, curator)) as channel:
                await answer(curator_pb2_grpc.CuratorServiceStub(channel).ProposeRelease(message, timeout=20.0))

    asyncio.run(send())
    return wanted.release_id


def test_keys_leave_with_a_receipt_for_the_columns_that_were_tested(mortal: World) -> None:
    release_id = asked(mortal)
    for curator in ("alice", "bob"):
        mortal.wait_for_state(curator, release_id, "ready")
    mortal.wait_until(lambda: not mortal.leftovers())
    published = mortal.published(release_id)
    salt = (mortal.releases_folder() / release_id / "published" / SALT).read_bytes()
    with mortal.store("alice") as store:
        spec = store.releases.release(release_id).planned_spec
        assert all(check == store.releases.release(release_id).sample_check for check in checks(mortal, release_id))
    assert (spec.canaries, spec.uploaded_rows) == (CANARIES, spec.sample + CANARIES)

    async def test(who: Who, curator: str) -> bytes:
        async with connection(mortal, ROSA, who) as channel:
            stub = curator_pb2_grpc.CuratorServiceStub(channel)
            receipt = await answer(stub.GetReceipt(curator_pb2.GetReceiptRequest(release_id=release_id), timeout=20.0))
            assert [one.curator for one in receipt.receipts] == [curator, ""]
            for one in map(receipt_from_proto, receipt.receipts):
                assert one.canaries == CANARIES
                assert is_right(one, spec)
                assert one.passed
            assert dict(receipt.digests) == {name: sha256(salt + published[name]).digest() for name in FREE}
            places = CanaryPlaces.of(places_key(receipt.canary_key), rows=spec.uploaded_rows, canaries=CANARIES).all()
            for column in spec.columns_of(curator):
                data = published[column.attribute]
                held = curator_pb2.ColumnDigests(
                    published=sha256(salt + data).digest(),
                    canaries=sha256(bytes(data[place] for place in places)).digest(),
                )
                request = curator_pb2.GetKeysRequest(release_id=release_id, columns={column.attribute: held})
                keys = (await answer(stub.GetKeys(request, timeout=20.0))).keys
                assert {name: len(key) for name, key in keys.items()} == {column.attribute: 32}
                request.columns[column.attribute].canaries = sha256().digest()
                with pytest.raises(FailedReleaseError, match="the desk holds another column than this curator tested"):
                    await answer(stub.GetKeys(request, timeout=20.0))
            return receipt.canary_key

    assert asyncio.run(test(ALICE, "alice")) == asyncio.run(test(BOB, "bob"))


def checks(world: World, release_id: str) -> list[bytes]:
    """Return the curators' checks of the sample, the coins and the canaries."""
    found = []
    for curator in ("alice", "bob"):
        with world.store(curator) as store:
            found.append(store.releases.release(release_id).sample_check)
    return found
