"""The cluster bootstrap."""

from __future__ import annotations

import numpy as np
import pytest

from llm4cov_assets.learning.intervals import difference_interval, mean_interval, resampled


def arrays(*values):
    """One run: arrays of shape (1, clusters)."""
    return [np.array([v], dtype=float) for v in values]


def test_a_resample_draws_as_many_clusters_as_there_are():
    weights = resampled(6, 500, 1)
    assert weights.shape == (500, 6) and (weights.sum(axis=1) == 6).all()
    assert weights.mean(axis=0) == pytest.approx(np.ones(6), abs=0.15)
    assert (resampled(6, 500, 1) == weights).all() and (resampled(6, 500, 2) != weights).any()


def test_clusters_weigh_as_much_as_they_have_samples():
    sums, counts = arrays([1.0, 0.0], [1, 9])
    assert mean_interval(sums, counts, 100).estimate == 0.1


def test_one_cluster_has_no_spread():
    interval = mean_interval(*arrays([1.5], [3]), 100)
    assert (interval.low, interval.estimate, interval.high) == (0.5, 0.5, 0.5)


def test_the_interval_of_a_mean_is_that_of_the_central_limit_theorem():
    rng = np.random.default_rng(0)
    sums = rng.normal(0.5, 0.1, (1, 400))
    interval = mean_interval(sums, np.ones((1, 400)), 4000)
    half = 1.96 * sums.std() / 20
    assert interval.high - interval.low == pytest.approx(2 * half, rel=0.08)


def test_samples_of_a_cluster_stay_together():
    """Ten equal samples in a cluster tell no more than one."""
    one = mean_interval(*arrays([0.1, 0.5, 0.9, 0.3], [1, 1, 1, 1]), 500)
    ten = mean_interval(*arrays([1, 5, 9, 3], [10, 10, 10, 10]), 500)
    assert (ten.low, ten.high) == pytest.approx((one.low, one.high))


def test_a_difference_resamples_both_together():
    a, b, n = arrays([0.3, 0.6, 0.9], [0.2, 0.5, 0.8], [1, 1, 1])
    interval = difference_interval(a, n, b, n, 500)
    assert (interval.low, interval.estimate, interval.high) == pytest.approx((0.1, 0.1, 0.1))
    assert difference_interval(a, n, b[:, ::-1], n, 500).low < 0


def test_runs_that_disagree_widen_the_interval_of_what_their_clusters_agree_on():
    alike, n = np.full((2, 50), 0.5), np.ones((2, 50))
    apart = alike + np.array([[0.1], [-0.1]])
    assert mean_interval(alike, n, 500).low == 0.5
    interval = mean_interval(apart, n, 500)
    assert (interval.low, interval.estimate, interval.high) == pytest.approx((0.4, 0.5, 0.6))
