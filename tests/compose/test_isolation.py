"""The isolation of containers: what they may do, whom they can reach, and who is let in."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.compose.marks import COMPOSE, Remark
from tests.compose.stack import PARTIES, Stack
from veiltab.common.errors import UnavailableError

pytestmark = COMPOSE

_PORTS = {"alice": 7401, "bob": 7402, "cloud": 7400, "rosa": 7410}
_CALLS = {("alice", "bob"), ("bob", "alice"), ("alice", "cloud"), ("bob", "cloud"), ("rosa", "alice"), ("rosa", "bob")}
_CALLS |= {("rosa", "cloud")}
_NETWORKS = {
    "alice": {"curators", "ingest"},
    "bob": {"curators", "ingest"},
    "cloud": {"ingest", "results", "nodes"},
    "rosa": {"curators", "results", "desk"},
}


def test_containers_have_no_privileges(stack: Stack, remark: Remark) -> None:
    for party, service in PARTIES.items():
        seen, inspected = stack.probe(party, "privileges"), stack.inspect(party)
        status = seen["status"]
        ids = {*status["Uid"].split(), *status["Gid"].split(), *status["Groups"].split()}
        assert "0" not in ids, f"{service} runs as {status['Uid']}"
        capabilities = {name: value for name, value in status.items() if name.startswith("Cap") and int(value, 16)}
        assert not capabilities, f"{service} has {capabilities}"
        assert status["NoNewPrivs"] == "1", f"{service} can gain privileges"
        assert status["Seccomp"] == "2", f"{service} may call what it likes"
        assert seen["read_only"], f"{service} has a file system that can be written to"
        volumes = ["/srv/veiltab", "/var/lib/veiltab"] if party == "rosa" else ["/var/lib/veiltab"]
        writable = sorted(["/tmp", *volumes])  # noqa: S108 - a file system of its own
        assert seen["writable"] == writable, f"{service} can write to {seen['writable']}"
        assert seen["memory"] == 1 << 30, f"{service} may take {seen['memory']} bytes"
        assert seen["pids"] == 256, f"{service} may have {seen['pids']} processes"
        files = sorted([f"{party}.key", f"{party}.pem", "ca.pem"])
        assert seen["identity"] == files, f"{service}: {seen['identity']}"
        rights = {mount["Destination"]: mount["RW"] for mount in inspected["Mounts"]}
        stores = sorted(path for path, writes in rights.items() if writes)
        assert stores == volumes, f"{service}: {rights}"
        assert set(stack.addresses(party)) == _NETWORKS[party], f"{service} is in {set(stack.addresses(party))}"
    remark("uid not 0, no capabilities, read-only, no new privileges, seccomp, 1 GiB, 256 processes")


def test_only_the_connections_of_the_protocol_open(stack: Stack, remark: Remark) -> None:
    addresses = {party: stack.addresses(party) for party in PARTIES}
    tried = 0
    for caller in PARTIES:
        others = [party for party in PARTIES if party != caller]
        expected = {f"{party}:{_PORTS[party]}" for party in others if (caller, party) in _CALLS}
        targets = {f"{party}:{_PORTS[party]}" for party in others}
        targets |= {f"{PARTIES[party]}:{_PORTS[party]}" for party in others if (caller, party) not in _CALLS}
        for party in others:
            if (caller, party) not in _CALLS:
                targets |= {f"{address}:{_PORTS[party]}" for address in addresses[party].values()}
        seen = stack.probe(caller, "ports", *sorted(targets))
        open_ports = {target for target, outcome in seen.items() if outcome == "open"}
        assert open_ports == expected, f"{caller} reaches {sorted(open_ports)} and should reach {sorted(expected)}"
        tried += len(seen)
    everyone = {f"{address}:{_PORTS[party]}" for party in PARTIES for address in addresses[party].values()}
    node = stack.probe_without_identity(stack.network("nodes"), "ports", "cloud:7400", *sorted(everyone))
    open_ports = {target for target, outcome in node.items() if outcome == "open"}
    assert open_ports == {"cloud:7400", f"{addresses['cloud']['nodes']}:7400"}, f"a node reaches {sorted(open_ports)}"
    tried += len(node)
    server = stack.probe("cloud", "ports", *(f"{address}:7401" for address in addresses["alice"].values()))
    outcomes = ", ".join(f"{network} {server[f'{address}:7401']}" for network, address in addresses["alice"].items())
    remark(f"{tried} connections tried, {len(_CALLS)} open; cloud to alice: {outcomes}")


def test_no_party_reaches_beyond_its_networks(stack: Stack, remark: Remark) -> None:
    internal = {name for name, known in stack.networks().items() if known["Internal"]}
    assert internal == {"curators", "ingest", "results", "nodes"}, f"only {internal} are internal"
    outside = _outside()
    with _listener(stack) as port:
        gateways = {name: f"{address}:{port}" for name, address in _gateways(stack).items()}
        own = stack.probe_without_identity("host", "ports", f"127.0.0.1:{port}")
        assert set(own.values()) == {"open"}, "the listener does not answer"
        for party in PARTIES:
            seen = stack.probe(party, "ports", *gateways.values(), *outside)
            open_ports = {target for target, outcome in seen.items() if outcome == "open"}
            allowed = {gateways["desk"]} if party == "rosa" else set()
            assert open_ports <= allowed, f"{party} reaches {sorted(open_ports - allowed)}"
    control = stack.probe_without_identity("bridge", "ports", *outside) if outside else {}
    connected = "open" in control.values()
    remark("neither this machine nor " + ("the internet" if connected else "(no internet here to judge by) others"))


def test_without_a_certificate_of_the_right_role_nobody_is_let_in(stack: Stack, remark: Remark) -> None:
    own = stack.probe("alice", "greet", "/etc/veiltab/identity", "cloud:7400", "bob:7402")
    assert set(own.values()) == {"answers"}, f"with a certificate: {own}"
    for network, targets in {
        "curators": ("alice:7401", "bob:7402"),
        "ingest": ("cloud:7400",),
        "results": ("cloud:7400",),
        "desk": ("rosa:7410",),
    }.items():
        seen = stack.probe_without_identity(stack.network(network), "greet", "none", *targets)
        refused = all(outcome in {"closed", "ECONNRESET"} or outcome.startswith("TLS") for outcome in seen.values())
        assert refused, f"without a certificate in {network}: {seen}"
    said = _health_of_alice(stack, "server-cloud")
    assert "not among the parties that may call here" in said, f"cloud at alice: {said}"
    said = _health_of_alice(stack, "researcher-rosa")
    assert "serves at" in said, f"rosa at alice: {said}"
    remark("no certificate: refused by TLS; the server's, inside the curators' network: denied")


def _health_of_alice(stack: Stack, caller: str) -> str:
    """Ask alice for her health with another's certificate, inside the curators' network; return what is said."""
    user = stack.inspect("alice")["Config"]["User"]
    command = ["run", "--rm", "--network", stack.network("curators"), "--user", user]
    command += ["--volume", f"{stack.folder}/study.toml:/study.toml:ro"]
    command += ["--volume", f"{stack.folder}/pki/{caller}:/identity:ro", stack.image]
    try:
        return stack.engine.run(
            *command, "status", "/study.toml", "--identity", "/identity", "--serves", "curator/alice"
        )
    except UnavailableError as error:
        return error.problem


def _gateways(stack: Stack) -> dict[str, str]:
    """Return network -> the address that this machine would have in it."""
    return {name: known["IPAM"]["Config"][0]["Gateway"] for name, known in stack.networks().items()}


def _outside() -> list[str]:
    """Return addresses outside this machine that are likely to answer."""
    seen = []
    for host, port in (("deb.debian.org", 80), ("pypi.org", 443)):
        try:
            seen.append(f"{socket.gethostbyname(host)}:{port}")
        except OSError:
            continue
    return seen


@contextmanager
def _listener(stack: Stack) -> Iterator[int]:
    """Listen at every address of this machine while the block lasts; give the port."""
    code = "import socket; s = socket.create_server(('0.0.0.0', 0)); print(s.getsockname()[1], flush=True)"
    code += "\nwhile True: s.accept()[0].close()"
    with subprocess.Popen(
        [*stack.engine.host, sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield int(process.stdout.readline() if process.stdout else 0)
        finally:
            process.kill()
