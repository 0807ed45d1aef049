"""Translation as before transformers: an LSTM or a GRU that reads both ways, one that writes, and attention between them."""

import torch
from torch import nn

from .source import Source

WORDS = 1000


class Translator(nn.Module):
    """Luong et al. 2015 with the right answer as the writer's input (as in training, and as exporters write it)."""

    def __init__(self, cell, width=128):
        super().__init__()
        self.words = nn.Embedding(WORDS, width)
        self.reader = cell(width, width // 2, num_layers=2, bidirectional=True, batch_first=True)
        self.writer = cell(width, width, num_layers=2, batch_first=True)
        self.mix = nn.Linear(2 * width, width)
        self.head = nn.Linear(width, WORDS)

    def forward(self, source, target):
        read, _ = self.reader(self.words(source))
        written, _ = self.writer(self.words(target))
        weights = torch.softmax(written @ read.transpose(1, 2), -1)
        return self.head(torch.tanh(self.mix(torch.cat([written, weights @ read], -1))))


def sentences(batch, length):
    return {"source": torch.randint(0, WORDS, (batch, length)), "target": torch.randint(0, WORDS, (batch, length + 3))}


def translator(name, cell):
    return Source(name, lambda: Translator(cell), sentences, ("logits",),
                  {"source": {0: "batch", 1: "length"}, "target": {0: "batch", 1: "answer"}},
                  ({"batch": 2, "length": 9}, {"batch": 3, "length": 20}))


SOURCES = [translator("lstm-seq2seq", nn.LSTM), translator("gru-seq2seq", nn.GRU)]
