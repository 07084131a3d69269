"""The walls between containers: what they may do, whom they can reach, and who is let in."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from veiltab.common.errors import VeiltabError
from veiltab.deploy.compose.stack import PARTIES, Stack, require

_DOORS = {"alice": 7401, "bob": 7402, "cloud": 7400, "rosa": 7410}
_CALLS = {("alice", "bob"), ("bob", "alice"), ("alice", "cloud"), ("bob", "cloud"), ("rosa", "alice"), ("rosa", "bob")}
_CALLS |= {("rosa", "cloud")}
_NETWORKS = {
    "alice": {"curators", "ingest"},
    "bob": {"curators", "ingest"},
    "cloud": {"ingest", "results", "nodes"},
    "rosa": {"curators", "results", "desk"},
}


def cages(stack: Stack) -> str:
    """Every container: no root, no capability, no way to gain any, nothing to write to but its state, limits."""
    for party, service in PARTIES.items():
        found, inspected = stack.probe(party, "cage"), stack.inspect(party)
        status = found["status"]
        ids = {*status["Uid"].split(), *status["Gid"].split(), *status["Groups"].split()}
        require("0" not in ids, f"{service} runs as {status['Uid']}")
        capabilities = {name: value for name, value in status.items() if name.startswith("Cap") and int(value, 16)}
        require(not capabilities, f"{service} has {capabilities}")
        require(status["NoNewPrivs"] == "1", f"{service} can gain privileges")
        require(status["Seccomp"] == "2", f"{service} may call what it likes")
        require(found["read_only"], f"{service} has a file system that can be written to")
        own = ["/srv/veiltab", "/tmp", "/var/lib/veiltab"] if party == "rosa" else ["/tmp", "/var/lib/veiltab"]  # noqa: S108
        require(found["writable"] == own, f"{service} can write to {found['writable']}")
        require(found["memory"] == 1 << 30, f"{service} may take {found['memory']} bytes")
        require(found["pids"] == 256, f"{service} may have {found['pids']} processes")
        require(
            found["identity"] == sorted([f"{party}.key", f"{party}.pem", "ca.pem"]), f"{service}: {found['identity']}"
        )
        rights = {mount["Destination"]: mount["RW"] for mount in inspected["Mounts"]}
        stores = sorted(path for path, writes in rights.items() if writes)
        require(stores == [store for store in own if store != "/tmp"], f"{service}: {rights}")  # noqa: S108
        require(set(stack.addresses(party)) == _NETWORKS[party], f"{service} is in {set(stack.addresses(party))}")
    return "uid not 0, no capabilities, read-only, no new privileges, seccomp, 1 GiB, 256 processes"


def doors(stack: Stack) -> str:
    """Who must call a party reaches it by name; nobody else reaches it, by name or by any of its addresses."""
    addresses = {party: stack.addresses(party) for party in PARTIES}
    tried = 0
    for caller in PARTIES:
        others = [party for party in PARTIES if party != caller]
        wanted = {f"{party}:{_DOORS[party]}" for party in others if (caller, party) in _CALLS}
        listed = {f"{party}:{_DOORS[party]}" for party in others}
        listed |= {f"{PARTIES[party]}:{_DOORS[party]}" for party in others if (caller, party) not in _CALLS}
        for party in others:
            if (caller, party) not in _CALLS:
                listed |= {f"{address}:{_DOORS[party]}" for address in addresses[party].values()}
        found = stack.probe(caller, "doors", *sorted(listed))
        opened = {target for target, outcome in found.items() if outcome == "open"}
        require(opened == wanted, f"{caller} reaches {sorted(opened)} and should reach {sorted(wanted)}")
        tried += len(found)
    everyone = {f"{address}:{_DOORS[party]}" for party in PARTIES for address in addresses[party].values()}
    node = stack.stranger(stack.network("nodes"), "doors", "cloud:7400", *sorted(everyone))
    opened = {target for target, outcome in node.items() if outcome == "open"}
    require(opened == {"cloud:7400", f"{addresses['cloud']['nodes']}:7400"}, f"a node reaches {sorted(opened)}")
    tried += len(node)
    server = stack.probe("cloud", "doors", *(f"{address}:7401" for address in addresses["alice"].values()))
    told = ", ".join(f"{network} {server[f'{address}:7401']}" for network, address in addresses["alice"].items())
    return f"{tried} connections tried, {len(_CALLS)} open; cloud to alice: {told}"


def ways_out(stack: Stack) -> str:
    """No party reaches another network; none but rosa, through whose network requests come in, reaches this machine."""
    internal = {name for name, known in stack.networks().items() if known["Internal"]}
    require(internal == {"curators", "ingest", "results", "nodes"}, f"only {internal} are internal")
    outside = _outside()
    with _listener(stack) as port:
        gateways = {name: f"{address}:{port}" for name, address in _gateways(stack).items()}
        require(set(stack.stranger("host", "doors", f"127.0.0.1:{port}").values()) == {"open"}, "the listener is deaf")
        for party in PARTIES:
            found = stack.probe(party, "doors", *gateways.values(), *outside)
            opened = {target for target, outcome in found.items() if outcome == "open"}
            allowed = {gateways["desk"]} if party == "rosa" else set()
            require(opened <= allowed, f"{party} reaches {sorted(opened - allowed)}")
    control = stack.stranger("bridge", "doors", *outside) if outside else {}
    judged = "open" in control.values()
    return "neither this machine nor " + ("the internet" if judged else "(no internet here to judge by) others")


def certificates(stack: Stack) -> str:
    """Who shows no certificate, or one whose role may not call, is refused, even inside the networks."""
    own = stack.probe("alice", "greet", "/etc/veiltab/identity", "cloud:7400", "bob:7402")
    require(set(own.values()) == {"answers"}, f"with a certificate: {own}")
    for network, targets in {
        "curators": ("alice:7401", "bob:7402"),
        "ingest": ("cloud:7400",),
        "results": ("cloud:7400",),
        "desk": ("rosa:7410",),
    }.items():
        found = stack.stranger(stack.network(network), "greet", "none", *targets)
        refused = all(outcome in {"closed", "ECONNRESET"} or outcome.startswith("TLS") for outcome in found.values())
        require(refused, f"without a certificate in {network}: {found}")
    said = _health_of_alice(stack, "server-cloud")
    require("not among the parties that may call here" in said, f"cloud at alice: {said}")
    said = _health_of_alice(stack, "researcher-rosa")
    require("serves at" in said, f"rosa at alice: {said}")
    return "no certificate: refused by TLS; the server's, inside the curators' network: denied"


def _health_of_alice(stack: Stack, caller: str) -> str:
    """Ask alice for her health with another's certificate, inside the curators' network; return what is said."""
    command = [
        "run",
        "--rm",
        "--network",
        stack.network("curators"),
        "--user",
        stack.inspect("alice")["Config"]["User"],
    ]
    command += ["--volume", f"{stack.folder}/study.toml:/study.toml:ro"]
    command += ["--volume", f"{stack.folder}/pki/{caller}:/identity:ro", stack.image]
    try:
        return stack.engine.run(
            *command, "health", "/study.toml", "--identity", "/identity", "--name", "alice", "--role", "curator"
        )
    except VeiltabError as error:
        return error.problem


def _gateways(stack: Stack) -> dict[str, str]:
    """Return network -> the address that this machine would have in it."""
    return {name: known["IPAM"]["Config"][0]["Gateway"] for name, known in stack.networks().items()}


def _outside() -> list[str]:
    """Return addresses outside this machine that are likely to answer."""
    found = []
    for host, port in (("deb.debian.org", 80), ("pypi.org", 443)):
        try:
            found.append(f"{socket.gethostbyname(host)}:{port}")
        except OSError:
            continue
    return found


@contextmanager
def _listener(stack: Stack) -> Iterator[int]:
    """Listen at every address of this machine while the block lasts; give the port."""
    code = "import socket; s = socket.create_server(('0.0.0.0', 0)); print(s.getsockname()[1], flush=True)"
    code += "\nwhile True: s.accept()[0].close()"
    with subprocess.Popen(  # noqa: S603 - a listener of three lines
        [*stack.engine.host, sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield int(process.stdout.readline() if process.stdout else 0)
        finally:
            process.kill()
