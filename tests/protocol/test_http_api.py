"""Over real TLS and processes: curl's kind of client and a command get the same table to the last digit."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.protocol.served import Served, http_beside
from tests.protocol.world import World, made_world


@pytest.fixture(scope="module")
def served(village: World) -> Iterator[Served]:
    with http_beside(village) as found:
        yield found


def test_a_release_is_asked_for_and_read_as_by_the_command(served: Served) -> None:
    token = served.token(
        "everything", *(word for one in ("read", "request", "certificate") for word in ("--scope", one))
    )
    with served.client(token) as client:
        body = {"attributes": ["region", "smoker"], "epsilon": "2", "delta": "1e-6", "label": "over-http"}
        asked = client.post("/v1/releases", json=body)
        assert asked.status_code == 202, asked.text
        place = asked.headers["location"]
        end = time.monotonic() + 60
        while (found := client.get(place, params={"wait": 10}).json())["release"]["state"] != "ready":
            assert time.monotonic() < end, found
        assert client.post("/v1/releases", json=body).json()["continued"] is True
        assert client.get("/v1/releases/over-http/certificate").text.startswith("{")
        table = client.get(f"{place}/table").json()
        shares = client.get(f"{place}/analysis", params={"question": "share of smoker given region"}).json()
        assert "<!DOCTYPE html>" in client.get(f"{place}/report").text
    common = ("researcher", "estimate", served.world.local.study_path, "--identity", served.identity)
    told = served.world.command(*common, "--release", "over-http")
    assert table == {name: value for name, value in told.data.items() if name not in {"out", "picture"}}
    told = served.world.command(*common, "--release", "over-http", "share of smoker given region")
    assert shares["rows"] == told.data["rows"]


CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "ignored_auth",
    "unsupported_method",
)
"""Not that all data of the schema are accepted: it does not know which attributes go together."""


@pytest.mark.long
def test_the_service_does_what_its_description_says(tmp_path: Path) -> None:
    """schemathesis knows the description alone; what it asks for would keep others from asking."""
    world = made_world(tmp_path / "study")
    with world.local:
        world.local.start_all()
        with http_beside(world) as served:
            check_description(served)


def check_description(served: Served) -> None:
    token = served.token("schema", *(word for one in ("read", "microdata", "request") for word in ("--scope", one)))
    done = subprocess.run(
        [
            *(Path(sys.executable).with_name("schemathesis"), "run", f"{served.url}/openapi.json"),
            *("--tls-verify", served.identity / "ca.pem", "--header", f"Authorization: Bearer {token}"),
            *("--checks", ",".join(CHECKS), "--max-examples", "15", "--seed", "1", "--workers", "1"),
        ],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]
