"""The certificates that the other parties show, and how long they last."""

import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import VeiltabError
from veiltab.common.rpc.parties.identity import Identity, Party, party_of_certificate, utc_now
from veiltab.common.rpc.tls import tls_context

SECONDS = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointCertificate:
    """What a party showed.

    Args:
        ends: last instant of its certificate; None if it showed none.
        problem: why it showed none; else empty.
    """

    ends: datetime | None = None
    problem: str = ""

    @property
    def days(self) -> int | None:
        """Days that are left; negative once it has expired."""
        return None if self.ends is None else (self.ends - utc_now()).days


def endpoint_certificates(identity: Identity, parties: dict[Party, str]) -> dict[Party, EndpointCertificate]:
    """Ask parties for their certificates, all at once.

    Args:
        parties: party -> its endpoint, host:port.
    """
    context = tls_context(identity, "h2", is_server=False)
    with ThreadPoolExecutor(max_workers=16) as threads:
        results = threads.map(lambda item: _certificate(identity, context, *item), parties.items())
        return dict(zip(parties, results, strict=True))


def _opened(target: str) -> socket.socket:
    """Return a connection to host:port, or to unix:PATH."""
    host, _, port = target.rpartition(":")
    if host != "unix":
        return socket.create_connection((host.strip("[]"), int(port)), timeout=SECONDS)
    plain = socket.socket(socket.AF_UNIX)
    plain.settimeout(SECONDS)
    plain.connect(port)
    return plain


def _certificate(identity: Identity, context: ssl.SSLContext, party: Party, endpoint: str) -> EndpointCertificate:
    try:
        with (
            _opened(identity.way.target(party, endpoint) if identity.way else endpoint) as plain,
            context.wrap_socket(plain, server_hostname=party.dns_name) as connection,
        ):
            certificate = connection.getpeercert(binary_form=True)
        if certificate is None:
            return EndpointCertificate(problem="it shows no certificate")
        return EndpointCertificate(ends=party_of_certificate(ssl.DER_cert_to_PEM_cert(certificate).encode()).not_after)
    except ssl.SSLCertVerificationError as error:
        return EndpointCertificate(problem=f"its certificate is not accepted: {error.verify_message}")
    except OSError as error:
        return EndpointCertificate(problem=f"it does not answer ({error.strerror or type(error).__name__})")
    except VeiltabError as error:
        return EndpointCertificate(problem=error.problem)
