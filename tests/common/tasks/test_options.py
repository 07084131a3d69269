from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.serialization import Encoding

from tests.conftest import refuses
from veiltab.common.command.rare_options import rare_options
from veiltab.common.errors import InvalidInputError
from veiltab.common.rpc.parties.identity import utc_now
from veiltab.common.tasks.dask import Dask
from veiltab.common.tasks.engine import InProcess
from veiltab.common.tasks.engine_options import ENGINE_OPTIONS, EngineOptions
from veiltab.common.tasks.pool import Pool
from veiltab.deploy.pki.authority import new_authority
from veiltab.deploy.pki.cluster import init_cluster

STUDY = new_authority("survey", since=utc_now(), until=utc_now()).certificate.public_bytes(Encoding.PEM)


@pytest.mark.parametrize("workers", [0, 1])
def test_no_process_and_one_are_this_one(workers: int) -> None:
    assert isinstance(EngineOptions(workers=workers).engine(study_authority=STUDY), InProcess)


def test_several_are_a_pool() -> None:
    pool = EngineOptions(workers=3).engine(study_authority=STUDY)
    assert isinstance(pool, Pool)
    assert pool._workers == 3


def test_by_default_there_is_one_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veiltab.common.tasks.engine_options.cores", lambda: 5)
    pool = EngineOptions().engine(study_authority=STUDY)
    assert isinstance(pool, Pool)
    assert pool._workers == 5


def test_no_more_processes_than_cores_are_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veiltab.common.tasks.engine_options.cores", lambda: 2)
    assert EngineOptions(workers=32).workers == 32
    with pytest.raises(InvalidInputError, match="33 processes are more than 16 for each of 2 cores") as caught:
        EngineOptions(workers=33)
    assert caught.value.where == "--advanced workers"


def test_a_party_reaches_its_cluster_over_tls_only(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    client = init_cluster(tmp_path)["client"]
    with pytest.raises(InvalidInputError, match="the cluster of a party was given without TLS") as caught:
        EngineOptions(dask="tls://localhost:8786").engine(study_authority=STUDY)
    assert caught.value.where == "--dask-identity"
    with pytest.raises(InvalidInputError, match="or tls:// without an identity"):
        EngineOptions(dask="tcp://localhost:8786", dask_identity=client).engine(study_authority=STUDY)
    engine = EngineOptions(dask="tls://localhost:8786", dask_identity=client).engine(study_authority=STUDY)
    assert isinstance(engine, Dask)


def test_what_contradicts_itself_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="own workers"):
        EngineOptions(dask="tls://localhost:8786", workers=2)
    with refuses(InvalidInputError, where="--dask-identity"):
        EngineOptions(dask_identity=Path("client"))


def test_a_command_gets_what_was_chosen_behind_one_option() -> None:
    rare = rare_options("--advanced", *ENGINE_OPTIONS)
    command = click.command()(rare(lambda **read: click.echo(EngineOptions(**read))))
    both = "--advanced dask=tls://a:1 --dask-identity client"
    chosen = EngineOptions(dask="tls://a:1", dask_identity=Path("client"))
    assert [CliRunner().invoke(command, one).output for one in ("", both)] == [f"{EngineOptions()}\n", f"{chosen}\n"]
    assert CliRunner().invoke(command, both, default_map={"dask": "tls://b:2"}).output == f"{chosen}\n"
    for words, said in (("workers=-1", "x>=0"), ("wokers=1", "No such key 'wokers'. Did you mean 'workers'?")):
        assert said in CliRunner().invoke(command, ["--advanced", words]).output
