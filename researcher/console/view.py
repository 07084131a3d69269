"""What of a release a page looks at: attributes, groups, a comparison, a confidence; as its address says it."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from veiltab.researcher.analysis.contrasts import Contrast
from veiltab.researcher.questions.question import Question

NUMBERS = ("mean", "sum", "variance", "median")
"""What a page shows of an attribute of numbers."""

CONFIDENCES = ("0.8", "0.9", "0.95", "0.99")


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What of a release is looked at, as an address says it.

    Args:
        attributes: of the table, those that are given among them; in study order.
        given: those that are conditioned on.
        contrast: how groups are compared; "" for shares.
        reference: the group that others are compared with, as a subgroup; "" for the first.
        confidence: of the intervals, as text.
        number: one of NUMBERS and the attribute that it is of, such as "mean hours"; "" for shares.
        links: wrong links that are undone, such as "0.02:0.005"; "" for none.
    """

    attributes: tuple[str, ...]
    given: tuple[str, ...]
    contrast: str
    reference: str
    confidence: str
    number: str = ""
    links: str = ""

    @property
    def question(self) -> Question:
        """What is asked of the table.

        Raises:
            InvalidInputError: parts that do not go together.
        """
        if self.number:
            kind, _, name = self.number.partition(" ")
            asked: dict[str, Any] = {"quantile": 0.5, "of": name} if kind == "median" else {kind: name}
            return Question(given=self.given, **asked)
        return Question(
            given=self.given, contrast=Contrast(self.contrast) if self.contrast else None, reference=self.reference
        )

    @property
    def query(self) -> str:
        """The view as the query of an address."""
        fields = {"attributes": self.attributes, "given": self.given, "confidence": self.confidence}
        if self.contrast:
            fields |= {"contrast": self.contrast}
        if self.reference:
            fields |= {"reference": self.reference}
        if self.number:
            fields |= {"number": self.number}
        if self.links:
            fields |= {"links": self.links}
        return urlencode(fields, doseq=True)
