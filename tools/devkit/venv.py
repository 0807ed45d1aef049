"""Paths of the checkout, and enter(): continue under the virtual environment's Python that tools/setup made."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache"
BIN = pathlib.Path(os.environ.get("DSPARK_BIN", ROOT / "build" / "release" / "bin"))


# What Python must load first and be told, so that ctypes can load a libdspark.so of such a build; by DSPARK_SANITIZE.
# Python's own objects that are alive at its end are not our leaks.
SANITIZERS = {"address": ("asan", {"ASAN_OPTIONS": "detect_leaks=0"}), "thread": ("tsan", {})}


def sanitizerRuntime():
    """The environment that this process needs and does not have yet: the sanitizer's runtime as LD_PRELOAD."""
    try:
        kind = re.search(r"^DSPARK_SANITIZE:\w+=(\w+)", (BIN.parent / "CMakeCache.txt").read_text(), re.M)
    except OSError:
        return {}
    if not kind or kind[1] not in SANITIZERS:
        return {}
    name, options = SANITIZERS[kind[1]]
    clang = ["clang-22", f"--print-file-name=libclang_rt.{name}-{os.uname().machine}.so"]
    runtime = subprocess.run(clang, capture_output=True, text=True).stdout.strip()
    if not os.path.isabs(runtime):
        sys.exit(f"{BIN} is a sanitizer build, and clang-22 has no shared {name} runtime: run tools/setup first")
    if os.environ.get("LD_PRELOAD") == runtime:
        # The tools that the script starts have the runtime linked in, and would refuse a second one.
        for variable in ("LD_PRELOAD", *options):
            del os.environ[variable]
        return {}
    return {"LD_PRELOAD": runtime, **options}


def enter():
    """Scripts are called by any python3; the pinned packages live in .venv, so start again there if need be."""
    python = ROOT / ".venv" / "bin" / "python"
    missing = sanitizerRuntime()
    if pathlib.Path(sys.prefix) == python.parents[1] and not missing:
        return
    if not python.exists():
        sys.exit("no .venv here: run tools/setup first")
    os.execve(python, [str(python), *sys.argv], {**os.environ, **missing})


def tool(name):
    path = BIN / name
    if not path.exists():
        sys.exit(f"{path} does not exist: run tools/build first (or set DSPARK_BIN)")
    return str(path)
