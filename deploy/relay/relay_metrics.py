"""A relay's metrics for Prometheus: names of parties, numbers of connections and bytes; never a release."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from veiltab.common.observe.metrics import scraped
from veiltab.common.rpc.address import loopback_address
from veiltab.deploy.relay.meeting_point import MeetingPoint

_Family = GaugeMetricFamily | CounterMetricFamily


class RelayCollector(Collector):
    """Reads a relay's figures at each scrape."""

    def __init__(self, point: MeetingPoint) -> None:
        self._point = point

    def collect(self) -> Iterator[_Family]:
        """Return the figures."""
        parked = GaugeMetricFamily("veiltab_relay_parked", "Connections that wait, by party.", labels=["party"])
        yield _filled(parked, self._point.parked)
        yield GaugeMetricFamily("veiltab_relay_pairs", "Pairs of connections.", value=self._point.pairs())
        passed = CounterMetricFamily("veiltab_relay_bytes", "Bytes that a party sent.", labels=["party"])
        yield _filled(passed, self._point.bytes.copy())
        refused = CounterMetricFamily("veiltab_relay_refused", "Refusals by cause.", labels=["cause"])
        yield _filled(refused, self._point.refusals.copy())


def _filled(family: _Family, numbers: Mapping[Any, int]) -> _Family:
    for label, number in numbers.items():
        family.add_metric([str(label)], number)
    return family


@contextmanager
def relay_metrics(point: MeetingPoint, address: str) -> Iterator[int]:
    """Serve a relay's metrics at PORT or HOST:PORT; yield the port."""
    registry = CollectorRegistry()
    registry.register(RelayCollector(point))
    with scraped(registry, loopback_address(address, "--metrics")) as port:
        yield port
