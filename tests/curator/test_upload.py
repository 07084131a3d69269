from collections.abc import Callable
from typing import Any

import pytest

from veiltab.common.errors import InvalidInputError
from veiltab.common.release.modes import Sampling
from veiltab.curator.upload import publication_from_proto
from veiltab.v1 import ingest_pb2

Make = Callable[..., Any]
DIGESTS = {"sex": b"a" * 32, "salary": b"b" * 32}
PLACES = b"p" * 32


@pytest.mark.parametrize("sampling", Sampling)
def test_what_a_server_states_of_a_publication_is_read_whole(make_spec: Make, sampling: Sampling) -> None:
    places = PLACES if sampling.is_by_server else b""
    message = ingest_pb2.GetPublicationResponse(digests=DIGESTS, places_digest=places)
    digests = publication_from_proto(message, make_spec(sampling=sampling), "server cloud")
    assert (digests.columns, digests.places) == (DIGESTS, places)


@pytest.mark.parametrize(
    ("sampling", "digests", "places", "lacking"),
    [
        (Sampling.SEED, {}, b"", "every published column"),
        (Sampling.SEED, {"sex": b"a" * 32}, b"", "every published column"),
        (Sampling.SEED, DIGESTS | {"age": b"c" * 32}, b"", "every published column"),
        (Sampling.SEED, DIGESTS | {"sex": b"a" * 31}, b"", "every published column"),
        (Sampling.SEED, DIGESTS, PLACES, "the places that it sampled"),
        (Sampling.SERVER, DIGESTS, b"", "the places that it sampled"),
        (Sampling.SERVER, DIGESTS, PLACES + b"p", "the places that it sampled"),
    ],
)
def test_a_server_that_states_less_or_more_is_refused(
    make_spec: Make, sampling: Sampling, digests: dict[str, bytes], places: bytes, lacking: str
) -> None:
    message = ingest_pb2.GetPublicationResponse(digests=digests, places_digest=places)
    with pytest.raises(InvalidInputError, match=f"server cloud: does not state the digest of {lacking}"):
        publication_from_proto(message, make_spec(sampling=sampling), "server cloud")
