"""Where a table is: a file, a folder, a pattern of files, or a database with a query."""

import re
from pathlib import Path
from urllib.parse import urlsplit

from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import InvalidInputError

_DATABASES = ("postgresql", "postgres")
_PASSWORD = re.compile(r"password\s*=|^postgres(ql)?(:|//)(?!//).*@", re.IGNORECASE)
"""What may hold a password and is not a URL: keywords of libpq, and a URL with a sign forgotten."""

_REMEDY = "Give a file, a folder, a pattern of files, or postgresql://HOST/DATABASE."


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAddress:
    """Where a table is, and what only a person can say of it.

    Args:
        location: a path, perhaps with #SHEET or #TABLE behind it; a pattern such as part-*.parquet; or the URL of a
            PostgreSQL, which may hold a password and is never shown whole.
        query: one statement that reads, for a database.
        encoding: of a text file whose beginning does not show it; "" to look.
        decimal: "point" or "comma", for numbers that may be read in both ways; "" to look.
    """

    location: str = field(repr=False)
    query: str = field(default="", repr=False)
    encoding: str = ""
    decimal: str = ""

    @classmethod
    def of(cls, table: "TableAddress | Path") -> "TableAddress":
        """Return an address, or that of a path."""
        return table if isinstance(table, TableAddress) else cls(location=str(table))

    @property
    def is_url(self) -> bool:
        """Whether the location is the URL of a database."""
        return self.location.partition("://")[0].lower() in _DATABASES and "://" in self.location

    @property
    def label(self) -> str:
        """The location for messages: of a URL only the host and the database, and only what no password can be."""
        if not self.is_url:
            return "..." if "://" in self.location or self._is_connection_string else self.location
        # A password may hold any character: what stands before the last @ is never shown.
        user, _, server = self.location.partition("://")[2].rpartition("@")
        place = server.partition("?")[0]
        if "?" in user or "password" in place.lower():
            return "postgresql://..."
        try:
            parts = urlsplit(f"postgresql://{place}")
            host, port = parts.hostname or "", f":{parts.port}" if parts.port else ""
        except ValueError:
            return "postgresql://..."
        return f"postgresql://{host}{port}{parts.path}"

    @property
    def _is_connection_string(self) -> bool:
        """Whether the location looks like a connection with a password, and is not a URL."""
        return bool(_PASSWORD.search(self.location))

    @property
    def path(self) -> Path:
        """The path, if the location is none of a database server.

        Raises:
            InvalidInputError: it is a URL, or a connection string with a password.
        """
        if self._is_connection_string:
            problem = "a connection string with a password is not a place to read tables from"
            raise InvalidInputError(problem, where="--table", remedy=_REMEDY)
        if "://" in self.location:
            kind = self.location.partition("://")[0][:20]
            raise InvalidInputError(f"{kind}:// is not a place to read tables from", where="--table", remedy=_REMEDY)
        return Path(self.location)
