"""Inputs on which the real models have something to say, and the reading of their answers.

A Case is one or more runs of a model: a recurrent model gets a list of frames, and `carry` names which output of one
frame is which input of the next.
"""

import dataclasses
import json

import numpy as np
import onnx
import tokenizers
from PIL import Image, ImageDraw, ImageFont

from . import audio
from .models import FOLDER
from .venv import ROOT

LINES = ["Compile once, run anywhere", "plan.dsp has 12 sections", "四川省成都市高新区天府大道", "Total: 1,234.56 EUR (VAT 19%)"]
FILES = ["README.md", "Makefile", "tools/setup", "tools/devkit/inputs.py", "kernels/common/infer.cpp"]


@dataclasses.dataclass
class Case:
    label: str
    frames: list
    carry: dict = dataclasses.field(default_factory=dict)


def fileBytes(path, config):
    """The 2048 numbers magika looks at: the first and last kilobyte without surrounding blanks, padded with 256."""
    data = path.read_bytes()
    block, pad = config["block_size"], config["padding_token"]
    first, last = data[:block].lstrip(), data[-block:].rstrip()
    if len(data) <= block:
        first = last = data.strip()
    first = list(first[: config["beg_size"]])
    last = list(last[-config["end_size"] :])
    first += [pad] * (config["beg_size"] - len(first))
    last = [pad] * (config["end_size"] - len(last)) + last
    return np.array(first + last, np.int32)


def magikaConfig():
    return json.loads((FOLDER / "magika-config.json").read_text())


def textLine(text, height=48, width=320):
    """A picture of one line of text as the recognisers want it: [3, height, width], values -1..1, white after the text."""
    font = ImageFont.truetype(str(FOLDER / "simfang.ttf"), 34)
    natural = Image.new("RGB", (int(font.getlength(text)) + 16, height), "white")
    ImageDraw.Draw(natural).text((8, 4), text, font=font, fill="black")
    scaled = natural.resize((min(natural.width, width), height), Image.BILINEAR)
    picture = Image.new("RGB", (width, height), "white")
    picture.paste(scaled)
    return (np.asarray(picture, np.float32).transpose(2, 0, 1) / 255 - 0.5) / 0.5


def page(height, width, seed):
    """A picture of a few lines of text at random places, normalised as the detectors want it: [3, height, width]."""
    random = np.random.default_rng(seed)
    picture = Image.new("RGB", (width, height), tuple(int(v) for v in random.integers(200, 256, 3)))
    draw = ImageDraw.Draw(picture)
    for row, text in enumerate(LINES):
        font = ImageFont.truetype(str(FOLDER / "simfang.ttf"), int(random.integers(18, 30)))
        top = int((row + 0.3) * height / len(LINES))
        draw.text((int(random.integers(4, 40)), top), text, font=font, fill=tuple(int(v) for v in random.integers(0, 90, 3)))
    mean, deviation = np.array([0.485, 0.456, 0.406], np.float32), np.array([0.229, 0.224, 0.225], np.float32)
    return ((np.asarray(picture, np.float32) / 255 - mean) / deviation).transpose(2, 0, 1)


def bytesCases(model):
    config = magikaConfig()
    rows = [fileBytes(ROOT / name, config) for name in FILES]
    cases = [Case(name, [{"bytes": row[None]}]) for name, row in zip(FILES[:3], rows)]
    return cases + [Case("five files at once", [{"bytes": np.stack(rows)}])]


def detCases(model):
    shapes = [(320, 320, 1), (320, 320, 2), (192, 416, 3), (192, 416, 4)]
    return [Case(f"page {h}x{w} #{seed}", [{"x": page(h, w, seed)[None]}]) for h, w, seed in shapes]


def recCases(model):
    cases = [Case(f"'{line}' 48x320", [{"x": textLine(line)[None]}]) for line in LINES[:3]]
    pair = np.stack([textLine(line, width=480) for line in LINES[2:]])
    return cases + [Case("two lines 48x480", [{"x": pair}])]


def clsCases(model):
    upright = [textLine(line, width=192) for line in LINES]
    cases = [Case("upright", [{"x": upright[0][None]}]), Case("upside down", [{"x": upright[0][None, :, ::-1, ::-1].copy()}])]
    mixed = np.stack([upright[1], upright[2][:, ::-1, ::-1]])
    return cases + [Case("two lines", [{"x": mixed}]), Case("wide", [{"x": textLine(LINES[3], width=320)[None]}])]


