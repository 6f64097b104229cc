"""Runs: learning a prior, and what comes out of it."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

from . import _pacmeta
from ._pacmeta import Prior
from ._tasks import Tasks, training_parts

Path = Union[str, "os.PathLike[str]"]
Progress = Union[bool, Callable[[int, int, float], object], None]


class Run:
    """A learned prior with its scores and its report.

    In a notebook a run shows its report. ``run.prior`` is the :class:`Prior`; ``run.scores`` has the scores on the tasks
    that were kept out, beside those of two floors: a Gaussian process on the support alone, and the prior without
    adaptation.

    >>> import numpy as np, pacmeta
    >>> x = np.linspace(-1, 1, 8)
    >>> tasks = [(x, slope * x) for slope in range(1, 9)]
    >>> run = pacmeta.meta_learn(tasks, method="pacoh", beta=200, iterations=50, support=3, out="lines")
    >>> list(run.scores)
    ['pacoh', 'plain GP, support only', 'prior mean, not adapted']
    >>> pacmeta.Run.load("lines").prior == run.prior
    True
    """

    def __init__(self, prior: Prior, results: dict[str, Any], report: str, folder: str | None) -> None:
        self.prior = prior
        self.results = results
        self.report = report
        self.folder = folder

    @classmethod
    def load(cls, folder: Path) -> Run:
        """The run in a folder, whichever program made it."""
        os.scandir(folder).close()  # where there is none, the system's own error
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
    """Reads a prior: a checkpoint file, or the folder of a run of the command line.

    >>> import numpy as np, pacmeta
    >>> x = np.linspace(-1, 1, 8)
    >>> run = pacmeta.meta_learn([(x, slope * x) for slope in range(1, 9)], beta=200, alpha=40, iterations=20, out="slopes")
    >>> pacmeta.load("slopes") == run.prior
    True
    """
    return Prior.load(os.fspath(path))


def save(prior: Prior | Run, path: Path) -> None:
    """Writes a prior as a checkpoint file that the command line reads too.

    >>> import numpy as np, pacmeta
    >>> x = np.linspace(-1, 1, 8)
    >>> run = pacmeta.meta_learn([(x, slope * x) for slope in range(1, 9)], beta=200, alpha=40, iterations=20)
    >>> pacmeta.save(run.prior, "prior.safetensors")
    >>> pacmeta.load("prior.safetensors") == run.prior
    True
    """
    as_prior(prior).save(os.fspath(path))


def as_prior(value: object) -> Prior:
    """A prior, or that of a run."""
    if isinstance(value, Run):
        return value.prior
    if isinstance(value, Prior):
        return value
    found = type(value).__name__
    raise ValueError(f"prior: expected a pacmeta.Prior, found {found}; load it with pacmeta.load")


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


def reporter(progress: Progress) -> Callable[[int, int, float], object] | None:
    """What is told how far a computation is."""
    if progress is None or progress is False:
        return None
    if callable(progress):
        return progress
    if progress is not True:
        raise ValueError(f"progress: expected True, False or a function, found {progress!r}")
    try:
        from tqdm.auto import tqdm
    except ModuleNotFoundError:
        return None
    return _Bar(tqdm(unit=" iterations"))


def closed(progress: Callable[[int, int, float], object] | None) -> None:
    """Ends a bar."""
    if isinstance(progress, _Bar):
        progress.close()


def _folder(out: Path | None) -> str | None:
    """The folder of a run, where it has one."""
    folder = None if out is None else os.fspath(out)
    if folder == "":
        raise ValueError("out: is empty, expected a folder")
    return folder


def _toml(value: object) -> str:
    """A value in TOML notation."""
    if hasattr(value, "tolist"):  # NumPy's
        value = value.tolist()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return repr(value)


def _settings(named: Mapping[str, object], settings: Mapping[str, object] | None) -> list[tuple[str, str]]:
    if not isinstance(settings, (Mapping, type(None))):
        raise ValueError(f"settings: expected a dictionary of keys and values, found {type(settings).__name__}")
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
    parts, names = training_parts(tasks, features, str(target), str(task))
    named = {
        "method.name": method,
        "method.beta": beta,
        "method.alpha": alpha,
        "data.support": support,
        "data.held_out": held_out,
        "training.iterations": iterations,
        "seed": seed,
    }
    folder = _folder(out)
    told = reporter(progress)
    try:
        made = _pacmeta.train_tasks(parts, names, str(target), _settings(named, settings), folder, told)
    finally:
        closed(told)
    return Run(*made, folder)


def train(
    config: Path,
    *,
    out: Path | None = None,
    settings: Mapping[str, object] | None = None,
    progress: Progress = None,
) -> Run:
    """Trains a configuration file, as ``pacmeta train`` does; ``settings`` are its ``--set``.

    >>> import pathlib, pacmeta
    >>> text = '''
    ... [data]
    ... environment = "sinusoid"
    ... [method]
    ... name = "pacoh"
    ... beta = 100
    ... '''
    >>> _ = pathlib.Path("sinusoid.toml").write_text(text)
    >>> pacmeta.train("sinusoid.toml", settings={"training.iterations": 20}).results["iterations"]
    20
    """
    folder = _folder(out)
    told = reporter(progress)
    try:
        made = _pacmeta.train_config(os.fspath(config), _settings({}, settings), folder, told)
    finally:
        closed(told)
    return Run(*made, folder)
