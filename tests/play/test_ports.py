"""The ports of a study stay free until its parties listen."""

from pathlib import Path

from veiltab.play.local.processes import free_ports


def test_no_outgoing_call_is_given_a_port_of_a_party() -> None:
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text("utf-8").split()[0])
    ports = free_ports(100)
    assert len(set(ports)) == 100
    assert max(ports) < first
