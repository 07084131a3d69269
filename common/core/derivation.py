"""Derives one key for each purpose from one uniform secret."""

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand


def derive(secret: bytes, label: str) -> bytes:
    """Return a 32-byte key for one purpose: HKDF-Expand-SHA256 of a uniform secret under the label."""
    return HKDFExpand(algorithm=hashes.SHA256(), length=32, info=b"veiltab " + label.encode()).derive(secret)
