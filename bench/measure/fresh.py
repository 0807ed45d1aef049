"""Opening and first run in a process of its own: seconds on the cores, also of a second run, and how much the process grew
at its largest.

Called as a program it is that process: fresh.py ENGINE MODEL PLAN FEEDS.npz THREADS DIMS prints one JSON object. Modules are
imported before the clock starts; the growth is peak resident memory minus what was resident before opening."""

import json
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
IMPORTS = {"dspark": [], "onnxruntime": ["onnxruntime"], "openvino": ["openvino"], "openvino-default": ["openvino"]}


def resident(field):
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(field)


def here(engine, job):
    """The measurement in this process, which must not have run an engine before."""
    from measure import engines

    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before, start = resident("VmRSS"), time.process_time()
    opened = engines.ENGINES[engine](job)
    opened.call()
    first = time.process_time()
    opened.call()
    second = time.process_time()
    return {"first_s": first - start, "second_s": second - first, "grown_bytes": resident("VmHWM") - before}


def child(engine, model, plan, feeds, threads, dims):
    sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "bench")]
    import numpy as np
    from devkit import capi
    from measure import engines

    for module in IMPORTS[engine]:
        __import__(module)
    capi.library()
    with np.load(feeds) as arrays:
        job = engines.Job("", pathlib.Path(model), pathlib.Path(plan), dict(arrays), int(threads), json.loads(dims))
    print(json.dumps(here(engine, job)))


def measure(engine, job, feeds, repeats):
    """The medians over `repeats` processes, or None where the engine cannot."""
    rows = []
    for _ in range(repeats):
        command = [sys.executable, __file__, engine, str(job.model), str(job.plan), str(feeds), str(job.threads), json.dumps(job.dims)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return None
        rows.append(json.loads(done.stdout.splitlines()[-1]))
    return {key: sorted(row[key] for row in rows)[len(rows) // 2] for key in rows[0]}


if __name__ == "__main__":
    child(*sys.argv[1:])
