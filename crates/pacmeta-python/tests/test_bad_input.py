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
FRAME = pd.DataFrame({"task": ["a", "a", "b", "b"], "x": [1.0, 2, 3, 4], "y": [1.0, 2, 3, 4]})


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
        (np.ma.array([1.0, 2.0], mask=[False, True]), [1.0, 2.0], "x: is a masked array"),
        ([1.0, 2.0], np.ma.array([1.0, 2.0], mask=[False, True]), "y: is a masked array"),
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
    levels: list[Any] = [0.0, 1.0, -1.0, np.nan, "0.9", None, [0.9, 0.8]]
    for level in levels:
        with pytest.raises(ValueError, match="^level: is"):
            posterior.interval([0.0], level)
    np.testing.assert_array_equal(posterior.interval([0.0], np.float32(0.5)), posterior.interval([0.0], 0.5))


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
        ([GOOD, (*GOOD, [-1])], "task `task 1`: index -1 is out of range"),
        ([GOOD, (*GOOD, [10**30])], "task `task 1`: index 10{30} is out of range"),
        ([GOOD, (*GOOD, [0.9, 1.9])], "task `task 1`: adapt: 0.9 is not the index"),
        ([GOOD, (*GOOD, [np.nan])], "task `task 1`: adapt: nan is not the index"),
        ([GOOD, (*GOOD, ["a"])], "task `task 1`: adapt: 'a' is not the index"),
        ([GOOD, (*GOOD, [[0], [1, 2]])], "task `task 1`: adapt: expected indices"),
        ([GOOD, (*GOOD, np.array([True, False]))], r"task `task 1`: adapt is a mask of shape \(2,\), expected \(6,\)"),
        ({0: GOOD, "0": GOOD}, "two tasks are named '0'"),
        ([([[1.0], [1.0, 2.0]], [1.0, 2.0]), GOOD], "task `task 0`, x: expected an array of numbers"),
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
    with pytest.raises(ValueError, match=words):
        pacmeta.meta_learn(FRAME, iterations=5, **change)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"x": ["p", "q", "r", "s"]}, "column 'x': has dtype"),
        ({"z": [True, False, None, True]}, "column 'z': has dtype object"),
        ({"task": ["a", None, "b", "b"]}, "has no task"),
        ({"task": [1, "1", 2, 2]}, "two tasks are named '1'"),
        ({"adapt": ["1", "0", "1", "0"]}, "column 'adapt': expected 1 or 0, found '1'"),
        ({"adapt": ["yes", "no", "yes", "no"]}, "column 'adapt': expected 1 or 0, found 'yes'"),
        ({"adapt": [1, 7, 1, 0]}, "column 'adapt': expected 1 or 0, found 7"),
        ({"adapt": [1, np.nan, 1, 0]}, "column 'adapt': expected 1 or 0, found nan"),
    ],
)
def test_columns(columns: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        pacmeta.meta_learn(FRAME.assign(**columns), iterations=5)


def test_subsets_are_indices_masks_or_a_column(prior: pacmeta.Prior, tasks: Any) -> None:
    expected = prior.bound([(x, y, [0, 2]) for x, y in tasks])["total"]
    mask = np.isin(np.arange(12), [0, 2])
    assert prior.bound([(x, y, mask) for x, y in tasks])["total"] == expected
    assert prior.bound([(x, y, [0.0, 2.0]) for x, y in tasks])["total"] == expected
    for adapt in (mask, mask.astype(int), mask.astype(float), mask.astype(object)):
        parts = [pd.DataFrame({"task": i, "x": x, "y": y, "adapt": adapt}) for i, (x, y) in enumerate(tasks)]
        assert prior.bound(pd.concat(parts))["total"] == expected


def test_an_error_of_a_value_itself_stays_what_it_is(prior: pacmeta.Prior) -> None:
    class Interrupting:
        def __float__(self) -> float:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prior.adapt(*GOOD, temperature=Interrupting())  # type: ignore[arg-type]


def test_columns_may_have_any_label_and_any_kind_of_number(tasks: Any) -> None:
    frame = pd.concat([pd.DataFrame({"task": i, "x": x, "y": y}) for i, (x, y) in enumerate(tasks)])
    common = {"beta": 10, "alpha": 5, "iterations": 5}
    expected = pacmeta.meta_learn(frame, **common, features=["x"]).prior
    renamed = pacmeta.meta_learn(frame.rename(columns={"task": 2, "x": 0, "y": 1}), **common, task=2, target=1)
    assert renamed.prior.features == ["0"] and renamed.prior.target == "1"
    for name, tensor in renamed.prior.parameters().items():
        np.testing.assert_array_equal(tensor, expected.parameters()[name])
    mixed = frame.assign(flag=frame.x > 0, count=pd.array(range(len(frame)), dtype="Int64"))
    assert pacmeta.meta_learn(mixed, **common).prior.features == ["x", "flag", "count"]


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
        ({"seed": -1}, "seed"),
        ({"seed": 2**64}, "seed"),
        ({"settings": ["training.rate"]}, "settings: expected a dictionary of keys and values, found list"),
        ({"progress": "yes"}, "progress: expected True, False or a function, found 'yes'"),
        ({"out": ""}, "out: is empty"),
    ],
)
def test_settings(tasks: Any, change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        pacmeta.meta_learn(tasks, **{"beta": 10, "alpha": 5, "iterations": 5, **change})


def test_settings_may_be_of_numpy(tasks: Any) -> None:
    for hidden in (np.array([4, 4]), [np.int64(4), np.int64(4)]):
        prior = pacmeta.meta_learn(tasks, beta=10, alpha=5, iterations=5, settings={"prior.hidden": hidden}).prior
        assert prior.parameters()["mean.hidden.1.weight"].shape == (4, 4)


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
    with pytest.raises(FileNotFoundError, match="absent"):
        pacmeta.Run.load(tmp_path / "absent")
    with pytest.raises(NotADirectoryError, match="text"):
        pacmeta.Run.load(tmp_path / "text.safetensors")
    with pytest.raises(ValueError, match="expected a pacmeta.Prior, found str; load it with pacmeta.load"):
        pacmeta.save("prior", tmp_path / "prior.safetensors")  # type: ignore[arg-type]
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
        ({"beta": -1.0}, "^beta: is -1"),
        ({"lambda_": -1.0}, "^lambda_: is -1"),
        ({"sigma0_squared": 0.0}, "^sigma0_squared: is 0"),
        ({"theorem": 4, "assume": "non-negative:20", "hyper_posterior_std": 0.1, "draws": 1}, "^draws: is 1"),
        ({"draws": -1}, "^draws: is -1, expected a whole number from 0"),
        ({"seed": -1}, "^seed: is -1"),
        ({"seed": 2**64}, "^seed: is 18446744073709551616"),
        ({"observed_tasks": -1}, "^observed_tasks: is -1"),
        ({"target_examples": -1}, "^target_examples: is -1"),
        ({"beta": "x"}, "^beta: is 'x', expected a number"),
        ({"alpha": [1.0, 2.0]}, r"^alpha: is \[1.0, 2.0\], expected a number"),
        ({"lambda_": 1 + 2j}, r"^lambda_: is \(1\+2j\), expected a number"),
        ({"delta": None}, "^delta: is None, expected a number"),
        ({"delta": 10**400}, "^delta: is 10{400}, expected a number"),
        ({"sigma0_squared": "3"}, "^sigma0_squared: is '3', expected a number"),
        ({"hyper_posterior_std": "0.1"}, "^hyper_posterior_std: is '0.1', expected a number"),
        ({"gap": {}}, "^gap: is {}, expected a number"),
        ({"draws": "100"}, "^draws: is '100', expected a whole number"),
        ({"seed": 1.5}, "^seed: is 1.5, expected a whole number"),
        ({"objective": 3}, "^objective: is 3, expected a text"),
        ({"assume": 20.0}, "^assume: is 20.0, expected a text"),
        ({"assume_tasks": 20.0}, "^assume_tasks: is 20.0, expected a text"),
        ({"task": 3}, "^task: is 3, expected a text"),
    ],
)
def test_bounds(prior: pacmeta.Prior, tasks: Any, change: dict[str, Any], words: str) -> None:
    marked = [(x, y, [0, 1, 2]) for x, y in tasks]
    with pytest.raises(ValueError, match=words):
        prior.bound(marked, **change)
    temperatures: list[Any] = [-3.0, "hot", [1.0, 2.0]]
    for temperature in temperatures:
        with pytest.raises(ValueError, match="^temperature: "):
            prior.adapt(*GOOD, temperature=temperature)


