"""Where scikit-learn's estimators go: its own checks, pipelines, clones, pickles."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

import pacmeta


@parametrize_with_checks([pacmeta.FewShotRegressor(), pacmeta.FewShotClassifier()])
def test_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def is_of_another_width(error: BaseException | None) -> bool:
    """Whether an error, or what led to it, is the refusal of data with another number of features than the prior."""
    while error is not None:
        if "expected (n, 10)" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


@pytest.fixture(scope="module")
def wide_prior() -> pacmeta.Prior:
    rng = np.random.default_rng(0)
    tasks = []
    for _ in range(8):
        x = rng.normal(size=(20, 10))
        tasks.append((x, x @ rng.normal(size=10)))
    return pacmeta.meta_learn(tasks, method="pacoh", beta=200, iterations=20).prior


def test_checks_of_scikit_learn_with_a_prior(wide_prior: pacmeta.Prior) -> None:
    """A prior has a fixed number of features: checks that bring data of another width do not apply, and are refused."""
    results = check_estimator(pacmeta.FewShotRegressor(wide_prior), on_fail=None, on_skip=None)
    failed = [result for result in results if result["status"] == "failed"]
    others = [result for result in failed if not is_of_another_width(result["exception"])]
    assert not others, [(result["check_name"], result["exception"]) for result in others]
    assert sum(result["status"] == "passed" for result in results) > 10


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
    assert head.shape == (3 * 7,) and told[-1] == 60
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
    with pytest.raises(ValueError, match="method"):
        pacmeta.FewShotClassifier(method="mamal").fit(*support)
    with pytest.raises(ValueError, match="no head on 6 features"):
        pacmeta.FewShotClassifier(np.zeros(5)).fit(*support)
    with pytest.raises(ValueError, match="rate"):
        pacmeta.FewShotClassifier(rate=-1.0).fit(*support)
