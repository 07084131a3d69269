"""A curator's state as the commands and pages beside its running process open it."""

import functools
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path

from veiltab.common.command.cli import note
from veiltab.common.command.options import checked_name_option, state_option, study_argument, wrong_name
from veiltab.common.core.texts.nearest import known_names
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import ConflictError, NotFoundError
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.common.storage.files import owner_of
from veiltab.common.study.differences import study_differences
from veiltab.common.study.file import Study, load_study, study_from_bytes
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.officer.policy import Policy, policy_of
from veiltab.curator.records.store import CuratorStore


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedState:
    """A curator's opened state.

    Args:
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
        served = self.store.served.served_policy().persons
        return served if self.named_policy is None else max(served, self.named_policy.persons)


@contextmanager
def open_state(study_path: Path, state_folder: Path, policy_path: Path | None) -> Iterator[OpenedState]:
    """Open a curator's state while its process may run.

    Args:
        policy_path: a policy file; None for the one that is served.

    Raises:
        NotFoundError: no curator has run on the folder.
        ConflictError: the curator serves another study file.
        IntegrityError: it is another party's, or its ledger was altered.
    """
    study = load_study(study_path)
    path = state_folder / "curator.sqlite"
    if not path.exists():
        raise _not_a_state(state_folder)
    name = _curator_of(study, state_folder)
    with closing(CuratorStore(path)) as store:
        check_served_study(study, study_path, store)
        named = None if policy_path is None else policy_of(study, name, policy_path)
        yield OpenedState(
            study=study,
            name=name,
            store=store,
            ledger=Ledger(store.connection, current_budget(study, store, named), study.budget_delta),
            policy_path=policy_path or store.served.served_policy().path,
            named_policy=named,
        )


def with_own_state(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the state of the curator whose folder its options name, as its argument `own_state`."""

    @study_argument
    @checked_name_option
    @state_option
    @functools.wraps(command)
    def opened(
        study_path: Path, state_folder: Path, name: str | None, policy_path: Path | None = None, **options: object
    ) -> None:
        with open_state(study_path, state_folder, policy_path) as own_state:
            if name not in {None, own_state.name}:
                raise wrong_name(f"the state of curator {own_state.name}", name)
            table = own_state.store.served.served_table()
            for sentence in (own_state.store.served.served_policy().note, "" if table is None else table.note):
                if sentence:
                    note(sentence)
            command(own_state=own_state, **options)

    return opened


def _curator_of(study: Study, folder: Path) -> str:
    """Return the curator whose state is in a folder; ConflictError: it is that of another party or study."""
    owner = owner_of(folder)
    curators = {Party(study=study.id, role=Role.CURATOR, name=one.name).uri: one.name for one in study.curators}
    if owner not in curators:
        raise ConflictError(
            f"this folder holds the state of {owner[:200]!r}, which is not a curator of study {study.id}",
            where=str(folder),
            remedy=f"Give the folder of one of them: {', '.join(curators.values())}.",
        )
    return curators[owner]


def _not_a_state(folder: Path) -> NotFoundError:
    """Return the refusal of a folder that has no curator's state, with those beside it that have one."""
    states = [path.parent.name for path in sorted(folder.parent.glob("*/curator.sqlite"))]
    problem = "no curator has run on this folder" if folder.is_dir() else "there is no such folder"
    others = known_names("Folders of curators beside it", states, folder.name) if states else ""
    remedy = "Give the folder that the curator serves with, as --state."
    return NotFoundError(problem, where=str(folder), remedy=f"{remedy} {others}".strip())


def current_budget(study: Study, store: CuratorStore, named: Policy | None) -> Decimal:
    """Return the epsilon that a curator spends at most: by the policy that was named, or else by the one it serves.

    A file that is served counts as it was when the curator read it, whatever it says by now.
    """
    policy = named or Policy(budget=store.served.served_policy().budget)
    return policy.budget_within(study.budget_epsilon)


def check_served_study(study: Study, path: Path, store: CuratorStore) -> None:
    """Check that a study file is the one that the curator serves, or served last.

    Raises:
        ConflictError: it is another one.
    """
    served = store.served.served_study()
    if served is None or served == study.source:
        return
    difference = study_differences(study, study_from_bytes(served, "the served study file"))
    raise ConflictError(
        f"the curator serves another study file: this one {difference}",
        where=str(path),
        remedy="Give the file that it serves; a new version of the study counts once the curator serves it.",
    )
