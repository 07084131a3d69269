"""TLS between parties of a study where gRPC does not make the connection."""

import ssl

from veiltab.common.errors import InvalidInputError
from veiltab.common.rpc.parties.identity import Identity


def tls_context(identity: Identity, protocol: str, *, is_server: bool) -> ssl.SSLContext:
    """Return mutual TLS 1.3 with the study's authority.

    Args:
        protocol: what is spoken inside, as ALPN names it.

    Raises:
        InvalidInputError: the identity was not read from a folder.
    """
    if identity.folder is None:
        raise InvalidInputError("the identity has no folder", where=str(identity.party))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if is_server else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=identity.authority.decode())
    name = identity.party.name
    context.load_cert_chain(identity.folder / f"{name}.pem", identity.folder / f"{name}.key")
    context.set_alpn_protocols([protocol])
    if is_server:
        context.num_tickets = 0
    return context
