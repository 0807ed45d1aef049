"""Counting checks: one line each, "ok ..." or "FAIL ...", which tools/run-tests adds up."""

import sys
import threading


class Checks:
    def __init__(self):
        self.passed = self.failed = 0
        self.lock = threading.Lock()

    def report(self, good, name, detail=""):
        with self.lock:
            self.passed += bool(good)
            self.failed += not good
            print(("ok   " if good else "FAIL ") + name + (f": {detail}" if detail else ""), flush=True)
        return bool(good)

    def exitCode(self):
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        return 3 if self.failed else 0


def note(text):
    print(text, file=sys.stderr, flush=True)
