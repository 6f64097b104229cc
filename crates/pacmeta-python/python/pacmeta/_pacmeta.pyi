import os
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
import numpy.typing as npt

__all__ = [
    "Posterior",
    "Prior",
    "__version__",
    "adapt_head",
    "fit_plain_gp",
    "head_probabilities",
    "meta_learn_head",
    "read_run",
    "rust_seconds",
    "train_config",
    "train_tasks",
]

__version__: str

_Array = npt.NDArray[np.float64]
_Path = str | os.PathLike[str]
_Progress = Callable[[int, int, float], object]

@final
class Prior:
    """A meta-learned prior."""

    @staticmethod
    def load(path: _Path) -> Prior:
        """Reads a checkpoint file, or the folder of a run."""

    def save(self, path: _Path) -> None:
        """Writes a checkpoint file, as a whole or not at all."""

    def to_bytes(self) -> bytes:
        """The bytes of a checkpoint file."""

    @staticmethod
    def from_bytes(bytes: bytes) -> Prior:
        """A prior from the bytes of a checkpoint file."""

    @property
    def kind(self) -> str:
        """`gaussian-process` or `network`."""

    @property
    def features(self) -> list[str]:
        """The names of the features."""

    @property
    def target(self) -> str:
        """The name of the target."""

    @property
    def notes(self) -> dict[str, Any]:
        """What is known of how it was learned."""

    def parameters(self) -> dict[str, _Array]:
        """The tensors by name."""

    def adapt(self, x: npt.ArrayLike, y: npt.ArrayLike, *, temperature: float | None = None) -> Posterior:
        """Adapts to a support set."""

    def predict(self, x: npt.ArrayLike) -> tuple[_Array, _Array]:
        """The prior itself: mean and standard deviation of the function before any example is seen."""

    def evaluate(self, tasks: Any, *, support: int = 5, seed: int = 0, task: str = "task") -> dict[str, Any]:
        """Scores adaptation on tasks: the examples of `adapt`, or some that are drawn, are the support."""

    def bound(
        self,
        tasks: Any,
        *,
        theorem: int | str | None = None,
        objective: str | None = None,
        beta: float | None = None,
        alpha: float | None = None,
        assume: str | None = None,
        assume_tasks: str | None = None,
        hyper_posterior_std: float | None = None,
        lambda_: float | None = None,
        delta: float = 0.05,
        sigma0_squared: float = 3.0,
        draws: int = 100,
        seed: int = 0,
        observed_tasks: int | None = None,
        target_examples: int | None = None,
        gap: float | None = None,
        task: str = "task",
    ) -> dict[str, Any]:
        """The objective of PACOH or PACMAML on tasks, or with `theorem` a bound; every term by name."""

    def __reduce__(self) -> tuple[Callable[[bytes], Prior], tuple[bytes]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Posterior:
    """A prior after adaptation."""

    def predict(self, x: npt.ArrayLike) -> tuple[_Array, _Array]:
        """Mean and standard deviation of a new observation at each row."""

    def interval(self, x: npt.ArrayLike, level: float = 0.95) -> tuple[_Array, _Array]:
        """The interval that holds a new observation with this probability, at each row."""

def fit_plain_gp(x: npt.ArrayLike, y: npt.ArrayLike) -> Posterior: ...
def rust_seconds(
    prior: Prior, x: npt.ArrayLike, y: npt.ArrayLike, query: npt.ArrayLike, repeats: int
) -> tuple[float, float]: ...
def train_tasks(
    tasks: Sequence[tuple[str, Any, Any, list[int] | None]],
    features: Sequence[str],
    target: str,
    settings: Sequence[tuple[str, str]],
    out: _Path | None = None,
    progress: _Progress | None = None,
) -> tuple[Prior, dict[str, Any], str]: ...
def train_config(
    config: _Path,
    settings: Sequence[tuple[str, str]],
    out: _Path | None = None,
    progress: _Progress | None = None,
) -> tuple[Prior, dict[str, Any], str]: ...
def read_run(folder: _Path) -> tuple[Prior, dict[str, Any], str]: ...
def adapt_head(
    settings: str,
    features: npt.ArrayLike,
    labels: npt.ArrayLike,
    classes: int,
    head: npt.ArrayLike | None = None,
    seed: int = 0,
) -> _Array: ...
def head_probabilities(heads: npt.ArrayLike, features: npt.ArrayLike, classes: int) -> _Array: ...
def meta_learn_head(
    settings: str,
    tasks: Sequence[tuple[Any, Any]],
    classes: int,
    subset: int,
    iterations: int,
    rate: float,
    batch: int,
    seed: int = 0,
    progress: _Progress | None = None,
) -> _Array: ...
