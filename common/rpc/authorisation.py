"""Who may call: one interceptor between TLS and every handler.

TLS has verified that the study's authority issued the caller's certificate. Each call is then admitted only if
  1. its RPC declares roles by the method option (veiltab.v1.callers): one that declares none admits nobody;
  2. the certificate names exactly one party, of this study, that the study file names, in one of those roles;
  3. the certificate is within its lifetime now, since a connection outlives its certificate, and not revoked;
  4. it has a deadline, and its caller has not too many calls under way.
All this happens before a byte of the request is read; only a node's call takes its place when its message is here, for
its place is everybody's. The first three are looked at again before each message of a stream of answers.

A refusal or a veiltab error of a handler becomes a status with a detail; anything else that a handler raises becomes an
incident number, and its text stays here.
"""

import inspect
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias

import grpc
from google.protobuf.descriptor_pool import Default
from google.protobuf.message import DecodeError

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import (
    DeniedError,
    InvalidInputError,
    NotFoundError,
    NotReadyError,
    UnavailableError,
    VeiltabError,
)
from veiltab.common.rpc.call_id import begin_request
from veiltab.common.rpc.connections import Connections
from veiltab.common.rpc.first_message import FirstMessages, only_message
from veiltab.common.rpc.parties.identity import Clock, Party, PartyCertificate, Role, party_of_certificate, utc_now
from veiltab.common.rpc.parties.revocation import RevocationList
from veiltab.common.rpc.statuses import abort, refusal_of
from veiltab.v1 import access_pb2

HEALTH = "grpc.health.v1.Health"
"""The one service that declares no roles and is open to every party of the study."""

STATUS = "veiltab.v1.StatusService"
"""The one service that is for the party alone whose server it is on: it asks itself, through its command line."""

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
if TYPE_CHECKING:
    Handler: TypeAlias = grpc.RpcMethodHandler[Any, Any]
else:  # generic for the type checker only
    Handler = grpc.RpcMethodHandler

_log = logging.getLogger(__name__)
_ROLES = {
    access_pb2.ROLE_CURATOR: Role.CURATOR,
    access_pb2.ROLE_SERVER: Role.SERVER,
    access_pb2.ROLE_RESEARCHER: Role.RESEARCHER,
    access_pb2.ROLE_NODE: Role.NODE,
    access_pb2.ROLE_ANALYST: Role.ANALYST,
}
_read_certificate = lru_cache(maxsize=1024)(party_of_certificate)


@lru_cache(maxsize=1024)
def declared_roles(method: str) -> frozenset[Role]:
    """Return the roles that may call an RPC; none if it declares none or its descriptor is unknown.

    Args:
        method: full name as gRPC spells it, "/package.Service/Method".
    """
    service, _, name = method.removeprefix("/").partition("/")
    if service == HEALTH:
        return frozenset(Role)
    try:
        # The generated types name an extension by its descriptor, which the types of protobuf do not take.
        options: Any = Default().FindServiceByName(service).methods_by_name[name].GetOptions()
    except KeyError:
        return frozenset()
    return frozenset(_ROLES[number] for number in options.Extensions[access_pb2.callers] if number in _ROLES)


def certificate_of(context: Context) -> PartyCertificate:
    """Return what the certificate on a call's connection says; raises DeniedError if it names no party."""
    pems = tuple(context.auth_context().get("x509_pem_cert", ()))
    if len(pems) != 1:
        raise DeniedError("the caller shows no certificate")
    try:
        return _read_certificate(pems[0])
    except InvalidInputError as error:
        raise DeniedError(error.problem) from None


def caller(context: Context) -> Party:
    """Return the party that makes a call, for handlers: the authorisation has admitted it."""
    return certificate_of(context).party


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """The rule by which calls are admitted.

    Args:
        peers: the parties that may call at all, as the study file names them.
        longest_call: most seconds until a call's deadline.
        longest_call_of_nodes: the same for nodes, who are many: one of them must not hold the others' places for long.
        calls_each: most calls of one party at a time, so that none can keep the others out.
        calls_nodes: the same for the nodes, who are many under one name.
        own: whose server this is; it alone may ask for its status.
        revocations: certificates that no longer count.
    """

    study: str
    peers: frozenset[Party]
    longest_call: float = 3600.0
    longest_call_of_nodes: float = 20.0
    calls_each: int = 64
    calls_nodes: int = 768
    clock: Clock = utc_now
    own: Party | None = None
    revocations: RevocationList | None = None

    def check_caller(self, certificate: PartyCertificate, method: str) -> None:
        """Raise DeniedError unless this certificate may call this RPC now."""
        party, roles = certificate.party, declared_roles(method)
        if not roles:
            raise DeniedError("this RPC declares no callers, so nobody may call it")
        if party.study != self.study:
            raise DeniedError("the caller's certificate is of another study")
        if party.role not in roles:
            raise DeniedError(f"{party.role.with_article} may not call this RPC")
        if party not in self._admitted(method.removeprefix("/").partition("/")[0]):
            raise DeniedError("the caller is not among the parties that may call here")
        try:
            certificate.check_lifetime(self.clock())
        except InvalidInputError as error:
            raise DeniedError(error.problem, remedy=error.remedy) from None
        if self.revocations is not None and self.revocations.revokes(certificate.serial):
            raise DeniedError("the caller's certificate was revoked", remedy="Ask the study's organiser for a new one.")

    def _admitted(self, service: str) -> frozenset[Party | None]:
        """Return who may call a service: its status is the party's own, and its health also the party's own."""
        if service == STATUS:
            return frozenset({self.own})
        return self.peers | {self.own} if service == HEALTH else self.peers

    def check_deadline(self, party: Party, seconds: float | None) -> None:
        """Raise InvalidInputError unless the call has a deadline that is not too far away."""
        longest = self.longest_call_of_nodes if party.role.is_many else self.longest_call
        if seconds is None or seconds > longest:
            raise InvalidInputError(
                f"the call has no deadline, or one later than {longest:.0f} s", remedy="Give the call a timeout."
            )


