"""The port at which reports of nodes come over HTTPS."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from veiltab.common.command.cli import note
from veiltab.common.extras import importing
from veiltab.common.rpc.parties.identity import Identity
from veiltab.common.web.http_options import HttpOptions
from veiltab.server.rounds.rounds import RoundKeeper


def reports_taken(
    http: HttpOptions, identity_folder: Path, rounds: RoundKeeper, identity: Identity, *, shared: bool
) -> AbstractAsyncContextManager[None]:
    """Bind the address for reports over HTTPS; return what takes them.

    The server shows a certificate, the clients none, so anyone who reaches the port can connect.

    Args:
        rounds: the server's part in rounds.
        shared: whether other processes of this server listen there too.
    """
    with importing("http", "taking reports over HTTPS", where="--http"):
        from veiltab.common.web import serving  # noqa: PLC0415 - not where the extra is missing
        from veiltab.server.https.application import Reports  # noqa: PLC0415 - not for servers without --http
    certificate, key = http.files(identity_folder, identity.party.name)
    tls, listener = serving.server_tls(certificate, key), serving.bound(http.address, shared=shared)
    note(f"reports over HTTPS at {serving.address_of(listener)}")
    return serving.serving(Reports(rounds, origin=http.origin), listener, tls)
