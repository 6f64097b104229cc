"""Whatever is wrong becomes a ValueError (or OSError for files) that says what and where; nothing panics."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pacmeta

GOOD = (np.linspace(-1, 1, 6), np.linspace(0, 1, 6))


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ([1.0, 2.0], [1.0], "x has 2 examples, y has 1"),
        ([], [], "at least one example"),
        ([[1.0, 2.0]], [1.0], r"shape \(1, 2\), expected"),
        (np.zeros((2, 1, 1)), [1.0, 2.0], r"shape \(2, 1, 1\)"),
        (3.0, [1.0], r"shape \(\)"),
        ([1.0, np.nan], [1.0, 2.0], "row 1 is not finite"),
        ([1.0, np.inf], [1.0, 2.0], "row 1 is not finite"),
        ([1.0, 2.0], [1.0, np.nan], "y of example 1 is not a finite number"),
        (["a", "b"], [1.0, 2.0], "expected real numbers"),
        (np.array([1, "x"], dtype=object), [1.0, 2.0], "dtype object"),
        (np.array([object(), None]), [1.0, 2.0], "dtype object"),
        ([1 + 2j, 2], [1.0, 2.0], "dtype complex128"),
        ([[1.0], [1.0, 2.0]], [1.0, 2.0], "expected an array of numbers"),
        ([1.0, 2.0], [[1.0, 2.0], [3.0, 4.0]], r"y: has shape \(2, 2\)"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), [1.0], "dtype datetime64"),
        ("text", [1.0], "expected real numbers"),
        (None, [1.0], "dtype object"),
    ],
)
def test_support_sets(prior: pacmeta.Prior, x: Any, y: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        prior.adapt(x, y)


@pytest.mark.parametrize(
    ("query", "words"),
    [([np.nan], "row 0 is not finite"), (np.zeros((3, 2)), r"expected \(n,\) or \(n, 1\)"), (["a"], "real numbers")],
)
def test_queries(prior: pacmeta.Prior, query: Any, words: str) -> None:
    posterior = prior.adapt(*GOOD)
    for predict in (posterior.predict, posterior.interval, prior.predict):
        with pytest.raises(ValueError, match=words):
            predict(query)
    assert posterior.predict([])[0].shape == (0,)
    for level in (0.0, 1.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="level"):
            posterior.interval([0.0], level)


@pytest.mark.parametrize(
    ("tasks", "words"),
    [
        ([], "there are none"),
        ("tasks.csv", "expected a list of"),
        (3, "expected a list of"),
        ([1, 2], "task 0: expected"),
        (["ab"], "task 0: expected"),
        ([GOOD, ([], [])], "task `task 1`: a task needs at least one example"),
        ([GOOD, ([1.0, 2.0], [1.0])], "task `task 1`: x has 2 examples, y has 1"),
        ([GOOD, (np.zeros((3, 2)), np.zeros(3))], "task `task 1`, x: has shape"),
        ([GOOD, ([1.0, np.nan], [1.0, 2.0])], "task `task 1`, x: row 1"),
        ([GOOD, (["a", "b"], [1.0, 2.0])], "task `task 1`, x: has dtype"),
        ([(np.zeros((1, 1, 1)), [1.0])], "x has shape"),
        ({"only": GOOD}, "held_out|temperature|task"),
        ([GOOD, (*GOOD, [9])], "index 9 is out of range"),
    ],
)
def test_tasks(tasks: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        pacmeta.meta_learn(tasks, beta=10, iterations=5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"target": "z"}, "column 'z' is not at all"),
        ({"task": "machine"}, "column 'machine' is not at all"),
        ({"features": ["x", "w"]}, "column 'w' is not at all"),
        ({"features": []}, "no features"),
    ],
)
def test_frames(change: dict[str, Any], words: str) -> None:
    frame = pd.DataFrame({"task": ["a", "a", "b", "b"], "x": [1.0, 2, 3, 4], "y": [1.0, 2, 3, 4]})
    with pytest.raises(ValueError, match=words):
        pacmeta.meta_learn(frame, iterations=5, **change)
    with pytest.raises(ValueError, match="dtype"):
        pacmeta.meta_learn(frame.assign(x=["p", "q", "r", "s"]), iterations=5)
    with pytest.raises(ValueError, match="has no task"):
        pacmeta.meta_learn(frame.assign(task=["a", None, "b", "b"]), iterations=5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"method": "pacmam"}, "did you mean `pacmaml`"),
        ({"beta": -1}, "method.beta"),
        ({"iterations": 0}, "training.iterations"),
        ({"held_out": 12}, "held_out"),
        ({"settings": {"training.rat": 1}}, "did you mean `rate`"),
        ({"settings": {"data.environment": "sinusoid"}}, "data"),
        ({"alpha": "warm"}, "method.alpha"),
        ({"support": 0}, "data.support"),
    ],
)
def test_settings(tasks: Any, change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        pacmeta.meta_learn(tasks, **{"beta": 10, "alpha": 5, "iterations": 5, **change})


def test_divergence_is_no_fault_of_the_input(tasks: Any) -> None:
    with pytest.raises(RuntimeError, match="not finite"):
        pacmeta.meta_learn(tasks, beta=10, alpha=5, iterations=5, settings={"training.rate": 1e300})


def test_files(tmp_path: Path, prior: pacmeta.Prior) -> None:
    with pytest.raises(FileNotFoundError, match="absent"):
        pacmeta.load(tmp_path / "absent.safetensors")
    (tmp_path / "text.safetensors").write_text("hello")
    with pytest.raises(ValueError, match="text.safetensors"):
        pacmeta.load(tmp_path / "text.safetensors")
    with pytest.raises(OSError, match="no/such"):
        prior.save(tmp_path / "no/such/folder.safetensors")
    with pytest.raises(ValueError, match="no prior.safetensors"):
        pacmeta.load(tmp_path)
    with pytest.raises(ValueError, match="config.toml"):
        pacmeta.Run.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        pacmeta.train(tmp_path / "absent.toml")
    whole = prior.to_bytes()
    for length in range(0, len(whole), 997):
        with pytest.raises(ValueError, match="the bytes"):
            pacmeta.Prior.from_bytes(whole[:length])
    assert pickle.loads(pickle.dumps(prior)) == prior


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"theorem": 5}, "expected 2, 3, 4"),
        ({"theorem": 4}, "needs an assumption"),
        ({"theorem": 4, "assume": "nothing"}, "expected \"bounded"),
        ({"theorem": 4, "assume": "non-negative:20"}, "hyper_posterior_std"),
        ({"theorem": 3, "assume": "non-negative:20", "hyper_posterior_std": 0.1}, "target_examples"),
        ({"theorem": 2, "assume": "non-negative:20", "hyper_posterior_std": 0.1, "gap": 1.0}, "belong to Theorem 3"),
        ({"objective": "maml"}, "pacoh"),
        ({"delta": 2.0}, "delta"),
        ({"beta": -1.0}, "beta"),
    ],
)
def test_bounds(prior: pacmeta.Prior, tasks: Any, change: dict[str, Any], words: str) -> None:
    marked = [(x, y, [0, 1, 2]) for x, y in tasks]
    with pytest.raises(ValueError, match=words):
        prior.bound(marked, **change)
    with pytest.raises(ValueError, match="temperature"):
        prior.adapt(*GOOD, temperature=-3.0)
