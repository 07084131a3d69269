"""A server process that takes reports over HTTPS and gRPC into one store, asked as docs/http-reports.md shows."""

import asyncio
import json
import re
import signal
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from tests.protocol.polling import made_poll, reason
from tests.protocol.world import CLOUD, launcher
from veiltab.common.collection.oracles import Category
from veiltab.play.local.processes import free_ports

pytestmark = pytest.mark.long


def answer(url: str, trusting: ssl.SSLContext, body: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode())  # noqa: S310 - https
    try:
        with urllib.request.urlopen(request, context=trusting, timeout=20) as response:  # noqa: S310 - https
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_a_token_counts_once_whichever_way_it_comes(tmp_path: Path) -> None:
    poll = made_poll(tmp_path / "study")
    (port,) = free_ports(1)
    poll.local.options[CLOUD] = ("--http", f"localhost:{port}")
    with poll.local:
        poll.start()
        asked = poll.opened(10)
        trusting = ssl.create_default_context(cafile=str(poll.local.identity_folder(*CLOUD) / "ca.pem"))
        url = f"https://localhost:{port}/v1/rounds/{asked.spec.round_id}"
        status, told = answer(url, trusting)
        assert (status, told["round"]["study_digest"], told["state"]) == (200, poll.local.study.digest, "open")
        first, second = asked.tokens["north"][:2]
        body = {"token": first.hex(), "stratum": "north", "report": {"category": "00000007"}}
        assert answer(f"{url}/reports", trusting, body) == (200, {"counted": True})

        async def over_grpc() -> list[str]:
            async with poll.stub() as stub:
                requests = [asked.request(token, Category(symbol=7), stratum="north") for token in (first, second)]
                return [await reason(stub, request, poll) for request in requests]

        assert asyncio.run(over_grpc()) == ["TOKEN_SPENT", ""]
        body["token"] = second.hex()
        status, refused = answer(f"{url}/reports", trusting, body)
        assert (status, refused["error"]["reason"]) == (409, "TOKEN_SPENT")
        with poll.rounds() as rounds:
            assert rounds.status(asked.spec.round_id).reports == (2, 0)
        # Neither a connection that says nothing nor one in the middle of a request keeps the server from its end.
        with socket.create_connection(("localhost", port)) as silent:
            silent.sendall(b"\x16\x03")
            poll.local.kill(*CLOUD, 15)
        log = poll.log().decode()
        assert re.search(rf"reports over HTTPS at 127\.0\.0\.1:{port}\n", log)
        assert first.hex() not in log
        assert "Traceback" not in log


def test_no_report_that_was_acknowledged_is_lost_with_a_killed_server(tmp_path: Path) -> None:
    """Killed in the middle of a transaction: after tokens were spent, and after reports were counted too."""
    poll = made_poll(tmp_path / "study")
    (port,) = free_ports(1)
    poll.local.options[CLOUD] = ("--http", f"localhost:{port}")
    store = "veiltab.server.rounds.rounds_store:CollectionStore"
    with poll.local, ThreadPoolExecutor(16) as nodes:
        poll.start(launcher(f"{store}._spend:3:after"))
        asked = poll.opened(100)
        trusting = ssl.create_default_context(cafile=str(poll.local.identity_folder(*CLOUD) / "ca.pem"))
        url = f"https://localhost:{port}/v1/rounds/{asked.spec.round_id}/reports"

        def insist(token: bytes) -> tuple[int, int]:
            """Report until there is an answer; return its status, and the number of attempts before it."""
            body = {"token": token.hex(), "stratum": "north", "report": {"category": f"{token[0] % 20:08x}"}}
            for attempts in range(300):
                try:
                    return answer(url, trusting, body)[0], attempts
                except (OSError, HTTPException):
                    time.sleep(0.05)
            raise AssertionError("no server answers")

        settled = [nodes.submit(insist, token) for token in asked.tokens["north"]]
        for how in (launcher(f"{store}._count:2:after"), None):
            assert poll.local.wait_for_end(*CLOUD) == -signal.SIGKILL
            poll.local.start(*CLOUD, launcher=how)
        poll.local.wait_for(*CLOUD)
        for status, attempts in (one.result() for one in settled):
            # Spent at the first attempt would be a token that somebody else used.
            assert status == 200 or (status == 409 and attempts > 0)
        assert asked.reports() == [100, 0]
        expected = Counter(token[0] % 20 for token in asked.tokens["north"])
        assert asked.counts()[0] == [expected[symbol] for symbol in range(20)]
