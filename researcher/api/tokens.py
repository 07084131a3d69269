"""Bearer tokens: who may ask a researcher's service over HTTP, for what, and until when.

A token is a text of 256 random bits. The database has its SHA-256 alone, so that a reader of the database has
no token: of so many random bits no hash has to be slow. A token is shown once, when it is made.
"""

import hashlib
import hmac
import re
import secrets
import sqlite3
import time
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any, Self

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import ConflictError, DeniedError, InvalidInputError, NotFoundError
from veiltab.common.storage.database import open_database, transaction

FILE = "tokens.db"
MOST_DAYS = 400.0

_MIGRATIONS = (
    """
    CREATE TABLE tokens (
        id TEXT PRIMARY KEY,
        label TEXT NOT NULL UNIQUE,
        sha256 BLOB NOT NULL,
        scopes TEXT NOT NULL,
        release TEXT NOT NULL,
        created INTEGER NOT NULL,
        expires INTEGER NOT NULL,
        revoked INTEGER
    ) STRICT
    """,
)
_TOKEN = re.compile(r"vt-([0-9a-f]{8})-([A-Za-z0-9_-]{43})")
_REMEDY = "Ask the researcher for another token or link."
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")


class Scope(Enum):
    """What a token is good for."""

    READ = "read"
    """The study, plans, and how releases stand; tables, analyses and reports."""

    MICRODATA = "microdata"
    """Rows drawn from a model: seconds to minutes of a processor each."""

    REQUEST = "request"
    """To ask the curators for releases, which spends their budgets."""

    CERTIFICATE = "certificate"
    """Release certificates, which hold the counts of the tests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """What is kept of a token.

    Args:
        id: 8 hexadecimal digits, which the token begins with.
        label: whose it is, or for what.
        release: id of the only release that it is good for; "" if it is good for all of them.
        created: Unix seconds.
        expires: Unix seconds; from then on it is refused.
        revoked: Unix seconds, or None.
    """

    id: str
    label: str
    scopes: frozenset[Scope]
    release: str
    created: int
    expires: int
    revoked: int | None

    def state(self, now: float) -> str:
        """Return whether it is good, expired or revoked."""
        return "revoked" if self.revoked is not None else "expired" if now >= self.expires else "good"


OWN = Token(id="", label="(own certificate)", scopes=frozenset(Scope), release="", created=0, expires=0, revoked=None)
"""What the party's own certificate is good for."""


class Tokens:
    """The tokens of a researcher's service over HTTP; the service and commands share the file.

    Args:
        folder: where the file is; made if missing.
        clock: returns Unix seconds.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self._database = open_database(folder / FILE, _MIGRATIONS)
        self._clock = clock

    @classmethod
    def kept_in(cls, folder: Path) -> Self:
        """Return the tokens of a folder that has some.

        Raises:
            NotFoundError: it has none.
        """
        if not (folder / FILE).exists():
            raise NotFoundError(
                "no token was ever made here",
                where=str(folder),
                remedy="Give the --state of `veiltab researcher http`.",
            )
        return cls(folder)

    def add(self, label: str, scopes: frozenset[Scope], days: float, release: str = "") -> tuple[Token, str]:
        """Make a token; return what is kept, and the token itself.

        Args:
            release: as of a Token.

        Raises:
            InvalidInputError: a label of other characters, no scope, or a lifetime out of range.
            ConflictError: there was a token of this label.
        """
        if not _LABEL.fullmatch(label):
            raise InvalidInputError(
                "the label is not 1 to 40 of a-z, 0-9 and -, with a letter or digit at both ends", where="--label"
            )
        if not scopes:
            raise InvalidInputError("no scope was given", where="--scope")
        if not 0 < days <= MOST_DAYS:
            raise InvalidInputError(f"{days:g} days are not above 0 and at most {MOST_DAYS:g}", where="--days")
        now = int(self._clock())
        number = secrets.token_hex(4)
        token, expires = f"vt-{number}-{secrets.token_urlsafe(32)}", now + int(days * 86_400)
        texts = " ".join(sorted(scope.value for scope in scopes))
        try:
            with transaction(self._database) as database:
                row = (number, label, _digest(token), texts, release, now, expires)
                database.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, NULL)", row)
        except sqlite3.IntegrityError:
            raise ConflictError(
                "there is a token of this label", where="--label", remedy="Take another label."
            ) from None
        new = Token(id=number, label=label, scopes=scopes, release=release, created=now, expires=expires, revoked=None)
        return new, token

    def all(self) -> tuple[Token, ...]:
        """Return what is kept of each token, oldest first."""
        return tuple(map(_token, self._database.execute("SELECT * FROM tokens ORDER BY created, id")))

    def revoke(self, label: str) -> Token:
        """Refuse a token from now on.

        Raises:
            NotFoundError: there is none of this label.
        """
        with transaction(self._database) as database:
            database.execute(
                "UPDATE tokens SET revoked = ? WHERE label = ? AND revoked IS NULL", (int(self._clock()), label)
            )
            row = database.execute("SELECT * FROM tokens WHERE label = ?", (label,)).fetchone()
        if row is None:
            raise NotFoundError("there is no token of this label", where="--label")
        return _token(row)

    def check(self, token: str) -> Token:
        """Return what is kept of a token that is good.

        Raises:
            DeniedError: it is none of these, expired or revoked.
        """
        match = _TOKEN.fullmatch(token)
        row = match and self._database.execute("SELECT * FROM tokens WHERE id = ?", (match[1],)).fetchone()
        if row is None or not hmac.compare_digest(row["sha256"], _digest(token)):
            raise DeniedError("this token is not known here", where="Authorization", remedy=_REMEDY)
        record = _token(row)
        state = record.state(self._clock())
        if state != "good":
            raise DeniedError(f"the token is {state}", where="Authorization", remedy=_REMEDY)
        return record

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _token(row: Any) -> Token:  # noqa: ANN401 - a row
    facts = {name: row[name] for name in ("id", "label", "release", "created", "expires", "revoked")}
    return Token(scopes=frozenset(map(Scope, row["scopes"].split())), **facts)
