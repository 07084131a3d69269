"""Tasks on a Dask cluster; the package `distributed` is an optional extra.

Dask's workers, its scheduler and its clients run whatever code each other sends: anyone who has a certificate of the
cluster's authority is trusted with that. The scheduler sees no task and no result even so: both are sealed.
"""

import logging
import pickle
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from queue import Empty, SimpleQueue
from socket import create_connection
from ssl import SSLError
from time import monotonic
from typing import Any, Generic

from veiltab.common.errors import InvalidInputError, UnavailableError, VeiltabError
from veiltab.common.extras import importing
from veiltab.common.tasks.cluster_identity import ClusterIdentity
from veiltab.common.tasks.crew import performed_by
from veiltab.common.tasks.dask_worker import VERSION, perform_plain, perform_sealed
from veiltab.common.tasks.engine import Result, Results, Task, closed_engine
from veiltab.common.tasks.outcome import Outcome
from veiltab.common.tasks.seal import Seal, new_run

WAIT = 20
"""Seconds to wait for an answer of the scheduler, and then for a first worker, and for another when all are lost."""

STILL = 1
"""Seconds to wait for a first worker where there was none when a call began before."""

QUEUED = 4
"""How many tasks are under way for each thread of a worker: one that it performs, and those that travel or wait."""

_RECOUNT = 1.0
"""Seconds between two counts of the workers."""

_LOOPBACK = "--dashboard-address 127.0.0.1:0"
"""Keeps Dask's HTTP port, which asks nobody for a certificate, from other machines."""

_ADDRESS = re.compile(r"(?:(tcp|tls)://)?((?:\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):(\d{1,5}))")


class Dask:
    """Performs tasks on the workers of a Dask scheduler.

    Every worker needs the same veiltab and libraries, the files that tasks name, and one thread of linear algebra,
    which `dask worker` sets by default. A worker that is lost costs time: Dask performs its tasks elsewhere, three
    times. Closing the results of a call takes back the tasks that wait; a worker finishes the one that it performs.

    Args:
        address: HOST:PORT of the scheduler, or tls://HOST:PORT.
        identity: for TLS; without it, nothing is encrypted or sealed, and anyone who reaches the scheduler runs code.
        wait: seconds to wait for an answer of the scheduler, and for workers.

    Raises:
        InvalidInputError: not an address, one for TLS without an identity or the other way round, or the package
            `distributed` is not installed.
    """

    def __init__(self, address: str, identity: ClusterIdentity | None = None, *, wait: float = WAIT) -> None:
        match = _ADDRESS.fullmatch(address)
        if match is None or not 0 < int(match[3]) < 2**16:
            raise InvalidInputError(f"{address!r} is not HOST:PORT", where="--dask", remedy="Such as localhost:8786.")
        protocol = "tcp" if identity is None else "tls"
        if match[1] not in {None, protocol}:
            raise InvalidInputError(
                "an identity was given without tls://, or tls:// without an identity",
                where="--dask-identity",
                remedy="Give tls://HOST:PORT and --dask-identity, the folder `client` of `veiltab pki init --cluster`.",
            )
        _distributed()
        self._address, self._identity, self._wait = f"{protocol}://{match[2]}", identity, wait
        self._crews = set[_Crew[Any]]()
        self._is_closed = self._had_no_worker = False

    def perform(self, tasks: Iterable[Task[Result]]) -> Results[Result]:
        """Yield the number and the result of every task; where there is none, nobody is asked."""
        waiting = iter(tasks)
        for first in waiting:
            seal = None if self._identity is None else Seal(key=self._identity.tasks_key, run=new_run())
            with self._client() as client:
                crew = _Crew[Result](client, seal, self._wait)
                self._crews.add(crew)
                try:
                    if self._is_closed:
                        raise closed_engine()
                    yield from performed_by(crew, chain([first], waiting))
                finally:
                    self._crews.remove(crew)

    def close(self) -> None:
        """End all calls; the tasks that wait are taken back."""
        self._is_closed = True
        for crew in tuple(self._crews):
            crew.break_off()

    @contextmanager
    def _client(self) -> Iterator[Any]:
        """Connect, and check that the scheduler has a worker."""
        security = self._security()
        try:
            self._reach(security)
            client = _distributed().Client(self._address, timeout=self._wait, security=security, set_as_default=False)
        except SSLError:
            raise UnavailableError(
                "the Dask scheduler shows no certificate of the cluster's authority",
                where=self._address,
                remedy="Start it with the folder `scheduler` that `veiltab pki init --cluster` made with the client's.",
            ) from None
        except OSError:
            raise UnavailableError(
                "no Dask scheduler answers",
                where=self._address,
                remedy=_start(self._address, f"dask scheduler --port PORT {_LOOPBACK}"),
            ) from None
        with client:
            try:
                # Who begins again is soon refused again while there is none, so that its operator reads why.
                wait = min(self._wait, STILL) if self._had_no_worker else self._wait
                client.wait_for_workers(1, timeout=wait)
                self._had_no_worker = False
            except TimeoutError:
                self._had_no_worker = True
                raise _no_worker(self._address) from None
            yield client

    def _reach(self, security: Any) -> None:  # noqa: ANN401 - an optional package
        """Connect to what listens and hang up, since a client of Dask's that cannot connect leaves a thread behind.

        Raises:
            OSError: nothing listens there; SSLError if it has not the right certificate.
        """
        host, _, port = self._address.partition("://")[2].rpartition(":")
        with create_connection((host.strip("[]"), int(port)), timeout=self._wait) as plain:
            if security is not None:
                security.get_connection_args("client")["ssl_context"].wrap_socket(plain).close()

    def _security(self) -> Any:  # noqa: ANN401 - an optional package
        if self._identity is None:
            return None
        return _distributed().Security(
            require_encryption=True,
            tls_ca_file=str(self._identity.authority),
            tls_client_cert=str(self._identity.certificate),
            tls_client_key=str(self._identity.key),
        )


