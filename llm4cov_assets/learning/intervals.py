"""Bootstrap intervals over clusters.

Samples of one design, and designs of one generator family, are alike; counting them as independent makes intervals
too narrow. So whole clusters are resampled with replacement, and the statistic is the mean over all samples of the
resampled clusters. Every statistic over the same clusters uses the same resamples: differences are paired. Where
there are several training runs (the same profile with other seeds), runs are resampled too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

QUANTILES = (0.025, 0.975)


@dataclass(frozen=True)
class Interval:
    """An estimate on all data with the 2.5 % and 97.5 % quantiles of its bootstrap distribution."""

    estimate: float
    low: float
    high: float


@lru_cache(maxsize=16)
def resampled(n: int, resamples: int, seed: int) -> Array:
    """How often each of n things is drawn in each resample; shape (resamples, n), rows add up to n."""
    rng = np.random.default_rng([seed, n])
    return rng.multinomial(n, np.full(n, 1 / n), size=resamples).astype(np.float64)


def mean_interval(sums: Array, counts: Array, resamples: int = 10_000, seed: int = 7) -> Interval:
    """The mean over samples; `sums` and `counts` are one sum and one number of samples per training run and cluster,
    shape (runs, clusters).

    Clusters must come in the same order everywhere (sorted by name) for resamples to be the same ones.
    """
    return _interval(sums.sum() / counts.sum(), _means(sums, counts, resamples, seed))


def difference_interval(
    sums_a: Array, counts_a: Array, sums_b: Array, counts_b: Array, resamples: int = 10_000, seed: int = 7
) -> Interval:
    """The mean of a minus the mean of b over the same runs and clusters, both resampled together."""
    drawn = _means(sums_a, counts_a, resamples, seed) - _means(sums_b, counts_b, resamples, seed)
    return _interval(sums_a.sum() / counts_a.sum() - sums_b.sum() / counts_b.sum(), drawn)


def _means(sums: Array, counts: Array, resamples: int, seed: int) -> Array:
    """The mean in each resample, shape (resamples,)."""
    runs, clusters = sums.shape
    of_clusters = resampled(clusters, resamples, seed)
    # another stream for the runs, also where there are as many of them as clusters
    of_runs = resampled(runs, resamples, seed + 1)
    return ((of_clusters @ sums.T) * of_runs).sum(axis=1) / ((of_clusters @ counts.T) * of_runs).sum(axis=1)


def _interval(estimate: float, drawn: Array) -> Interval:
    low, high = np.quantile(drawn, QUANTILES)
    return Interval(float(estimate), float(low), float(high))
