"""Estimators of scikit-learn: a prior, or a learned head, fitted to a small data set."""

from __future__ import annotations

import json
import math
import operator
import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _pacmeta
from ._pacmeta import Prior
from ._run import Progress, Run, as_prior, closed, reporter
from ._tasks import Tasks, column_labels, list_parts


class FewShotRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A meta-learned prior as a regressor: ``fit`` adapts it to a small data set.

    Without a prior it is a Gaussian process fitted to the data alone, which shows what the prior is worth. The columns of a
    DataFrame are those that the prior names, in any order; other columns of numbers are not looked at.

    >>> import numpy as np, pacmeta
    >>> x = np.linspace(0, 3, 8).reshape(-1, 1)
    >>> model = pacmeta.FewShotRegressor().fit(x, np.sin(x).ravel())
    >>> mean, std = model.predict([[1.0]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(1.0)) < 0.05)
    True
    """

    def __init__(self, prior: Prior | Run | None = None, *, temperature: float | None = None) -> None:
        self.prior = prior
        self.temperature = temperature

    def fit(self, X: Any, y: Any) -> FewShotRegressor:
        """Adapts to examples."""
        table = X
        X, y = validate_data(self, X, y, y_numeric=True, dtype=np.float64, multi_output=False)
        if self.prior is None and self.temperature is not None:
            raise ValueError("temperature: belongs to a prior; without one it has no meaning")
        # Kept instead of the posterior, so that the estimator can be pickled; the same data give the same posterior.
        self._order = self._columns(table, list(range(X.shape[1])))
        self.X_, self.y_ = np.ascontiguousarray(X[:, self._order]), np.ascontiguousarray(y, dtype=np.float64)
        self._posterior = self._adapted()
        return self

    def _prior(self) -> Prior | None:
        return None if self.prior is None else as_prior(self.prior)

    def _columns(self, table: Any, unnamed: list[int]) -> list[int]:
        """The places of the columns that the prior names; where columns have no names, those given."""
        prior = self._prior()
        if prior is None or not hasattr(table, "columns"):
            return unnamed
        labels = list(table.columns)
        return [labels.index(label) for label in column_labels(table, prior.features)]

    def _adapted(self) -> _pacmeta.Posterior:
        prior = self._prior()
        if prior is None:
            return _pacmeta.fit_plain_gp(self.X_, self.y_)
        return prior.adapt(self.X_, self.y_, temperature=self.temperature)

    def _queries(self, X: Any) -> Any:
        check_is_fitted(self)
        rows = validate_data(self, X, reset=False, dtype=np.float64)
        return np.ascontiguousarray(rows[:, self._columns(X, self._order)])

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean of a new observation at each row; with ``return_std`` its standard deviation too."""
        queries = self._queries(X)
        mean, std = self._posterior.predict(queries)
        return (mean, std) if return_std else mean

    def predict_interval(self, X: Any, level: float = 0.95) -> tuple[Any, Any]:
        """The interval that holds a new observation with this probability."""
        queries = self._queries(X)
        return self._posterior.interval(queries, level)

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


def _whole(name: str, value: Any, least: int = 0) -> int:
    """A whole number that the library can hold."""
    try:
        whole = operator.index(value)
    except TypeError:
        whole = -1
    if not least <= whole < 2**64:
        raise ValueError(f"{name}: is {value!r}, expected a whole number from {least} to 2^64 - 1")
    return whole


