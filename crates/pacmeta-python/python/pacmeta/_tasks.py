"""Tasks from whatever people have: a list of ``(x, y)``, a dictionary of them, or a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union

import numpy as np

#: One task: x and y, perhaps with the indices of the examples that a base learner may see.
Tasks = Union[Iterable[Any], Mapping[Any, Any], Any]
Parts = tuple[str, Any, Any, "list[int] | None"]

REAL = ("b", "i", "u", "f")


def is_frame(value: Any) -> bool:
    """Whether this is a DataFrame of pandas, without importing pandas."""
    return hasattr(value, "columns") and hasattr(value, "groupby")


def column_names(frame: Any) -> list[str]:
    """The names of all columns as texts: the command line knows no others."""
    return [str(column) for column in frame.columns]


def column_labels(frame: Any, wanted: Iterable[str]) -> list[Any]:
    """What the frame itself calls these columns."""
    columns = column_names(frame)
    for name in wanted:
        if columns.count(name) != 1:
            found = "twice" if name in columns else "not at all"
            raise ValueError(f"column {name!r} is {found} in the table, which has {', '.join(columns)}")
    return [frame.columns[columns.index(name)] for name in wanted]


def frame_features(frame: Any, target: str, task: str, features: Sequence[Any] | None) -> list[str]:
    """The feature columns of a DataFrame: those that are named, else all but task, target and `adapt`."""
    others = (task, target, "adapt")
    wanted = [str(name) for name in features] if features is not None else [c for c in column_names(frame) if c not in others]
    column_labels(frame, (task, target, *wanted))
    if not wanted:
        raise ValueError(f"the table has no features besides {task!r} and {target!r}")
    return wanted


def column_numbers(frame: Any, label: Any) -> Any:
    """One column as doubles; what is missing becomes NaN."""
    column = frame[label]
    if getattr(column.dtype, "kind", None) in REAL:
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    values = np.asarray(column)
    if values.dtype.kind not in REAL:
        raise ValueError(f"column {str(label)!r}: has dtype {column.dtype}, expected real numbers")
    return values.astype(np.float64)


def frame_rows(frame: Any, features: Sequence[str]) -> Any:
    """Rows of the named features, in this order, whatever the order of the columns."""
    return np.column_stack([column_numbers(frame, label) for label in column_labels(frame, features)])


def flags(values: Iterable[Any]) -> list[bool]:
    """The column `adapt`."""
    found = []
    for value in values:
        if not isinstance(value, (bool, int, float, np.bool_, np.number)) or value not in (0, 1):
            raise ValueError(f"column 'adapt': expected 1 or 0, found {value!r}")
        found.append(bool(value))
    return found


def frame_parts(frame: Any, features: Sequence[str], target: str, task: str) -> list[Parts]:
    """The tasks of a DataFrame, in order of first appearance."""
    features = frame_features(frame, target, task, features)
    task_label, target_label = column_labels(frame, (task, target))
    names = frame[task_label]
    if bool(names.isna().any()):
        raise ValueError(f"column {task!r}: a row has no task")
    x, y, adapt = frame_rows(frame, features), column_numbers(frame, target_label), None
    if "adapt" in column_names(frame) and "adapt" not in features:
        (label,) = column_labels(frame, ("adapt",))
        adapt = np.array(flags(frame[label].tolist()), dtype=bool)
    rows_of: dict[Any, list[int]] = {}
    for row, name in enumerate(names.tolist()):
        rows_of.setdefault(name, []).append(row)
    return distinct(
        (str(name), x[rows], y[rows], None if adapt is None else np.flatnonzero(adapt[rows]).tolist())
        for name, rows in rows_of.items()
    )


def distinct(parts: Iterable[Parts]) -> list[Parts]:
    """The same tasks; two of one name would become one in the table of the run."""
    found: dict[str, Parts] = {}
    for part in parts:
        if part[0] in found:
            raise ValueError(f"two tasks are named {part[0]!r}, expected a name for each (1 and '1' are the same)")
        found[part[0]] = part
    return list(found.values())


def subset(adapt: Any, examples: int, label: str) -> list[int]:
    """The indices of S', from indices or from a mask of all examples."""
    try:
        given = np.asarray(adapt)
    except ValueError as error:
        raise ValueError(f"task `{label}`: adapt: expected indices: {error}") from error
    if given.dtype.kind == "b":
        if given.shape != (examples,):
            raise ValueError(f"task `{label}`: adapt is a mask of shape {given.shape}, expected ({examples},)")
        given = np.flatnonzero(given)
    indices = []
    for index in given.ravel().tolist():
        if not isinstance(index, (int, float)) or index % 1 != 0:
            raise ValueError(f"task `{label}`: adapt: {index!r} is not the index of an example, a whole number")
        if not 0 <= index < examples:
            raise ValueError(f"task `{label}`: index {index} is out of range: it has {examples} examples, counted from 0")
        indices.append(int(index))
    return indices


def length(values: Any) -> int:
    """The number of elements; 0 of what has none, which is refused elsewhere."""
    try:
        return len(values)
    except TypeError:
        return 0


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
        adapt = None if len(task) == 2 or task[2] is None else subset(task[2], length(task[1]), label)
        parts.append((label, task[0], task[1], adapt))
    return distinct(parts)


def by_name(parts: Iterable[Parts], features: Sequence[str]) -> list[Parts]:
    """The tasks, with the named columns where x is a DataFrame."""
    return [
        (name, frame_rows(x, features) if hasattr(x, "columns") else x, y, adapt) for name, x, y, adapt in parts
    ]


def task_parts(tasks: Any, features: Sequence[str], target: str, task: str) -> list[Parts]:
    """Tasks for a prior with these columns."""
    return frame_parts(tasks, features, target, task) if is_frame(tasks) else by_name(list_parts(tasks), features)


def training_parts(
    tasks: Any, features: Sequence[Any] | None, target: str, task: str
) -> tuple[list[Parts], list[str]]:
    """Tasks to learn from, and the names of their features."""
    if is_frame(tasks):
        names = frame_features(tasks, target, task, features)
        return frame_parts(tasks, names, target, task), names
    parts = list_parts(tasks)
    names = list_features(parts) if features is None else [str(name) for name in features]
    return by_name(parts, names), names


def list_features(parts: Sequence[Parts]) -> list[str]:
    """Names for the features of the first task; the other tasks are compared with it later."""
    if not parts:
        raise ValueError("tasks: there are none, expected at least one (x, y)")
    name, x = parts[0][:2]
    if hasattr(x, "columns"):
        return column_names(x)
    try:
        shape = np.shape(x)
    except ValueError as error:
        raise ValueError(f"task `{name}`, x: expected an array of numbers: {error}") from error
    if len(shape) not in (1, 2):
        raise ValueError(f"{name}: x has shape {shape}, expected (n,) or (n, features)")
    return ["x"] if len(shape) == 1 or shape[1] == 1 else [f"x{index}" for index in range(shape[1])]
