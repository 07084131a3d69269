"""Serves the researcher's service over HTTPS until a signal ends the command."""

import asyncio
import ssl
from contextlib import closing
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding

from veiltab.common.command.cli import note
from veiltab.common.process.logs import log_to_stderr
from veiltab.common.process.protection import keep_files_private
from veiltab.common.rpc.parties.identity import load_certificate
from veiltab.common.storage.files import OwnedFolder
from veiltab.common.web.http_options import HttpOptions
from veiltab.common.web.serving import address_of, bound, serve, server_tls
from veiltab.researcher.api.application import Api
from veiltab.researcher.api.handlers import Handlers
from veiltab.researcher.api.tokens import Tokens
from veiltab.researcher.client.client import Client


def serve_api(client: Client, identity_folder: Path, state: Path, options: HttpOptions) -> None:
    """Answer over HTTPS for a client's party.

    Args:
        identity_folder: of the party: its own certificate admits its holder without a token.
        options: where, and the certificate that is shown.

    Raises:
        InvalidInputError: the address cannot be bound, or the certificate cannot be read.
    """
    keep_files_private()
    log_to_stderr()
    own = identity_folder / f"{client.party.name}.pem"
    own_der = load_certificate(own.read_bytes()).public_bytes(Encoding.DER)
    certificate, key = options.files(identity_folder, client.party.name)
    tls = server_tls(certificate, key)
    tls.verify_mode = ssl.CERT_OPTIONAL
    tls.load_verify_locations(identity_folder / "ca.pem")
    with OwnedFolder(state, f"{client.party.uri} over HTTP") as folder, closing(Tokens(folder.path)) as tokens:
        listener = bound(options.address, option="--listen")
        note(f"answers over HTTPS at {address_of(listener)}; /openapi.json describes what")
        api = Api(Handlers(client).resources, tokens, lambda der: der == own_der)
        asyncio.run(serve(api, listener, tls))
