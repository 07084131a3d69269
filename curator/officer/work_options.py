"""Which engine performs a curator's passes, and in which folder they leave files: what the operator chose."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.rpc.parties.identity import Party
from veiltab.common.storage.run_files import RunFiles, run_in
from veiltab.common.tasks.engine_options import EngineOptions
from veiltab.curator.table.execution import Execution


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkOptions:
    """Where the passes are to be performed; see the options of the same names.

    Args:
        engine: what is to perform them.
        shared: folder that a cluster's workers see under the same name.

    Raises:
        InvalidInputError: a cluster without a shared folder, one without a cluster, or one that is not there.
    """

    engine: EngineOptions
    shared: Path | None = None

    def __post_init__(self) -> None:
        if self.engine.dask is not None and self.shared is None:
            raise InvalidInputError(
                "no folder was given that the cluster's workers and this process both see",
                where="--advanced shared",
                remedy="Give one that is mounted here and at each worker, at the same path.",
            )
        if self.engine.dask is None and self.shared is not None:
            raise InvalidInputError(
                "there is no cluster to share a folder with",
                where="--advanced shared",
                remedy="Give dask, or leave it away.",
            )
        if self.shared is not None and not self.shared.is_dir():
            raise InvalidInputError(
                "this is not a folder",
                where=str(self.shared),
                remedy="Mount it here and at each worker, at the same path.",
            )

    def run(self, state: Path, party: Party) -> AbstractContextManager[RunFiles]:
        """Return the files of the run, until the block ends.

        Args:
            state: the state folder, on whose disk they are unless a cluster has to see them.
            party: the curator; it has a folder of its own in what is shared.
        """
        # No name has an underscore. The next process of this party deletes what is there, and of no other.
        return run_in(state if self.shared is None else self.shared.absolute() / f"{party.study}_{party.name}")

    @contextmanager
    def execution(self, run: RunFiles, *, study_authority: bytes) -> Iterator[Execution]:
        """Return the execution, until the block ends.

        Args:
            study_authority: certificates of the study's authority, PEM.

        Raises:
            VeiltabError: as `EngineOptions.engine`.
        """
        with closing(self.engine.engine(study_authority=study_authority)) as engine:
            yield Execution(run=run, engine=engine, is_remote=self.shared is not None)