@pytest.mark.parametrize(
    "change", [{"support": -1}, {"support": 0}, {"support": "3"}, {"seed": -1}, {"seed": 2**64}, {"seed": "x"}, {"task": 3}]
)
def test_evaluation(prior: pacmeta.Prior, tasks: Any, change: dict[str, Any]) -> None:
    (name,) = change
    with pytest.raises(ValueError, match=f"^{name}: is"):
        prior.evaluate(tasks, **change)


def test_folders_of_other_runs_are_refused_in_words_of_python(tmp_path: Path, tasks: Any) -> None:
    common = {"beta": 10, "alpha": 5, "iterations": 5, "out": tmp_path / "run"}
    pacmeta.meta_learn(tasks, **common)
    with pytest.raises(ValueError, match="another `out`"):
        pacmeta.meta_learn(tasks[1:], **common)


HEAD_TASKS = [(np.arange(24.0).reshape(12, 2) % 7, np.arange(12) % 3)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"classes": 10**13}, "classes: is 10{13}"),
        ({"classes": 10**18}, "classes: is 10{18}"),
        ({"classes": 2**64}, "classes: is"),
        ({"classes": -1}, "classes: is -1"),
        ({"classes": 1}, "classes: is 1"),
        ({"classes": 2}, "task 0: has label 2"),
        ({"iterations": -1}, "iterations: is -1"),
        ({"iterations": 0}, "iterations: is 0"),
        ({"seed": -1}, "seed: is -1"),
        ({"seed": 2**64}, "seed: is"),
        ({"batch": 0}, "batch: is 0"),
        ({"subset": 0}, "subset: is 0"),
        ({"learning_rate": np.nan}, "learning_rate: is nan"),
        ({"learning_rate": -1.0}, "learning_rate: is -1"),
        ({"rate": np.nan}, "rate: is nan"),
        ({"progress": "yes"}, "progress: expected"),
    ],
)
def test_learning_heads(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        pacmeta.meta_learn_head(HEAD_TASKS, **{"classes": 3, "iterations": 5, **change})


def test_tasks_of_heads() -> None:
    with pytest.raises(ValueError, match="task `task 0`: expected .features, labels."):
        pacmeta.meta_learn_head([(*HEAD_TASKS[0], [0, 1])], classes=3)
    with pytest.raises(ValueError, match="at least one task"):
        pacmeta.meta_learn_head([], classes=3)
    with pytest.raises(ValueError, match="found DataFrame|found str"):
        pacmeta.meta_learn_head(FRAME, classes=3)
    with pytest.raises(RuntimeError, match="the head is not finite"):
        pacmeta.meta_learn_head(HEAD_TASKS, classes=3, iterations=1, learning_rate=1e308)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"steps": -1}, "steps: is -1"),
        ({"steps": 2.5}, "steps: is 2.5"),
        ({"alpha": None}, "alpha: is None"),
        ({"sigma_squared": np.inf}, "sigma_squared: is inf"),
        ({"rate": -1.0}, "rate"),
        ({"rate": "fast"}, "rate: is 'fast'"),
        ({"particles": 0}, "particles: is 0"),
        ({"seed": -1}, "seed: is -1"),
        ({"method": "mamal"}, "method"),
        ({"optimiser": "adam"}, "`gd` or `adagrad`"),
        ({"head": np.full((3, 3), np.nan)}, "head: "),
    ],
)
def test_classifiers(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        pacmeta.FewShotClassifier(**change).fit(*HEAD_TASKS[0])
