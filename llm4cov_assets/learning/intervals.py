"""Bootstrap intervals over clusters.

Samples of one design, and designs of one generator family, are alike; counting them as independent makes intervals
too narrow. So whole clusters are resampled with replacement, and the statistic is the mean over all samples of the
resampled clusters. Every statistic over the same clusters uses the same resamples: differences are paired.
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
def resampled(n_clusters: int, resamples: int, seed: int) -> Array:
    """How often each cluster is drawn in each resample; shape (resamples, n_clusters), rows add up to n_clusters."""
    rng = np.random.default_rng([seed, n_clusters])
    return rng.multinomial(n_clusters, np.full(n_clusters, 1 / n_clusters), size=resamples).astype(np.float64)


def mean_interval(sums: Array, counts: Array, resamples: int = 10_000, seed: int = 7) -> Interval:
    """The mean over samples; `sums` and `counts` are one sum and one number of samples per cluster.

    Clusters must come in the same order everywhere (sorted by name) for resamples to be the same ones.
    """
    weights = resampled(len(sums), resamples, seed)
    return _interval(sums.sum() / counts.sum(), (weights @ sums) / (weights @ counts))


def difference_interval(
    sums_a: Array, counts_a: Array, sums_b: Array, counts_b: Array, resamples: int = 10_000, seed: int = 7
) -> Interval:
    """The mean of a minus the mean of b over the same clusters, both resampled together."""
    weights = resampled(len(sums_a), resamples, seed)
    drawn = (weights @ sums_a) / (weights @ counts_a) - (weights @ sums_b) / (weights @ counts_b)
    return _interval(sums_a.sum() / counts_a.sum() - sums_b.sum() / counts_b.sum(), drawn)


def _interval(estimate: float, drawn: Array) -> Interval:
    low, high = np.quantile(drawn, QUANTILES)
    return Interval(float(estimate), float(low), float(high))
