"""An interrupt ends a party whenever it comes, from the first import until it serves."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.test_mistakes import STUDY
from veiltab.common.study.file import study_from_bytes
from veiltab.deploy.pki.certificates import init_pki

LAUNCHER = Path(__file__).with_name("interrupting.py")
SERVE = ("server", "serve", "study.toml", "--name", "cloud", "--identity", "pki/server-cloud", "--state", "state")
MOMENTS = (200, 500, 1000, 2000, 3000, 4000, 4500, 5000, 5300)
"""So many events after the command line began; the server serves after about 5,400."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "study.toml").write_text(STUDY)
    init_pki(study_from_bytes(STUDY.encode(), "study.toml"), tmp_path / "pki")
    return tmp_path


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_interrupt_ends_a_party_that_starts(folder: Path, moment: int) -> None:
    command = [sys.executable, str(LAUNCHER), str(moment), *SERVE, "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as party:
        assert party.stderr is not None
        said = ""
        for line in party.stderr:
            said += line
            if "serves on port" in line:  # it came while the server began, or will come no more
                party.send_signal(signal.SIGINT)
        assert party.wait(100) in {0, -signal.SIGINT}
    assert "Traceback" not in said
    assert "Interrupted" not in said  # no handler of Python's was in between


def test_an_interrupt_that_is_ignored_stays_ignored(folder: Path) -> None:
    script = f"trap '' INT; exec {sys.executable} {LAUNCHER} 500 --version"
    done = subprocess.run(["sh", "-c", script], cwd=folder, capture_output=True, text=True, check=True, timeout=100)
    assert "version" in done.stdout
