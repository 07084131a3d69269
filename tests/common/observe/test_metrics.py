import logging
import urllib.error
import urllib.request
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from tests.conftest import refuses
from veiltab.common.errors import InvalidInputError
from veiltab.common.observe.metrics import MetricsSink, PartyCollector, serving_metrics
from veiltab.common.observe.sinks import is_loopback, listening, observing
from veiltab.common.observe.status import Budget, Observation
from veiltab.common.observe.steps import release_ended, state_left, step
from veiltab.common.rpc.address import loopback_address
from veiltab.common.rpc.connections import Connections, connection_opened
from veiltab.common.rpc.parties.identity import Identity, Role, load_identity
from veiltab.common.study.file import Study
from veiltab.deploy.pki.certificates import init_pki

ID = "ab" * 16
SEEN = Observation(
    counts={("release", "ready"): 3, ("release", "failed"): 0, ("round", "open"): 2},
    queues={"reports": 7},
    budgets=(Budget(protects="respondents", epsilon=Decimal("3.5"), left=Decimal("1.25")),),
)


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory, study: Study) -> Identity:
    folders = tmp_path_factory.mktemp("identity") / "pki"
    init_pki(study, folders)
    return load_identity(folders / "server-cloud", Role.SERVER, "cloud")


@pytest.fixture
def counting() -> Iterator[CollectorRegistry]:
    registry = CollectorRegistry()
    with listening(MetricsSink(registry)):
        yield registry


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(name, labels)


def test_steps_and_their_bytes_are_counted(counting: CollectorRegistry) -> None:
    for size in (3, 4):
        with step("encrypt", release_id=ID, attribute="sex", size=size):
            pass
    with pytest.raises(ValueError, match="no"), step("encrypt", release_id=ID):
        raise ValueError("no")
    assert value(counting, "veiltab_step_seconds_count", step="encrypt", outcome="done") == 2
    assert value(counting, "veiltab_step_seconds_count", step="encrypt", outcome="failed") == 1
    assert value(counting, "veiltab_bytes_total", step="encrypt") == 7
    assert value(counting, "veiltab_bytes_total", step="plan") is None


def test_states_reports_and_ends_are_counted(counting: CollectorRegistry) -> None:
    state_left("charged", release_id=ID, seconds=30.0)
    release_ended("denied", release_id=ID, seconds=31.0)
    with step("count reports", round_id=ID, reports=5):
        pass
    assert value(counting, "veiltab_state_seconds_sum", state="charged") == 30
    assert value(counting, "veiltab_state_seconds_bucket", state="charged", le="10.0") == 0
    assert value(counting, "veiltab_state_seconds_bucket", state="charged", le="60.0") == 1
    assert value(counting, "veiltab_step_seconds_sum", step="release", outcome="denied") == 31
    assert value(counting, "veiltab_reports_total") == 5


def test_refusals_are_counted_by_rpc_and_reason(counting: CollectorRegistry) -> None:
    log = logging.getLogger("veiltab.common.rpc.authorisation")
    for level in (logging.INFO, logging.WARNING):
        log.log(level, "refused", extra={"rpc": "/a.B/C", "reason": "DENIED"})
    log.info("something else")
    assert value(counting, "veiltab_refused_rpcs_total", rpc="/a.B/C", reason="DENIED") == 2


def test_connections_are_counted_by_their_way(counting: CollectorRegistry) -> None:
    connections = Connections(most=2)
    for peer in ("ipv4:10.0.0.1:5", "ipv4:10.0.0.1:5", "ipv4:10.0.0.1:6", "ipv4:10.0.0.1:5", "ipv4:10.0.0.1:7"):
        connections.called(peer)
    assert value(counting, "veiltab_connections_total", way="grpc") == 3
    # What called last is remembered; what did not, counts again.
    connections.called("ipv4:10.0.0.1:5")
    connections.called("ipv4:10.0.0.1:6")
    assert value(counting, "veiltab_connections_total", way="grpc") == 4
    connection_opened("https")
    assert value(counting, "veiltab_connections_total", way="https") == 1