def vadFrames(batch, count, rate):
    """Frames of `rate`/31.25 samples with the last eighth of the frame before in front, as silero-vad's own code cuts them."""
    size = rate * 32 // 1000
    context = size // 8
    voices = np.stack([audio.speech(rate, (count * size + context) / rate + 0.1, seed) for seed in range(batch)])
    return [voices[:, i * size : (i + 1) * size + context].astype(np.float32) for i in range(count)]


def vadCase(names, batch, count, rate):
    frames = [{"input": frame} for frame in vadFrames(batch, count, rate)]
    for frame in frames:
        if "sr" in names:
            frame["sr"] = np.array(rate, np.int64)
    frames[0]["state"] = np.zeros((2, batch, 128), np.float32)
    return Case(f"{count} frames at {rate // 1000} kHz, batch {batch}", frames, {"stateN": "state"})


def vadCases(model):
    names = {value.name: value.type.tensor_type.shape for value in onnx.load(model.path).graph.input}
    cases = [vadCase(names, 1, 50, 16000), vadCase(names, 1, 3, 16000)]
    if not names["input"].dim[0].HasField("dim_value"):
        cases.append(vadCase(names, 3, 3, 16000))
    else:
        cases.append(vadCase(names, 1, 7, 16000))
    if "sr" in names:
        cases.append(vadCase(names, 1, 20, 8000))
    return cases


def vadSequenceCases(model):
    zero = np.zeros((1, 1, 128), np.float32)
    frames = np.concatenate(vadFrames(1, 50, 16000))
    other = np.concatenate(vadFrames(2, 13, 16000))
    return [Case(f"{len(rows)} frames", [{"input": rows, "h": zero, "c": zero}]) for rows in (frames, other, other[:13])]


