"""The authority of a study or of a cluster, and its certificates: EC P-256 keys, X.509, TLS at both ends."""

import ipaddress
from collections.abc import Sequence
from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import InvalidInputError
from veiltab.common.rpc.parties.identity import DNS_SUFFIX, Party


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """A certificate authority: an EC P-256 key and its own certificate."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(repr=False)

    def issue(self, subject: str, names: Sequence[x509.GeneralName], since: datetime, until: datetime) -> "Issued":
        """Return a fresh key and its certificate for TLS at both ends.

        Args:
            subject: common name, for people to read; at most 64 characters.
            names: alternative names, which alone identify the owner.
            until: end of the lifetime; cut to the authority's own.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH])
        issuer = self.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        certificate = (
            _builder(subject, key, since, min(until, self.certificate.not_valid_after_utc))
            .issuer_name(self.certificate.subject)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(authority=False), critical=True)
            .add_extension(usage, critical=False)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        return Issued(certificate=certificate, key=key)

    def revocation_list(
        self, before: Sequence[x509.RevokedCertificate], fresh: Sequence[int], now: datetime
    ) -> x509.CertificateRevocationList:
        """Return a revocation list: the serial numbers revoked before and those revoked now."""
        builder = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(self.certificate.subject)
            .last_update(now)
            .next_update(self.certificate.not_valid_after_utc)
        )
        for entry in before:
            builder = builder.add_revoked_certificate(entry)
        for number in fresh:
            entry = x509.RevokedCertificateBuilder().serial_number(number).revocation_date(now).build()
            builder = builder.add_revoked_certificate(entry)
        return builder.sign(self.key, hashes.SHA256())


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(repr=False)

    @property
    def certificate_pem(self) -> bytes:
        """The certificate, PEM."""
        return self.certificate.public_bytes(Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """The key, PEM, without a passphrase."""
        return key_pem(self.key)


def new_authority(study: str, *, since: datetime, until: datetime) -> Authority:
    """Return a new authority for a study id; it may issue parties' certificates only (path length 0)."""
    return named_authority(authority_name(study), since=since, until=until)


def named_authority(name: str, *, since: datetime, until: datetime) -> Authority:
    """Return a new authority of this common name, with path length 0."""
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _builder(name, key, since, until)
        .issuer_name(common_name(name))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(authority=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Authority(certificate=certificate, key=key)


def names_of(party: Party, endpoint: str) -> list[x509.GeneralName]:
    """Return the alternative names of a party's certificate: its URI, its DNS name, localhost, its endpoint's host.

    Args:
        endpoint: "host:port".

    Raises:
        InvalidInputError: the host is a name that veiltab reserves for parties: the certificate would be valid for
            another party.
    """
    host = endpoint.rpartition(":")[0].strip("[]").lower()
    names: list[x509.GeneralName] = [x509.UniformResourceIdentifier(party.uri)]
    names += [x509.DNSName(name) for name in dict.fromkeys([party.dns_name, "localhost"])]
    try:
        return [*names, x509.IPAddress(ipaddress.ip_address(host))]
    except ValueError:
        pass
    if not host or "*" in host or host.rstrip(".").rpartition(".")[2] == DNS_SUFFIX:
        raise InvalidInputError(
            f"the endpoint's host is empty, a wildcard or ends in .{DNS_SUFFIX}",
            where=str(party),
            remedy="Correct its endpoint in the study file.",
        )
    return names if host == "localhost" else [*names, x509.DNSName(host)]


def _builder(
    subject: str, key: ec.EllipticCurvePrivateKey, since: datetime, until: datetime
) -> x509.CertificateBuilder:
    """Return a builder with the fields that all certificates share."""
    return (
        x509.CertificateBuilder()
        .subject_name(common_name(subject))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(since)
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def authority_name(study: str) -> str:
    """Return the common name of a study's authority."""
    return f"veiltab study {study}"


def common_name(text: str) -> x509.Name:
    """Return a distinguished name that has a common name only."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    """Return the key usage of an authority (signs certificates) or of a party (signs handshakes)."""
    return x509.KeyUsage(
        digital_signature=not authority,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a private key as PEM, without a passphrase."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
