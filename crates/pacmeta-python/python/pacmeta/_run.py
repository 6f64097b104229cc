"""Runs: learning a prior, and what comes out of it."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

from . import _pacmeta
from ._pacmeta import Prior
from ._tasks import Tasks, dimension, frame_features, is_frame, task_parts

Path = Union[str, "os.PathLike[str]"]
Progress = Union[bool, Callable[[int, int, float], object], None]


class Run:
    """A learned prior with its scores and its report.

    In a notebook a run shows its report. ``run.prior`` is the :class:`Prior`; ``run.scores`` has the scores on the tasks
    that were kept out, beside those of two floors: a Gaussian process on the support alone, and the prior without
    adaptation.
    """

    def __init__(self, prior: Prior, results: dict[str, Any], report: str, folder: str | None) -> None:
        self.prior = prior
        self.results = results
        self.report = report
        self.folder = folder

    @classmethod
    def load(cls, folder: Path) -> Run:
        """The run in a folder, whichever program made it."""
        return cls(*_pacmeta.read_run(os.fspath(folder)), os.fspath(folder))

    @property
    def scores(self) -> dict[str, dict[str, Any]]:
        """Scores by name: the method's own first, then the floors."""
        scores: dict[str, dict[str, Any]] = self.results["scores"]
        return scores

    @property
    def verdict(self) -> str | None:
        """Whether meta-learning helped, in a sentence."""
        verdict: str | None = self.results["verdict"]
        return verdict

    def __repr__(self) -> str:
        scores = ", ".join(f"{name}: RMSE {row['rmse']:.4g}" for name, row in self.scores.items())
        return f"Run({self.results['method']}, {self.results['iterations']} iterations; {scores or 'not scored'})"

    def _repr_html_(self) -> str:
        # A frame of its own: the report has styles and a script that are not for the notebook.
        page = html.escape(self.report, quote=True)
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 40em; border: 1px solid #ccc"></iframe>'


def load(path: Path) -> Prior:
    """Reads a prior: a checkpoint file, or the folder of a run of the command line."""
    return Prior.load(os.fspath(path))


def save(prior: Prior, path: Path) -> None:
    """Writes a prior as a checkpoint file that the command line reads too."""
    prior.save(os.fspath(path))


class _Bar:
    """Progress by tqdm, where that is installed."""

    def __init__(self, bar: Any) -> None:
        self.bar = bar

    def __call__(self, done: int, total: int, objective: float) -> None:
        self.bar.total = total
        self.bar.update(done - self.bar.n)
        self.bar.set_postfix(objective=f"{objective:.4g}")

    def close(self) -> None:
        self.bar.close()


def _progress(progress: Progress) -> Callable[[int, int, float], object] | None:
    if progress is None or progress is False:
        return None
    if callable(progress):
        return progress
    try:
        from tqdm.auto import tqdm
    except ModuleNotFoundError:
        return None
    return _Bar(tqdm(unit=" iterations"))


def _closed(progress: Callable[[int, int, float], object] | None) -> None:
    if isinstance(progress, _Bar):
        progress.close()


def _toml(value: object) -> str:
    """A value in TOML notation."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return repr(value.item() if hasattr(value, "item") else value)


def _settings(named: Mapping[str, object], settings: Mapping[str, object] | None) -> list[tuple[str, str]]:
    given = {key: value for key, value in named.items() if value is not None}
    return [(str(key), _toml(value)) for key, value in {**given, **(settings or {})}.items()]


def meta_learn(
    tasks: Tasks,
    *,
    method: str = "pacmaml",
    beta: float | str | None = None,
    alpha: float | str | None = None,
    support: int | None = None,
    held_out: float | int | None = None,
    iterations: int | None = None,
    seed: int | None = None,
    task: str = "task",
    target: str = "y",
    features: Sequence[str] | None = None,
    settings: Mapping[str, object] | None = None,
    out: Path | None = None,
    progress: Progress = None,
) -> Run:
    """Learns a prior from many small data sets.

    ``tasks`` is a list of ``(x, y)``, a dictionary of them by name, or a DataFrame with a column that names the task
    (``task``), one for the target (``target``) and the features. Without ``beta`` and ``alpha`` the temperatures are chosen
    by leaving tasks out. ``settings`` takes any key of a configuration, e.g. ``{"training.batch": 5}``. With ``out`` the run
    stays in that folder, where the command line finds it too; the same call continues a run that was interrupted.

    >>> import numpy as np, pacmeta
    >>> x = np.linspace(-1, 1, 8)
    >>> tasks = {f"slope {slope}": (x, slope * x) for slope in range(1, 9)}
    >>> run = pacmeta.meta_learn(tasks, method="pacoh", beta=200, iterations=50, support=3)
    >>> run.prior.features
    ['x']
    """
    if is_frame(tasks):
        names = frame_features(tasks, target, task, features)
        parts = task_parts(tasks, names, target, task)
    else:
        parts = task_parts(tasks, (), target, task)
        count = dimension(parts)
        if features is not None:
            names = list(features)
        else:
            names = ["x"] if count == 1 else [f"x{index}" for index in range(count)]
    named = {
        "method.name": method,
        "method.beta": beta,
        "method.alpha": alpha,
        "data.support": support,
        "data.held_out": held_out,
        "training.iterations": iterations,
        "seed": seed,
    }
    told = _progress(progress)
    folder = None if out is None else os.fspath(out)
    try:
        made = _pacmeta.train_tasks(parts, names, target, _settings(named, settings), folder, told)
    finally:
        _closed(told)
    return Run(*made, folder)


def train(
    config: Path,
    *,
    out: Path | None = None,
    settings: Mapping[str, object] | None = None,
    progress: Progress = None,
) -> Run:
    """Trains a configuration file, as ``pacmeta train`` does; ``settings`` are its ``--set``."""
    told = _progress(progress)
    folder = None if out is None else os.fspath(out)
    try:
        made = _pacmeta.train_config(os.fspath(config), _settings({}, settings), folder, told)
    finally:
        _closed(told)
    return Run(*made, folder)