def tokensCases(model):
    random = np.random.default_rng(7)
    cases = []
    for batch, length in [(1, 16), (1, 128), (3, 24), (2, 50)]:
        ids = random.integers(1000, 30000, (batch, length))
        ids[:, 0], ids[:, -1] = 101, 102
        mask = np.ones_like(ids)
        mask[-1, length - length // 3 :] = 0 if batch > 1 else 1
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        cases.append(Case(f"batch {batch}, {length} tokens", [feeds]))
    return cases


def musicCases(model):
    clips = [audio.music(22050, 43844, seed).astype(np.float32) for seed in range(4)]
    name = onnx.load(model.path).graph.input[0].name
    cases = [Case(f"clip {i}", [{name: clips[i][None, :, None]}]) for i in range(2)]
    return cases + [Case("two clips", [{name: np.stack(clips[2:])[:, :, None]}])]


def orientationCases(model):
    upright = page(224, 224, 5)
    turned = [np.rot90(upright, turns, (1, 2)).copy() for turns in range(4)]
    return [Case("upright", [{"x": turned[0][None]}]), Case("on its side", [{"x": turned[1][None]}]),
            Case("all four ways", [{"x": np.stack(turned)}])]


def captchaCases(model):
    """One channel, 64 pixels high, any width."""
    line = lambda text, width: textLine(text, 64, width).mean(0, keepdims=True)[None]
    return [Case(f"'{text}' 64x{width}", [{"input1": line(text, width)}]) for text, width in [("8B3K", 120), ("plan 12", 160), ("天府大道", 200)]]


def captchaDetCases(model):
    """Values 0..255, as its own code passes them."""
    scale, shift = np.array([0.229, 0.224, 0.225]).reshape(3, 1, 1), np.array([0.485, 0.456, 0.406]).reshape(3, 1, 1)
    picture = lambda seed: ((page(416, 416, seed) * scale + shift) * 255).astype(np.float32)
    return [Case(f"page #{seed}", [{"images": picture(seed)[None]}]) for seed in (1, 2, 3)]


# A value at a tie of its dynamic quantisation falls to the other step when a sum before it differs in its last bit, and eight
# layers make that a quarter of the largest result. About every second text meets one between two engines; these do not.
TITLES = ["summarize: The user asked the agent to fix the failing unit test in parser.py, it edited the regex and ran pytest.",
          "summarize: Fix the login page: the button does not respond when the password field is empty.",
          "summarize: The agent renamed the function, updated its three callers and ran the linter.",
          "summarize: Rain again, so we stayed in and baked bread."]


def titleTokenizer():
    return tokenizers.Tokenizer.from_file(str(FOLDER / "t5-title.json"))


def titleTokens(text):
    return np.array([titleTokenizer().encode(text).ids], np.int64)


def t5EncoderCases(model):
    ids = [titleTokens(text) for text in TITLES]
    cases = [Case(f"{row.shape[1]} tokens", [{"input_ids": row, "attention_mask": np.ones_like(row)}]) for row in ids]
    length = max(row.shape[1] for row in ids)
    padded = np.concatenate([np.pad(row, ((0, 0), (0, length - row.shape[1]))) for row in ids])
    return cases + [Case("all, padded", [{"input_ids": padded, "attention_mask": (padded != 0).astype(np.int64)}])]


def t5DecoderCases(model):
    """What an encoder gives a decoder: unit variance around nothing."""
    random = np.random.default_rng(3)
    cases = []
    for batch, tokens, keys in [(1, 1, 24), (1, 7, 24), (2, 3, 12)]:
        ids = random.integers(3, 30000, (batch, tokens))
        ids[:, 0] = 0
        states = (0.2 * random.standard_normal((batch, keys, 512))).astype(np.float32)
        mask = np.ones((batch, keys), np.int64)
        mask[1:, -keys // 4 :] = 0
        cases.append(Case(f"batch {batch}, {tokens} of {keys} tokens",
                          [{"input_ids": ids, "encoder_hidden_states": states, "encoder_attention_mask": mask}]))
    return cases


def piperCases(model):
    """Letters for phonemes, which the voice pronounces as well; without noise: scales are noise, length, noise of lengths."""
    known = json.loads((FOLDER / f"{model.name}.json").read_text())["phoneme_id_map"]
    spell = lambda text: [*known["^"], *(i for letter in text if letter in known for i in (*known["_"], *known[letter])), *known["_"], *known["$"]]
    cases = []
    for text, pace in [("hello world", 1), ("one plan serves every machine, for all shapes.", 1), ("hello world", 1.4)]:
        ids = np.array([spell(text)], np.int64)
        cases.append(Case(f"'{text}' at pace {pace}", [{"input": ids, "input_lengths": np.array([ids.size], np.int64),
                                                        "scales": np.array([0, pace, 0], np.float32)}]))
    return cases


def kokoroCases(model):
    """Phonemes, and the vector of a speaker as wide as those that it was trained with."""
    random, made = np.random.default_rng(2), []
    for count, pace in [(20, 1), (37, 1.2)]:
        ids = np.pad(random.integers(16, 150, (1, count)), ((0, 0), (1, 1)))
        style = (0.2 * random.standard_normal((1, 256))).astype(np.float32)
        made.append(Case(f"{count} phonemes at pace {pace}", [{"tokens": ids, "style": style, "speed": np.array([pace], np.float32)}]))
    return made


def cases(model):
    makers = {"bytes": bytesCases, "det": detCases, "rec": recCases, "cls": clsCases, "vad": vadCases,
              "vad-sequence": vadSequenceCases, "tokens": tokensCases, "music": musicCases, "orientation": orientationCases,
              "captcha": captchaCases, "captcha-det": captchaDetCases, "t5-encoder": t5EncoderCases,
              "t5-decoder": t5DecoderCases, "piper": piperCases, "kokoro": kokoroCases}
    return makers[model.kind](model)


def alphabet(model):
    """The characters a recogniser knows, by class: 0 is CTC's blank, the last one a space."""
    for entry in onnx.load(model.path).metadata_props:
        if entry.key == "character":
            return ["", *entry.value.split("\n"), " "]
    return ["", *(FOLDER / f"{model.name}.txt").read_text().split("\n")[:-1], " "]


def readClasses(scores):
    """Greedy CTC decoding of [time, class]: repeated classes count once, class 0 is nothing."""
    best = scores.argmax(-1)
    return best[np.concatenate([[True], best[1:] != best[:-1]]) & (best != 0)].tolist()


def readText(probabilities, characters):
    return "".join(characters[k] for k in readClasses(probabilities))


def reading(model, outputs, characters=None):
    """What a user would take from the answer: classes or text; None where the numbers themselves are the answer."""
    first = next(iter(outputs.values()))
    if model.kind in ("bytes", "cls", "orientation", "t5-decoder"):
        return first.argmax(-1).tolist()
    if model.kind == "captcha":  # [time, 1, class]
        return readClasses(first[:, 0])
    if model.kind == "rec":
        return [readText(row, characters) for row in first]
    return None
