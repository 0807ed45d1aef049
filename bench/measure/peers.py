"""Installs what bench/requirements.txt lists into .venv, once; the tests do not need it."""

import hashlib
import subprocess
import sys

from devkit import venv

REQUIREMENTS = venv.ROOT / "bench" / "requirements.txt"
STAMP = venv.ROOT / ".venv" / ".installed-bench"


def install(names):
    """`names` are engines; onnxruntime is always there."""
    if all(name == "onnxruntime" for name in names):
        return
    want = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    if STAMP.exists() and STAMP.read_text() == want:
        return
    print("bench: installing the peers of bench/requirements.txt", flush=True)
    command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--require-hashes",
               "--only-binary=:all:", "-r", str(REQUIREMENTS)]
    if subprocess.run(command).returncode:
        sys.exit("bench: pip could not install the peers listed in bench/requirements.txt")
    STAMP.write_text(want)
