"""Whether each row of a query is made from the rows of one person alone, as far as its text shows.

The privacy of a release is about one row. A rank, a share of a total or a join with others' rows changes many rows when
one person changes, and no epsilon bounds that. The plan of a PostgreSQL shows what its views do; what functions do, and
views of other databases, is not seen.
"""

import json
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Any

from veiltab.common.extras import importing
from veiltab.curator.formats.columns.refusals import refusal

_Node = dict[str, Any]
_AGGREGATES = "select list(distinct function_name) from duckdb_functions() where function_type = 'aggregate'"


def check_own_rows(where: str, query: str, ids: Collection[str]) -> None:
    """Refuse a query that compares people.

    Args:
        query: one statement; what is written in a way that DuckDB does not read is not looked at.
        ids: the columns of its result that name a person.

    Raises:
        InvalidInputError: it has a window, a group, a join, a total or a limit that does not keep people apart.
    """
    nodes, aggregates = _parsed(query)
    if why := _Query(nodes, ids, aggregates).why_not():
        problem = f"a row of the query may depend on other people's rows: {why}"
        every = f"Take {', '.join(ids)} into every `group by`, `partition by` and join, or leave it out."
        raise refusal(where, problem, f"A release protects one row. {every}")


def check_plan(where: str, query: str, plan: object) -> None:
    """Refuse a query of a database whose plan compares rows where that was not read from its text.

    Args:
        plan: of the database, as PostgreSQL explains it in JSON.

    Raises:
        InvalidInputError: a view, or text that DuckDB does not read, has a window, a group, a limit or a sample, or a
            table is read twice; or it changes a table.
    """
    nodes, aggregates = _parsed(query)
    query_plan = _Query(nodes, (), aggregates)
    steps = [node for node in _nodes(plan) if "Node Type" in node]
    kinds = {step["Node Type"] for step in steps}
    if "ModifyTable" in kinds:
        raise refusal(where, "the query does more than read", "Give one statement that reads.")
    tables = [f"{step['Schema']}.{step['Relation Name']}" for step in steps if "Relation Name" in step]
    hidden = [
        *(kinds & {"Limit", "Sample Scan"}),
        *(() if query_plan.has("WINDOW") else kinds & {"WindowAgg"}),
        *(() if query_plan.has_groups() else kinds & {"Aggregate", "Group", "Unique", "SetOp"}),
        *(
            ()
            if query_plan.has("JOIN", "SET_OPERATION_NODE")
            else {f"two readings of {one}" for one in tables if tables.count(one) > 1}
        ),
    ]
    if hidden:
        problem = (
            f"the plan of the database compares rows, which was not read from the query: {', '.join(sorted(hidden))}"
        )
        raise refusal(where, problem, "Write what a view does into the query, and all of it as DuckDB reads it.")


@lru_cache(maxsize=1)
def _parsed(query: str) -> tuple[list[_Node], frozenset[str]]:
    """Return the statements of a query, none if DuckDB does not read it, and the names of aggregates."""
    with importing("tables", "a query"):
        import duckdb  # noqa: PLC0415 - not where the extra is missing
    with duckdb.connect(":memory:") as connection:
        ((text,),) = connection.execute("select json_serialize_sql(?)", [query]).fetchall()
        ((aggregates,),) = connection.execute(_AGGREGATES).fetchall()
    answer = json.loads(text)
    return [] if answer["error"] else answer["statements"], frozenset(aggregates)


