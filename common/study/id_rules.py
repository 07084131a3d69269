"""How each curator of a study names its respondents, in words."""

from collections.abc import Sequence

from veiltab.common.study.members import CuratorMember


def id_rules(curators: Sequence[CuratorMember]) -> str:
    """Return, for each curator, its id columns, the steps of their normalisation, and how the ids are written."""
    return "; ".join(f"{curator.name} has {_rule(curator)}" for curator in curators)


def _rule(curator: CuratorMember) -> str:
    shapes = f", written as {', '.join(curator.id_shapes)}" if curator.id_shapes else ""
    return f"{', '.join(curator.id_columns)} by {', '.join(curator.normalise) or 'no step'}{shapes}"
