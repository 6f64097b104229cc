"""The module and the command line give the same numbers, to the last bit, and read each other's files."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import GOLDEN, write_csv

import pacmeta


def table_of(tasks: list[tuple[Any, Any]]) -> pd.DataFrame:
    parts = [pd.DataFrame({"task": f"task {i}", "x": x, "y": y}) for i, (x, y) in enumerate(tasks)]
    return pd.concat(parts, ignore_index=True)


def test_training_from_arrays_frames_and_the_command_line_is_the_same(
    tmp_path: Path, tasks: Any, run: pacmeta.Run, cli: Any
) -> None:
    frame = table_of(tasks)
    from_frame = pacmeta.meta_learn(frame, beta=100, alpha=20, iterations=300)
    assert from_frame.prior.to_bytes() == run.prior.to_bytes()
    # Rows of tasks may be mixed, as long as each keeps its own order.
    order = np.argsort(np.tile(np.arange(12), 12), kind="stable")
    mixed = pacmeta.meta_learn(frame.iloc[order], beta=100, alpha=20, iterations=300)
    assert mixed.prior == run.prior

    rows = ((row.task, repr(row.x), repr(row.y)) for row in frame.itertuples())
    write_csv(tmp_path / "tasks.csv", ["task", "x", "y"], rows)
    (tmp_path / "run.toml").write_text(
        f'[data]\npath = "{tmp_path}/tasks.csv"\n[method]\nbeta = 100\nalpha = 20\n[training]\niterations = 300\n'
    )
    made = cli("train", tmp_path / "run.toml", "--out", tmp_path / "run", "--json", "-q")
    trained = pacmeta.load(tmp_path / "run")
    for name, tensor in trained.parameters().items():
        assert tensor.tobytes() == run.prior.parameters()[name].tobytes(), name
    assert made["scores"]["rmse"] == run.scores["pacmaml"]["rmse"]
    assert made["scores"]["per_task"] == run.scores["pacmaml"]["per_task"]
    assert pacmeta.train(tmp_path / "run.toml").prior == trained
    assert pacmeta.Run.load(tmp_path / "run").scores == run.scores


@pytest.mark.parametrize("method", [{"beta": 100, "alpha": 20}, {"method": "maml"}])
def test_predictions_are_those_of_adapt(tmp_path: Path, tasks: Any, method: dict[str, Any], command: str) -> None:
    prior = pacmeta.meta_learn(tasks, **method, iterations=100).prior
    assert prior.kind == ("network" if "method" in method else "gaussian-process")
    rng = np.random.default_rng(3)
    x, y, query = rng.uniform(-2, 2, 5), rng.normal(size=5), rng.uniform(-3, 3, 100)
    pacmeta.save(prior, tmp_path / "prior.safetensors")
    support = write_csv(tmp_path / "support.csv", ["x", "y"], zip(map(repr, x.tolist()), map(repr, y.tolist())))
    queries = write_csv(tmp_path / "query.csv", ["x"], ([repr(value)] for value in query.tolist()))
    subprocess.run(
        [command, "adapt", tmp_path / "prior.safetensors", "--support", support, "--query", queries]
        + ["--output", tmp_path / "out.csv"],
        check=True,
    )
    # Python's own parser: that of pandas is off in the last bit.
    lines = [line.split(",") for line in (tmp_path / "out.csv").read_text().splitlines()]
    columns = {name: np.array([float(line[i]) for line in lines[1:]]) for i, name in enumerate(lines[0])}
    posterior = prior.adapt(x, y)
    mean, std = posterior.predict(query)
    lower, upper = posterior.interval(query)
    for name, found in [("mean", mean), ("std", std), ("lower95", lower), ("upper95", upper)]:
        assert found.tobytes() == columns[name].tobytes(), name


def test_priors_go_both_ways(tmp_path: Path, prior: pacmeta.Prior, tasks: Any) -> None:
    path = tmp_path / "prior.safetensors"
    prior.save(path)
    again = pacmeta.load(path)
    assert again == prior
    again.save(tmp_path / "again.safetensors")
    assert path.read_bytes() == (tmp_path / "again.safetensors").read_bytes()
    golden = pacmeta.load(GOLDEN / "gp_prior_2d_f32.safetensors")
    assert len(golden.features) == 2 and golden.kind == "gaussian-process"


def test_runs_from_python_are_runs_of_the_command_line(tmp_path: Path, tasks: Any, cli: Any) -> None:
    out = tmp_path / "run"
    run = pacmeta.meta_learn(tasks, method="pacoh", beta=100, iterations=100, out=out, settings={"data.min_examples": 2})
    shown = cli("report", out, "--json")
    assert shown["scores"]["rmse"] == run.scores["pacoh"]["rmse"]
    assert pacmeta.load(out) == run.prior
    assert (out / "report.html").read_text().startswith("<!")


def test_objectives_and_bounds_are_those_of_bound(tmp_path: Path, prior: pacmeta.Prior, cli: Any) -> None:
    import json

    pacmeta.save(prior, tmp_path / "prior.safetensors")
    stored = json.loads((GOLDEN / "tasks.json").read_text())["tasks"]
    tasks = {
        task.get("name", f"task {i}"): (task["x"], task["y"], task["adapt"]) for i, task in enumerate(stored)
    }
    paths = [tmp_path / "prior.safetensors", "--tasks", GOLDEN / "tasks.json", "--min-examples", 1]

    def numbers(report: Any) -> Any:
        return {key: value for key, value in report.items() if key != "tasks"}

    assert numbers(prior.bound(tasks)) == numbers(cli("bound", *paths, "--json"))
    found = prior.bound(tasks, theorem=4, assume="non-negative:20", hyper_posterior_std=0.05, draws=20, seed=3)
    made = ["--theorem", 4, "--assume", "non-negative:20", "--hyper-posterior-std", 0.05, "--draws", 20, "--seed", 3]
    expected = cli("bound", *paths, *made, "--json")
    assert numbers(found) == numbers(expected)
    assert set(found["terms"]) == {"empirical_risk", "task_kl", "hyper_kl", "confidence", "psi1", "psi2", "gap"}
    terms = sum(term["value"] for term in found["terms"].values())
    assert np.isclose(terms, found["total"]["value"], rtol=1e-12)
    found = prior.bound(tasks, theorem=2, objective="pacoh", assume="bounded:0,9", hyper_posterior_std=0.1, draws=10)
    made = ["--theorem", 2, "--assume", "bounded:0,9", "--hyper-posterior-std", 0.1, "--draws", 10]
    assert numbers(found) == numbers(cli("bound", *paths, *made, "--json"))


def test_evaluation_is_that_of_evaluate(tmp_path: Path, prior: pacmeta.Prior, cli: Any) -> None:
    import json

    stored = json.loads((GOLDEN / "evaluation_tasks.json").read_text())["tasks"]
    tasks = [(task["x"], task["y"], task["adapt"]) for task in stored]
    prior.save(tmp_path / "prior.safetensors")
    expected = cli("evaluate", tmp_path / "prior.safetensors", "--tasks", GOLDEN / "evaluation_tasks.json", "--json")
    found = prior.evaluate(tasks)
    for name in ("rmse", "log_likelihood", "calibration_error"):
        assert found[name] == expected[name], name
