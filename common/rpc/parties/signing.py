"""Texts that a party signs with the key of its certificate, and who signed them."""

from datetime import datetime
from functools import lru_cache

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.common.rpc.parties.identity import Identity, Party, PartyCertificate, check_issuer, party_of_certificate
from veiltab.v1.release_pb2 import SignedStatement

_PURPOSE = b"veiltab statement\n"
"""What is signed begins with this, so that no signature serves another purpose, such as TLS."""

_LONGEST = 2**17
_PSS = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=32)
_read_key = lru_cache(maxsize=4)(load_pem_private_key)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedText:
    """A text and the signature of one party.

    Args:
        signature: hexadecimal, lower case.
        certificate: the signer's, PEM.
    """

    text: str
    signature: str
    certificate: str


def signed(identity: Identity, text: str, now: datetime) -> SignedText:
    """Return a text signed by a party: ECDSA or RSA-PSS with SHA-256, or Ed25519, as its key is.

    Raises:
        InvalidInputError: the party's certificate is not valid now, or its key signs in no such way.
    """
    return signed_bytes(identity, text, _PURPOSE + text.encode(), now)


def signed_bytes(identity: Identity, text: str, data: bytes, now: datetime) -> SignedText:
    """Return a text with a party's signature over the bytes that stand for it; raises as `signed`."""
    plain = _plain_pem(identity.certificate)
    return SignedText(text=text, signature=signature_of(identity, data, now).hex(), certificate=plain)


def signature_of(identity: Identity, data: bytes, now: datetime) -> bytes:
    """Return a party's signature over bytes that name their purpose at their beginning; raises as `signed`."""
    identity.check_lifetime(now)
    match key := _read_key(identity.key, None):
        case ec.EllipticCurvePrivateKey():
            return key.sign(data, ec.ECDSA(hashes.SHA256()))
        case rsa.RSAPrivateKey():
            return key.sign(data, _PSS, hashes.SHA256())
        case ed25519.Ed25519PrivateKey():
            return key.sign(data)
        case _:
            raise InvalidInputError("a key of this kind cannot sign", where="private key", remedy="Use EC P-256.")


def signer_of(signed_text: SignedText, authority: bytes, at: datetime) -> Party:
    """Return who signed a text.

    Args:
        authority: certificate of the study's authority, PEM.
        at: when it was signed, by its own words.

    Raises:
        IntegrityError: the certificate is not the authority's, was not valid then, or the signature is not its key's.
    """
    try:
        signature = bytes.fromhex(signed_text.signature)
    except ValueError:
        raise IntegrityError("a signature or its certificate cannot be read", where="signature") from None
    if signature.hex() != signed_text.signature:
        # Hexadecimal has more than one spelling; only the plain one is the signed file's.
        raise IntegrityError("a signature is not in lower case", where="signature")
    return signer_of_bytes(_PURPOSE + signed_text.text.encode(), signature, signed_text.certificate, authority, at)


def signer_of_bytes(data: bytes, signature: bytes, pem: str, authority: bytes, at: datetime) -> Party:
    """Return who signed bytes that name their purpose at their beginning; raises as `signer_of`."""
    try:
        certificate, stated = _issued(pem, authority)
        stated.check_lifetime(at)
        # PEM has more than one spelling, too.
        plain = pem == _plain_pem(pem.encode())
    except (ValueError, x509.InvalidVersion, UnsupportedAlgorithm):
        raise IntegrityError("a signature or its certificate cannot be read", where="signature") from None
    except InvalidInputError as error:
        raise IntegrityError(error.problem, where="signature", remedy=error.remedy) from None
    if not plain or not _is_signature(certificate, data, signature):
        raise IntegrityError(f"the signature of {stated.party} does not fit what it signed", where="signature")
    return stated.party


@lru_cache(maxsize=256)
def _issued(pem: str, authority: bytes) -> tuple[x509.Certificate, PartyCertificate]:
    """Return a certificate that an authority issued, and what it says; raises what reading it raises."""
    certificate = x509.load_pem_x509_certificate(pem.encode())
    stated = party_of_certificate(pem.encode())
    check_issuer(certificate, authority)
    return certificate, stated


@lru_cache(maxsize=256)
def _plain_pem(pem: bytes) -> str:
    return x509.load_pem_x509_certificate(pem).public_bytes(Encoding.PEM).decode()


def signed_to_proto(one: SignedText) -> SignedStatement:
    """Encode a signed text."""
    return SignedStatement(text=one.text, signature=bytes.fromhex(one.signature), certificate=one.certificate.encode())


def signed_from_proto(message: SignedStatement) -> SignedText:
    """Decode a signed text, which proves nothing before its signature is checked.

    Raises:
        InvalidInputError: it is longer than any statement, or no text.
    """
    if max(len(message.text), len(message.signature), len(message.certificate)) > _LONGEST:
        raise InvalidInputError("a statement is longer than any can be", where="statement")
    try:
        certificate = message.certificate.decode("ascii")
    except UnicodeDecodeError:
        raise InvalidInputError("this is not a PEM certificate", where="statement") from None
    return SignedText(text=message.text, signature=message.signature.hex(), certificate=certificate)


def _is_signature(certificate: x509.Certificate, data: bytes, signature: bytes) -> bool:
    try:
        key = certificate.public_key()
        match key:
            case ec.EllipticCurvePublicKey():
                key.verify(signature, data, ec.ECDSA(hashes.SHA256()))
            case rsa.RSAPublicKey():
                key.verify(signature, data, _PSS, hashes.SHA256())
            case ed25519.Ed25519PublicKey():
                key.verify(signature, data)
            case _:
                return False
    except (InvalidSignature, UnsupportedAlgorithm):
        return False
    return True
