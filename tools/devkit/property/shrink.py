"""The least part of a failing graph: nodes leave as long as it still fails; what they made is given from outside instead."""

import copy

from .draw import Graph
from .values import Value


def part(graph, nodes, results):
    """A graph of these nodes only; values that none of them makes are given, with their dims if they were given before."""
    small = Graph(graph.seed, graph.opset)
    small.nodes, small.outer, small.results = list(nodes), graph.outer, list(results)
    small.values = dict(graph.values)
    made = {name for node in nodes for name in node.output}
    given = {value.name: value for value in graph.operands}
    wanted = [name for node in nodes for name in [*node.input, *(value.name for value in graph.outer.get(node.output[0], ()))]]
    for name in dict.fromkeys(name for name in wanted if name and name not in made):
        value = given.get(name)
        if value is None:
            array = graph.values[name].array
            value = Value(name, array, dims=tuple(array.shape))
        small.operands.append(value)
        small.values[name] = value
    return small


def needed(graph, results):
    """The nodes that these results hang on, in order."""
    names, kept = set(results), []
    for node in reversed(graph.nodes):
        if names & set(node.output):
            kept.append(node)
            names |= {*node.input, *(value.name for value in graph.outer.get(node.output[0], ()))}
    return kept[::-1]


def fixed(graph, change):
    """The same graph with its inputs changed: static dims, or constants."""
    small = part(graph, graph.nodes, graph.results)
    small.operands = [copy.copy(value) for value in small.operands]
    for value in small.operands:
        change(value)
    return small


def makeStatic(value):
    value.dims = tuple(value.shape)


def makeInput(value):
    value.constant = False


def shrink(graph, fails):
    """`fails` tells whether a graph still does. Returns the smallest found."""
    best = graph
    for name in graph.results:  # one result that is wrong
        small = part(best, needed(best, [name]), [name])
        if fails(small):
            best = small
            break
    again = True
    while again:
        again = False
        for node in list(best.nodes):
            if len(best.nodes) == 1:
                break
            rest = [other for other in best.nodes if other is not node]
            made = {name for other in rest for name in other.output}
            results = [name for name in best.results if name in made] or list(rest[-1].output[:1])
            small = part(best, [other for other in rest if other in needed(part(best, rest, results), results)], results)
            if small.nodes and fails(small):
                best, again = small, True
                break
    for change in (makeStatic, makeInput):
        small = fixed(best, change)
        if fails(small):
            best = small
    return best
