"""Estimators of scikit-learn: a prior, or a learned head, fitted to a small data set."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _pacmeta
from ._pacmeta import Prior

Progress = Callable[[int, int, float], object]


class FewShotRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A meta-learned prior as a regressor: ``fit`` adapts it to a small data set.

    Without a prior it is a Gaussian process fitted to the data alone, which shows what the prior is worth.

    >>> import numpy as np, pacmeta
    >>> x = np.linspace(0, 3, 8).reshape(-1, 1)
    >>> model = pacmeta.FewShotRegressor().fit(x, np.sin(x).ravel())
    >>> mean, std = model.predict([[1.0]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(1.0)) < 0.05)
    True
    """

    def __init__(self, prior: Prior | None = None, *, temperature: float | None = None) -> None:
        self.prior = prior
        self.temperature = temperature

    def fit(self, X: Any, y: Any) -> FewShotRegressor:
        """Adapts to examples."""
        X, y = validate_data(self, X, y, y_numeric=True, dtype=np.float64, multi_output=False)
        if self.prior is None and self.temperature is not None:
            raise ValueError("temperature: belongs to a prior; without one it has no meaning")
        # Kept instead of the posterior, so that the estimator can be pickled; the same data give the same posterior.
        self.X_, self.y_ = np.ascontiguousarray(X), np.ascontiguousarray(y, dtype=np.float64)
        self._posterior = self._adapted()
        return self

    def _adapted(self) -> _pacmeta.Posterior:
        if self.prior is None:
            return _pacmeta.fit_plain_gp(self.X_, self.y_)
        return self.prior.adapt(self.X_, self.y_, temperature=self.temperature)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean of a new observation at each row; with ``return_std`` its standard deviation too."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        mean, std = self._posterior.predict(np.ascontiguousarray(X))
        return (mean, std) if return_std else mean

    def predict_interval(self, X: Any, level: float = 0.95) -> tuple[Any, Any]:
        """The interval that holds a new observation with this probability."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return self._posterior.interval(np.ascontiguousarray(X), level)

    def __getstate__(self) -> Any:
        state = dict(super().__getstate__())
        state.pop("_posterior", None)
        return state

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        if hasattr(self, "X_"):
            self._posterior = self._adapted()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # A prior is good on tasks like those it was learned from, and promises nothing on the data of a check.
        tags.regressor_tags.poor_score = self.prior is not None
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "X_")


def _method(name: str, steps: int, rate: float, optimiser: str, alpha: float, sigma_squared: float, particles: int) -> str:
    """A method on heads, as the library reads it."""
    settings: dict[str, Any] = {"name": name, "inner": {"steps": steps, "rate": rate, "optimiser": optimiser}}
    if name in ("reptile", "bmaml", "pacoh", "pacmaml"):
        settings |= {"alpha": alpha, "sigma_squared": sigma_squared}
    if name in ("bmaml", "pacoh", "pacmaml") and particles > 1:
        settings["sampler"] = {"kind": "svgd", "particles": particles}
    return json.dumps(settings)


class FewShotClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear head on features that adapts to a few labelled examples, by the methods for pictures and text.

    ``head`` is the start that :func:`meta_learn_head` learned; it is used where the number of classes is that of its
    training, and otherwise the head starts at zero. ``alpha`` and ``sigma_squared`` are temperature and prior variance of
    the methods with a Gibbs posterior (pacmaml, pacoh, bmaml, reptile).

    >>> import numpy as np, pacmeta
    >>> x = np.array([[0.0, 1.0], [0.1, 0.9], [1.0, 0.0], [0.9, 0.2]])
    >>> model = pacmeta.FewShotClassifier().fit(x, ["a", "a", "b", "b"])
    >>> model.predict([[0.0, 1.0], [1.0, 0.1]]).tolist()
    ['a', 'b']
    """

    def __init__(
        self,
        head: Any = None,
        *,
        method: str = "pacmaml",
        steps: int = 100,
        rate: float = 0.1,
        optimiser: str = "adagrad",
        alpha: float = 1000.0,
        sigma_squared: float = 1.0,
        particles: int = 1,
        seed: int = 0,
    ) -> None:
        self.head = head
        self.method = method
        self.steps = steps
        self.rate = rate
        self.optimiser = optimiser
        self.alpha = alpha
        self.sigma_squared = sigma_squared
        self.particles = particles
        self.seed = seed

    def fit(self, X: Any, y: Any) -> FewShotClassifier:
        """Adapts to labelled examples."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        classes = len(self.classes_)
        if classes < 2:
            raise ValueError(f"y has one class only ({self.classes_[0]}); a classifier needs at least two classes")
        head = None if self.head is None else np.asarray(self.head, dtype=np.float64)
        if head is not None and head.size != classes * (X.shape[1] + 1):
            if head.size % (X.shape[1] + 1):
                raise ValueError(f"head: has {head.size} numbers, which is no head on {X.shape[1]} features")
            head = None
        settings = _method(
            self.method, self.steps, self.rate, self.optimiser, self.alpha, self.sigma_squared, self.particles
        )
        self.heads_ = _pacmeta.adapt_head(settings, np.ascontiguousarray(X), labels, classes, head, self.seed)
        return self

    def predict_proba(self, X: Any) -> Any:
        """The probability of each class, in the order of ``classes_``."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return _pacmeta.head_probabilities(self.heads_, np.ascontiguousarray(X), len(self.classes_))

    def predict(self, X: Any) -> Any:
        """The most probable class of each row."""
        check_is_fitted(self)
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]


def meta_learn_head(
    tasks: Iterable[tuple[Any, Any]],
    *,
    classes: int,
    method: str = "pacmaml",
    subset: int = 5,
    iterations: int = 500,
    learning_rate: float = 0.01,
    batch: int = 4,
    steps: int = 10,
    rate: float = 0.1,
    optimiser: str = "adagrad",
    alpha: float = 1000.0,
    sigma_squared: float = 1.0,
    particles: int = 1,
    seed: int = 0,
    progress: Progress | None = None,
) -> Any:
    """Learns where a head starts, from tasks of features and labels 0 to ``classes - 1``.

    The result is the ``head`` of a :class:`FewShotClassifier`: weights, row by row, then biases.
    """
    settings = _method(method, steps, rate, optimiser, alpha, sigma_squared, particles)
    return _pacmeta.meta_learn_head(
        settings, list(tasks), classes, subset, iterations, learning_rate, batch, seed, progress
    )
