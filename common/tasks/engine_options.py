"""The options that choose what performs a command's tasks: this process, this machine's cores, or a cluster."""

from pathlib import Path

import click

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.process.cores import cores
from veiltab.common.tasks.engine import Engine, InProcess
from veiltab.common.tasks.pool import Pool

MOST_A_CORE = 16
"""Most processes for each core that this process may use: more compute nothing sooner, and take memory."""

dask_identity_option = click.option(
    "--dask-identity",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="The folder `client` that `veiltab pki init --cluster` makes: certificate and keys for the Dask cluster.",
)
ENGINE_OPTIONS = (
    click.option(
        "--workers",
        type=click.IntRange(min=0),
        metavar="N",
        help=f"Processes that compute; by default one a core, at most {MOST_A_CORE}. With 0 or 1, this process does.",
    ),
    click.option(
        "--dask",
        metavar="SCHEDULER",
        help="tls://HOST:PORT of a Dask scheduler whose workers compute instead. Needs the extra dask.",
    ),
    dask_identity_option,
)
"""What performs tasks: the fields of EngineOptions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """What is to perform the tasks of a command; see the options of the same names.

    Args:
        workers: processes; None is one a core.
        dask_identity: folder of the client's certificate and keys.

    Raises:
        InvalidInputError: processes of this machine beside a cluster, far more of them than it has cores, or an
            identity without a cluster.
    """

    workers: int | None = None
    dask: str | None = None
    dask_identity: Path | None = None

    def __post_init__(self) -> None:
        if self.dask is not None and self.workers is not None:
            raise InvalidInputError(
                "the cluster has its own workers", where="--advanced workers", remedy="Leave workers or dask out."
            )
        if self.workers is not None and self.workers > MOST_A_CORE * cores():
            raise InvalidInputError(
                f"{self.workers} processes are more than {MOST_A_CORE} for each of {cores()} cores",
                where="--advanced workers",
                remedy="Give about as many as there are cores, or leave it out.",
            )
        if self.dask is None and self.dask_identity is not None:
            raise InvalidInputError("there is no cluster to show it to", where="--dask-identity", remedy="Give --dask.")

    def engine(self, *, study_authority: bytes) -> Engine:
        """Return what performs the tasks of a party; the caller closes it.

        Args:
            study_authority: certificates of the study's authority, which a cluster's must not be, PEM.

        Raises:
            InvalidInputError: the cluster's address or identity is none, it has no TLS, or an extra is missing.
            NotFoundError: a file of the identity is not there.
        """
        if self.dask is None:
            workers = cores() if self.workers is None else self.workers
            return Pool(workers) if workers > 1 else InProcess()
        if self.dask_identity is None:
            raise InvalidInputError(
                "the cluster of a party was given without TLS",
                where="--dask-identity",
                remedy="Give the folder `client` that `veiltab pki init --cluster` makes.",
            )
        return dask_engine(self.dask, self.dask_identity, study_authority=study_authority)


def dask_engine(address: str, identity: Path | None, *, study_authority: bytes | None = None) -> Engine:
    """Return a Dask cluster, with TLS if there is an identity.

    Args:
        identity: folder of the client's certificate and keys.
        study_authority: certificates that the cluster's authority must not be among, PEM.

    Raises:
        InvalidInputError: the address or the identity is none, or the extra dask is missing.
        NotFoundError: a file of the identity is not there.
    """
    from veiltab.common.tasks.cluster_identity import load_cluster_identity  # noqa: PLC0415 - not for parties without a cluster
    from veiltab.common.tasks.dask import Dask  # noqa: PLC0415 - not for parties without a cluster

    loaded = None if identity is None else load_cluster_identity(identity, study_authority=study_authority)
    return Dask(address, loaded)
