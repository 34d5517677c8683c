"""Cycles: all transactions fit one order, over all runs at once, and it is that of time (4.6; strict serializability).

The log is a list-append workload whose version order is known: who wrote seq n of a run comes before who wrote n + 1 (ww), who
read revision n comes after who wrote it (wr) and before who wrote n + 1 (rw), and what had ended comes before what
begins later (rt). A transaction may write many runs; a cycle is a contradiction that no single run shows.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

from longtake.testing.checking.found import Evidence, Violation
from longtake.testing.checking.history import ADMITTED, Call
from longtake.testing.checking.store import EventRow

Node = str
Graph = dict[Node, dict[Node, str]]
"""Node to what must come after it, with the reason."""

Order = Callable[[Node, Node, str], None]
PRINTED_MAX = 8


def check(evidence: Evidence) -> Iterator[Violation]:
    """Look for a cycle in what was written and read since the store was last taken back."""
    graph = graph_of(evidence)
    for knot in knots(graph):
        cycle = shortest(graph, knot)
        reasons = [
            graph[node][after].split()[0] for node, after in zip(cycle, [*cycle[1:], cycle[0]], strict=True)
        ]
        shown = [
            f"{node}  ->  {graph[node][after]}"
            for node, after in zip(cycle, [*cycle[1:], cycle[0]], strict=True)
            if not (node.startswith("moment") and after.startswith("moment"))
        ]
        yield Violation(
            invariant="cycle",
            what=f"{name_of(reasons)}: {len(knot)} transactions and reads have no order",
            where=cycle[0],
            trace=tuple(shown[:PRINTED_MAX]),
        )


def name_of(reasons: Sequence[str]) -> str:
    """Adya's name of a cycle, with -realtime when only the order of time closes it."""
    kinds = set(reasons)
    name = (
        "G2" if reasons.count("rw") > 1 else "G-single" if "rw" in kinds else "G1c" if "wr" in kinds else "G0"
    )
    return f"{name}-realtime" if "rt" in kinds else name


def graph_of(evidence: Evidence) -> Graph:
    """Transactions, reads and moments, with what orders them."""
    graph: Graph = {}
    histories = evidence.store.histories()

    def order(before: Node, after: Node, why: str) -> None:
        if before != after:
            graph.setdefault(before, {}).setdefault(after, why)
            graph.setdefault(after, {})

    for run, events in histories.items():
        for index in range(1, len(events)):
            before, event = events[index - 1], events[index]
            order(_tx(before), _tx(event), f"ww run {run[:8]} seq {event.seq}")
    since = max(evidence.restores, default=-math.inf)
    calls = [call for call in evidence.calls if call.type == "ok" and call.begun > since]
    ends = sorted(call.ended for call in calls)
    for index in range(1, len(ends)):
        order(f"moment {index - 1}", f"moment {index}", "rt")

    def lasts(node: Node, call: Call, *, begins: bool = True) -> None:
        order(node, f"moment {bisect_left(ends, call.ended)}", f"rt ended {call.ended:.3f}")
        earlier = bisect_left(ends, call.begun) - 1
        if begins and earlier >= 0:
            order(f"moment {earlier}", node, f"rt begun {call.begun:.3f}")

    first: dict[str, float] = {}
    for call in evidence.calls:
        if call.f in ADMITTED:
            first.setdefault(call.command, call.begun)
    written = {row.id: f"tx {row.tx}" for row in evidence.store.commands}
    for call in calls:
        if call.f == "read":
            _read(order, lasts, call, histories.get(call.key, []))
        elif call.f in ADMITTED and call.command in written and first[call.command] > since:
            # Who repeats a command is told of a transaction that is older than the repeat.
            lasts(written[call.command], call, begins=first[call.command] == call.begun)
        elif call.f == "decide":
            for node in _decided(call, histories):
                lasts(node, call)
    return graph


def _tx(event: EventRow) -> Node:
    return f"tx {event.tx}"


def _read(order: Order, lasts: Callable[[Node, Call], None], call: Call, events: Sequence[EventRow]) -> None:
    revision = call.said("revision")
    if not isinstance(revision, int) or not 1 <= revision <= len(events):
        return
    node = f"read {call.id} of {call.key[:8]} at {revision} by {call.proc}"
    order(_tx(events[revision - 1]), node, f"wr run {call.key[:8]} seq {revision}")
    if revision < len(events):
        order(node, _tx(events[revision]), f"rw run {call.key[:8]} seq {revision + 1}")
    lasts(node, call)


def _decided(call: Call, histories: dict[str, list[EventRow]]) -> Iterator[Node]:
    told = call.told if isinstance(call.told, dict) else {}
    asked = call.asked[0] if isinstance(call.asked, list) and call.asked else []
    for commit in asked if isinstance(asked, list) else []:
        events = histories.get(commit["run_id"], [])
        written = commit["run_id"] in told.get("committed", ()) and commit["events"] > 0
        if written and commit["expected_revision"] < len(events):
            yield _tx(events[commit["expected_revision"]])


def knots(graph: Graph) -> list[list[Node]]:
    """Strongly connected components of more than one node (Tarjan, without recursion)."""
    found: list[list[Node]] = []
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    path: list[Node] = []
    on_path: set[Node] = set()
    for root in graph:
        if root in index:
            continue
        work = [(root, iter(graph[root]))]
        index[root] = low[root] = len(index)
        path.append(root)
        on_path.add(root)
        while work:
            node, following = work[-1]
            after = next(following, None)
            if after is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    knot = []
                    while True:
                        member = path.pop()
                        on_path.discard(member)
                        knot.append(member)
                        if member == node:
                            break
                    if len(knot) > 1:
                        found.append(knot)
            elif after not in index:
                index[after] = low[after] = len(index)
                path.append(after)
                on_path.add(after)
                work.append((after, iter(graph[after])))
            elif after in on_path:
                low[node] = min(low[node], index[after])
    return found


def shortest(graph: Graph, knot: Sequence[Node]) -> list[Node]:
    """A shortest cycle through the knot's transactions, from one of them."""
    inside = set(knot)
    best: list[Node] = []
    for start in [node for node in knot if node.startswith("tx")][:50] or knot[:1]:
        came: dict[Node, Node] = {}
        queue = [start]
        for node in queue:
            for after in graph[node]:
                if after == start:
                    cycle = [node]
                    while cycle[-1] != start:
                        cycle.append(came[cycle[-1]])
                    cycle.reverse()
                    if not best or len(cycle) < len(best):
                        best = cycle
                    queue.clear()
                    break
                if after in inside and after not in came and after != start:
                    came[after] = node
                    queue.append(after)
    return best
