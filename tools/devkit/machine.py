"""What this machine has, as far as the tests need to know."""

import pathlib


def cpuFlags():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            return set(line.split(":")[1].split())
    return set()


def isaLevels():
    """The levels of DSPARK_ISA that run here (kernels/common/isa.h)."""
    flags = cpuFlags()
    levels = ["baseline"]
    if {"avx2", "fma", "f16c", "bmi2"} <= flags:
        levels.append("avx2")
        if {"avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni"} <= flags:
            levels.append("avx512")
            if {"amx_tile", "amx_int8", "amx_bf16"} <= flags:
                levels.append("amx")  # if the kernel of a virtual machine gives no tiles, sessions take the next lower level
    return levels