class _Query:
    def __init__(self, roots: list[_Node], ids: Collection[str], aggregates: Collection[str]) -> None:
        self._nodes, self._aggregates = list(_nodes(roots)), aggregates
        items = (one for one in self._nodes if "key" in one and "value" in one)
        self._tables = {one["key"].lower(): frozenset(_tables(one["value"])) for one in items}
        # A name of an id is one that a column of the result has, or one from which a column of that name is made.
        self._names = [{one.lower()} for one in ids]
        for names in self._names * 2:
            nodes = (node for node in self._nodes if str(node.get("alias", "")).lower() in names and "class" in node)
            names |= {name for node in nodes if not self._has_aggregate(node) for name in _columns(node)}

    def has(self, *kinds: str) -> bool:
        """Whether the text has something of these kinds."""
        return any(node.get("class") in kinds or node.get("type") in kinds for node in self._nodes)

    def has_groups(self) -> bool:
        """Whether the text puts rows together: by groups, aggregates, `distinct` or set operations."""
        groups = self.has("DISTINCT_MODIFIER", "SET_OPERATION_NODE") or self._has_aggregate(self._nodes)
        return groups or any(node.get("group_sets") for node in self._nodes)

    def why_not(self) -> str:
        """Return what does not keep people apart; "" if nothing is seen."""
        return next((why for node in self._nodes if (why := self._why_of(node))), "")

    def _why_of(self, node: _Node) -> str:
        kind = node.get("type", "")
        if str(kind).startswith("LIMIT") or node.get("sample"):
            return "it keeps some rows and leaves out others"
        if node.get("class") == "WINDOW" and not self._has_ids(node["partitions"]):
            return f"{node['function_name']}() goes over rows of several people"
        if node.get("class") == "SUBQUERY":
            return "a subquery in an expression"
        targets = node.get("distinct_on_targets")
        if kind == "DISTINCT_MODIFIER" and targets and not self._has_ids(targets):
            return "`distinct on` goes without the id"
        if kind == "JOIN" and self._base(node["left"]) & self._base(node["right"]):
            equal = [{name.lower() for name in node["using_columns"]}, *_equal(node["condition"])]
            if not all(any(pair and pair <= names for pair in equal) for names in self._names):
                return "a join with other rows of the same table goes without the id"
        return self._why_of_groups(node) if kind in {"SELECT_NODE", "PIVOT"} else ""

    def _why_of_groups(self, node: _Node) -> str:
        if node["type"] == "PIVOT":
            has_ids = all(names.intersection(node["groups"]) for names in self._names)
            return "" if has_ids or not node["aggregates"] else "`pivot` goes without the id in its `group by`"
        is_of_all = node["aggregate_handling"] == "FORCE_AGGREGATES"  # `group by all`
        groups = [self._meant(one, node["select_list"]) for one in node["group_expressions"]]
        if len(node["group_sets"]) > 1 or (groups and not self._has_ids(groups)):
            return "`group by` goes without the id"
        if is_of_all:
            plain = [one for one in node["select_list"] if not self._has_aggregate(one)]
            return "" if self._has_ids(plain) else "`group by all` goes without the id"
        is_total = not groups and any(map(self._has_aggregate, node["select_list"]))
        return "a total of all rows" if is_total else ""

    def _has_ids(self, expressions: list[_Node]) -> bool:
        column_names = {name for one in expressions for name in _columns(one)}
        return all(column_names & names for names in self._names)

    def _meant(self, group: _Node, outputs: list[_Node]) -> _Node:
        """Return the column of the result that a number in a `group by` stands for."""
        if group["class"] == "CONSTANT" and str(group["literal"].get("text", "")).isdigit():
            return outputs[int(group["literal"]["text"]) - 1]
        return group

    def _has_aggregate(self, expression: object) -> bool:
        inner = (one for one in _nodes(expression) if one.get("class") == "FUNCTION")
        return any(one["function_name"].lower() in self._aggregates for one in inner)

    def _base(self, table: _Node) -> set[str]:
        """Return the tables of a part of a join, behind the names that `with` gives."""
        names = {*_tables(table)}
        for _ in self._tables:
            names = {one for name in names for one in (self._tables.get(name) or {name})}
        return names


def _nodes(part: object) -> Iterator[_Node]:
    """Yield all parts of a parsed statement."""
    if isinstance(part, dict):
        yield part
        part = list(part.values())
    if isinstance(part, list):
        for one in part:
            yield from _nodes(one)


def _columns(expression: _Node) -> set[str]:
    nodes = (one for one in _nodes(expression) if one.get("class") == "COLUMN_REF")
    return {one["column_names"][-1].lower() for one in nodes}


def _tables(part: object) -> set[str]:
    return {one["table_name"].lower() for one in _nodes(part) if one.get("type") == "BASE_TABLE"}


def _equal(condition: object) -> list[set[str]]:
    nodes = (one for one in _nodes(condition) if one.get("type") == "COMPARE_EQUAL")
    return [_columns(one) for one in nodes]
