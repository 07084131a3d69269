"""The certificates and the key of a Dask cluster that computes for one party.

DIR/ca.pem                    the authority; nobody keeps its key, so when they expire all files are made anew
DIR/scheduler/                ca.pem, scheduler.pem, scheduler.key
DIR/worker/                   ca.pem, worker.pem, worker.key, tasks.key; the same for all workers
DIR/client/                   ca.pem, client.pem, client.key, tasks.key; the party's own
"""

from datetime import timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from veiltab.common.rpc.parties.identity import Clock, utc_now
from veiltab.common.storage.files import write_whole
from veiltab.common.tasks.seal import KEY_FILE, new_key
from veiltab.deploy.pki.authority import named_authority
from veiltab.deploy.pki.certificates import BACKDATING, LIFETIME, check_no_authority, write_identity

_HAS_TASKS_KEY = {"scheduler": False, "worker": True, "client": True}
"""Whether a role reads the tasks; the scheduler only passes them on."""


def init_cluster(out: Path, *, lifetime: timedelta = LIFETIME, clock: Clock = utc_now) -> dict[str, Path]:
    """Make a cluster's authority, a certificate for each of its roles, and the key that seals tasks.

    Args:
        out: directory for all files; made if it does not exist.
        lifetime: how long all certificates are valid from now.

    Returns:
        Each role's directory.

    Raises:
        ConflictError: `out` holds an authority already.
    """
    check_no_authority(out, "Give another directory, and replace all files of the cluster together.")
    now = clock()
    since, until = now - BACKDATING, now + lifetime
    authority, tasks_key = named_authority("veiltab cluster", since=since, until=until), new_key()
    out.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_whole(out / "ca.pem", authority.certificate.public_bytes(Encoding.PEM))
    folders = {role: out / role for role in _HAS_TASKS_KEY}
    for role, folder in folders.items():
        issued = authority.issue(f"cluster {role}", [x509.DNSName(role)], since, until)
        write_identity(folder, role, authority, issued)
        if _HAS_TASKS_KEY[role]:
            write_whole(folder / KEY_FILE, f"{tasks_key}\n".encode())
    return folders
