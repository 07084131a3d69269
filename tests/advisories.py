"""Asks an advisory database for known holes in the pinned versions: `python -m tests.advisories`.

pip-audit reads the locks, with the hashes that they have, and asks PyPI. A known hole ends this with 1. What was not
checked, for want of a network or of an answer, is said and is no failure.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LOCKS = (ROOT / "requirements.lock", *sorted((ROOT / "deploy/compose/locks").glob("*.lock")))
"""What parties run, with every extra."""

_AUDIT = ("-m", "pip_audit", "--format=json", "--desc=off", "--progress-spinner=off")
_AS_PINNED = ("--disable-pip", "--require-hashes")


def answered(locks: Sequence[Path]) -> tuple[list[Mapping[str, Any]], str]:
    """Ask about all packages of some locks; return what is known of each, and why nothing is known if so."""
    named = [word for lock in locks for word in ("--requirement", str(lock))]
    done = subprocess.run([sys.executable, *_AUDIT, *_AS_PINNED, *named], capture_output=True, text=True, check=False)
    try:
        packages: list[Mapping[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return [], (done.stderr.strip().splitlines() or ["no answer"])[-1]
    return packages, ""


def verdict(packages: Sequence[Mapping[str, Any]], why: str = "") -> tuple[list[str], bool]:
    """Return what to say of an answer, and whether it names a hole.

    Args:
        packages: as pip-audit describes them.
        why: nothing is known of any.
    """
    holes = [
        f"{one['name']} {one['version']}: {hole['id']}, mended in {', '.join(hole['fix_versions']) or 'no version yet'}"
        for one in packages
        for hole in one.get("vulns", ())
    ]
    skipped = [one for one in packages if "skip_reason" in one]
    lines = list(holes)
    if not packages:
        lines.append(f"NOT CHECKED: the advisory database gave no answer ({why})")
    elif skipped:
        reason = skipped[0]["skip_reason"]
        lines.append(f"NOT CHECKED: {len(skipped)} of {len(packages)} pinned packages, the first as follows. {reason}")
    lines.append(f"{len(packages) - len(skipped)} pinned packages checked, {len(holes)} known holes")
    return lines, bool(holes)


def main() -> int:
    """Print what is known of the locks; return the exit code."""
    lines, is_bad = verdict(*answered(LOCKS))
    sys.stdout.write("\n".join(lines) + "\n")
    return int(is_bad)


if __name__ == "__main__":
    sys.exit(main())
