"""What a command needs to call a running party: the party's endpoint and an identity."""

from pathlib import Path

from veiltab.common.command.parties import serving_parties, with_way
from veiltab.common.errors import InvalidInputError, NotFoundError
from veiltab.common.rpc.parties.identity import Identity, Party, load_identity, party_of_certificate
from veiltab.common.study.file import Study

AUTHORITY_KEY = "ca.key"
"""The private key of an authority, in the folder above those of the parties."""


def endpoint_of(study: Study, party: Party) -> str:
    """Return a party's endpoint in the study file."""
    serving = serving_parties(study)
    if party not in serving:
        names = ", ".join(f"{other.role.value}/{other.name}" for other in serving)
        raise InvalidInputError(f"{party} has no status in this study", remedy=f"These have: {names}.")
    return serving[party]


def identity_in(folder: Path, study: Study) -> Identity:
    """Load the identity of the party whose folder this is."""
    keys = sorted(key for key in folder.glob("*.key") if key.name != AUTHORITY_KEY)
    if len(keys) != 1:
        raise InvalidInputError(
            f"there are {len(keys)} private keys here, not exactly one",
            where=str(folder),
            remedy=f"Give a party's folder as `veiltab pki init` makes it{_folders_below(folder)}.",
        )
    try:
        asker = party_of_certificate(keys[0].with_suffix(".pem").read_bytes()).party
    except OSError as error:
        raise NotFoundError(
            f"the certificate cannot be read ({error.strerror})", where=str(keys[0].with_suffix(".pem"))
        ) from None
    return with_way(study, load_identity(folder, asker.role, asker.name, study=study.id))


def _folders_below(folder: Path) -> str:
    """Say which folders of parties are in a folder, if there are any."""
    parties = sorted({str(key.parent) for key in folder.glob("*/*.key")})
    return f", such as {', '.join(parties[:5])}" if parties else ""
