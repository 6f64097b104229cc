"""Tasks from whatever people have: a list of ``(x, y)``, a dictionary of them, or a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union

import numpy as np

#: One task: x and y, perhaps with the indices of the examples that a base learner may see.
Tasks = Union[Iterable[Any], Mapping[Any, Any], Any]
Parts = tuple[str, Any, Any, "list[int] | None"]


def is_frame(value: Any) -> bool:
    """Whether this is a DataFrame of pandas, without importing pandas."""
    return hasattr(value, "columns") and hasattr(value, "groupby")


def frame_features(frame: Any, target: str, task: str, features: Sequence[str] | None) -> list[str]:
    """The feature columns of a DataFrame: those that are named, else all but task, target and `adapt`."""
    columns = [str(column) for column in frame.columns]
    wanted = list(features) if features is not None else [c for c in columns if c not in (task, target, "adapt")]
    for name in (task, target, *wanted):
        if columns.count(name) != 1:
            found = "twice" if name in columns else "not at all"
            raise ValueError(f"column {name!r} is {found} in the table, which has {', '.join(columns)}")
    if not wanted:
        raise ValueError(f"the table has no features besides {task!r} and {target!r}")
    return wanted


def frame_parts(frame: Any, features: Sequence[str], target: str, task: str) -> list[Parts]:
    """The tasks of a DataFrame, in order of first appearance."""
    frame_features(frame, target, task, features)
    if bool(frame[task].isna().any()):
        raise ValueError(f"column {task!r}: a row has no task")
    parts: list[Parts] = []
    for name, rows in frame.groupby(task, sort=False, observed=True):
        adapt = None
        if "adapt" in frame.columns and "adapt" not in features:
            adapt = [int(index) for index in np.flatnonzero(rows["adapt"].to_numpy())]
        parts.append((str(name), rows[list(features)].to_numpy(), rows[target].to_numpy(), adapt))
    return parts


def list_parts(tasks: Iterable[Any]) -> list[Parts]:
    """The tasks of a list or dictionary."""
    if isinstance(tasks, (str, bytes)) or not hasattr(tasks, "__iter__"):
        raise ValueError(f"tasks: expected a list of (x, y) or a DataFrame, found {type(tasks).__name__}")
    named = isinstance(tasks, Mapping)
    items: Iterable[Any] = tasks.items() if isinstance(tasks, Mapping) else enumerate(tasks)
    parts: list[Parts] = []
    for name, task in items:
        label = str(name) if named else f"task {name}"
        if isinstance(task, (str, bytes)) or not isinstance(task, Sequence) or len(task) not in (2, 3):
            raise ValueError(f"{label}: expected (x, y) or (x, y, adapt), found {type(task).__name__}")
        adapt = None if len(task) == 2 or task[2] is None else [int(index) for index in np.asarray(task[2]).ravel()]
        parts.append((label, task[0], task[1], adapt))
    return parts


def task_parts(tasks: Any, features: Sequence[str], target: str, task: str) -> list[Parts]:
    """Tasks for a prior with these columns."""
    return frame_parts(tasks, features, target, task) if is_frame(tasks) else list_parts(tasks)


def dimension(parts: Sequence[Parts]) -> int:
    """The number of features of the first task; the others are compared with it later."""
    if not parts:
        raise ValueError("tasks: there are none, expected at least one (x, y)")
    shape = np.shape(parts[0][1])
    if len(shape) not in (1, 2):
        raise ValueError(f"{parts[0][0]}: x has shape {shape}, expected (n,) or (n, features)")
    return 1 if len(shape) == 1 else int(shape[1])
