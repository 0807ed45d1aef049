"""Transformers, as the transformers package defines them, at small widths: topologies are whole, weights random."""

import torch
import transformers
from torch import nn

from .source import Source

WORDS = 2000
SENTENCES = ({"batch": 2, "length": 16}, {"batch": 3, "length": 37})
TOKEN_AXES = {name: {0: "batch", 1: "length"} for name in ("input_ids", "attention_mask")}
EAGER = dict(attn_implementation="eager", vocab_size=WORDS)


def tokens(batch, length):
    mask = torch.ones(batch, length, dtype=torch.int64)
    mask[1:, -length // 4 :] = 0
    return {"input_ids": torch.randint(3, WORDS, (batch, length)), "attention_mask": mask}


class Encoder(nn.Module):
    """The states of an encoder's last layer."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


def causal(input_ids, attention_mask=None):
    """What attention adds to scores. transformers makes it from a mask of tokens by torch.vmap, which only dynamo follows."""
    length = input_ids.shape[1]
    allowed = torch.ones(length, length, dtype=torch.bool).tril()[None, None]
    if attention_mask is not None:
        allowed = allowed & attention_mask[:, None, None, :].bool()
    return torch.where(allowed, 0.0, torch.finfo(torch.float32).min)


class Language(nn.Module):
    """The logits of a language model, without a cache."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        mask = causal(input_ids, attention_mask) if torch.jit.is_tracing() else attention_mask
        return self.model(input_ids=input_ids, attention_mask=mask, use_cache=False).logits


class Decoder(nn.Module):
    """The second half of a model of two: logits from tokens and the first half's states, without a cache."""

    def __init__(self, decoder, head, scale=1.0):
        super().__init__()
        self.decoder, self.head, self.scale = decoder, head, scale

    def forward(self, input_ids, states):
        mask = causal(input_ids) if torch.jit.is_tracing() else None
        out = self.decoder(input_ids=input_ids, attention_mask=mask, encoder_hidden_states=states, use_cache=False)
        return self.head(out.last_hidden_state * self.scale)


def encoder(name, make):
    return Source(name, lambda: Encoder(make()), tokens, ("states",), TOKEN_AXES, SENTENCES)


def language(name, make):
    return Source(name, lambda: Language(make()), tokens, ("logits",), TOKEN_AXES, SENTENCES)


BERT = dict(hidden_size=192, num_hidden_layers=12, num_attention_heads=3, intermediate_size=768, **EAGER)


def bert():
    return transformers.BertModel(transformers.BertConfig(**BERT), add_pooling_layer=False)


def roberta():
    return transformers.RobertaModel(transformers.RobertaConfig(pad_token_id=1, **BERT), add_pooling_layer=False)


def distilbert():
    return transformers.DistilBertModel(transformers.DistilBertConfig(dim=192, n_layers=6, n_heads=3, hidden_dim=768, **EAGER))


def gpt2():
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(n_embd=192, n_layer=12, n_head=3, n_positions=256, **EAGER))


GROUPED = dict(hidden_size=256, intermediate_size=688, num_hidden_layers=8, num_attention_heads=8, num_key_value_heads=2,
               max_position_embeddings=512, **EAGER)


def llama():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**GROUPED))


def qwen2():
    return transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**GROUPED))


def t5():
    return transformers.T5ForConditionalGeneration(transformers.T5Config(
        d_model=192, d_kv=64, num_heads=3, d_ff=512, num_layers=6, feed_forward_proj="gated-gelu", vocab_size=WORDS))


def t5Decoder():
    model = t5()
    return Decoder(model.decoder, model.lm_head, model.config.d_model ** -0.5)


def answered(width, keys, batch, length):
    """Tokens, and states of `keys` positions."""
    return {"input_ids": torch.randint(3, WORDS, (batch, length)), "states": torch.randn(batch, keys, width)}


def whisper():
    return transformers.WhisperForConditionalGeneration(transformers.WhisperConfig(
        d_model=384, encoder_layers=4, decoder_layers=4, encoder_attention_heads=6, decoder_attention_heads=6, encoder_ffn_dim=1536,
        decoder_ffn_dim=1536, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, **EAGER))


class Listener(nn.Module):
    """Whisper's encoder: 30 s of sound as 80 bands of 3000 frames."""

    def __init__(self):
        super().__init__()
        self.encoder = whisper().model.encoder

    def forward(self, features):
        return self.encoder(features).last_hidden_state


def whisperDecoder():
    model = whisper()
    return Decoder(model.model.decoder, model.proj_out)


def t5Answer(batch, length):
    return answered(192, length + 5, batch, length)


def whisperAnswer(batch, length):
    return answered(384, 1500, batch, length)


def mamba():
    return transformers.MambaForCausalLM(transformers.MambaConfig(hidden_size=96, num_hidden_layers=4, state_size=16, vocab_size=WORDS))


class StateSpace(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = mamba()

    def forward(self, input_ids):
        return self.model(input_ids=input_ids, use_cache=False).logits


DECODED = {"input_ids": {0: "batch", 1: "length"}, "states": {0: "batch", 1: "keys"}}
SOURCES = [
    encoder("bert", bert),
    encoder("distilbert", distilbert),
    encoder("roberta", roberta),
    encoder("t5-encoder", lambda: t5().encoder),
    Source("t5-decoder", t5Decoder, t5Answer, ("logits",), DECODED, SENTENCES),
    Source("whisper-tiny-encoder", Listener, lambda batch: {"features": torch.randn(batch, 80, 3000)}, ("states",),
           {"features": {0: "batch"}}, ({"batch": 2}, {"batch": 1})),
    Source("whisper-tiny-decoder", whisperDecoder, whisperAnswer, ("logits",),
           {"input_ids": {0: "batch", 1: "length"}, "states": {0: "batch"}}, SENTENCES),
    language("gpt2", gpt2),
    language("llama", llama),
    language("qwen2", qwen2),
    # The recurrence is a loop over tokens in Python, which exporters unroll: the length is fixed.
    Source("mamba", StateSpace, lambda batch: {"input_ids": torch.randint(3, WORDS, (batch, 24))}, ("logits",),
           {"input_ids": {0: "batch"}}, ({"batch": 2}, {"batch": 3})),
]
