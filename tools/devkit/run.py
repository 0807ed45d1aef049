"""Calls of the tools under test: arguments in, exit status and text out, with a time limit."""

import dataclasses
import os
import signal
import subprocess

import numpy as np

from .venv import tool

# Exit codes of dspark-compile and dspark-rt (docs/tools.md).
FINE, TROUBLE, UNSUPPORTED, DIFFERS, NO_MEMORY = range(5)


@dataclasses.dataclass
class Result:
    code: int
    out: str
    err: str
    hung: bool = False

    @property
    def crashed(self):
        """Ended by a signal, directly or as the shell reports it (128 + signal); sanitizers exit with 1 but say so."""
        return self.code < 0 or self.code >= 128 or "Sanitizer" in self.err

    def why(self):
        """One line for a report: what it said last, or what became of it."""
        if self.hung:
            return "hung"
        if self.code < 0:
            return f"ended by {signal.Signals(-self.code).name}"
        lines = [line for line in (self.err or self.out).strip().splitlines() if line.strip()]
        return lines[0] if lines else f"exit code {self.code}"


def run(command, limit=120, **environment):
    """Runs a command; never raises for what the command does."""
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, timeout=limit,
                              env={**os.environ, **environment})
    except subprocess.TimeoutExpired as late:
        return Result(-signal.SIGKILL, (late.stdout or b"").decode(errors="replace"), "", hung=True)
    return Result(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


def compile(model, plan, *options, limit=300, **environment):
    return run([tool("dspark-compile"), model, "-o", plan, *options], limit, **environment)


def infer(plan, feeds, scratch, *options, limit=120, **environment):
    """Runs a plan on arrays; returns (Result, outputs or None). `scratch` is a folder for the two .npz files."""
    np.savez(scratch / "in.npz", **feeds)
    answer = scratch / "out.npz"
    answer.unlink(missing_ok=True)
    result = run([tool("dspark-rt"), plan, "--inputs", scratch / "in.npz", "--output", answer, *options], limit, **environment)
    if result.code:
        return result, None
    with np.load(answer) as outputs:
        return result, {name: outputs[name] for name in outputs.files}
