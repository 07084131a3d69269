"""The test vectors of reports are what the product draws, sends and refuses today."""

import json
from decimal import Decimal
from typing import Any

import pytest

from tests import report_vectors
from tests.common.collection.rounds import report_to_json
from veiltab.common.collection.oracles.olh import hashes
from veiltab.common.collection.round import Round
from veiltab.common.collection.round_messages import report_from_proto, report_to_proto
from veiltab.common.errors import InvalidInputError
from veiltab.node.answers.decision import decide
from veiltab.server.https.json_messages import report_from_json
from veiltab.v1 import collection_pb2

VECTORS: dict[str, list[dict[str, Any]]] = json.loads(report_vectors.PATH.read_text("utf-8"))


class Played:
    """Plays bytes in their order, whatever their label."""

    def __init__(self, data: bytes) -> None:
        self.left = data

    def fill(self, out: memoryview, *, label: int, chunk: int) -> None:
        del label, chunk
        out[:] = self.left[: len(out)]
        self.left = self.left[len(out) :]


def round_of(answer: dict[str, Any]) -> Round:
    facts = answer["round"]
    parameters = {name: int(value) for name, value in facts["parameters"].items()}
    return Round.from_json(json.dumps(facts | {"parameters": parameters}))


def test_the_file_is_what_the_product_makes() -> None:
    assert report_vectors.PATH.read_text("utf-8") == report_vectors.vectors(), "run python -m tests.report_vectors"


def test_the_bytes_of_a_vector_give_its_report() -> None:
    for one in VECTORS["reports"]:
        spec, source = round_of(one["answer"]), Played(bytes.fromhex(one["random"]))
        report = decide(spec, spec.stratum(one["stratum"]), one["category"], source)
        assert source.left == b""
        assert (report is None) == (one["body"] is None)
        if report is not None:
            token = bytes.fromhex(one["token"])
            assert report_to_json(token, one["stratum"], report).decode() == one["body"]
            assert (
                report_to_proto(spec.round_id, token, one["stratum"], report).SerializeToString().hex() == one["grpc"]
            )
            came = report_from_json(one["body"].encode())
            sent = collection_pb2.ReportRequest.FromString(bytes.fromhex(one["grpc"]))
            assert spec.randomiser.check(came.report) == report == report_from_proto(sent)


def test_vectors_lie_on_both_sides_of_every_threshold() -> None:
    bodies = {one["name"]: one["body"] for one in VECTORS["reports"]}
    coins = [bodies[f"coin at {name}"] is None for name in ("0", "threshold - 1", "threshold", "threshold + 1")]
    assert coins == [False, False, True, True]
    for kind in ("krr, replacement", "olh, replacement", "oue, q64", "ss, p64", "oue, own bit"):
        assert bodies[f"{kind} at threshold - 1"] != bodies[f"{kind} at threshold"], kind


def test_a_corrupted_report_is_refused() -> None:
    for one in VECTORS["refused_reports"]:
        randomiser = round_of(one["answer"]).randomiser
        with pytest.raises(InvalidInputError):
            randomiser.check(report_from_json(one["body"].encode()).report)


def test_a_corrupted_round_is_refused() -> None:
    for one in VECTORS["refused_rounds"]:
        with pytest.raises(InvalidInputError):
            round_of(one["answer"])


def test_a_round_that_costs_what_it_says_is_taken() -> None:
    for one in VECTORS["reports"]:
        spec = round_of(one["answer"])
        assert spec.randomiser.epsilon == spec.epsilon >= Decimal("0.09")


def test_hashes_are_those_of_the_file() -> None:
    for one in VECTORS["hashes"]:
        assert hashes([bytes.fromhex(one["seed"])], one["size"], one["g"])[0].tolist() == one["symbols"]
