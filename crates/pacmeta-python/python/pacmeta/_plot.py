"""Figures of priors and posteriors, with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np

from ._pacmeta import Posterior, Prior
from ._run import Run, as_prior

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot(
    prior: Prior | Run | None = None,
    posterior: Posterior | None = None,
    support: tuple[Any, Any] | None = None,
    *,
    low: float | None = None,
    high: float | None = None,
    points: int = 200,
    levels: tuple[float, ...] = (0.95, 0.5),
    ax: Axes | None = None,
) -> Axes:
    """Draws a prior of one feature, what it becomes after a support set, and the support set.

    With a prior and a support set alone the posterior is computed. The bands are intervals of a new observation; that of
    the prior is two standard deviations of the function.

    >>> import matplotlib, numpy as np, pacmeta
    >>> matplotlib.use("Agg")
    >>> x = np.linspace(-1, 1, 8)
    >>> run = pacmeta.meta_learn([(x, slope * x) for slope in range(1, 9)], beta=200, alpha=40, iterations=20)
    >>> ax = pacmeta.plot(run.prior, support=(x[:3], 2 * x[:3]))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('x', 'y')
    """
    if prior is None and posterior is None:
        raise ValueError("expected a prior or a posterior")
    prior = None if prior is None else as_prior(prior)
    if prior is not None and len(prior.features) != 1:
        raise ValueError(f"the prior has {len(prior.features)} features, only one can be drawn")
    known = None
    if support is not None:
        known = (np.asarray(support[0], dtype=float).ravel(), np.asarray(support[1], dtype=float).ravel())
        if posterior is None and prior is not None:
            posterior = prior.adapt(known[0], known[1])
    if low is None or high is None:
        if known is None:
            raise ValueError("without a support set, give low and high")
        margin = 0.25 * float(np.ptp(known[0])) or 1.0
        low = float(known[0].min()) - margin if low is None else low
        high = float(known[0].max()) + margin if high is None else high
    if ax is None:
        _, ax = plt.subplots()
    x = np.linspace(low, high, points)
    if prior is not None:
        mean, std = prior.predict(x)
        ax.plot(x, mean, color="0.5", linestyle="--", label="prior mean")
        ax.fill_between(x, mean - 2 * std, mean + 2 * std, color="0.5", alpha=0.12, linewidth=0)
        ax.set_xlabel(prior.features[0])
        ax.set_ylabel(prior.target)
    if posterior is not None:
        mean, _ = posterior.predict(x)
        (line,) = ax.plot(x, mean, label="posterior mean")
        for level in levels:
            lower, upper = posterior.interval(x, level)
            label = f"{100 * level:.3g}% interval"
            ax.fill_between(x, lower, upper, color=line.get_color(), alpha=0.2, linewidth=0, label=label)
    if known is not None:
        ax.plot(known[0], known[1], "o", color="black", label="support")
    ax.legend()
    return ax
