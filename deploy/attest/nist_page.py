"""The questions of NIST SP 800-226 about a release, answered from its certificate and its study file alone.

The publication, "Guidelines for Evaluating Differential Privacy Guarantees" (Near, Darais, 2025), draws what a
guarantee rests on as a pyramid: above the parameter and the unit, below them algorithms, utility, bias, side channels
and security, below these query and threat model, access control and data collection. Each is a question here.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from veiltab.common.core.texts.spelling import escaped
from veiltab.deploy.attest.certified import NOT_STATED, UNIT, Certified, whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One question of the pyramid.

    Args:
        says: what certificate and study file say; empty if nothing.
        lacks: what belongs to the answer and neither says.
    """

    part: str
    question: str
    says: str = ""
    lacks: str = ""

    def text(self) -> str:
        """Return the answer, with what is not stated."""
        if not self.says:
            return f"{self.lacks}: {NOT_STATED}." if self.lacks else f"{NOT_STATED.capitalize()}."
        return f"{self.says} {self.lacks}: {NOT_STATED}." if self.lacks else self.says


def answers(one: Certified) -> tuple[tuple[str, tuple[Answer, ...]], ...]:
    """Return the parts of the pyramid from its top, with their answers."""
    return ("The guarantee", _top(one)), ("What can undermine it", _middle(one)), ("What it rests on", _bottom(one))


def nist_page(one: Certified) -> str:
    """Return the page, in Markdown."""
    return whole(_page(one))


def _page(one: Certified) -> Iterator[str]:
    release = one.release
    yield "# Evaluation of a release after NIST SP 800-226"
    yield ""
    yield (
        f"Release `{release.release_id}` of the study {_plain(one.study.title)} (`{one.study.id}`). Every line of its"
        f" release certificate holds; the last party signed on {one.last_signed:%Y-%m-%d %H:%M:%S} UTC. The answers"
        " follow from the"
        f' certificate and the study file alone. Where they say nothing, this page says "{NOT_STATED}".'
    )
    for heading, each in answers(one):
        yield from ("", f"## {heading}")
        for answer in each:
            yield from ("", f"### {answer.part}", "", f"*{answer.question}*", "", answer.text())
    yield from ("", "## Who faces which epsilon", "", "| who puts what together | faces |", "|---|---|")
    yield from (f"| {_plain(who)} | {_plain(faces)} |" for who, faces in one.coalitions())
    yield from ("", "## Where the numbers come from", "")
    yield f"- release certificate: authority SHA-256 `{one.certificate.fingerprint}`"
    yield f"- study file: SHA-256 `{one.study.digest}`"
    yield f"- description of the release: SHA-256 `{release.digest().hex()}`"
    for party in one.parties:
        yield f"- {party}: signed on {one.signed_at(party):%Y-%m-%d %H:%M:%S} UTC"


def _top(one: Certified) -> tuple[Answer, ...]:
    return (
        Answer(
            part="Privacy parameter",
            question="What is epsilon, and what is delta?",
            says=f"{one.guarantee().capitalize()}. It is an upper bound, in nats. Other coalitions face what the table"
            " below says.",
        ),
        Answer(
            part="Variant",
            question="Which variant of differential privacy is it?",
            says="Pure epsilon-differential privacy."
            if one.release.delta is None
            else "Approximate (epsilon, delta)-differential privacy.",
        ),
        Answer(
            part="Unit of privacy",
            question="Whose data change between neighbouring data sets?",
            says=f"The unit is a person: {UNIT}. {one.neighbours}",
            lacks=one.lacking_rows,
        ),
        Answer(
            part="Properties and composition",
            question="How do the losses of several outputs add up?",
            says=one.composition(),
        ),
        Answer(
            part="Mixing with other data releases",
            question="What is published of the same people without differential privacy?",
            says=one.unprotected(),
            lacks="What curators publish elsewhere about these people",
        ),
    )


def _middle(one: Certified) -> tuple[Answer, ...]:
    return (
        Answer(
            part="Algorithms and correctness",
            question="Which mechanism produces the output, and who has shown that it runs as described?",
            says=f"{one.product()} {one.sample()} The mechanism is {one.mechanism()} {one.tests()}",
            lacks="Which version of the software ran at each party, and who has reviewed it",
        ),
        Answer(
            part="Utility",
            question="How accurate are the results, and does everybody know?",
            says=f"Mechanism and sample size are public, so that intervals follow from them: {one.tables[0].sample}"
            " rows a table.",
            lacks="Which results and intervals the researcher reports",
        ),
        Answer(
            part="Bias",
            question="Who is under-represented, and do corrections distort the results?",
            lacks=f"{one.lacking_people}, and whether negative counts were projected",
        ),
        Answer(
            part="Synthetic data and machine learning",
            question="Are models or synthetic rows made from the output?",
            lacks="What was computed from the tables afterwards, which costs no further epsilon",
        ),
        Answer(
            part="Side channels",
            question="What else depends on the data: finite precision, time, errors, sizes?",
            says="Probabilities of the mechanism are whole multiples of 2^-64. Sizes of all columns follow from the"
            " public description.",
            lacks="What time and memory an operation takes at each party",
        ),
        Answer(
            part="Security",
            question="What protects the data while the mechanism runs?",
            says="Each column leaves its curator under a pad"
            f" ({'one-time' if one.release.pad.is_one_time else 'a ChaCha20 stream'}); the server adds its noise to"
            " ciphertext. The researcher's service takes the pads off after the noise.",
            lacks="How each party protects its machines and keys",
        ),
    )


def _bottom(one: Certified) -> tuple[Answer, ...]:
    again = (
        f" After the first results, {one.release.repeats} of the tables may run a second time; epsilon covers whichever"
        " are chosen."
        if one.release.repeats
        else ""
    )
    return (
        Answer(
            part="Query model",
            question="Are queries answered one after another, or is something released once?",
            says=f"A request is decided once, attribute by attribute, and its tables are released once.{again}",
            lacks="Who decided, why and for which purpose (the evidence of each curator says that)",
        ),
        Answer(part="Threat model", question="Whom must one trust, with what?", says=one.trust()),
        Answer(
            part="Access control",
            question="Who can see the data, and who the results?",
            says=f"Nobody has the whole table. Columns are with their curators: {one.attributes()}. Noisy counts are"
            f" with researcher {one.release.researcher}{_analysts(one)}.",
            lacks="Who has accounts on the machines of each party",
        ),
        Answer(
            part="Data collection exposure",
            question="Where have the raw data been before, and who keeps them?",
            says=f"Before the release each curator held its own columns: {', '.join(_holders(one))}.",
            lacks="How the curators collected, store and delete their data",
        ),
    )


def _holders(one: Certified) -> Iterator[str]:
    return (f"curator {member.name}" for member in one.study.curators)


def _analysts(one: Certified) -> str:
    names = [each.name for each in one.study.analysts if each.researcher == one.release.researcher]
    return f" and with analysts {', '.join(names)}, who read the counts there" if names else ""


def _plain(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    return "".join(f"\\{one}" if one in "\\`*_{}[]<>#|&" else one for one in escaped(text))
