"""Cycles: which there are, against trying all orders, and what each kind is called."""

import itertools
from random import Random

import pytest

from longtake.testing.checking.cycles import knots, name_of, shortest


def has_an_order(graph) -> bool:
    """Try every order of the nodes."""
    for order in itertools.permutations(graph):
        place = {node: index for index, node in enumerate(order)}
        if all(place[node] < place[after] for node in graph for after in graph[node]):
            return True
    return False


def test_a_graph_has_a_knot_exactly_when_it_has_no_order():
    found = {True: 0, False: 0}
    for seed in range(200):
        chance = Random(seed)
        nodes = [f"tx {number}" for number in range(5)]
        graph = {node: {} for node in nodes}
        for _ in range(chance.randint(2, 7)):
            before, after = chance.sample(nodes, 2)
            graph[before][after] = "ww"
        expected = has_an_order(graph)
        assert (knots(graph) == []) == expected, f"seed {seed}"
        for knot in knots(graph):
            cycle = shortest(graph, knot)
            assert len(set(cycle)) == len(cycle) >= 2
            assert all(after in graph[node] for node, after in itertools.pairwise([*cycle, cycle[0]]))
        found[expected] += 1

    assert min(found.values()) > 40, found


def test_a_graph_of_many_nodes_needs_no_deep_stack():
    count = 20_000
    graph = {f"tx {number}": {f"tx {(number + 1) % count}": "ww"} for number in range(count)}

    assert [len(knot) for knot in knots(graph)] == [count]


@pytest.mark.parametrize(
    ("reasons", "name"),
    [
        (["ww", "ww"], "G0"),
        (["ww", "wr"], "G1c"),
        (["rw", "wr"], "G-single"),
        (["rw", "rw"], "G2"),
        (["ww", "rt", "rt"], "G0-realtime"),
        (["wr", "rw", "rt"], "G-single-realtime"),
    ],
)
def test_a_cycle_is_called_by_what_closes_it(reasons, name):
    assert name_of(reasons) == name
