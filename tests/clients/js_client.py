"""The client in JavaScript, built in a folder of its own from its sources and its lock file."""

import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "clients" / "js"
VECTORS = ROOT / "tests" / "vectors" / "reports.json"


@cache
def lack() -> str:
    """Say what Node lacks here; nothing if nothing."""
    lacking = [name for name in ("node", "npm") if shutil.which(name) is None]
    if lacking:
        return f"there is no {' and no '.join(lacking)} here (Debian: nodejs npm)"
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    return "" if int(version[1:].partition(".")[0]) >= 20 else f"Node is {version} here, and the client needs 20"


def installed(folder: Path) -> None:
    """Install what a folder's package names, or skip and say why."""
    if lack():
        pytest.skip(lack())
    words = ["npm", "ci", "--ignore-scripts"] if (folder / "package-lock.json").exists() else ["npm", "install"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        pytest.skip(f"npm cannot install the packages here: {done.stderr.strip().splitlines()[:3]}")


def built(folder: Path) -> Path:
    """Build the client; what does not compile fails."""
    made = folder / "js"
    shutil.copytree(SOURCES, made, ignore=shutil.ignore_patterns("node_modules", "dist"))
    installed(made)
    done = subprocess.run(["npm", "run", "build"], cwd=made, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return made
