from pathlib import Path

from tests.conftest import refuses
from veiltab.common.errors import InvalidInputError
from veiltab.common.web.serving import server_tls


def test_files_that_are_no_certificate_and_no_key_are_refused(tmp_path: Path) -> None:
    (tmp_path / "c.pem").touch()
    with refuses(InvalidInputError, where=f"{tmp_path}/c.pem, {tmp_path}/c.pem"):
        server_tls(tmp_path / "c.pem", tmp_path / "c.pem")
