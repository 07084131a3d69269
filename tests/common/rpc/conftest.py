"""Real certificates for calls over real TLS on localhost."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from veiltab.common.rpc.parties.identity import Identity, Party
from veiltab.deploy.pki.authority import Authority, names_of, new_authority


@pytest.fixture(scope="session")
def authority() -> Authority:
    now = datetime.now(UTC)
    return new_authority("survey", since=now - timedelta(days=1000), until=now + timedelta(days=1000))


@pytest.fixture(scope="session")
def identity_of(authority: Authority) -> Callable[[Party], Identity]:
    return _identities(authority)


@pytest.fixture(scope="session")
def rogue() -> Callable[[Party], Identity]:
    """Identities of an authority that has the study's name and is not the study's."""
    now = datetime.now(UTC)
    return _identities(new_authority("survey", since=now - timedelta(days=1), until=now + timedelta(days=1)))


def _identities(authority: Authority) -> Callable[[Party], Identity]:
    now = datetime.now(UTC)

    @cache
    def identity(party: Party) -> Identity:
        issued = authority.issue(str(party), names_of(party, "localhost:1"), now, now + timedelta(days=1))
        return Identity(
            certificate=issued.certificate_pem,
            key=issued.key_pem,
            authority=authority.certificate.public_bytes(Encoding.PEM),
        )

    return identity
