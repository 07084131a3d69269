"""The pages of microdata: rows of the model of a release, drawn in the background and saved by the browser."""

from starlette.responses import Response

from veiltab.common.errors import InvalidInputError
from veiltab.common.web.forms import Form, whole_number
from veiltab.common.web.pages import Visit
from veiltab.researcher.console.desk import Desk
from veiltab.researcher.console.downloads import sent_file
from veiltab.researcher.console.writing import MOST_ROWS, MOST_WEIGHTED, Order, Writer
from veiltab.researcher.microdata.files import SUFFIXES
from veiltab.researcher.microdata.provenance import WARNING
from veiltab.researcher.status.release_status import Status

_LONGEST_SEED = 100


class MicrodataPages:
    """Draws microdata of releases."""

    def __init__(self, desk: Desk, writer: Writer) -> None:
        self._desk = desk
        self._writer = writer

    def show(self, visit: Visit) -> Response:
        """Show the form, and how far the last order has come if it was of this release."""
        status = self._desk.ready(visit.parameters["release"])
        job = self._writer.job
        is_other = job is not None and job.order.status.release_id != status.release_id
        return visit.render(
            "microdata.html",
            release=status,
            job=None if is_other else job,
            other=job.order.status if job is not None and is_other and not job.is_done else None,
            population=status.spec_of(status.ready_tables[0]).population,
            names=status.attributes,
            suffixes=SUFFIXES,
            warning=WARNING,
            most_rows=MOST_ROWS,
            most_weighted=MOST_WEIGHTED,
        )

    def act(self, visit: Visit) -> Response:
        """Begin to draw, or stop.

        Raises:
            InvalidInputError: numbers or attributes that cannot be drawn.
            ConflictError: something is being drawn already.
        """
        status = self._desk.ready(visit.parameters["release"])
        path = f"/releases/{status.release_id}/microdata"
        match visit.form.text("act"):
            case "draw":
                self._writer.start(self._desk.release(status), self._order(status, visit.form))
                return visit.go_to(path)
            case "stop":
                self._writer.stop()
                return visit.go_to(path, "The drawing was stopped.")
            case _:
                raise InvalidInputError("the page has no such choice", where="microdata")

    def download(self, visit: Visit) -> Response:
        """Send a file that was drawn."""
        name = visit.parameters["name"]
        return sent_file(self._writer.file(name), name)

    def _order(self, status: Status, form: Form) -> Order:
        chosen = form.texts("attributes")
        unknown = [name for name in chosen if name not in status.attributes]
        if unknown:
            raise InvalidInputError(
                f"the release has no attribute {unknown[0][:60]!r}",
                where="attributes",
                remedy=f"It has {', '.join(status.attributes)}.",
            )
        suffix, seed = form.text("kind"), form.text("seed")
        if suffix not in SUFFIXES or len(seed) > _LONGEST_SEED:
            raise InvalidInputError("the page has no such choice", where="microdata", remedy="Choose on the page.")
        return Order(
            status=status,
            attributes=tuple(name for name in status.attributes if name in chosen) or status.attributes,
            rows=_number(form.text("rows"), "rows"),
            replicates=form.text("replicates") == "yes",
            seed=seed or None,
            suffix=suffix,
            study=self._desk.study if form.text("report") == "yes" else None,
        )


def _number(text: str, where: str) -> int:
    number = whole_number(text.replace(",", "").replace(" ", ""), 0, 10**12 - 1)
    if number is None:
        raise InvalidInputError("this is a whole number", where=where)
    return number
