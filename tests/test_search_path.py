"""Processes that a party starts import nothing from the folder that it was started in: others may write there."""

import subprocess
import sys
from pathlib import Path

import pytest

from veiltab.common.tasks.processes import PROGRAM
from veiltab.curator.notify.channels import _SENDER
from veiltab.curator.planning.planner import _WORKER

COMMANDS = {"pool": (sys.executable, *PROGRAM, "0"), "planning": _WORKER, "notices": _SENDER}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_module_in_the_folder_of_the_party_is_not_imported(tmp_path: Path, name: str) -> None:
    for module in ("pickle", "json", "socket"):
        (tmp_path / f"{module}.py").write_text('import os\nos.write(1, b"foreign code")\nos._exit(3)\n')
    ended = subprocess.run(COMMANDS[name], cwd=tmp_path, input=b"", capture_output=True, check=False, timeout=60)
    assert b"foreign code" not in ended.stdout
    assert ended.returncode != 3
