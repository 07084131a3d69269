"""A relay's metrics for Prometheus: names of parties, numbers of connections and bytes; never a release."""

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from veiltab.common.observe.metrics import scraped
from veiltab.common.observe.sinks import loopback_address
from veiltab.deploy.relay.meeting_point import MeetingPoint


class RelayCollector(Collector):
    """Reads a relay's figures at each scrape."""

    def __init__(self, point: MeetingPoint) -> None:
        self._point = point

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        """Return the figures."""
        parked = GaugeMetricFamily("veiltab_relay_parked", "Connections that wait, by party.", labels=["party"])
        for party, number in self._point.parked.items():
            parked.add_metric([str(party)], number)
        yield parked
        yield GaugeMetricFamily("veiltab_relay_pairs", "Pairs of connections.", value=self._point.pairs)
        passed = CounterMetricFamily("veiltab_relay_bytes", "Bytes that a party sent.", labels=["party"])
        for party, number in self._point.bytes.copy().items():
            passed.add_metric([str(party)], number)
        yield passed
        refused = CounterMetricFamily("veiltab_relay_refused", "Refusals by cause.", labels=["cause"])
        for cause, number in self._point.refusals.copy().items():
            refused.add_metric([cause], number)
        yield refused


@contextmanager
def relay_metrics(point: MeetingPoint, address: str) -> Iterator[int]:
    """Serve a relay's metrics at PORT or HOST:PORT; yield the port."""
    registry = CollectorRegistry()
    registry.register(RelayCollector(point))
    with scraped(registry, loopback_address(address, "--metrics")) as port:
        yield port
