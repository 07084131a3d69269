"""The command, curl and what a notebook runs get one table to the last digit; test_r.py compares R with the command."""

import json
import shutil
import subprocess
import sys

import pytest

from tests.protocol.served import Served

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

CELL = """
import json
import veiltab

with veiltab.Client({study!r}, identity={identity!r}, name="rosa") as desk:
    print(json.dumps(desk.release("r-table").frame()["estimate"].tolist()))
"""


def test_curl_and_a_notebook_get_the_table_of_the_command(served: Served) -> None:
    study = served.world.local.study_path
    command = ("researcher", "estimate", study, "--identity", served.identity, "--release", "r-table")
    expected = [cell["estimate"] for cell in served.world.command(*command).data["rows"]]
    assert len(expected) > 10
    if shutil.which("curl"):
        token = served.token("curl", "--scope", "read")
        bearer = f"Authorization: Bearer {token}"
        url = f"{served.url}/v1/releases/r-table/table"
        done = subprocess.run(
            ["curl", "--silent", "--fail", "--cacert", served.identity / "ca.pem", "--header", "@-", url],
            input=bearer,
            capture_output=True,
            text=True,
            check=True,
        )
        assert [cell["estimate"] for cell in json.loads(done.stdout)["rows"]] == expected
    cell = CELL.format(study=str(study), identity=str(served.identity))
    done = subprocess.run([sys.executable, "-c", cell], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == expected