def _number(name: str, value: Any, expected: str = "a number above 0") -> float:
    """A finite number; the library knows its range."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{name}: is {value!r}, expected {expected}")
    return number


def _method(
    name: str, steps: Any, rate: Any, optimiser: str, alpha: Any, sigma_squared: Any, particles: Any
) -> str:
    """A method on heads, as the library reads it."""
    inner = {"steps": _whole("steps", steps), "rate": _number("rate", rate, "a number from 0"), "optimiser": optimiser}
    settings: dict[str, Any] = {"name": name, "inner": inner}
    if name in ("reptile", "bmaml", "pacoh", "pacmaml"):
        settings |= {"alpha": _number("alpha", alpha), "sigma_squared": _number("sigma_squared", sigma_squared)}
    count = _whole("particles", particles, 1)
    if name in ("bmaml", "pacoh", "pacmaml") and count > 1:
        settings["sampler"] = {"kind": "svgd", "particles": count}
    return json.dumps(settings)


class FewShotClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear head on features that adapts to a few labelled examples, by the methods for pictures and text.

    ``head`` is the start that :func:`meta_learn_head` learned, a row of weights and a bias for each class; where the data have
    another number of classes it is not used, with a warning, and the head starts at zero. ``alpha`` and ``sigma_squared`` are
    temperature and prior variance of the methods with a Gibbs posterior (pacmaml, pacoh, bmaml, reptile).

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
        head = self._start(self.head, classes, X.shape[1])
        settings = _method(
            self.method, self.steps, self.rate, self.optimiser, self.alpha, self.sigma_squared, self.particles
        )
        seed = _whole("seed", self.seed)
        self.heads_ = _pacmeta.adapt_head(settings, np.ascontiguousarray(X), labels, classes, head, seed)
        return self

    def _start(self, head: Any, classes: int, features: int) -> Any:
        """The head to start from as the library has it: all weights, then all biases."""
        if head is None:
            return None
        head = np.asarray(head, dtype=np.float64)
        if head.ndim != 2 or head.shape[1] != features + 1:
            expected = f"(classes, {features + 1}): weights of {features} features and a bias for each class"
            raise ValueError(f"head: has shape {head.shape}, expected {expected}")
        if len(head) != classes:
            message = f"head: is for {len(head)} classes, the data have {classes}; it is not used, and the start is zero"
            warnings.warn(message, stacklevel=3)
            return None
        return np.concatenate([head[:, :-1].ravel(), head[:, -1]])

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
    tasks: Tasks,
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
    progress: Progress = None,
) -> Any:
    """Learns where a head starts, from tasks of features and labels 0 to ``classes - 1``.

    ``tasks`` is a list of ``(features, labels)``, or a dictionary of them by name. The result is the ``head`` of a
    :class:`FewShotClassifier`, of shape ``(classes, features + 1)``: weights, and in the last column biases.

    >>> import numpy as np, pacmeta
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(12) % 3
    >>> tasks = [(rng.normal(size=(12, 4)) + 3 * np.eye(3, 4)[labels], labels) for _ in range(10)]
    >>> head = pacmeta.meta_learn_head(tasks, classes=3, iterations=50)
    >>> head.shape
    (3, 5)
    >>> pacmeta.FewShotClassifier(head).fit(*tasks[0]).predict(3 * np.eye(3, 4)).tolist()
    [0, 1, 2]
    """
    settings = _method(method, steps, rate, optimiser, alpha, sigma_squared, particles)
    pairs = []
    for name, features, labels, adapt in list_parts(tasks):
        if adapt is not None:
            raise ValueError(f"task `{name}`: expected (features, labels); subsets of `subset` examples are drawn")
        pairs.append((features, labels))
    numbers = (
        _whole("classes", classes, 2),
        _whole("subset", subset, 1),
        _whole("iterations", iterations, 1),
        _number("learning_rate", learning_rate),
        _whole("batch", batch, 1),
        _whole("seed", seed),
    )
    told = reporter(progress)
    try:
        flat = _pacmeta.meta_learn_head(settings, pairs, *numbers, told)
    finally:
        closed(told)
    if not np.isfinite(flat).all():
        raise RuntimeError("the head is not finite after training; lower `learning_rate`, `rate` or `alpha`")
    weights, biases = np.split(flat, [len(flat) - classes])
    return np.column_stack([weights.reshape(classes, -1), biases])
