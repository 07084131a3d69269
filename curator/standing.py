"""A curator's state as the commands and pages beside its running process open it."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from veiltab.common.errors import NotFoundError
from veiltab.common.rpc.identity import Party, Role
from veiltab.common.storage.files import check_owner
from veiltab.common.study.file import Study, load_study
from veiltab.curator.ledger import Ledger
from veiltab.curator.policy import Policy, policy_of
from veiltab.curator.store import CuratorStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A curator's opened state.

    Args:
        study: the study file.
        name: the curator.
        store: its database.
        ledger: what was spent, against the budget that is served or that of the policy file that was named.
        policy_path: the policy file that was named, or else that of the process that served last.
        named_policy: what the policy file says that was named; None if none was.
    """

    study: Study
    name: str
    store: CuratorStore
    ledger: Ledger
    policy_path: Path | None
    named_policy: Policy | None

    @property
    def persons(self) -> int:
        """So many different persons must approve what is held: no fewer than the policy that is served says."""
        served = self.store.served_policy().persons
        return served if self.named_policy is None else max(served, self.named_policy.persons)


@contextmanager
def open_standing(study_path: Path, name: str, state_folder: Path, policy_path: Path | None) -> Iterator[Standing]:
    """Open a curator's state while its process may run.

    Args:
        study_path: the study file.
        name: the curator.
        state_folder: its folder.
        policy_path: a policy file; None for the one that is served.

    Raises:
        NotFoundError: no curator has run on the folder.
        IntegrityError: it is another party's, or its ledger was altered.
    """
    study = load_study(study_path)
    study.curator(name)
    path = state_folder / "curator.sqlite"
    if not path.exists():
        raise NotFoundError("no curator has run on this folder", where=str(state_folder))
    check_owner(state_folder, Party(study=study.id, role=Role.CURATOR, name=name).uri)
    with closing(CuratorStore(path)) as store:
        served = store.served_policy()
        named = None if policy_path is None else policy_of(study, name, policy_path)
        # Without a file, the budget is the one that is served, whatever the file says by now.
        policy = named or Policy(budget=served.budget)
        yield Standing(
            study=study,
            name=name,
            store=store,
            ledger=Ledger(store.connection, policy.budget_within(study.budget_epsilon), study.budget_delta),
            policy_path=policy_path or served.path,
            named_policy=named,
        )
