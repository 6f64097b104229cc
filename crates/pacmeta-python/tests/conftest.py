"""What the tests share: tasks, a learned prior, the command line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

# Else scikit-learn leaves out its checks of input by the array API. SciPy looks at it when it is first imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numpy as np
import pytest

import pacmeta

GOLDEN = Path(__file__).resolve().parents[2] / "pacmeta/tests/golden"


def sine_tasks(count: int, examples: int = 12, seed: int = 0) -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(seed)
    tasks = []
    for _ in range(count):
        x = rng.uniform(-2, 2, examples)
        tasks.append((x, rng.uniform(0.5, 1.5) * np.sin(x + rng.uniform(0, 1)) + 0.05 * rng.normal(size=examples)))
    return tasks


@pytest.fixture(scope="session")
def tasks() -> list[tuple[Any, Any]]:
    return sine_tasks(12)


@pytest.fixture(scope="session")
def run(tasks: list[tuple[Any, Any]]) -> pacmeta.Run:
    return pacmeta.meta_learn(tasks, beta=100, alpha=20, iterations=300)


@pytest.fixture(scope="session")
def prior(run: pacmeta.Run) -> pacmeta.Prior:
    return run.prior


@pytest.fixture(scope="session")
def command() -> str:
    """The command that was installed with the module."""
    found = shutil.which("pacmeta", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    assert found, "the command pacmeta is not installed"
    return found


@pytest.fixture(scope="session")
def cli(command: str) -> Any:
    """Runs the command and reads its JSON."""

    def call(*arguments: object) -> Any:
        done = subprocess.run([command, *map(str, arguments)], check=True, stdout=subprocess.PIPE)
        return json.loads(done.stdout)

    return call


def write_csv(path: Path, header: list[str], rows: Any) -> Path:
    lines = [",".join(header), *(",".join(str(item) for item in row) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path
