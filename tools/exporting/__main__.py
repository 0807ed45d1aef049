"""python -m exporting FOLDER [--list] [NAME...]: see tools/exports."""

import importlib.metadata
import json
import multiprocessing
import pathlib
import shutil
import sys
import time

import numpy as np
import onnx
import torch

from . import catalogue

PACKAGES = ["torch", "torchvision", "transformers", "onnxscript", "onnxruntime", "optimum-onnx", "onnxruntime-genai"]


def reason(error):
    """An exporter's message in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:300] if lines else ''}"


def write(job, folder):
    """Everything of one model in `folder`; about.json comes last, so a folder with it is whole."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    about = {"name": job.name, "network": job.network, "exporter": job.exporter, "kind": job.kind}
    start = time.process_time()
    try:
        for index, feeds in enumerate(job.write(folder)):
            np.savez(folder / f"case-{index}.npz", **feeds)
        model = onnx.load(folder / "model.onnx", load_external_data=False)
        about["opset"] = {entry.domain or "ai.onnx": entry.version for entry in model.opset_import}
    except Exception as error:  # exporters raise anything; what they refuse is a line of the page
        about["refused"] = reason(error)
    about["versions"] = {name: importlib.metadata.version(name) for name in PACKAGES}
    (folder / "about.json").write_text(json.dumps(about, indent=1) + "\n")
    print(f"{job.name}: {about.get('refused', 'written')} ({time.process_time() - start:.0f} s)", flush=True)


def main():
    root, names = pathlib.Path(sys.argv[1]), sys.argv[2:]
    jobs = catalogue.jobs()
    if names == ["--list"]:
        print("\n".join(job.name for job in jobs))
        return 0
    unknown = set(names) - {job.name for job in jobs}
    if unknown:
        sys.exit(f"exports: no model named {', '.join(sorted(unknown))}; --list shows them")
    torch.set_num_threads(1)
    for job in jobs:
        if job.name in names or not names and not (root / job.name / "about.json").exists():
            # A process per model, because exporters keep what they traced.
            child = multiprocessing.get_context("fork").Process(target=write, args=(job, root / job.name))
            child.start()
            child.join()
            if child.exitcode:
                print(f"{job.name}: ended with exit code {child.exitcode}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
