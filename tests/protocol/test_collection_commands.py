"""A round from the command line alone, from the certificates to the page: every step a process of its own."""

import csv
import json
from pathlib import Path

import pytest

from tests.protocol.polling import FLEET, Poll, study_text
from tests.protocol.world import CLOUD, Answer
from veiltab.play.local.processes import LocalStudy, free_ports

NODES = 300


def prepared(folder: Path) -> Poll:
    """Write a study file without strata, and make the certificates by the command."""
    port, *others = free_ports(3)
    (folder / "study.toml").write_bytes(study_text(port=port, others=others, strata=(), budget="8"))
    poll = Poll(local=LocalStudy(folder=folder, tables={}))
    made = poll.command("pki", "init", poll.local.study_path, "--out", folder / "pki", as_json=False)
    assert made.code == 0
    assert "node fleet: " in made.text
    return poll


def collect(poll: Poll, verb: str, *words: str | Path, name: str = "rosa") -> Answer:
    identity = poll.local.folder / "pki" / f"researcher-{name}"
    return poll.command("collect", verb, poll.local.study_path, "--identity", identity, *words)


def node(poll: Poll, verb: str, state: str, round_id: str, *words: str | Path) -> Answer:
    connection = (poll.local.study_path, "--identity", poll.local.identity_folder(*FLEET))
    return poll.command("node", verb, *connection, "--state", poll.local.folder / state, "--round", round_id, *words)


def opened(poll: Poll, rate: str, population: int = NODES) -> str:
    answer = collect(poll, "open", "--epsilon", "2", "--rate", rate, "--population", str(population), "--oracle", "krr")
    assert (answer.code, answer.data["population"], answer.data["oracle"]) == (0, population, "krr")
    round_id: str = answer.data["round"]
    return round_id


def tokens_of(poll: Poll, round_id: str, nodes: int, name: str) -> tuple[Path, list[str]]:
    """Enrol nodes; return the file of their tokens, and the tokens."""
    path = poll.local.folder / name
    answer = collect(poll, "enrol", "--round", round_id, "--nodes", str(nodes), "--out", path)
    assert (answer.code, answer.data["made"]) == (0, nodes)
    assert path.stat().st_mode & 0o077 == 0
    with path.open(encoding="utf-8", newline="") as file:
        return path, [row["token"] for row in csv.DictReader(file)]


def single_nodes(poll: Poll, round_id: str, tokens: list[str]) -> None:
    """Report as three nodes; the second time each repeats what it did."""
    for number, token in enumerate(tokens):
        for value in ("7", "8"):
            answer = node(poll, "report", f"node-{number}", round_id, "--value", value, "--token", token)
            assert (answer.code, answer.data) == (0, {"round": round_id, "state": "counted", "before": value == "8"})
        status = collect(poll, "status", "--round", round_id)
        assert status.data["reports"] == {"everyone": number + 1}


def fleet(poll: Poll, round_id: str) -> None:
    """Report as all nodes but three; the same command again repeats what it said, and other files are refused."""
    path, tokens = tokens_of(poll, round_id, NODES - 3, "fleet.csv")
    first = node(poll, "fleet", "fleet", round_id, "--tokens", path, "--distribution", "binomial:20:0.5")
    assert (first.code, first.data["counted"], first.data["nodes"]) == (0, NODES - 3, NODES - 3)
    assert first.data["bytes"] == first.data["bytes_full_participation"] > 0
    again = node(poll, "fleet", "fleet", round_id, "--tokens", path, "--distribution", "binomial:20:0.5")
    assert again.code == 0
    assert {**again.data, "seconds": 0} == {**first.data, "seconds": 0}
    other = node(poll, "fleet", "fleet", round_id, "--tokens", path, "--distribution", "uniform:20")
    assert (other.code, other.data["error"]["reason"]) == (5, "CONFLICT")
    assert not any(token in other.text + other.errors + first.text for token in tokens)


def results(poll: Poll, round_id: str) -> None:
    """Close the round; estimate, as JSON and as a file, and write the page."""
    early = collect(poll, "estimate", "--round", round_id)
    assert (early.code, early.data["error"]["reason"]) == (4, "NOT_READY")
    closed = collect(poll, "close", "--round", round_id)
    assert (closed.code, closed.data["reports"], closed.data["already"]) == (0, {"everyone": NODES}, False)
    assert collect(poll, "close", "--round", round_id).data["already"] is True
    table = poll.local.folder / "value.csv"
    page = poll.local.folder / "report.html"
    found = collect(poll, "estimate", "--round", round_id, "--out", table, "--report", page)
    assert (found.code, len(found.data["values"])) == (0, 20)
    assert sum(row["count"] for row in found.data["values"]) == pytest.approx(NODES)
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["value"] for row in rows] == [str(number) for number in range(1, 21)]
    assert page.read_text("utf-8").lstrip().lower().startswith("<!doctype html>")


@pytest.mark.long
def test_a_round_from_the_certificates_to_the_page(tmp_path: Path) -> None:
    poll = prepared(tmp_path)
    with poll.local:
        poll.start()
        round_id = opened(poll, "1")
        _, tokens = tokens_of(poll, round_id, 3, "single.csv")
        single_nodes(poll, round_id, tokens)
        fleet(poll, round_id)
        results(poll, round_id)
        assert not any(token.encode() in poll.log() + poll.files() for token in tokens)
        assert json.loads(collect(poll, "status").text)["rounds"][0]["round"] == round_id
        assert poll.local._running[CLOUD].poll() is None
