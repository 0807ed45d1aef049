"""What a command costs: seconds on cores and the most memory it had.

The kernel counts a process's peak from before its exec, when it still is its parent's copy. So the parent is this file as a
program of its own, which needs 10 MB: cost.py COMMAND... prints one JSON object after the command's own output."""

import dataclasses
import json
import os
import subprocess
import sys


@dataclasses.dataclass
class Cost:
    code: int
    cpu_s: float
    peak_bytes: int
    errors: str  # standard error


def measure(command, environment=None):
    """`environment`: variables beside those of this process."""
    done = subprocess.run([sys.executable, "-S", "-E", __file__, *map(str, command)], capture_output=True,
                          env={**os.environ, **(environment or {})})
    errors = done.stderr.decode(errors="replace").strip()
    return Cost(errors=errors, **json.loads(done.stdout.splitlines()[-1]))


def main():
    child = subprocess.Popen(sys.argv[1:])
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    print(json.dumps({"code": child.returncode, "cpu_s": usage.ru_utime + usage.ru_stime, "peak_bytes": usage.ru_maxrss * 1024}))


if __name__ == "__main__":
    main()
