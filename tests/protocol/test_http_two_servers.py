"""Two server processes with one port for HTTPS and one PostgreSQL: a token counts once, and a kill loses no report."""

import json
import secrets
import signal
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPException, HTTPSConnection
from pathlib import Path

import pytest

from tests.protocol.two_servers import TwoServers, two_servers
from tests.protocol.world import CLOUD, ROSA
from tests.server.cluster import Cluster
from veiltab.common.collection.round import EVERYONE
from veiltab.play.local.processes import free_ports
from veiltab.researcher.collection.rounds_client import Rounds

pytestmark = pytest.mark.long
REPORTS = 300
COUNTED, SPENT = 200, 409


@pytest.fixture
def two(tmp_path: Path) -> Iterator[TwoServers]:
    """Both processes, with one port for HTTPS."""
    (port,) = free_ports(1)
    with Cluster() as cluster, two_servers(tmp_path / "study", cluster) as both:
        both.options = ("--http", f"localhost:{port}")
        for number in (0, 1):
            both.start(number)
        yield both


class Nodes:
    """Nodes that all report in one round, each over a connection of its own."""

    def __init__(self, two: TwoServers) -> None:
        local = two.world.local
        self.rounds = Rounds(local.study_path, identity=local.identity_folder(*ROSA), name="rosa")
        self.tokens = [secrets.token_bytes(16) for _ in range(REPORTS)]
        spec = self.rounds.open("value", epsilon="2", rates={EVERYONE: "1"}, populations={EVERYONE: REPORTS})
        self.rounds.enrol(spec.round_id, EVERYONE, self.tokens)
        self.round_id = spec.round_id
        self._port = int(two.options[-1].rpartition(":")[2])
        self._trusting = ssl.create_default_context(cafile=str(local.identity_folder(*CLOUD) / "ca.pem"))

    def report(self, token: bytes) -> int:
        """Report once; return the status of the answer."""
        body = {"token": token.hex(), "stratum": EVERYONE, "report": {"category": f"{token[0] % 20:08x}"}}
        with closing(HTTPSConnection("localhost", self._port, context=self._trusting, timeout=20)) as connection:
            connection.request("POST", f"/v1/rounds/{self.round_id}/reports", json.dumps(body))
            return connection.getresponse().status

    def check_counted(self) -> None:
        """See that each node was counted once, with its own report."""
        assert self.rounds.status(self.round_id).reports == (REPORTS,)
        self.rounds.close_round(self.round_id)
        expected = Counter(token[0] % 20 for token in self.tokens)
        assert self.rounds.tally(self.round_id).counts.sum(axis=0).tolist() == [expected[at] for at in range(20)]


def test_a_token_that_comes_to_both_at_once_counts_once(two: TwoServers) -> None:
    nodes = Nodes(two)
    with nodes.rounds, ThreadPoolExecutor(16) as senders:
        for token in nodes.tokens:
            # The kernel gives each connection to one of the two by its port.
            assert Counter(senders.map(nodes.report, [token] * 4)) == {COUNTED: 1, SPENT: 3}
        nodes.check_counted()
    counts = [two.log(number).count('"count reports"') for number in (0, 1)]
    assert min(counts) > 0, counts


def test_no_report_that_was_acknowledged_is_lost_with_a_killed_process(two: TwoServers) -> None:
    nodes, acknowledged, third = Nodes(two), list[int](), threading.Event()

    def insist(token: bytes) -> None:
        status, attempts = 0, 0
        while status not in {COUNTED, SPENT}:
            try:
                status = nodes.report(token)
            except (OSError, HTTPException):
                time.sleep(0.05)
            attempts += 1
        # Spent at the first attempt would be a token that somebody else used.
        assert status == COUNTED or attempts > 1
        acknowledged.append(status)
        if len(acknowledged) == REPORTS // 3:
            third.set()

    with nodes.rounds, ThreadPoolExecutor(16) as senders:
        done = [senders.submit(insist, token) for token in nodes.tokens]
        assert third.wait(60)
        two.running[0].send_signal(signal.SIGKILL)
        two.running[0].wait(20)
        for one in done:
            one.result(60)
        two.send_to(1)
        assert len(acknowledged) == REPORTS
        nodes.check_counted()