class _Crew(Generic[Result]):
    """The tasks of one call at a cluster."""

    def __init__(self, client: Any, seal: Seal | None, wait: float) -> None:  # noqa: ANN401 - an optional package
        self._client, self._seal, self._wait = client, seal, wait
        self._address: str = client.scheduler.address
        # A future that nobody holds is dropped by the scheduler.
        self._futures = dict[int, Any]()
        self._done = SimpleQueue[int | None]()
        self._threads, self._counted = 0, float("-inf")

    def room(self) -> int:
        """Return how many tasks keep all workers busy; they may come and go, so they are counted now and then."""
        if monotonic() >= self._counted + _RECOUNT:
            self._count_threads()
        return max(QUEUED * self._threads, 1)

    def begin(self, number: int, task: Task[Result]) -> None:
        """Submit a task."""
        text = pickle.dumps(task)
        if self._seal is None:
            future = self._client.submit(perform_plain, VERSION, text, pure=False)
        else:
            sealed = self._seal.seal("task", number, text)
            future = self._client.submit(perform_sealed, VERSION, self._seal.run, number, sealed, pure=False)
        self._futures[number] = future
        # Dask has one thread for the callbacks of all clients: if it fetched results, one that was waiting for a result
        # of a client that is closed would wait forever, and so would all later calls.
        future.add_done_callback(lambda _done: self._done.put(number))

    def ready(self) -> Iterator[tuple[int, Outcome[Result]]]:
        """Wait for the next task that is ready, and fetch its result."""
        while True:
            try:
                number = self._done.get(timeout=self._wait)
            except Empty:
                self._check_workers()
                continue
            if number is None:
                raise closed_engine()
            text = self._text(self._futures[number])
            if text is None:
                self._check_workers()
                self._done.put(number)
                continue
            del self._futures[number]
            yield number, self._outcome(number, text)
            return

    def break_off(self) -> None:
        """Let the thread that waits in `ready`, or will, raise an error; called by another thread."""
        self._done.put(None)

    def _check_workers(self) -> None:
        self._count_threads()
        if self._threads == 0:
            raise _no_worker(self._address)

    def _count_threads(self) -> None:
        try:
            self._threads = sum(self._client.nthreads().values())
        except (OSError, TimeoutError):
            raise _lost(self._address) from None
        self._counted = monotonic()

    def _text(self, future: Any) -> bytes | Exception | None:  # noqa: ANN401 - of an optional package
        """Fetch what a worker returned; None if that worker is lost by now, and Dask performs the task again."""
        try:
            return bytes(future.result(timeout=self._wait))
        except _distributed().scheduler.KilledWorker:
            return UnavailableError(
                "several workers ended over the same part of the work, perhaps for want of memory",
                where=self._address,
                remedy="Give the workers more memory, and begin again.",
            )
        except _distributed().CancelledError:
            return _lost(self._address)
        except Exception as error:  # noqa: BLE001 - what Dask says may hold what was sent
            if isinstance(error, TimeoutError) and future.status != "error":
                return None
            if isinstance(error, VeiltabError):
                # It has another key, or another version: no task has failed, and anyone who waits may mend that.
                return UnavailableError(error.problem, where=error.where, remedy=error.remedy)
            return UnavailableError(
                f"a worker cannot perform tasks: {type(error).__name__}",
                where=self._address,
                remedy="Install the same veiltab and libraries on every worker.",
            )

    def _outcome(self, number: int, text: bytes | Exception) -> Outcome[Result]:
        if isinstance(text, Exception):
            return Outcome(error=text)
        if self._seal is not None:
            text = self._seal.open("outcome", number, text)
        outcome: Outcome[Result] = pickle.loads(text)  # noqa: S301 - of a worker, which Dask itself trusts
        return outcome


def _distributed() -> Any:  # noqa: ANN401 - an optional package
    with importing("dask", "a Dask cluster", where="--dask"):
        import distributed  # noqa: PLC0415 - not where the extra is missing
    # Dask's own messages may quote what it was sent; it gives some of its loggers a level of their own.
    for name in (one for one in logging.root.manager.loggerDict if one.partition(".")[0] == "distributed"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return distributed


def _no_worker(address: str) -> UnavailableError:
    return UnavailableError(
        "the Dask scheduler has no worker", where=address, remedy=_start(address, f"dask worker {address} {_LOOPBACK}")
    )


def _start(address: str, command: str) -> str:
    """Say how to start a part of a cluster."""
    if address.startswith("tls:"):
        return 'Start one as docs/operations/cluster.md says under "A cluster".'
    return f"Start one with: {command}"


def _lost(address: str) -> UnavailableError:
    return UnavailableError("the Dask scheduler was lost", where=address, remedy="Start it, and begin again.")
