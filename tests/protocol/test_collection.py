"""A server process, real TLS, and nodes by the hundred: each report counts once, and nothing joins it to its token."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from tests.common.collection.rounds import GOOD_PAYLOADS
from tests.protocol.polling import STRATA, Asked, Poll, all_at_once, made_poll, poll_fixture  # noqa: F401 - a fixture
from veiltab.common.collection.tokens import token_digest
from veiltab.common.core.randomness import SystemSource
from veiltab.node.answers.decision import decide
from veiltab.v1 import collection_pb2


def honest(asked: Asked, seed: int) -> list[collection_pb2.ReportRequest]:
    """Let every node of both strata decide; return what those send whose coin says so."""
    rng = np.random.default_rng(seed)
    requests = []
    for stratum in asked.spec.strata:
        for token in asked.tokens[stratum.name]:
            report = decide(asked.spec, stratum, int(rng.integers(asked.spec.size)))
            if report is not None:
                requests.append(asked.request(token, report, stratum=stratum.name))
    return requests


def crowd(poll: Poll, nodes: int, connections: int) -> None:
    """Let nodes report at once, a tenth of them twice, with a hundredth of forged ones among them."""
    rng = np.random.default_rng(nodes)
    asked = poll.opened(nodes // 2)
    once = honest(asked, nodes)
    assert len(once) == nodes
    twice, fresh = once[: nodes // 20], once[nodes // 20 : nodes // 10]
    # One half repeats its report, the other randomises its value anew.
    twice += [
        asked.request(one.token, asked.spec.randomiser.randomise(0, SystemSource()), stratum=one.stratum)
        for one in fresh
    ]
    forged = [
        asked.request(rng.bytes(16), asked.spec.randomiser.randomise(0, SystemSource()), stratum=STRATA[place % 2])
        for place in range(nodes // 100)
    ]
    sent = [*once, *twice, *forged]
    requests = [sent[place] for place in rng.permutation(len(sent))]
    said = asyncio.run(all_at_once(poll, requests, connections=connections))
    assert Counter(said) == {"": nodes, "TOKEN_SPENT": nodes // 10, "DENIED": nodes // 100}
    counted = [request for request, answer in zip(requests, said, strict=True) if not answer]
    assert {request.token for request in counted} == {request.token for request in once}
    assert asked.reports() == [nodes // 2, nodes // 2]
    assert asked.counts() == asked.sum_of(counted)


def test_200_nodes_at_once_count_once_each(poll: Poll) -> None:
    crowd(poll, 200, connections=8)


@pytest.mark.long
def test_1000_nodes_at_once_on_connections_of_their_own_count_once_each(poll: Poll) -> None:
    crowd(poll, 1000, connections=1110)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_100_000_reports_count_once_each(poll: Poll, record_property: Callable[[str, object], None]) -> None:
    """A fleet reports over twenty connections, a thousand nodes at a time; a hundredth of it a second time."""
    nodes, at_a_time = 100_000, 1000
    asked = poll.opened(nodes // 2)
    once = honest(asked, seed=7)
    rng = np.random.default_rng(7)
    requests = [once[place] for place in rng.permutation(nodes)] + once[::100]
    began, said = time.monotonic(), Counter[str]()
    for first in range(0, len(requests), at_a_time):
        said.update(asyncio.run(all_at_once(poll, requests[first : first + at_a_time], connections=20)))
    seconds = time.monotonic() - began
    assert said == {"": nodes, "TOKEN_SPENT": nodes // 100}
    assert asked.reports() == [nodes // 2, nodes // 2]
    assert asked.counts() == asked.sum_of(once)
    record_property("figure", f"{nodes} reports once each in {seconds:.0f} s")


def test_nothing_on_the_servers_disk_or_in_its_log_joins_a_token_to_a_report(poll: Poll) -> None:
    asked = poll.opened(20, oracle="olh")
    once = honest(asked, 5)
    said = asyncio.run(
        all_at_once(poll, [*once, *once[:3], asked.request(bytes(16), GOOD_PAYLOADS["olh"])], connections=2)
    )
    assert Counter(said) == {"": 40, "TOKEN_SPENT": 3, "DENIED": 1}
    seeds = [request.hashed.seed for request in once]
    tokens = [request.token for request in once]
    digests = [token_digest(asked.spec.round_id, token) for token in tokens]
    before = poll.files()
    # The canaries would be found: digests are what the server keeps.
    assert all(digest in before for digest in digests)
    asked.counts()
    for text in (before, poll.files(), poll.log()):
        for secret in (*seeds, *tokens):
            assert secret not in text
            assert secret.hex().encode() not in text
    assert all(digest.hex().encode() not in poll.log() for digest in digests)
