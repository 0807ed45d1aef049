"""Paths of the checkout, and enter(): continue under the virtual environment's Python that tools/setup made."""

import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache"
BIN = pathlib.Path(os.environ.get("DSPARK_BIN", ROOT / "build" / "release" / "bin"))


def enter():
    """Scripts are called by any python3; the pinned packages live in .venv, so start again there if need be."""
    python = ROOT / ".venv" / "bin" / "python"
    if pathlib.Path(sys.prefix) == python.parents[1]:
        return
    if not python.exists():
        sys.exit("no .venv here: run tools/setup first")
    os.execv(python, [str(python), *sys.argv])


def tool(name):
    path = BIN / name
    if not path.exists():
        sys.exit(f"{path} does not exist: run tools/build first (or set DSPARK_BIN)")
    return str(path)
