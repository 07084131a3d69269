import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.common.collection.rounds import ID, PLAIN, plain_round, study
from tests.conftest import Ran
from tests.node.loopback import REQUEST_LOST, Loopback, ended, enrol
from veiltab.deploy.pki.certificates import init_pki
from veiltab.node.answers.journal import State
from veiltab.node.cli import node
from veiltab.node.reporters.device import Answer, Node
from veiltab.server.rounds.rounds import RoundKeeper
from veiltab.server.rounds.rounds_store import CollectionStore

TOKENS = [f"{number:032x}" for number in range(30)]


class Channel:
    """The server's part, at work while the channel is open."""

    def __init__(self, terminal: "Terminal") -> None:
        store, faults = terminal.store, terminal.stub.faults
        terminal.stub = Loopback(RoundKeeper(study(PLAIN), store), faults)
        self._task = asyncio.ensure_future(terminal.stub.rounds.run())

    async def close(self) -> None:
        await ended(self._task)


class Terminal:
    """A folder, a server without TLS, and what the commands print."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, ran: Ran) -> None:
        self.folder, self._ran = folder, ran
        (folder / "study.toml").write_bytes(PLAIN)
        init_pki(study(PLAIN), folder / "pki")
        self.store = CollectionStore(folder)
        self.stub = Loopback(RoundKeeper(study(PLAIN), self.store))
        enrol(self.stub.rounds, plain_round(), map(bytes.fromhex, TOKENS), pki=self.folder / "pki")
        for place in ("veiltab.common.rpc.channel.connect", "veiltab.node.reporters.device.connect"):
            monkeypatch.setattr(place, lambda *_: Channel(self))
        monkeypatch.setattr("veiltab.v1.collection_pb2_grpc.CollectionServiceStub", lambda _: self.stub)
        monkeypatch.delenv("VEILTAB_TOKEN", raising=False)

    def run(self, command: str, *args: str) -> tuple[int, str, str]:
        words = [command, str(self.folder / "study.toml"), "--identity", str(self.folder / "pki/node-fleet")]
        return self._ran(node, *words, "--state", str(self.folder / "state"), "--round", ID, *args)

    def json(self, command: str, *args: str) -> tuple[int, Any]:
        code, out, _ = self.run(command, *args, "--json")
        assert out.count("\n") == 1
        return code, json.loads(out)

    def files(self, *values: str) -> tuple[str, ...]:
        (self.folder / "tokens.csv").write_text("stratum,token\n" + "".join(f"everyone,{t}\n" for t in TOKENS), "utf-8")
        (self.folder / "values.csv").write_text("value\n" + "".join(f"{value}\n" for value in values), "utf-8")
        return ("--tokens", str(self.folder / "tokens.csv"), "--values", str(self.folder / "values.csv"))


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ran: Ran) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path, monkeypatch, ran)
    yield terminal
    terminal.store.close()


def test_a_node_reports_and_repeats_itself(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("report", "--value", "7", "--token", TOKENS[0])
    assert terminal.run(*words)[:2] == (0, "The report was counted.\n")
    code, out, _ = terminal.run(*words)
    assert code == 0
    assert out == (
        "This folder answered this round before; that answer (counted) stands, and this value and token were not used."
        " Another node needs a folder of its own.\n"
    )
    monkeypatch.setenv("VEILTAB_TOKEN", TOKENS[1])
    assert terminal.json("report", "--value", "7") == (0, {"round": ID, "state": "counted", "before": True})
    assert terminal.store.status(ID).reports == (1,)


@pytest.mark.parametrize(
    ("line", "stratum"),
    [(f"{ID},north,{TOKENS[0]}", "north"), (f"south,{TOKENS[0]}", "south"), (f"{ID},everyone,{TOKENS[0]}", None)],
)
def test_the_stratum_of_a_tokens_line_is_the_nodes(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, line: str, stratum: str | None
) -> None:
    told: list[Any] = []

    def answer(_self: Node, _round_id: str, **others: object) -> Answer:
        told.append((others["token"], others["stratum"]))
        return Answer(state=State.SILENT, before=False)

    monkeypatch.setattr(Node, "answer", answer)
    assert terminal.run("report", "--value", "7", "--token", line)[0] == 0
    assert told == [(TOKENS[0], stratum)]


def test_the_environment_holds_what_no_list_of_processes_shows(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VEILTAB_TOKEN", f"\ufeff{TOKENS[3]}\r\n")
    monkeypatch.setenv("VEILTAB_VALUE", "\ufeff7\r\n")
    assert terminal.json("report")[1]["state"] == "counted"


def test_a_refusal_is_one_object_with_its_reason(terminal: Terminal) -> None:
    code, said = terminal.json("report", "--value", "7", "--token", "f" * 32)
    assert (code, said["error"]["reason"]) == (3, "DENIED")
    # The report that was refused is what another token is spent on, whatever the value.
    assert terminal.json("report", "--value", "77", "--token", TOKENS[0])[1]["state"] == "counted"


def test_a_fleet_says_what_came_of_it(terminal: Terminal) -> None:
    words = terminal.files(*(str(number % 20 + 1) for number in range(30)))
    code, said = terminal.json("fleet", *words)
    assert code == 0
    assert {key: said[key] for key in ("round", "nodes", "silent", "counted", "refused", "unanswered", "bad_rows")} == {
        "round": ID,
        "nodes": 30,
        "silent": 0,
        "counted": 30,
        "refused": {},
        "unanswered": 0,
        "bad_rows": [],
    }
    code, out, err = terminal.run("fleet", *words)
    assert (code, err) == (0, "0 of 0 reports settled\n")
    assert out.startswith("30 nodes: 30 reports counted, 0 silent.\nReports: ")
    assert terminal.store.status(ID).reports == (30,)


def test_refused_and_unanswered_reports_have_their_exit_codes(terminal: Terminal) -> None:
    terminal.stub.faults = iter([""] * 10 + [REQUEST_LOST] * 10_000)
    words = terminal.files(*["1"] * 30)
    code, out, _ = terminal.run("fleet", *words, "--timeout", "0.3")
    assert code == 4
    assert "20 without an answer: run this again." in out
    terminal.store.close_round(ID, int(time.time()))
    terminal.stub.faults = iter(())
    code, out, _ = terminal.run("fleet", *words)
    assert code == 5
    assert "Refused: 20 ROUND_CLOSED." in out


def test_only_spent_tokens_and_closed_rounds_are_conflicts(terminal: Terminal) -> None:
    words = terminal.files(*["1"] * 30)
    assert terminal.json("report", "--value", "7", "--token", TOKENS[0])[0] == 0
    code, said = terminal.json("fleet", *words, "--state", str(terminal.folder / "fleet"))
    assert (code, said["counted"], said["refused"]) == (5, 29, {"TOKEN_SPENT": 1})
    tokens = terminal.folder / "tokens.csv"
    tokens.write_text(tokens.read_text("utf-8").replace(TOKENS[1], "f" * 32), "utf-8")
    code, said = terminal.json("fleet", *words, "--state", str(terminal.folder / "other"))
    assert (code, said["refused"]) == (2, {"TOKEN_SPENT": 29, "DENIED": 1})
