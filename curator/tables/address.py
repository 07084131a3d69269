"""Where a table is: a file, a folder, a pattern of files, or a database with a query."""

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from veiltab.common.errors import InvalidInputError

_DATABASES = ("postgresql", "postgres")


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
    def shown(self) -> str:
        """The location for messages: of a URL only the host and the database."""
        if not self.is_url:
            return self.location
        try:
            parts = urlsplit(self.location)
            host, port = parts.hostname or "", f":{parts.port}" if parts.port else ""
        except ValueError:
            return "postgresql://..."
        return f"postgresql://{host}{port}{parts.path}"

    @property
    def path(self) -> Path:
        """The path, if the location is none of a database server.

        Raises:
            InvalidInputError: it is a URL.
        """
        if "://" in self.location:
            kind = self.location.partition("://")[0][:20]
            raise InvalidInputError(
                f"{kind}:// is no place that tables are read from",
                where="--table",
                remedy="Give a file, a folder, a pattern of files, or postgresql://HOST/DATABASE.",
            )
        return Path(self.location)
