"""A curator's quota at the server, so that none can fill the others' disk."""

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import UnavailableError


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """The most that one curator may have announced and not finished.

    Args:
        releases: how many releases.
        gibibytes: length of all their unperturbed columns together.
    """

    releases: int = 256
    gibibytes: int = 64

    def check(self, releases: int, size: int) -> None:
        """Raise UnavailableError if so many open releases of so many bytes are too much."""
        if releases > self.releases or size > self.gibibytes << 30:
            raise UnavailableError(
                f"a curator may have {self.releases} releases of {self.gibibytes} GiB together open here",
                where="quota",
                remedy="Finish those that are open, or wait for their deadlines.",
            )
