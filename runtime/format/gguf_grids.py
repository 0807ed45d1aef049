#!/usr/bin/env python3
"""Writes gguf_grids.inc: the points of the lattices that GGUF's IQ1, IQ2 and IQ3 blocks index (llama.cpp, ggml-common.h), from
the `gguf` package (0.19.0, from PyPI; not needed to build).

    PYTHONPATH=folder-with-gguf runtime/format/gguf_grids.py > runtime/format/gguf_grids.inc

A point's digits, one a term and the first lowest, name levels; every lattice's points ascend as numbers. So a lattice is written
as differences: base 32, lowest digit first, each digit as the character 35 + digit, + 32 where more digits follow.
"""
import numpy as np
from gguf import quants

LATTICES = {"Iq1": quants.IQ1_S, "Iq2Xxs": quants.IQ2_XXS, "Iq2Xs": quants.IQ2_XS, "Iq2S": quants.IQ2_S, "Iq3Xxs": quants.IQ3_XXS,
            "Iq3S": quants.IQ3_S}


def characters(difference):
    while difference >= 32:
        yield chr(35 + 32 + difference % 32)
        difference //= 32
    yield chr(35 + difference)


for name, kind in LATTICES.items():
    kind.init_grid()
    grid = np.asarray(kind.grid).reshape(kind.grid_shape)
    levels = [int(level) for level in kind.grid_map]
    digits = np.vectorize(levels.index)(grid.astype(int))
    points = digits @ len(levels) ** np.arange(grid.shape[1])
    assert (np.diff(points) > 0).all()
    text = "".join("".join(characters(int(step))) for step in np.diff(points, prepend=0))
    print(f"constexpr char k{name}Points[] = // {len(points)} points of {grid.shape[1]} terms, levels {levels}")
    lines = [text[at:at + 96] for at in range(0, len(text), 96)]
    print("\n".join(f'    R"({line})"' for line in lines) + ";")
