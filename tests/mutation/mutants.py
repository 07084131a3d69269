"""Mutants of a module: its source with one comparison, operator, constant, statement or returned value changed."""

import ast
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}
_PAIRS = (
    ("min", "max"),
    ("minimum", "maximum"),
    ("ceil", "floor"),
    ("any", "all"),
    ("next_plus", "next_minus"),
    ("ROUND_CEILING", "ROUND_FLOOR"),
    ("_UP", "_DOWN"),
    ("ln_above", "ln_below"),
)
_NAMES = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A module with one change.

    Args:
        line: where the change is, from 1.
        before: what stood there, on one line.
        after: what stands there now.
        source: of the whole module.
    """

    line: int
    before: str
    after: str
    source: str


def mutants_of(source: str) -> list[Mutant]:
    """Return every mutant of a module that differs from it, in the order of its lines.

    Texts, annotations and imports stay: they change messages and names, not what a module computes.
    """
    found: list[Mutant] = []
    for node in _nodes(ast.parse(source)):
        for other in _others(node):
            after = ast.unparse(other)
            found.append(
                Mutant(
                    line=node.lineno,
                    before=ast.unparse(node).partition("\n")[0],
                    after=after,
                    source=_replaced(source, node, f"({after})" if isinstance(other, ast.expr) else after),
                )
            )
    return sorted(found, key=lambda mutant: mutant.line)


def _nodes(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Yield what may be changed below a node."""
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "returns", "decorator_list", "type_params"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            # Python before 3.12 does not know where the parts of an f-string stand.
            if not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr | ast.Import | ast.ImportFrom):
                continue
            if isinstance(child, ast.expr | ast.stmt):
                yield child
            # What a refusal says is a message; whether it comes is what counts.
            if not isinstance(child, ast.Raise):
                yield from _nodes(child)


def _others(node: ast.expr | ast.stmt) -> Iterator[ast.expr | ast.stmt]:
    """Yield what may stand in the place of a node."""
    match node:
        case ast.stmt():
            yield from _other_statements(node)
        case ast.Compare() | ast.BinOp() | ast.BoolOp() | ast.UnaryOp():
            yield from _other_operators(node)
        case ast.Constant(value=value):
            yield from (ast.Constant(value=other) for other in _other_values(value))
        case ast.IfExp(body=body, orelse=orelse):
            yield from (body, orelse)
        case ast.Name(id=name) if name in _NAMES:
            yield _with(node, id=_NAMES[name])
        case ast.Attribute(attr=name) if name in _NAMES:
            yield _with(node, attr=_NAMES[name])


def _other_statements(node: ast.stmt) -> Iterator[ast.stmt]:
    match node:
        case ast.Raise() | ast.If() | ast.Expr(value=ast.Call() | ast.Await()):
            yield ast.Pass()
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield ast.Return(value=ast.Constant(value=None))


def _other_operators(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Compare(ops=[operator]):
            yield from (_with(node, ops=[other()]) for other in _COMPARISONS[type(operator)])
        case ast.BinOp(op=operator) if type(operator) in _OPERATORS:
            yield _with(node, op=_OPERATORS[type(operator)]())
        case ast.BoolOp(op=operator, values=values):
            yield _with(node, op=ast.Or() if isinstance(operator, ast.And) else ast.And())
            for dropped in values:
                yield _with(node, values=[value for value in values if value is not dropped])
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand


def _other_values(value: object) -> Iterator[bool | float | bytes]:
    match value:
        case bool():
            yield not value
        case int() | float():
            yield from (value + 1, value - 1)
        case bytes() if value:
            yield value + b"x"


def _with(node: ast.expr, **changes: Any) -> ast.expr:  # noqa: ANN401 - fields of any node
    other = deepcopy(node)
    for name, value in changes.items():
        setattr(other, name, value)
    return other


def _replaced(source: str, node: ast.expr | ast.stmt, text: str) -> str:
    """Return the source with other text where a node stands; the syntax tree counts bytes."""
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    lines = source.encode().splitlines(keepends=True)
    before = b"".join(lines[: node.lineno - 1]) + lines[node.lineno - 1][: node.col_offset]
    after = lines[node.end_lineno - 1][node.end_col_offset :] + b"".join(lines[node.end_lineno :])
    return (before + text.encode() + after).decode()
