"""After all that: nothing went wrong beside it, and the parties end in order. Last by its name."""

import time

from tests.compose.marks import COMPOSE, Remark
from tests.compose.stack import PARTIES, Stack

pytestmark = COMPOSE


def test_no_party_restarted_or_logged_an_incident(stack: Stack, remark: Remark) -> None:
    stack.up()
    for party, service in PARTIES.items():
        seen = stack.inspect(party)
        assert seen["State"]["Health"]["Status"] == "healthy", f"{service} is not healthy"
        assert seen["RestartCount"] == 0, f"{service} ended {seen['RestartCount']} times by itself"
        assert not seen["State"]["OOMKilled"], f"{service} ran out of memory"
    logs = stack.compose("logs", "--no-color").lower()
    words = [word for word in ("traceback", "incident") if word in logs]
    assert not words, f"the logs have {words}"
    remark("healthy, no restarts, no incidents in the logs")


def test_every_party_stops_in_order_and_starts_again_with_its_state(stack: Stack, remark: Remark) -> None:
    began = time.monotonic()
    stack.compose("stop")
    seconds = time.monotonic() - began
    codes = {party: stack.inspect(party)["State"]["ExitCode"] for party in PARTIES}
    assert set(codes.values()) == {0}, f"exit codes {codes}"
    stack.up()
    known = stack.researcher("status")["releases"]
    assert {each["release"]["state"] for each in known} == {"ready"}, "releases were lost"
    remark(f"exit code 0 after {seconds:.1f} s; {len(known)} releases are there again")
