"""A researcher of a study on this machine, who asks for releases and looks how they stand."""

from collections.abc import Callable
from decimal import Decimal

from veiltab.common.rpc.parties.identity import Role
from veiltab.play.local.processes import LocalStudy
from veiltab.researcher.client.client import Client
from veiltab.researcher.client.release import Release
from veiltab.researcher.status.release_status import Status

_SECONDS = 1800.0


def client_of(local: LocalStudy, researcher: str) -> Client:
    """Return the client of a researcher, to be closed."""
    identity = local.identity_folder(Role.RESEARCHER, researcher)
    return Client(local.study_path, identity=identity, name=researcher)


def obtain(
    client: Client, attributes: list[str], epsilon: Decimal, delta: Decimal, say: Callable[[str], None]
) -> Release:
    """Ask for a table, and wait until it is there, half an hour at most.

    Raises:
        VeiltabError: a party refused.
    """
    release = client.request(attributes, epsilon=str(epsilon), delta=f"{delta:f}", purpose="demonstration")
    release.wait(_SECONDS, progress(say))
    return release


def progress(say: Callable[[str], None]) -> Callable[[Status], None]:
    """Return what says a line whenever a release has another state or is in another phase."""
    last = ""

    def watch(status: Status) -> None:
        nonlocal last
        phase = max((table.phase for table in status.tables), default=0)
        line = f"  the release is {status.state.value}" + (f", phase {phase}" if phase else "")
        if line != last:
            last = line
            say(line)

    return watch
