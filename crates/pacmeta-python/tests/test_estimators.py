"""Where scikit-learn's estimators go: its own checks, pipelines, clones, pickles."""

from __future__ import annotations

import functools
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import pacmeta


@functools.cache
def prior_of(names: tuple[str, ...]) -> pacmeta.Prior:
    rng = np.random.default_rng(0)
    tasks = []
    for _ in range(8):
        x = rng.normal(size=(20, len(names)))
        tasks.append((x, x @ rng.normal(size=len(names))))
    return pacmeta.meta_learn(tasks, method="pacoh", beta=200, iterations=20, features=names).prior


class RegressorWithAPrior(pacmeta.FewShotRegressor):  # type: ignore[misc]
    """With a prior for whatever features a check brings."""

    def _prior(self) -> pacmeta.Prior:
        numbered = range(self.n_features_in_)
        return prior_of(tuple(str(name) for name in getattr(self, "feature_names_in_", numbered)))


class ClassifierWithAHead(pacmeta.FewShotClassifier):  # type: ignore[misc]
    """With a head for whatever features and classes a check brings."""

    def _start(self, head: Any, classes: int, features: int) -> Any:
        head = np.random.default_rng(0).normal(size=(classes, features + 1))
        return super()._start(head, classes, features)


# No check fails. The tag `poor_score` leaves out one line of check_regressors_train with a prior, which wants a good score on
# data that are unlike the tasks of the prior.
EXPECTED_FAILED_CHECKS: dict[str, str] = {}


@parametrize_with_checks(
    [
        pacmeta.FewShotRegressor(),
        pacmeta.FewShotClassifier(),
        RegressorWithAPrior(prior_of(("x",))),
        ClassifierWithAHead(),
    ],
    expected_failed_checks=lambda estimator: EXPECTED_FAILED_CHECKS,
)
def test_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def test_columns_are_those_that_the_prior_names() -> None:
    prior = prior_of(("load", "heat"))
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(12, 3)), columns=["heat", "speed", "load"])
    y = rng.normal(size=12)
    plain = table[["load", "heat"]].to_numpy()
    expected = prior.adapt(plain, y).predict(plain)[0]
    model = pacmeta.FewShotRegressor(prior).fit(table, y)
    np.testing.assert_array_equal(model.predict(table), expected)
    with pytest.warns(UserWarning, match="feature names"):
        np.testing.assert_array_equal(model.predict(table.to_numpy()), expected)
    np.testing.assert_array_equal(pacmeta.FewShotRegressor(prior).fit(plain, y).predict(plain), expected)
    with pytest.raises(ValueError, match="column 'load' is not at all in the table, which has heat, speed"):
        pacmeta.FewShotRegressor(prior).fit(table[["heat", "speed"]], y)

    posterior = prior.adapt(table, y)
    np.testing.assert_array_equal(posterior.predict(table)[0], expected)
    np.testing.assert_array_equal(posterior.interval(table)[0], prior.adapt(plain, y).interval(plain)[0])
    np.testing.assert_array_equal(prior.predict(table)[0], prior.predict(plain)[0])
    for refuses in (posterior.predict, posterior.interval, prior.predict, lambda frame: prior.adapt(frame, y)):
        with pytest.raises(ValueError, match="column 'load' is not at all"):
            refuses(table[["heat", "speed"]])


def test_a_run_stands_for_its_prior(run: pacmeta.Run) -> None:
    x, y = np.linspace(-1, 1, 5).reshape(-1, 1), np.linspace(0, 1, 5)
    of_run, of_prior = (pacmeta.FewShotRegressor(given).fit(x, y) for given in (run, run.prior))
    assert of_run.predict(x).tobytes() == of_prior.predict(x).tobytes()
    assert clone(of_run).fit(x, y).predict(x).tobytes() == of_prior.predict(x).tobytes()
    with pytest.raises(ValueError, match="expected a pacmeta.Prior, found str; load it with pacmeta.load"):
        pacmeta.FewShotRegressor("prior.safetensors").fit(x, y)


