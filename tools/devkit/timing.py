"""Paired timing: two engines take turns on the same input, so that both meet the same disturbances."""

import statistics
import time

import numpy as np

from . import capi, compare

PAUSE = 0.005  # between turns: the other engine's threads have stopped spinning by then


def turn(call, seconds):
    """Median milliseconds per call over at least three calls and `seconds`."""
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1e3)
    time.sleep(PAUSE)
    return statistics.median(times)


def alternate(ours, theirs, rounds, seconds):
    """Milliseconds per call of each round, in two arrays; who goes first changes every round."""
    for call in (ours, theirs):
        turn(call, seconds)  # warm up: caches, first-touch pages, onnxruntime's lazily made plans
    pairs = []
    for k in range(rounds):
        if k % 2:
            second = turn(theirs, seconds)
            pairs.append((turn(ours, seconds), second))
        else:
            pairs.append((turn(ours, seconds), turn(theirs, seconds)))
    return np.array(pairs).T


def paired(plan, model, feeds, threads, rounds, seconds):
    """(ours, onnxruntime's) milliseconds per run in each round."""
    session = compare.session(model.path, threads)
    with capi.Session(plan, threads) as ours:
        return alternate(ours.caller(feeds), lambda: session.run(None, feeds), rounds, seconds)


def ratioInterval(these, others, confidence=0.95):
    """(median ratio these/others, low, high): a bootstrap over rounds, each round a pair."""
    ratios = these / others
    random = np.random.default_rng(0)
    medians = np.median(ratios[random.integers(0, len(ratios), (2000, len(ratios)))], axis=1)
    low, high = np.quantile(medians, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(np.median(ratios)), float(low), float(high)
