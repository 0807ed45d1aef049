"""Synthetic sounds: speech-like enough for a voice detector to hear voices, and notes for a pitch model."""

import numpy as np


def resonator(signal, rate, frequency, bandwidth):
    """A two-pole filter, which is how one formant of a vocal tract is usually modelled."""
    radius = np.exp(-np.pi * bandwidth / rate)
    a1, a2 = 2 * radius * np.cos(2 * np.pi * frequency / rate), -radius * radius
    result = np.zeros(len(signal) + 2)
    for i, value in enumerate(signal):
        result[i + 2] = value + a1 * result[i + 1] + a2 * result[i]
    return result[2:] * (1 - radius)


def speech(rate, seconds, seed):
    """Vowels: a glottal pulse train at 90 to 180 Hz through three moving formants, with pauses between syllables."""
    random = np.random.default_rng(seed)
    vowels = [(730, 1090, 2440), (270, 2290, 3010), (300, 870, 2240), (530, 1840, 2480), (570, 840, 2410)]
    pieces, total = [], 0
    while total < seconds * rate:
        count = int(rate * random.uniform(0.12, 0.3))
        pitch = np.linspace(random.uniform(110, 180), random.uniform(90, 150), count)
        phase = np.cumsum(pitch / rate)
        pulses = (np.diff(np.floor(phase), prepend=0) > 0) + 0.01 * random.standard_normal(count)
        for formant in vowels[random.integers(len(vowels))]:
            if formant < rate / 2:
                pulses = resonator(pulses, rate, formant, 80)
        pieces.append(pulses / np.abs(pulses).max() * 0.5 * np.sin(np.linspace(0, np.pi, count)) ** 0.5)
        pieces.append(0.002 * random.standard_normal(int(rate * random.uniform(0.01, 0.12))))
        total += count + len(pieces[-1])
    return np.concatenate(pieces)[: int(seconds * rate)]


def music(rate, samples, seed):
    """Decaying harmonic notes at random times."""
    random = np.random.default_rng(seed)
    result = 0.001 * random.standard_normal(samples)
    for _ in range(8):
        start = int(random.integers(0, samples - rate // 4))
        time = np.arange(samples - start) / rate
        frequency = 220 * 2 ** (random.integers(0, 25) / 12)
        for harmonic in range(1, 5):
            result[start:] += 0.1 / harmonic * np.exp(-4 * time) * np.sin(2 * np.pi * frequency * harmonic * time)
    return result
