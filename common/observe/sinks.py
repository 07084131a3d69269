"""Sinks of a party's steps: metrics, and spans for a collector; each is optional."""

import ipaddress
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from veiltab.common.command.cli import note
from veiltab.common.extras import importing
from veiltab.common.observe.service import StatusServicer
from veiltab.common.observe.status import Observation
from veiltab.common.rpc.address import loopback_address
from veiltab.common.rpc.parties.identity import Identity
from veiltab.common.rpc.server import Registration
from veiltab.v1.status_pb2_grpc import add_StatusServiceServicer_to_server

HEARD = ("veiltab.common.observe.steps", "veiltab.common.rpc.authorisation", "veiltab.common.rpc.connections")
"""The loggers whose records the sinks get: steps, refusals, and connections."""

COLLECTOR = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
"""Environment variables that name an OpenTelemetry collector."""

_log = logging.getLogger(__name__)


@contextmanager
def observing(identity: Identity, observe: Callable[[], Observation], *, metrics: str | None) -> Iterator[Registration]:
    """Attach the configured sinks; yield the registration of the status service.

    Args:
        observe: returns the party's observation; called in threads.
        metrics: where to serve metrics, as `loopback_address` reads it.

    Raises:
        InvalidInputError: a sink cannot be opened, or its package is not installed.
    """
    with ExitStack() as stack:
        if any(os.environ.get(name) for name in COLLECTOR):
            stack.enter_context(listening(_spans(identity)))
        if metrics is not None:
            stack.enter_context(_metrics(identity, observe, metrics))
        yield partial(add_StatusServiceServicer_to_server, StatusServicer(identity, observe))


@contextmanager
def listening(sink: logging.Handler) -> Iterator[None]:
    """Send a sink all steps, refusals and connections, also those that stderr does not show; then close it."""
    loggers = [logging.getLogger(name) for name in HEARD]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(sink)
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.removeHandler(sink)
            logger.setLevel(level)
        sink.close()


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches a host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def _metrics(identity: Identity, observe: Callable[[], Observation], text: str) -> Iterator[None]:
    host, port = loopback_address(text, "--metrics")
    with importing("metrics", "serving metrics", where="--metrics"):
        from veiltab.common.observe.metrics import serving_metrics  # noqa: PLC0415 - not where the extra is missing
    if not is_loopback(host):
        _log.warning("metrics are served beyond this machine, without TLS, to anyone who asks")
    with serving_metrics(identity, observe, (host, port)) as (sink, bound):
        note(f"metrics at http://{f'[{host}]' if ':' in host else host}:{bound}/metrics")
        with listening(sink):
            yield


def _spans(identity: Identity) -> logging.Handler:
    with importing("otel", "a trace", where=COLLECTOR[1]):
        from veiltab.common.observe.tracing import Spans  # noqa: PLC0415 - not where the extra is missing
    return Spans(identity.party)
