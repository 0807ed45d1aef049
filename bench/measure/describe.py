"""The machine, the versions and the settings of a measurement, in words that identify no one's computer."""

import importlib.metadata
import os
import subprocess

from devkit import machine, venv

from . import engines, rounds

FEATURES = ["avx2", "fma", "f16c", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "avx_vnni", "amx_tile", "amx_int8", "amx_bf16"]


def processor():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return "unknown"


def machineFacts():
    flags = machine.cpuFlags()
    return {"processor": processor(), "features": [f for f in FEATURES if f in flags], "cores": len(os.sched_getaffinity(0)),
            "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)}


def versions(peers):
    found = {"dspark": revision()}
    for name in {peer.removesuffix("-default") for peer in peers}:
        found[name] = importlib.metadata.version(name)
    return found


def revision():
    done = subprocess.run(["git", "-C", str(venv.ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def settings(arguments):
    return {"rounds": arguments.rounds, "seconds": arguments.seconds, "style": arguments.style, "keep": rounds.KEEP,
            "max_error": arguments.max_error,
            "engines": {name: engines.ENGINES[name].settings() for name in [engines.OURS, *arguments.peers]}}
