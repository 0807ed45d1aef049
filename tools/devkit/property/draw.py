"""A random graph, grown node by node on concrete values: shapes and types are then known, and what it is worth too."""

import collections

import numpy as np
from onnx import helper, numpy_helper

from . import reference
from .values import ALL, BF16, BOOL, F16, F32, F64, FLOATS, I32, I64, INTEGERS, Value, computed

RECIPES = []  # (weight, function of a Draw)
OPSETS = (21, 18, 22, 23, 25)
FUNCTIONS, LOCAL = 7, "local"
LARGEST = 3000  # elements of one value
SIZES = (1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 9, 16, 17, 33)


def recipe(weight=1.0):
    def enlist(function):
        RECIPES.append((weight, function))
        return function

    return enlist


class Graph:
    """Nodes in order, values by name, and which of them are given from outside (inputs, constants)."""

    def __init__(self, seed, opset):
        self.seed, self.opset = seed, opset
        self.nodes, self.values, self.operands = [], {}, []
        self.outer = {}  # values that the bodies of a node read, by the name of its first output
        self.results = []  # names that are outputs

    def sinks(self):
        used = {name for node in self.nodes for name in [*node.input, *(value.name for value in self.outer.get(node.output[0], ()))]}
        return [name for node in self.nodes for name in node.output if name and name not in used]

    def interface(self):
        """(input infos, output infos, initializers)."""
        kind = lambda value: helper.np_dtype_to_tensor_dtype(value.dtype)
        inputs = [helper.make_tensor_value_info(v.name, kind(v), v.dims) for v in self.operands if not v.constant]
        outputs = [helper.make_tensor_value_info(name, kind(self.values[name]), None) for name in self.results]
        return inputs, outputs, [numpy_helper.from_array(v.array, v.name) for v in self.operands if v.constant]

    def feeds(self):
        return {value.name: value.array for value in self.operands if not value.constant}


