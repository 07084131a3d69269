"""The R package passes R's own checks against a real service; a script gets a command's table to the last digit."""

import json
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.protocol.served import Served

PACKAGE = Path(__file__).parents[2] / "clients" / "r"
NEEDS = ("httr2", "jsonlite", "testthat", "knitr", "rmarkdown", "survey", "mitools", "generics")

SCRIPT = """
library(veiltab)
release <- vt_release(vt_connect(), "r-table")
table <- vt_table(release)
means <- vt_ask(release, "mean of hours by region")
cat(jsonlite::toJSON(list(table = table$estimate, low = table$low, means = means$estimate), digits = NA), "\\n")
cat(sprintf("%.17g", table$estimate), "\\n")
"""


@cache
def missing() -> str:
    """Say what R lacks here; nothing if nothing."""
    if shutil.which("Rscript") is None:
        return "there is no R here (Debian: r-base-core)"
    code = f"cat(setdiff(c({', '.join(map(repr, NEEDS))}), rownames(installed.packages())))"
    lacking = subprocess.run(["Rscript", "-e", code], capture_output=True, text=True, check=True).stdout
    return f"R lacks {lacking} (Debian: r-cran-NAME)" if lacking else ""


pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture(autouse=True)
def _needs_r() -> None:
    if lacking := missing():
        pytest.skip(lacking)


def environment(served: Served) -> dict[str, str]:
    token = served.token(f"r-{os.urandom(4).hex()}", "--scope", "read", "--scope", "microdata")
    return {
        **os.environ,
        "VEILTAB_URL": served.url,
        "VEILTAB_TOKEN": token,
        "VEILTAB_CA": str(served.identity / "ca.pem"),
        # There is no network to ask for the time, or for the index of CRAN.
        "_R_CHECK_SYSTEM_CLOCK_": "0",
        "_R_CHECK_CRAN_INCOMING_": "false",
        "_R_CHECK_FORCE_SUGGESTS_": "true",
    }


def test_r_cmd_check_has_nothing_to_say(served: Served, tmp_path: Path) -> None:
    known = environment(served)
    subprocess.run(["R", "CMD", "build", str(PACKAGE)], cwd=tmp_path, env=known, check=True, capture_output=True)
    (package,) = tmp_path.glob("veiltab_*.tar.gz")
    done = subprocess.run(
        ["R", "CMD", "check", "--as-cran", "--no-manual", package.name],
        cwd=tmp_path,
        env=known,
        capture_output=True,
        text=True,
        check=False,
    )
    said = [line for line in done.stdout.splitlines() if re.search(r"(ERROR|WARNING|NOTE)$", line)]
    assert (said, "Status: OK" in done.stdout) == ([], True), done.stdout
    tests = (tmp_path / "veiltab.Rcheck" / "tests" / "testthat.Rout").read_text()
    assert "SKIP 0" in tests, tests


def test_a_script_gets_the_table_of_the_command(served: Served, tmp_path: Path) -> None:
    known, library = environment(served), tmp_path / "library"
    library.mkdir()
    install = ["R", "CMD", "INSTALL", "--no-docs", f"--library={library}", str(PACKAGE)]
    subprocess.run(install, env=known, check=True, capture_output=True)
    (tmp_path / "script.R").write_text(SCRIPT)
    done = subprocess.run(
        ["Rscript", "script.R"],
        cwd=tmp_path,
        env=known | {"R_LIBS_USER": str(library)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, digits = done.stdout.splitlines()
    identity = ("--identity", served.identity)
    common = ("researcher", "estimate", served.world.local.study_path, *identity, "--release", "r-table")
    told = served.world.command(*common)
    assert list(map(float, digits.split())) == [cell["estimate"] for cell in told.data["rows"]]
    means = served.world.command(*common, "mean of hours by region")
    assert json.loads(first)["means"] == pytest.approx([row["estimate"] for row in means.data["rows"]], rel=1e-14)
