"""Paired rounds: in each, every engine has one turn, in an order that reverses from round to round (ABC, CBA), and before
each turn the canary says how fast the machine is.

The rule for dropping, fixed before anything runs: a round counts unless one of its canaries was below KEEP of the best
(95th percentile) of its kind in this measurement; rounds are repeated until enough count, at most twice as many."""

import dataclasses
import statistics
import time

import numpy as np

from .canary import Canary

KEEP = 0.8
SAMPLE_MS = 0.3  # reading a clock costs up to a microsecond
# Between turns, so that the threads of the engine before have stopped spinning: onnxruntime's second thread does for up to 50 ms
# after a run, which made the first run of whoever came next up to 1.8 times as long.
PAUSE, PAUSE_OF_THREADS = 0.003, 0.08


def clockFor(threads):
    """One thread: time on a core, all threads of the process, so that what others take away does not count. More: the
    wall's, as waiting for each other is part of the work."""
    return time.process_time if threads == 1 else time.perf_counter


def turn(call, seconds, clock, repeats=1, pause=PAUSE):
    """Median milliseconds per call over `seconds`, at least one sample; `repeats` calls make a sample."""
    times, end = [], time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = clock()
        for _ in range(repeats):
            call()
        times.append((clock() - start) * 1e3 / repeats)
    time.sleep(pause)
    return statistics.median(times)


@dataclasses.dataclass
class Measured:
    times: dict  # milliseconds per call of each engine, one per round that counts
    rounds: int  # that ran
    disturbed: bool  # too few rounds were quiet: all count
    flops: float  # medians of the canary
    bytes: float


def measure(calls, rounds, seconds, threads):
    """`calls` maps each engine to its function."""
    clock = clockFor(threads)
    pause = PAUSE if threads == 1 else PAUSE_OF_THREADS
    canary, rows, probes = Canary(clock), [], []
    repeats = {}
    for name, call in calls.items():
        turn(call, 0, clock)  # first-touch pages, lazily made plans
        repeats[name] = max(1, int(SAMPLE_MS / max(turn(call, 0, clock), 1e-3)))
    for k in range(2 * rounds):
        row, probe = {}, []
        for name in list(calls) if k % 2 == 0 else reversed(list(calls)):
            probe.append(canary.measure())
            row[name] = turn(calls[name], seconds, clock, repeats[name], pause)
        rows.append(row)
        probes.append(np.min(probe, axis=0))
        kept = quiet(np.array(probes))
        if k + 1 >= rounds and kept.sum() >= rounds:
            break
    disturbed = kept.sum() < rounds
    chosen = [row for row, keep in zip(rows, kept) if keep or disturbed]
    flops, bandwidth = np.median(probes, axis=0)
    return Measured({name: np.array([row[name] for row in chosen]) for name in calls}, len(rows), bool(disturbed), float(flops), float(bandwidth))


def quiet(probes):
    return (probes >= KEEP * np.quantile(probes, 0.95, axis=0)).all(axis=1)


def spread(times):
    """Half the distance between the quartiles, as a share of the median."""
    low, middle, high = np.quantile(times, [0.25, 0.5, 0.75])
    return float((high - low) / 2 / middle)
