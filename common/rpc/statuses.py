"""The error table: a veiltab error becomes a gRPC status with a detail, and at the other end the same error again.

The detail is a google.rpc.ErrorInfo of domain "veiltab". What a peer sends is shown to people, so it is cut to a
length and stripped of control characters at the receiving end too.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import ErrorInfo  # type: ignore[import-untyped] # ships no types
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped] # as above

from veiltab.common.core.texts.message_fields import words_from_proto
from veiltab.common.errors import (
    BudgetExceededError,
    ClosedRoundError,
    ConflictError,
    DeniedError,
    ExpiredReleaseError,
    FailedReleaseError,
    IntegrityError,
    InvalidInputError,
    NotFoundError,
    NotReadyError,
    SpentTokenError,
    TransferError,
    UnavailableError,
    VeiltabError,
    error_class,
)
from veiltab.common.storage.disk import disk_refusal, files_of

DOMAIN = "veiltab"
DETAILS_KEY = "grpc-status-details-bin"

CODES: dict[type[VeiltabError], grpc.StatusCode] = {
    InvalidInputError: grpc.StatusCode.INVALID_ARGUMENT,
    NotFoundError: grpc.StatusCode.NOT_FOUND,
    DeniedError: grpc.StatusCode.PERMISSION_DENIED,
    BudgetExceededError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    UnavailableError: grpc.StatusCode.UNAVAILABLE,
    NotReadyError: grpc.StatusCode.FAILED_PRECONDITION,
    ConflictError: grpc.StatusCode.ALREADY_EXISTS,
    SpentTokenError: grpc.StatusCode.ALREADY_EXISTS,
    ClosedRoundError: grpc.StatusCode.OUT_OF_RANGE,
    IntegrityError: grpc.StatusCode.DATA_LOSS,
    TransferError: grpc.StatusCode.DATA_LOSS,
    FailedReleaseError: grpc.StatusCode.ABORTED,
    ExpiredReleaseError: grpc.StatusCode.ABORTED,
    VeiltabError: grpc.StatusCode.INTERNAL,
}
"""The status of each kind of error. Several kinds may share one: the detail says which it is."""

HTTP_STATUS: dict[type[VeiltabError], int] = {
    InvalidInputError: 400,
    DeniedError: 403,
    BudgetExceededError: 403,
    NotFoundError: 404,
    ConflictError: 409,
    SpentTokenError: 409,
    ClosedRoundError: 410,
    UnavailableError: 503,
    NotReadyError: 503,
    VeiltabError: 500,
}
"""The same where a party answers over HTTP: reports of nodes, and the pages of consoles."""

NO_CONNECTION = "no connection"
"""The problem where a peer cannot be reached at all."""

_READS_FIRST = " A curator answers once it has read its table."

_MEANINGS: dict[grpc.StatusCode, tuple[type[VeiltabError], str, str]] = {
    grpc.StatusCode.UNAVAILABLE: (
        UnavailableError,
        NO_CONNECTION,
        "Check that it runs, its endpoint in the study file, and that no certificate is expired or of another study.",
    ),
    grpc.StatusCode.DEADLINE_EXCEEDED: (UnavailableError, "no answer before the deadline", "Ask again later."),
    grpc.StatusCode.RESOURCE_EXHAUSTED: (UnavailableError, "the peer is too busy", "Ask again later."),
    grpc.StatusCode.CANCELLED: (UnavailableError, "the call was cancelled; the peer may be stopping", "Ask again."),
    grpc.StatusCode.UNAUTHENTICATED: (DeniedError, "the peer refused this party", ""),
    grpc.StatusCode.PERMISSION_DENIED: (DeniedError, "the peer refused this party", ""),
    grpc.StatusCode.UNIMPLEMENTED: (
        InvalidInputError,
        "the peer does not know this call",
        "Bring both parties to the same version.",
    ),
}
"""What a status that comes from gRPC itself, without a detail, most likely means."""

_BROKEN = ("Internal error from Core", "Stream removed", "RST_STREAM")
"""What gRPC says, under INTERNAL or UNKNOWN, when a connection breaks in the middle of a stream."""

# All of a status, base64 included, must stay below gRPC's 8 KiB of metadata.
_LENGTHS = {"problem": 1024, "where": 256, "remedy": 1024}
_SUMMARY = 256


def to_status(error: VeiltabError) -> Status:
    """Return the google.rpc.Status of an error; texts are cut to a length.

    Args:
        error: what a handler or the authorisation refused with.

    Returns:
        The status, with one ErrorInfo: reason, domain "veiltab", metadata problem, where and remedy.
    """
    texts = {"problem": error.problem, "where": error.where, "remedy": error.remedy}
    info = ErrorInfo(
        reason=error.reason,
        domain=DOMAIN,
        metadata={key: words_from_proto(text, _LENGTHS[key]) for key, text in texts.items()},
    )
    code = next(CODES[cls] for cls in type(error).__mro__ if cls in CODES)
    status = Status(
        code=code.value[0], message=words_from_proto(error.problem.encode("ascii", "replace").decode(), _SUMMARY)
    )
    status.details.add().Pack(info)
    return status


def http_status(error: VeiltabError) -> int:
    """Return the status of an error over HTTP."""
    return next(HTTP_STATUS[cls] for cls in type(error).__mro__ if cls in HTTP_STATUS)


async def abort(context: grpc.aio.ServicerContext[Any, Any], error: VeiltabError) -> None:
    """End an RPC with the status of an error; raises gRPC's AbortError."""
    status = to_status(error)
    code = next(code for code in grpc.StatusCode if code.value[0] == status.code)
    await context.abort(code, status.message, ((DETAILS_KEY, status.SerializeToString()),))


