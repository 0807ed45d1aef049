"""All tiny GGUF models, with the tokens that they are tried on: a model's place is its seed."""

import numpy as np

from . import tiny_decoders, tiny_latent

ROWS = 40
MODELS = tiny_decoders.MODELS + tiny_latent.MODELS


def make(number):
    """(its Decoder, tokens)."""
    tiny = MODELS[number]
    kind = tiny_latent if isinstance(tiny, tiny_latent.Tiny) else tiny_decoders
    return kind.Decoder(tiny, seed=number), np.random.default_rng(number).integers(0, tiny.vocabulary, ROWS)
