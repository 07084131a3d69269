import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from veiltab.common.errors import DeniedError, InvalidInputError, UnavailableError, VeiltabError, error_class, kinds
from veiltab.common.rpc.statuses import CODES, DETAILS_KEY, DOMAIN, error_from_rpc, incident, to_status

KINDS: list[type[VeiltabError]] = [kind for kind in kinds() if kind.__module__ == VeiltabError.__module__]
"""Every kind there is: a subclass that a room or a test defines for itself arrives as the kind it is of."""


def rpc_error(status: Status | bytes, code: grpc.StatusCode = grpc.StatusCode.INTERNAL) -> grpc.aio.AioRpcError:
    raw = status if isinstance(status, bytes) else status.SerializeToString()
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata((DETAILS_KEY, raw)), "details")


def plain(code: grpc.StatusCode, details: str = "") -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details)


def test_the_table_has_every_kind_of_error_and_reasons_differ() -> None:
    assert set(CODES) == set(KINDS)
    assert all(kind.reason in {known.reason for known in KINDS} for kind in kinds())
    assert len({kind.reason for kind in KINDS}) == len(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_arrives_as_the_same_kind(kind: type[VeiltabError]) -> None:
    sent = kind("the problem ü", where="the place", remedy="The step.")
    status = to_status(sent)
    assert status.code == CODES[kind].value[0]
    back = error_from_rpc(rpc_error(status), "curator bob")
    assert type(back) is kind
    assert (back.problem, back.where, back.remedy) == ("the problem ü", "curator bob, the place", "The step.")


def test_a_subclass_arrives_as_the_kind_it_is_of() -> None:
    class PickyError(InvalidInputError):
        pass

    assert type(error_from_rpc(rpc_error(to_status(PickyError("x"))), "bob")) is InvalidInputError
    assert error_class("INVALID_INPUT") is InvalidInputError


@given(st.text(max_size=3000), st.text(max_size=3000), st.text(max_size=3000))
def test_a_status_stays_small_and_on_one_line(problem: str, where: str, remedy: str) -> None:
    status = to_status(VeiltabError(problem, where=where, remedy=remedy))
    assert len(status.SerializeToString()) * 4 / 3 < 6000
    back = error_from_rpc(rpc_error(status), "bob")
    assert all(text.isprintable() for text in (back.problem, back.where, back.remedy, status.message))


def test_a_peers_text_cannot_steer_the_terminal() -> None:
    status = Status(code=13)
    info = ErrorInfo(reason="DENIED", domain=DOMAIN, metadata={"problem": "\x1b[2Jx\r\ny" + "z" * 9999, "extra": "e"})
    status.details.add().Pack(info)
    back = error_from_rpc(rpc_error(status), "bob")
    assert type(back) is DeniedError
    assert back.problem.isprintable()
    assert len(back.problem) <= 1024


@given(st.binary(max_size=200))
def test_any_bytes_in_the_detail_give_an_error_and_not_a_crash(raw: bytes) -> None:
    assert isinstance(error_from_rpc(rpc_error(raw), "bob"), VeiltabError)


def test_a_detail_of_another_domain_is_not_ours() -> None:
    status = Status(code=13)
    status.details.add().Pack(ErrorInfo(reason="DENIED", domain="elsewhere", metadata={"problem": "x"}))
    assert type(error_from_rpc(rpc_error(status), "bob")) is VeiltabError


def test_a_status_of_grpc_itself_says_what_it_likely_means() -> None:
    expected = {
        grpc.StatusCode.UNAVAILABLE: (UnavailableError, "endpoint"),
        grpc.StatusCode.DEADLINE_EXCEEDED: (UnavailableError, "deadline"),
        grpc.StatusCode.RESOURCE_EXHAUSTED: (UnavailableError, "busy"),
        grpc.StatusCode.PERMISSION_DENIED: (DeniedError, "refused"),
        grpc.StatusCode.UNAUTHENTICATED: (DeniedError, "refused"),
        grpc.StatusCode.UNIMPLEMENTED: (InvalidInputError, "same version"),
        grpc.StatusCode.UNKNOWN: (VeiltabError, "UNKNOWN"),
    }
    for code, (kind, word) in expected.items():
        error = error_from_rpc(plain(code, "ipv4:10.0.0.1:5 internal text"), "curator bob")
        assert type(error) is kind
        assert error.where == "curator bob"
        assert word in str(error)
        assert "10.0.0.1" not in str(error)
    for code in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN):
        assert type(error_from_rpc(plain(code, "Internal error from Core"), "curator bob")) is UnavailableError
    too_long = plain(grpc.StatusCode.RESOURCE_EXHAUSTED, "Received message larger than max (5 vs. 4)")
    assert type(error_from_rpc(too_long, "bob")) is InvalidInputError


def test_incidents_have_numbers_of_their_own_and_hide_the_text() -> None:
    def fail() -> None:
        raise KeyError("respondent 4711")

    numbers = set()
    for _ in range(5):
        with pytest.raises(KeyError) as caught:
            fail()
        told, logged = incident(caught.value)
        assert "4711" not in str(told) + logged
        assert "KeyError at test_status.py:" in logged
        numbers.add(told.problem)
    assert len(numbers) == 5