def refusal_of(error: Exception) -> tuple[VeiltabError, str]:
    """Return the answer to a caller for any exception, and the additional text for the local log.

    A veiltab error is returned as it is. A full disk becomes an UnavailableError, and the log names its
    files. Anything else is an incident.
    """
    if isinstance(error, VeiltabError):
        return error, str(error)
    refusal = disk_refusal(error)
    if refusal is not None:
        return refusal, f"{refusal.problem}: {files_of(error) or type(error).__name__}"
    return incident(error)


@contextmanager
def failures_logged(log: logging.Logger, what: str, **extra: str) -> Iterator[None]:
    """Log whatever a block raises, and go on after it; for work that is tried again and must not end the process.

    Args:
        log: of the module that works.
        what: what failed, for the log.
        extra: its fields in the log.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001 - a full disk, or what a peer sent and nobody foresaw
        log.error("%s: %s", what, refusal_of(error)[1], extra={**extra, "error": type(error).__name__})  # noqa: TRY400 - a traceback would show values


async def every(seconds: float, work: Callable[[], Awaitable[object]], log: logging.Logger, what: str) -> None:
    """Do some work, pause, and so on until cancelled; work that fails is logged as by `failures_logged`."""
    while True:
        with failures_logged(log, what):
            await work()
        await asyncio.sleep(seconds)


def incident(error: BaseException) -> tuple[VeiltabError, str]:
    """Return the answer to a caller for an unexpected exception, and the text for the local log.

    Both carry the same random number. Neither carries the exception's text, which may hold values: the log has its
    type and its places in the code.
    """
    number = secrets.token_hex(4)
    places = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in extract_tb(error.__traceback__)]
    refusal = VeiltabError(
        f"an unexpected error, incident {number}", remedy="The log of the party that failed has more under this number."
    )
    return refusal, f"incident {number}: {type(error).__name__} at {' > '.join(places)}"


def error_from_rpc(error: grpc.aio.AioRpcError, peer: str) -> VeiltabError:
    """Return the veiltab error of a failed RPC.

    Args:
        peer: the peer that was called, as in "curator alice", for the person who reads the error.

    Returns:
        The error that the peer raised, of the same class, with the peer before its `where` if that is another; or, if
        the status is gRPC's own, what that most likely means.
    """
    info = _detail(error)
    if info is None:
        return _plain(error, peer)
    text = {key: words_from_proto(info.metadata.get(key, ""), length) for key, length in _LENGTHS.items()}
    where = peer if text["where"] in {"", peer} else f"{peer}, {text['where']}"
    return error_class(info.reason)(text["problem"] or "a refusal without words", where=where, remedy=text["remedy"])


def _detail(error: grpc.aio.AioRpcError) -> ErrorInfo | None:
    """Return veiltab's detail of a status, or None if there is none that can be read."""
    metadata = error.trailing_metadata()
    raw = metadata.get(DETAILS_KEY) if metadata is not None else None
    info = ErrorInfo()
    try:
        packed = Status.FromString(raw).details if isinstance(raw, bytes) else ()
        if not any(detail.Unpack(info) for detail in packed):
            return None
    except DecodeError:
        return None
    return info if info.domain == DOMAIN else None


def _plain(error: grpc.aio.AioRpcError, peer: str) -> VeiltabError:
    """Return what a status without a detail most likely means; it comes from gRPC, not from a handler."""
    code, text = error.code(), error.details() or ""
    # gRPC has one code for a message that is too long and for a server that is too busy; only the text tells them.
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and "larger than max" in text:
        return InvalidInputError("a message is longer than this protocol allows", where=peer)
    # A party that dies while it is sent to shows as a fault of gRPC's own now and then: it is worth a repeat too.
    if code in {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN} and any(sign in text for sign in _BROKEN):
        return UnavailableError("the connection broke", where=peer, remedy="Ask again.")
    unforeseen = (VeiltabError, f"the call failed with {code.name}", "")
    cls, problem, remedy = _MEANINGS.get(code, unforeseen)
    reads_first = code is grpc.StatusCode.UNAVAILABLE and peer.startswith("curator ")
    return cls(problem, where=peer, remedy=remedy + _READS_FIRST if reads_first else remedy)