def model(graphs):
    """One model of all of them, side by side; every FUNCTIONSth graph has a part of its nodes in a function of the model."""
    nodes, functions, opsets = [], [], [helper.make_opsetid("", graphs[0].opset)]
    for graph in graphs:
        rest = graph.nodes
        if graph.seed % FUNCTIONS == 0 and len(rest) > 1:
            function, call = asFunction(graph, rest[: len(rest) // 2], opsets[0])
            functions.append(function)
            rest = [call, *rest[len(rest) // 2 :]]
        nodes += rest
    inputs, outputs, weights = (sum(parts, []) for parts in zip(*(graph.interface() for graph in graphs)))
    body = helper.make_graph(nodes, f"seed{graphs[0].seed}", inputs, outputs, weights)
    opsets += [helper.make_opsetid(LOCAL, 1)] if functions else []
    return helper.make_model(body, opset_imports=opsets, functions=functions, ir_version=10)


def asFunction(graph, nodes, opset):
    """(function, the node that calls it) of some of a graph's nodes."""
    made = [name for node in nodes for name in node.output]
    read = [name for node in nodes for name in [*node.input, *(value.name for value in graph.outer.get(node.output[0], ()))]]
    given = [name for name in dict.fromkeys(read) if name and name not in made]
    name = f"Part{graph.seed}"
    function = helper.make_function(LOCAL, name, given, made, nodes, [opset])
    return function, helper.make_node(name, given, made, name=f"{made[0]}_{name}", domain=LOCAL)


class Draw:
    def __init__(self, seed, opset, parent=None):
        self.parent, self.opset = parent, opset
        self.random = parent.random if parent else np.random.default_rng(seed)
        self.graph = Graph(seed, opset)
        self.counter = parent.counter if parent else iter(range(10**9))
        self.prefix = parent.prefix if parent else f"g{seed}_"
        self.pool = list(parent.pool) if parent else []  # what may be an operand
        self.given = parent.given if parent else set()  # names of those that no node makes
        self.isSymbolic = parent.isSymbolic if parent else self.chance(0.5)
        self.theme = parent.theme if parent else self.types()
        self.constants = 1.0 if parent else self.pick([0.2, 0.2, 0.5, 1.0])  # how likely an operand is a constant
        self.refused = collections.Counter()

    def types(self):
        """What fresh operands of a graph mostly are, so that they can meet."""
        return (self.pick((F32, F32, F32, F16, F64, BF16)), self.pick(INTEGERS), self.pick((I64, I32)))

    # --- numbers ---

    def chance(self, probability):
        return self.random.random() < probability

    def pick(self, choices):
        return choices[int(self.random.integers(len(choices)))]

    def integer(self, low, high):
        """From low to high, both included."""
        return int(self.random.integers(low, high + 1))

    def axis(self, rank):
        """A legal axis, from either end."""
        return self.integer(-rank, rank - 1)

    def some(self, items, least=0):
        """A random choice of at least so many of them, in a random order."""
        items = list(items)
        return [items[k] for k in self.random.permutation(len(items))[: self.integer(min(least, len(items)), len(items))]]

    def shape(self, rank=None, limit=600):
        rank = self.pick([0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5]) if rank is None else rank
        while True:
            shape = [0 if self.chance(0.02) else self.pick(SIZES) for _ in range(rank)]
            if np.prod(shape, dtype=int) <= limit:
                return shape

    def broadcastable(self, shape):
        """A shape that broadcasts with this one."""
        shape = [1 if self.chance(0.3) else n for n in shape[self.integer(0, len(shape)) if self.chance(0.4) else 0 :]]
        return [self.pick((1, 2, 3)), *shape] if self.chance(0.1) and len(shape) < 5 else shape

    def array(self, dtype, shape, low=-8, high=8, odd=True):
        """Floats are mostly quarters, whose sums and products stay exact; `odd`: now and then NaN, infinities, -0."""
        if dtype == BOOL:
            return self.random.random(shape) < 0.5
        if dtype in INTEGERS:
            limits = np.iinfo(dtype)
            if odd and self.chance(0.1):
                return self.random.integers(limits.min, limits.max, shape, dtype, endpoint=True)
            return self.random.integers(max(low, limits.min), min(high, limits.max), shape, endpoint=True).astype(dtype)
        array = np.asarray(self.random.integers(4 * low, 4 * high, shape, endpoint=True) / 4 if self.chance(0.6) else
                           self.random.uniform(low, high, shape))
        if odd and self.chance(0.08):
            where = self.random.random(shape) < 0.2
            array = np.where(where, self.random.choice([np.nan, np.inf, -np.inf, -0.0], shape), array)
        return array.astype(dtype)

    # --- operands ---

    def give(self, array, constant=None):
        """A new input or constant."""
        array = np.asarray(array)
        isConstant = self.chance(self.constants) if constant is None else constant
        value = Value(f"{self.prefix}x{next(self.counter)}", array, constant=isConstant or self.parent is not None, fixed=True)
        value.dims = [self.symbol(n) for n in array.shape]
        self.graph.operands.append(value)
        self.graph.values[value.name] = value
        return value

    def symbol(self, size):
        if not self.isSymbolic or self.chance(0.3):
            return size
        return f"{self.prefix}n{size}" if self.chance(0.7) else f"{self.prefix}m{next(self.counter)}"

    def fresh(self, dtype, shape, low=-8, high=8, odd=True, constant=None):
        value = self.give(self.array(dtype, shape, low, high, odd), constant)
        value.fixed = False
        self.given.add(value.name)
        self.pool.append(value)
        return value

    def setting(self, array):
        """An operand that ONNX calls a tensor and exporters make a constant: axes, shapes, pads."""
        return self.give(np.asarray(array), constant=not self.chance(0.1) or self.parent is not None)

    def any(self, types=ALL, rank=None, exact=False, fits=None, low=-8, high=8, odd=True):
        """A value of one of these types; `rank` is a number, a range or None; `fits` a further condition on the Value."""
        ranks = range(rank, rank + 1) if isinstance(rank, int) else rank
        good = [v for v in self.pool if v.dtype in types and (ranks is None or v.array.ndim in ranks) and (v.exact or not exact)
                and (fits is None or fits(v)) and (odd or v.dtype not in FLOATS or np.all(np.isfinite(v.array)))]
        if good and self.chance(0.85):
            made = [v for v in good if v.name not in self.given]
            return self.pick(made[-3:]) if made and self.chance(0.7) else self.pick(good)
        theme = [kind for kind in self.theme if kind in types]
        dtype = self.pick(theme) if theme and self.chance(0.8) else self.pick(types)
        for _ in range(20):
            shape = self.shape(None if ranks is None else self.pick(list(ranks)))
            value = Value("", np.zeros(shape, dtype))
            if fits is None or fits(value):
                return self.fresh(dtype, shape, low, high, odd)
        return None

    def partner(self, value, exact=False, **limits):
        """A second operand that broadcasts with this value, of its type."""
        def fits(other):
            try:
                return np.prod(np.broadcast_shapes(other.shape, value.shape), dtype=int) <= LARGEST
            except ValueError:
                return False

        if self.chance(0.5):
            return self.any((value.dtype,), exact=exact, fits=fits, **limits) or value
        return self.fresh(value.dtype, self.broadcastable(value.shape), **limits)

    # --- nodes ---

    def add(self, kind, operands, outputs=1, rounds=False, dtype=None, loose=1, least=0.0, outer=(), **attributes):
        """The Values of a new node's outputs, or None where it cannot be judged (then nothing is added). `rounds`: results of inexact
        functions; `dtype`: of float results where it is not the first float operand's; `loose`: times the usual distance, and
        `least` is allowed anyhow."""
        if any(operand is None for operand in operands[:1]):
            return None
        names = [f"{self.prefix}v{next(self.counter)}" for _ in range(outputs)]
        node = helper.make_node(kind, [v.name if v is not None else "" for v in operands], names, name=f"{names[0]}_{kind}", **attributes)
        given = [v for v in operands if v is not None] + list(outer)
        try:
            results = self.judged(node, operands, given, rounds, dtype, (loose, least), outer)
        except reference.NotEvaluated as error:
            self.refused[str(error)[:90]] += 1
            return None
        if results is None or any(value is None or value.array.size > LARGEST or value.array.ndim > 6 for value in results):
            self.refused[kind + " not steady"] += 1
            return None
        self.graph.nodes.append(node)
        self.graph.outer[names[0]] = list(outer)
        for value in results:
            self.graph.values[value.name] = value
        self.pool += results
        return results

    def judged(self, node, operands, given, rounds, dtype, allowed, outer):
        """The Values of a node's outputs; None among them, or instead of them, where there is no steady answer."""

        def run(arrays):
            """Its outputs for these arrays in place of those of `given`."""
            rest = iter(arrays)
            own = [next(rest) if v is not None else None for v in operands]
            context = {v.name: v.wide() for v in self.pool} | dict(zip((v.name for v in outer), rest)) if outer else {}
            return reference.evaluate(node, own, self.opset, context)

        truths = run([v.wide() for v in given])
        floats = [v for v in given if v.dtype in FLOATS]
        rounded = any(not v.exact for v in floats) and node.op_type not in ("Shape", "Size")
        values = []
        for k, (name, truth) in enumerate(zip(node.output, truths)):
            kind = truth.dtype if truth.dtype != F64 else dtype or (floats[0].dtype if floats else F64)
            if kind in FLOATS:
                again = lambda arrays, k=k: run(arrays)[k].astype(F64)
                values.append(computed(name, truth.astype(F64), kind, given, again, rounds, allowed, self.random))
            elif rounded:
                return None  # integers made of rounded numbers
            else:
                values.append(Value(name, truth))
        return values

    def chosen(self):
        """The recipe of the next node."""
        weights = np.array([weight for weight, _ in RECIPES])
        return RECIPES[int(self.random.choice(len(RECIPES), p=weights / weights.sum()))][1]


def graph(seed, batch):
    """The graph of a seed; those of one batch share their opset."""
    draw = Draw(seed, OPSETS[seed // batch % len(OPSETS)])
    steps = draw.integer(2, 9)
    for _ in range(3 * steps):
        if len(draw.graph.nodes) >= steps:
            break
        draw.chosen()(draw)
    made = draw.graph
    sinks = made.sinks()
    made.results = [name for node in made.nodes for name in node.output if name in sinks or draw.chance(0.15)]
    used = {name for node in made.nodes for name in node.input} | {v.name for outer in made.outer.values() for v in outer}
    made.operands = [v for v in made.operands if v.name in used]
    return made, draw.refused
