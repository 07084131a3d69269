"""What a release of people who were linked without a common number protects, in words."""

from veiltab.common.study.file import Study


def links_sentence(study: Study) -> str | None:
    """Say which neighbours a guarantee is about where rows are linked by an identity; None in a study with ids.

    Neighbours: a row of a spoke added or removed, identifiers included, changes at most one linked row; other
    identifiers of a row change two (docs/linkage.md, hub rule). Nothing is said of rows of the hub.
    """
    identity = study.identity
    if identity is None:
        return None
    return (
        f"People were linked by {', '.join(identity.names)} to the rows of {identity.hub}. Being present in the table"
        f" of {identity.hub} is not protected. A row of another curator that is added or removed changes one"
        " respondent; other identifiers in it change two, a group of two."
    )