class Gatekeeper(grpc.aio.ServerInterceptor):
    """The interceptor that admits or refuses every call of a server by one rule.

    gRPC sees each handler as one that streams requests: it would otherwise read the whole request, however slowly it
    comes, before the caller is checked.
    """

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._calls: Counter[Party] = Counter()
        self._handlers: dict[str, Handler] = {}
        self._next_line: dict[tuple[str, str, str], float] = {}
        self._connections = Connections()
        self._first_messages = FirstMessages()

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Return the guarded handler of an RPC, always the same one; an unknown method stays gRPC's to refuse."""
        method = handler_call_details.method
        if method not in self._handlers:
            handler = await continuation(handler_call_details)
            if handler is None:
                return None
            self._handlers[method] = self._guarded(method, handler)
        return self._handlers[method]

    def _guarded(self, method: str, handler: Handler) -> Handler:
        """Put the admission before a handler and the error table behind it."""
        behaviour = _behaviour(handler)

        async def respond(requests: AsyncIterator[Any], context: Context) -> object:
            async with self._admitted(method, context, handler) as message:
                answer = await behaviour(requests if message is None else message, context)
                # Here a failure becomes an incident; gRPC would send its text to the caller.
                return answer if handler.response_serializer is None else handler.response_serializer(answer)

        async def stream(requests: AsyncIterator[Any], context: Context) -> None:
            async with self._admitted(method, context, handler) as message:
                request = requests if message is None else message
                if not inspect.isasyncgenfunction(behaviour):
                    await behaviour(request, context)
                    return
                certificate = certificate_of(context)
                async with aclosing(behaviour(request, context)) as responses:
                    async for response in responses:
                        # A stream may outlive its caller's certificate.
                        self._admission.check_caller(certificate, method)
                        await context.write(response)

        if handler.response_streaming:
            return grpc.stream_stream_rpc_method_handler(
                _forgetful(stream), handler.request_deserializer, handler.response_serializer
            )
        return grpc.stream_unary_rpc_method_handler(_forgetful(respond), handler.request_deserializer, None)

    @asynccontextmanager
    async def _admitted(self, method: str, context: Context, handler: Handler) -> AsyncIterator[object | None]:
        """Refuse the call, or let it run with its one message, if it has one, and translate what it raises."""
        begin_request()
        self._connections.called(context.peer())
        party: Party | None = None
        try:
            certificate = certificate_of(context)
            party = certificate.party
            self._admission.check_caller(certificate, method)
            self._admission.check_deadline(party, context.time_remaining())
            has_message, message = not handler.request_streaming, None
            if has_message and party.role is Role.NODE:
                message = await self._first_messages.read(context, partial(self._refuse, method, party, context))
            self._check_number(party)
            self._calls[party] += 1
            try:
                yield await only_message(context) if has_message and message is None else message
            finally:
                self._calls[party] -= 1
        except grpc.aio.BaseError:
            raise  # gRPC's own: aborted by the handler, or the connection is gone
        except DecodeError:
            await self._refuse(method, party, context, InvalidInputError("the request is not a message of this RPC"))
        except VeiltabError as error:
            await self._refuse(method, party, context, error)
        except Exception as error:  # noqa: BLE001 - whatever it is, its text must not reach the caller
            refusal, logged = refusal_of(error)
            # No traceback: it would show values.
            _log.error("%s: %s", method, logged, extra={"rpc": method, "reason": refusal.reason})
            await abort(context, refusal)

    async def _refuse(self, method: str, party: Party | None, context: Context, error: VeiltabError) -> None:
        """End a call with a refusal, and log it once a second for each method, caller and reason."""
        # What is not there yet is asked for again and again in the course of a release.
        level = logging.INFO if isinstance(error, NotReadyError | NotFoundError) else logging.WARNING
        who = party.uri if party else "?"
        key, now = (method, who, error.reason), time.monotonic()
        if now >= self._next_line.get(key, 0):
            self._next_line[key] = now + 1
            _log.log(
                level,
                "%s refused to %s: %s: %s",
                *(method, who, error.reason, error.problem),
                extra={"rpc": method, "reason": error.reason},
            )
        await abort(context, error)

    def _check_number(self, party: Party) -> None:
        """Refuse a call of a party that has as many under way as it may."""
        most = self._admission.calls_nodes if party.role.is_many else self._admission.calls_each
        if self._calls[party] >= most:
            raise UnavailableError(f"the caller has {most} calls under way here already", remedy="Ask again later.")


def _forgetful(behaviour: Callable[[Any, Any], Awaitable[object]]) -> Callable[[Any, Any], Awaitable[object]]:
    """Let nothing that a call sent outlive its refusal.

    gRPC keeps the error that ended a call beside the call, in a circle; its traceback would keep every message that
    the handlers had read until Python looks for circles, which many small requests with long texts do not make it do.
    """

    async def respond(requests: AsyncIterator[Any], context: Context) -> object:
        try:
            return await behaviour(requests, context)
        except grpc.aio.AbortError as error:
            error.__context__ = None
            raise error.with_traceback(None) from None

    return respond


def _behaviour(handler: Handler) -> Callable[[Any, Any], Any]:
    """Return the function of a handler, whichever of the four kinds it is."""
    kinds = (handler.unary_unary, handler.unary_stream, handler.stream_unary, handler.stream_stream)
    return next(kind for kind in kinds if kind is not None)