def test_a_prior_in_a_regressor_is_the_prior(prior: pacmeta.Prior) -> None:
    rng = np.random.default_rng(1)
    x, y, query = rng.uniform(-2, 2, (5, 1)), rng.normal(size=5), rng.uniform(-2, 2, (30, 1))
    model = pacmeta.FewShotRegressor(prior).fit(x, y)
    mean, std = model.predict(query, return_std=True)
    expected = prior.adapt(x, y).predict(query)
    assert mean.tobytes() == expected[0].tobytes() and std.tobytes() == expected[1].tobytes()
    assert model.predict(query).tobytes() == mean.tobytes()
    lower, upper = model.predict_interval(query, 0.5)
    assert ((lower < mean) & (mean < upper)).all()
    copy = pickle.loads(pickle.dumps(model))
    assert copy.predict(query).tobytes() == mean.tobytes()
    cloned = clone(model)
    assert cloned.prior == prior and not hasattr(cloned, "X_")
    assert isinstance(model.score(x, y), float)
    with pytest.raises(ValueError, match="temperature"):
        pacmeta.FewShotRegressor(temperature=3.0).fit(x, y)


def test_pipelines_and_searches(prior: pacmeta.Prior) -> None:
    x = np.linspace(-2, 2, 24).reshape(-1, 1)
    y = np.sin(x).ravel()
    pipeline = make_pipeline(StandardScaler(), pacmeta.FewShotRegressor())
    assert pipeline.fit(x, y).score(x, y) > 0.99
    search = GridSearchCV(pacmeta.FewShotRegressor(prior), {"temperature": [5.0, 50.0]}, cv=3).fit(x, y)
    assert search.best_params_["temperature"] in (5.0, 50.0)
    assert len(cross_val_score(clone(pipeline), x, y, cv=3)) == 3


def test_classifiers_use_what_was_learned() -> None:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(3, 6))

    def task(examples: int) -> tuple[Any, Any]:
        labels = np.arange(examples) % 3
        return 3 * centres[labels] + 2 * rng.normal(size=(examples, 6)), labels

    told: list[int] = []
    head = pacmeta.meta_learn_head(
        [task(12) for _ in range(20)], classes=3, iterations=60, progress=lambda done, total, value: told.append(done)
    )
    assert head.shape == (3, 7) and told[-1] == 60
    support, query = task(3), task(300)
    few = {"steps": 5, "rate": 0.05}
    learned = pacmeta.FewShotClassifier(head, **few).fit(*support).score(*query)
    fresh = pacmeta.FewShotClassifier(**few).fit(*support).score(*query)
    assert learned > fresh + 0.05, (learned, fresh)
    for method in ("multi-task", "fomaml", "maml", "reptile", "bmaml", "pacoh", "pacmaml"):
        model = pacmeta.FewShotClassifier(method=method, optimiser="gd", alpha=10.0, particles=3).fit(*task(30))
        chances = model.predict_proba(query[0])
        np.testing.assert_allclose(chances.sum(axis=1), 1.0)
        assert model.score(*query) > 0.6, method
    for shape in [(3 * 7,), (3, 6), (7, 3)]:
        with pytest.raises(ValueError, match=r"head: has shape .*, expected \(classes, 7\)"):
            pacmeta.FewShotClassifier(np.zeros(shape)).fit(*support)
    with pytest.warns(UserWarning, match="head: is for 3 classes, the data have 2"):
        two = pacmeta.FewShotClassifier(head).fit(support[0], [0, 1, 1])
    fresh_two = pacmeta.FewShotClassifier().fit(support[0], [0, 1, 1])
    np.testing.assert_array_equal(two.predict_proba(query[0]), fresh_two.predict_proba(query[0]))
    search = GridSearchCV(pacmeta.FewShotClassifier(head), {"steps": np.arange(1, 4)}, cv=3).fit(*task(30))
    assert search.best_params_["steps"] in (1, 2, 3)


def test_a_head_without_steps_is_the_head() -> None:
    rng = np.random.default_rng(0)
    head, x = rng.normal(size=(3, 5)), rng.normal(size=(9, 4))
    chances = pacmeta.FewShotClassifier(head, steps=0).fit(x, np.arange(9) % 3).predict_proba(x)
    scores = np.exp(x @ head[:, :-1].T + head[:, -1])
    np.testing.assert_allclose(chances, scores / scores.sum(axis=1, keepdims=True))


def test_tasks_of_heads_are_lists_tuples_or_dictionaries() -> None:
    rng = np.random.default_rng(0)
    tasks = [(rng.normal(size=(9, 2)), np.arange(9) % 3) for _ in range(4)]
    common = {"classes": 3, "iterations": 5}
    expected = pacmeta.meta_learn_head(tasks, **common, progress=True)
    for same in ([list(task) for task in tasks], dict(enumerate(tasks)), iter(tasks)):
        np.testing.assert_array_equal(pacmeta.meta_learn_head(same, **common), expected)
