"""How fast the machine is at this moment: multiply-adds within the second-level cache, and reading from memory.

Both run on one thread by way of numpy's BLAS, for about 10 ms together."""

import time

import numpy as np

SIZE, READ_BYTES = 192, 64 << 20


class Canary:
    def __init__(self, clock=time.perf_counter):
        self.clock = clock
        self.a = np.random.default_rng(0).random((SIZE, SIZE), np.float32)
        self.result = np.empty_like(self.a)
        self.long = np.ones(READ_BYTES // 4, np.float32)

    def measure(self):
        """(FLOP/s, bytes/s)"""
        start = self.clock()
        for _ in range(20):
            np.dot(self.a, self.a, out=self.result)
        middle = self.clock()
        np.dot(self.long, self.long)
        end = self.clock()
        return 40 * SIZE**3 / (middle - start), READ_BYTES / (end - middle)