def test_no_label_names_a_release_or_an_attribute(counting: CollectorRegistry) -> None:
    with step("encrypt", release_id=ID, attribute="sex", size=3):
        pass
    state_left("charged", release_id=ID, seconds=1.0)
    labels = {text for family in counting.collect() for sample in family.samples for text in sample.labels.values()}
    assert not {text for text in labels if ID in text or "sex" in text}


def test_a_scrape_asks_the_party(identity: Identity) -> None:
    now = [SEEN]
    with serving_metrics(identity, lambda: now[0], ("127.0.0.1", 0)) as (_, port):
        first = scraped(port)
        now[0] = Observation(counts={("release", "ready"): 4})
        second = scraped(port)
    assert first["veiltab_releases", "ready"] == 3
    assert first["veiltab_releases", "failed"] == 0
    assert first["veiltab_rounds", "open"] == 2
    assert first["veiltab_queue_depth", "reports"] == 7
    assert first["veiltab_budget_epsilon", "respondents", "survey"] == 3.5
    assert first["veiltab_budget_left_epsilon", "respondents", "survey"] == 1.25
    assert first["veiltab_certificate_end_seconds",] == identity.certificate_facts.not_after.timestamp()
    assert first["process_resident_memory_bytes",] > 1e6
    assert {key[1:] for key in first if key[0] == "veiltab_party"} == {("cloud", "server", "survey", "0.1.0")}
    assert second["veiltab_releases", "ready"] == 4
    assert ("veiltab_queue_depth", "reports") not in second
    assert not any("created" in key[0] for key in first)
    with pytest.raises(urllib.error.URLError):
        scraped(port)


def scraped(port: int) -> dict[tuple[str, ...], float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return figures(answer.read().decode())


def figures(text: str) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_party_that_cannot_say_now_leaves_its_figures_out(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], identity: Identity
) -> None:
    def broken() -> Observation:
        raise ValueError("id 4711")

    assert list(PartyCollector("survey", broken).collect()) == []
    with serving_metrics(identity, broken, ("127.0.0.1", 0)) as (_, port):
        assert not any(key[0] == "veiltab_releases" for key in scraped(port))
    assert [getattr(record, "error", "") for record in caplog.records] == ["ValueError"] * 2
    assert "4711" not in caplog.text + capfd.readouterr().err


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("9464", ("127.0.0.1", 9464)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("[::1]:9464", ("::1", 9464)),
        ("0.0.0.0:9464", ("0.0.0.0", 9464)),  # noqa: S104 - it is refused nowhere, only warned of
        ("localhost:1", ("localhost", 1)),
    ],
)
def test_an_address_is_loopback_unless_a_host_is_named(text: str, address: tuple[str, int]) -> None:
    assert loopback_address(text, "--metrics") == address
    assert is_loopback(address[0]) == (address[0] != "0.0.0.0")  # noqa: S104 - as above


@pytest.mark.parametrize("text", ["", ":", ":9464", "host", "host:", "host:x", "host:65536", "host:-1", "host:\u0661"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with refuses(InvalidInputError, where="--metrics"):
        loopback_address(text, "--metrics")


def serving_at(identity: Identity, metrics: str) -> Any:  # noqa: ANN401 - a context manager
    return observing(identity, lambda: SEEN, metrics=metrics)


def test_metrics_beyond_this_machine_are_warned_of(
    identity: Identity, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving_at(identity, "127.0.0.1:0"):
        assert "metrics at http://127.0.0.1:" in capsys.readouterr().err
    assert not caplog.records
    with serving_at(identity, "0.0.0.0:0"):
        pass
    assert "beyond this machine" in caplog.text


def test_a_port_that_is_taken_is_refused(identity: Identity) -> None:
    with (
        serving_metrics(identity, lambda: SEEN, ("127.0.0.1", 0)) as (_, port),
        pytest.raises(InvalidInputError, match="cannot be served here"),
        serving_at(identity, str(port)),
    ):
        pass


def test_what_was_opened_is_closed_when_another_sink_cannot_be(identity: Identity) -> None:
    with pytest.raises(InvalidInputError, match="PORT or HOST:PORT"), observing(identity, lambda: SEEN, metrics="x"):
        pass
    assert not logging.getLogger("veiltab.common.observe.steps").handlers
