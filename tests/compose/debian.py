"""Debian file trees, made without installing anything on this machine.

mmdebstrap makes them; where it is not installed, its package is fetched with lists of its own and unpacked.
"""

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from veiltab.common.errors import UnavailableError

MIRROR = "http://deb.debian.org/debian"
"""The mirror that is near everywhere."""

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeMaker:
    """How to make trees here.

    Args:
        work: folder for what is fetched.
        mirror: address of a Debian mirror.
    """

    work: Path
    mirror: str = MIRROR

    def make(self, target: Path, suite: str, packages: Sequence[str]) -> None:
        """Make a tree of a suite's essential packages, apt, and some more.

        Args:
            target: a folder that does not exist, or a file that ends in .tar.
            suite: the suite's name.
            packages: what to have beyond the essential.

        Raises:
            UnavailableError: the mirror did not answer, or lacks a package.
        """
        command = [self._mmdebstrap(), "--quiet", "--mode=root", "--variant=apt"]
        command += ["--aptopt=APT::Install-Recommends false", f"--include={','.join(packages)}"]
        _run([*command, suite, str(target), f"deb [signed-by={_KEYRING}] {self.mirror} {suite} main"], self.work)

    def _mmdebstrap(self) -> str:
        found = shutil.which("mmdebstrap")
        if found:
            return found
        unpacked = self.work / "mmdebstrap" / "usr" / "bin" / "mmdebstrap"
        if not unpacked.exists():
            self._fetch_mmdebstrap()
        return str(unpacked)

    def _fetch_mmdebstrap(self) -> None:
        """Fetch and unpack the package, with apt's state in our own folder."""
        sources = self.work / "sources.list"
        sources.write_text(f"deb [signed-by={_KEYRING}] {self.mirror} bookworm main\n", "utf-8")
        for name in ("lists/partial", "cache/archives/partial"):
            (self.work / name).mkdir(parents=True, exist_ok=True)
        apt = [
            "apt-get",
            "--quiet=2",
            "-o",
            f"Dir::State::Lists={self.work}/lists",
            "-o",
            f"Dir::Cache={self.work}/cache",
        ]
        apt += ["-o", f"Dir::Etc::SourceList={sources}", "-o", "Dir::Etc::SourceParts=/dev/null"]
        apt += ["-o", "APT::Sandbox::User=root"]
        _run([*apt, "update"], self.work)
        _run([*apt, "download", "mmdebstrap"], self.work)
        (package,) = self.work.glob("mmdebstrap_*.deb")
        _run(["dpkg", "--extract", str(package), str(self.work / "mmdebstrap")], self.work)


def unavailable_because() -> str:
    """Return why no tree can be made here; empty if one can."""
    missing = [tool for tool in ("apt-get", "dpkg", "perl", "tar") if not shutil.which(tool)]
    if missing or not _KEYRING.exists():
        return f"this is no Debian machine (no {', '.join(missing) or _KEYRING})"
    return ""


def _run(command: list[str], work: Path) -> None:
    """Run a tool in our folder; say what it last said if it fails."""
    # mmdebstrap makes its temporary folder in TMPDIR.
    done = subprocess.run(
        command,
        cwd=work,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR": str(work)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise UnavailableError("; ".join(last) or f"exit code {done.returncode}", where=Path(command[0]).name)
