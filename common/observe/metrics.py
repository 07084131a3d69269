"""Metrics for Prometheus; the package of the extra `metrics` is needed for this alone.

Counters come from the log records of steps, refusals and connections. Gauges (releases by state, the remaining budget)
are read from the party at each scrape. Labels are steps, states, RPCs and reasons: never a release, an attribute or a
peer.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    start_http_server,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from veiltab.common.errors import InvalidInputError
from veiltab.common.observe.status import Observation
from veiltab.common.rpc.parties.identity import Identity

_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800)
_WAITING = (1, 10, 60, 600, 3600, 6 * 3600, 24 * 3600, 7 * 24 * 3600)
_log = logging.getLogger(__name__)


class MetricsSink(logging.Handler):
    """Counts steps, times in a state, bytes, reports, refusals and connections.

    Args:
        registry: where the figures are registered.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__()
        self._steps = Histogram(
            "veiltab_step_seconds", "Duration of steps.", ("step", "outcome"), buckets=_SECONDS, registry=registry
        )
        self._states = Histogram(
            "veiltab_state_seconds",
            "How long releases were in a state here, waiting included.",
            ("state",),
            buckets=_WAITING,
            registry=registry,
        )
        self._bytes = Counter("veiltab_bytes", "Bytes that steps moved or made.", ("step",), registry=registry)
        self._reports = Counter("veiltab_reports", "Reports of nodes that were counted.", registry=registry)
        self._refused = Counter(
            "veiltab_refused_rpcs", "Calls refused, by RPC and reason.", ("rpc", "reason"), registry=registry
        )
        self._connections = Counter("veiltab_connections", "Clients that connected.", ("way",), registry=registry)

    def emit(self, record: logging.LogRecord) -> None:
        """Count one record."""
        fields = record.__dict__
        if "rpc" in fields:
            self._refused.labels(fields["rpc"], fields["reason"]).inc()
        elif "step" in fields:
            self._steps.labels(fields["step"], fields["outcome"]).observe(fields["seconds"])
            if fields["bytes"] is not None:
                self._bytes.labels(fields["step"]).inc(fields["bytes"])
            self._reports.inc(fields["reports"] or 0)
        elif "way" in fields:
            self._connections.labels(fields["way"]).inc()
        elif "seconds" in fields:
            self._states.labels(fields["state"]).observe(fields["seconds"])


class PartyCollector(Collector):
    """Reads a party's gauges at each scrape.

    Args:
        study: the study's id, a label of the budget's gauges.
        observe: returns the party's observation.
    """

    def __init__(self, study: str, observe: Callable[[], Observation]) -> None:
        self._study = study
        self._observe = observe

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Return the gauges; none if the party cannot read them now."""
        try:
            observation = self._observe()
        except Exception as error:  # noqa: BLE001 - a traceback of the scraping thread would show values
            _log.warning("no figures for a scrape", extra={"error": type(error).__name__})
            return
        for kind in ("release", "round"):
            standing = GaugeMetricFamily(f"veiltab_{kind}s", f"{kind.title()}s by state.", labels=["state"])
            for (of, state), number in observation.counts.items():
                if of == kind:
                    standing.add_metric([state], number)
            yield standing
        depths = GaugeMetricFamily("veiltab_queue_depth", "What waits to be done.", labels=["queue"])
        for queue, depth in observation.queues.items():
            depths.add_metric([queue], depth)
        yield depths
        yield from self._budgets(observation)

    def _budgets(self, observation: Observation) -> Iterator[GaugeMetricFamily]:
        labels = ["study", "protects"]
        whole = GaugeMetricFamily("veiltab_budget_epsilon", "The privacy budget, nats.", labels=labels)
        rest = GaugeMetricFamily("veiltab_budget_left_epsilon", "What is left of it, nats.", labels=labels)
        for budget in observation.budgets:
            whole.add_metric([self._study, budget.protects], float(budget.epsilon))
            rest.add_metric([self._study, budget.protects], float(budget.left))
        yield whole
        yield rest


@contextmanager
def serving_metrics(
    identity: Identity, observe: Callable[[], Observation], address: tuple[str, int]
) -> Iterator[tuple[MetricsSink, int]]:
    """Serve a party's metrics; yield the sink that counts, and the port.

    Args:
        observe: returns the party's observation; called in a thread.
        address: host and port; port 0 takes a free one.

    Raises:
        InvalidInputError: the address cannot be bound.
    """
    # The extra series with each counter's creation time is redundant beside timestamps.
    disable_created_metrics()  # type: ignore[no-untyped-call] # not typed yet
    registry = CollectorRegistry()
    party = identity.party
    about = Gauge("veiltab_party", "Which party this is.", ("study", "role", "name", "version"), registry=registry)
    about.labels(party.study, party.role.value, party.name, version("veiltab")).set(1)
    ends = Gauge("veiltab_certificate_end_seconds", "Unix time at which the certificate ends.", registry=registry)
    ends.set(identity.certificate_facts.not_after.timestamp())
    ProcessCollector(registry=registry)
    sink = MetricsSink(registry)
    registry.register(PartyCollector(party.study, observe))
    with scraped(registry, address) as port:
        yield sink, port


@contextmanager
def scraped(registry: CollectorRegistry, address: tuple[str, int]) -> Iterator[int]:
    """Serve a registry's figures at a host and port; yield the port.

    Raises:
        InvalidInputError: the address cannot be bound.
    """
    try:
        server, thread = start_http_server(address[1], address[0], registry)
    except OSError as error:
        raise InvalidInputError(
            f"metrics cannot be served here ({error.strerror})", where="--metrics", remedy="Name another HOST:PORT."
        ) from None
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
