"""What proves to a Dask cluster that it is ours, and to us that it is our cluster."""

from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import InvalidInputError
from veiltab.common.rpc.parties.identity import (
    Clock,
    check_issuer,
    check_key,
    load_certificate,
    read_identity_file,
    utc_now,
)
from veiltab.common.storage.files import check_writers
from veiltab.common.tasks.seal import KEY_FILE, MADE_BY, read_key


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterIdentity:
    """The client's certificate and keys for one cluster.

    Args:
        folder: has ca.pem, client.pem and client.key, which TLS reads.
        tasks_key: seals tasks and their outcomes.
    """

    folder: Path
    tasks_key: bytes = field(repr=False)

    @property
    def authority(self) -> Path:
        """The certificate of the cluster's authority."""
        return self.folder / "ca.pem"

    @property
    def certificate(self) -> Path:
        """The client's certificate."""
        return self.folder / "client.pem"

    @property
    def key(self) -> Path:
        """Its private key."""
        return self.folder / "client.key"


def load_cluster_identity(
    folder: Path, *, study_authority: bytes | None = None, clock: Clock = utc_now
) -> ClusterIdentity:
    """Read the client's folder that `veiltab pki init --cluster` makes.

    Args:
        study_authority: certificates that the cluster's authority must not be among, PEM.

    Raises:
        NotFoundError: a file is not there.
        InvalidInputError: a file cannot be read, others may write it or read the key, the certificate is not the
            authority's or has expired, or the authority is the study's: every party of the study could then run code
            on the cluster.
    """
    identity = ClusterIdentity(folder=folder, tasks_key=read_key(folder / KEY_FILE))
    certificate = load_certificate(read_identity_file(identity.certificate, made_by=MADE_BY))
    authority = read_identity_file(identity.authority, made_by=MADE_BY)
    check_key(certificate, read_identity_file(identity.key, private=True, made_by=MADE_BY))
    check_issuer(certificate, authority)
    for one in filter(Path.exists, folder.iterdir()):
        check_writers(one)
    if not certificate.not_valid_before_utc <= clock() <= certificate.not_valid_after_utc:
        raise InvalidInputError(
            "the certificate of the cluster's client is not valid now",
            where=str(identity.certificate),
            remedy="Make new ones with `veiltab pki init --cluster`.",
        )
    if study_authority is not None and not _keys(authority).isdisjoint(_keys(study_authority)):
        raise InvalidInputError(
            "the study's authority would let every party of the study run code on the cluster",
            where=str(identity.authority),
            remedy="Give the cluster an authority of its own: `veiltab pki init --cluster` makes it.",
        )
    return identity


def _keys(authority: bytes) -> set[bytes]:
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return {one.public_key().public_bytes(*form) for one in x509.load_pem_x509_certificates(authority)}
