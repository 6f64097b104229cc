"""Few-shot meta-learning with PAC-Bayes guarantees, on NumPy arrays.

Learn a prior from many small data sets, adapt it to a new one, predict with honest uncertainty:

>>> import numpy as np
>>> import pacmeta
>>> rng = np.random.default_rng(0)
>>> def task(examples):
...     x = rng.uniform(-2, 2, examples)
...     return x, rng.uniform(0.5, 1.5) * np.sin(x + rng.uniform(0, 1))
>>> run = pacmeta.meta_learn([task(12) for _ in range(12)], beta=100, alpha=20, iterations=200)
>>> x, y = task(25)
>>> posterior = run.prior.adapt(x[:5], y[:5])
>>> mean, std = posterior.predict(x[5:])
>>> lower, upper = posterior.interval(x[5:], 0.95)
>>> mean.shape, bool((lower < mean).all())
((20,), True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._pacmeta import Posterior, Prior, __version__
from ._run import Run, load, meta_learn, save, train

if TYPE_CHECKING:
    from ._estimators import FewShotClassifier as FewShotClassifier
    from ._estimators import FewShotRegressor as FewShotRegressor
    from ._estimators import meta_learn_head as meta_learn_head
    from ._plot import plot as plot

# Without what needs more than NumPy, so that a star import never does.
__all__ = [
    "Posterior",
    "Prior",
    "Run",
    "__version__",
    "load",
    "meta_learn",
    "save",
    "train",
]

# What needs more than NumPy is imported when it is asked for.
_ELSEWHERE = {
    "FewShotClassifier": ("_estimators", "scikit-learn", "sklearn"),
    "FewShotRegressor": ("_estimators", "scikit-learn", "sklearn"),
    "meta_learn_head": ("_estimators", "scikit-learn", "sklearn"),
    "plot": ("_plot", "matplotlib", "plot"),
}


def __getattr__(name: str) -> Any:
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, package, extra = _ELSEWHERE[name]
    import importlib

    try:
        return getattr(importlib.import_module(f".{module}", __name__), name)
    except ModuleNotFoundError as error:
        raise ImportError(f"pacmeta.{name} needs {package}: pip install 'pacmeta[{extra}]'") from error


def __dir__() -> list[str]:
    return sorted([*__all__, *_ELSEWHERE])
