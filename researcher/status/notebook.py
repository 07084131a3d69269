"""How a notebook shows a release."""

from collections.abc import Callable

from veiltab.common.errors import VeiltabError
from veiltab.common.web.document import facts
from veiltab.researcher.status.release_status import Status


def status_html(release: str, ask: Callable[[], Status]) -> str:
    """Return how a release stands as HTML, or why that is not known.

    Args:
        ask: returns its status.
    """
    try:
        status = ask()
    except VeiltabError as error:
        return facts([("release", release), ("status", str(error))])
    return facts(
        [
            ("release", status.label or release),
            ("state", status.state.value),
            ("attributes", ", ".join(status.attributes)),
            ("epsilon", status.epsilon),
            *([("tables", str(len(status.tables)))] if status.tables else []),
            *([("failure", status.failure)] if status.failure else []),
            *([("waits for", status.waiting_for)] if status.waiting_for else []),
        ]
    )
