"""Random graphs of legal operators, what they are worth by two oracles, and how a failing one is made small.

values      what flows: an array, its f64 truth, how far an engine may be from it
reference   one node evaluated by the onnx package; `decided` corrects it where that is wrong or docs/semantics.md decides
draw        a graph grown node by node on concrete values; the other modules hold recipes, which say what may be drawn
engines     DSpark and onnxruntime on such graphs
shrink      the least part of a graph that still fails"""
