"""Checkpoints: where a curator's ledger stood at a charge, as a note that it signs and another curator cosigns.

The text and its lines are those of C2SP (c2sp.org/signed-note, tlog-checkpoint, tlog-cosignature): an origin, the
number of entries, a digest in base64, an extension line with the release; then a line of each signature. The digest is
the head of the ledger's hash chain (docs/evidence.md), not the root of a Merkle tree: who has the lines compares them,
and a log's proofs need a tree. Keys are those of the certificates. Ed25519 signs as C2SP says; ECDSA signs notes as
type 0x02, and cosigns, as RSA signs, with a type of ours, 0xff and a name.
"""

import hashlib
import re
from base64 import b64decode, b64encode
from datetime import UTC, datetime
from functools import lru_cache

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import IntegrityError
from veiltab.common.rpc.certificates.statement import LedgerHead
from veiltab.common.rpc.parties.identity import Identity, Party, Role
from veiltab.common.rpc.parties.signing import SignedText, signed_bytes, signer_of_bytes

_TEXT = re.compile(
    r"([a-z0-9-]+)\.veiltab/curator/([a-z0-9-]+)/ledger\n(0|[1-9][0-9]{0,17})\n([A-Za-z0-9+/]{43}=)\n"
    r"release ([0-9a-f]{32})\n"
)
_LINE = re.compile(r"\u2014 (\S+) ([A-Za-z0-9+/]+={0,2})\n")
_KEY_ID, _TIME = 4, 8
_SIGNS, _COSIGNS = b"veiltab checkpoint", b"veiltab cosignature/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Where a curator's ledger stood.

    Args:
        head: entries, and the digest of the last.
        release: id of the release whose charge is that entry.
    """

    party: Party
    head: LedgerHead
    release: str

    @property
    def text(self) -> str:
        """The text of the note."""
        digest = b64encode(bytes.fromhex(self.head.digest)).decode()
        return f"{_name(self.party)}/ledger\n{self.head.length}\n{digest}\nrelease {self.release}\n"

    @classmethod
    def from_text(cls, text: str) -> "Checkpoint":
        """Read the text of a note.

        Raises:
            IntegrityError: it is not a checkpoint of a curator's ledger.
        """
        match = _TEXT.fullmatch(text)
        if match is None:
            raise IntegrityError("this is not a checkpoint of a ledger", where="checkpoint")
        study, name, length, digest, release = match.groups()
        head = LedgerHead(length=int(length), digest=b64decode(digest).hex())
        checkpoint = cls(party=Party(study=study, role=Role.CURATOR, name=name), head=head, release=release)
        if checkpoint.text != text:  # base64 has more than one spelling
            raise IntegrityError("this is not a checkpoint of a ledger", where="checkpoint")
        return checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Witnessed:
    """A checkpoint that another party has cosigned.

    Args:
        at: when, by the witness's clock.
    """

    checkpoint: Checkpoint
    witness: Party
    at: datetime


def signed_checkpoint(identity: Identity, head: LedgerHead, release: str, now: datetime) -> SignedText:
    """Return a curator's own checkpoint, with its signature over the very text.

    Raises:
        InvalidInputError: as `signed`.
    """
    text = Checkpoint(party=identity.party, head=head, release=release).text
    return signed_bytes(identity, text, text.encode(), now)


def check_checkpoint(note: SignedText, party: Party, authority: bytes, at: datetime) -> Checkpoint:
    """Return a curator's checkpoint.

    Raises:
        IntegrityError: it is none, of another curator, or not signed by a certificate that was valid then.
    """
    checkpoint = Checkpoint.from_text(note.text)
    signer = signer_of_bytes(note.text.encode(), _signature(note.signature), note.certificate, authority, at)
    if signer != party or checkpoint.party != party:
        raise IntegrityError(f"the checkpoint is not that of {party}", where=str(party))
    return checkpoint


def cosigned_note(note: SignedText, witness: Identity, now: datetime) -> tuple[str, str]:
    """Return a curator's checkpoint as a note with its signature, and with that of a party that has seen it now.

    The second text is the certificate of that party, PEM.

    Raises:
        InvalidInputError: as `signed`.
    """
    time = int(now.timestamp())
    cosigned = signed_bytes(witness, note.text, _cosigned(note.text, time), now)
    stamped = time.to_bytes(_TIME) + _signature(cosigned.signature)
    signer = Checkpoint.from_text(note.text).party
    lines = (
        _line(f"{_name(signer)}/ledger", note.certificate, _SIGNS, _signature(note.signature)),
        _line(_name(witness.party), cosigned.certificate, _COSIGNS, stamped),
    )
    return f"{note.text}\n{''.join(lines)}", cosigned.certificate


def read_note(note: str, certificate: str, cosigner: str, authority: bytes) -> Witnessed:
    """Return a checkpoint that two parties signed.

    Args:
        certificate: of the curator whose ledger it is of, PEM.
        cosigner: certificate of the witness, PEM.
        authority: certificate of the study's authority, PEM.

    Raises:
        IntegrityError: it is no such note, or not signed by these certificates, valid when it was cosigned.
    """
    text, _, rest = note.partition("\n\n")
    lines = _LINE.findall(rest)
    checkpoint = Checkpoint.from_text(f"{text}\n")
    if len(lines) != 2 or "".join(f"\u2014 {name} {line}\n" for name, line in lines) != rest:
        raise IntegrityError("a checkpoint does not have two signatures", where=str(checkpoint.party))
    (name, first), (other, second) = lines
    stamped = b64decode(second)[_KEY_ID:]
    time = int.from_bytes(stamped[:_TIME])
    at = datetime.fromtimestamp(min(time, 2**35), UTC)
    signed = SignedText(text=checkpoint.text, signature=b64decode(first)[_KEY_ID:].hex(), certificate=certificate)
    check_checkpoint(signed, checkpoint.party, authority, at)
    witness = signer_of_bytes(_cosigned(checkpoint.text, time), stamped[_TIME:], cosigner, authority, at)
    ids = (
        _line(f"{_name(checkpoint.party)}/ledger", certificate, _SIGNS, b64decode(first)[_KEY_ID:]),
        _line(_name(witness), cosigner, _COSIGNS, stamped),
    )
    if "".join(ids) != rest:
        raise IntegrityError("a signature of a checkpoint names another key", where=f"{name}, {other}")
    return Witnessed(checkpoint=checkpoint, witness=witness, at=at)


def _name(party: Party) -> str:
    return f"{party.study}.veiltab/{party.role.value}/{party.name}"


def _cosigned(text: str, time: int) -> bytes:
    return f"cosignature/v1\ntime {time}\n{text}".encode()


def _line(name: str, certificate: str, does: bytes, signature: bytes) -> str:
    key_id = _key_id(name, certificate, does)
    return f"\u2014 {name} {b64encode(key_id + signature).decode()}\n"


@lru_cache(maxsize=256)
def _key_id(name: str, certificate: str, does: bytes) -> bytes:
    public = x509.load_pem_x509_certificate(certificate.encode()).public_key()
    plain = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    match public:
        case ed25519.Ed25519PublicKey():
            kind, plain = b"\x01" if does == _SIGNS else b"\x04", public.public_bytes_raw()
        case ec.EllipticCurvePublicKey() if does == _SIGNS:
            return hashlib.sha256(plain).digest()[:_KEY_ID]
        case _:
            kind = b"\xff" + does
    return hashlib.sha256(name.encode() + b"\n" + kind + plain).digest()[:_KEY_ID]


def _signature(hexadecimal: str) -> bytes:
    try:
        return bytes.fromhex(hexadecimal)
    except ValueError:
        raise IntegrityError("a signature is not hexadecimal", where="checkpoint") from None
