"""Makes docs/quick-start.ipynb with its outputs, or checks that a fresh one says the same.

    python crates/pacmeta-python/make_notebook.py            writes it
    python crates/pacmeta-python/make_notebook.py --check    fails if what it prints would differ
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

PATH = Path(__file__).resolve().parents[2] / "docs/quick-start.ipynb"

CELLS = [
    (
        "markdown",
        "# pacmeta in five minutes\n\nMany small data sets, and a new one with five examples. "
        "More in [python.md](python.md).",
    ),
    (
        "code",
        "import numpy as np\nimport pacmeta\n\nrng = np.random.default_rng(0)\n\n\ndef sensor(readings):\n"
        "    x = rng.uniform(-5, 5, readings)\n"
        "    return x, rng.uniform(0.5, 1.5) * np.sin(x + rng.uniform(0, 1.5)) + 0.05 * rng.normal(size=readings)\n\n\n"
        "tasks = [sensor(15) for _ in range(30)]",
    ),
    ("markdown", "Learn a prior. A run shows its report when it is the last line of a cell; here are its scores."),
    (
        "code",
        "run = pacmeta.meta_learn(tasks, beta=450, alpha=75, iterations=2000, settings={\"seed\": 0})\n"
        "for name, row in run.scores.items():\n    print(f\"{name:<25} RMSE {row['rmse']:.3f}\")\nprint(run.verdict)",
    ),
    ("markdown", "Adapt it to five readings of a new sensor."),
    (
        "code",
        "x, y = sensor(40)\nposterior = run.prior.adapt(x[:5], y[:5])\nmean, std = posterior.predict(x[5:])\n"
        "lower, upper = posterior.interval(x[5:], 0.95)\n"
        "print(f\"RMSE {np.sqrt(np.mean((mean - y[5:]) ** 2)):.3f}; in the 95% interval: {np.mean((lower < y[5:]) & (y[5:] < upper)):.0%}\")",
    ),
    (
        "code",
        "import matplotlib.pyplot as plt\n\nfigure, ax = plt.subplots(figsize=(6, 3.2), dpi=70)\n"
        "pacmeta.plot(run.prior, support=(x[:5], y[:5]), low=-5, high=5, ax=ax)\n"
        "ax.plot(x[5:], y[5:], \".\", color=\"0.3\", markersize=4)\nax.legend(fontsize=\"small\", ncols=3, loc=\"lower center\", bbox_to_anchor=(0.5, 1.0))\nplt.show()",
    ),
    ("markdown", "The terms of a bound, under a stated assumption about the squared error."),
    (
        "code",
        "observed = [(a, b, list(range(5))) for a, b in tasks]\n"
        "bound = run.prior.bound(observed, theorem=4, assume=\"non-negative:20\", hyper_posterior_std=0.05, beta=30, alpha=5)\n"
        "for name, term in bound[\"terms\"].items():\n    print(f\"{name:<15} {term['value']:8.3f}\")\n"
        "print(f\"{'total':<15} {bound['total']['value']:8.3f}\")",
    ),
]


def made() -> Any:
    """The notebook, executed."""
    notebook = nbformat.v4.new_notebook()
    for index, (kind, source) in enumerate(CELLS):
        new = nbformat.v4.new_markdown_cell if kind == "markdown" else nbformat.v4.new_code_cell
        notebook.cells.append(new(source, id=f"cell-{index}"))
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times
    notebook.metadata.pop("language_info", None)
    return notebook


def texts(notebook: Any) -> list[str]:
    """What the cells print; pictures differ between versions of matplotlib."""
    found = []
    for cell in notebook.cells:
        outputs = cell.get("outputs", [])
        found.append(cell.source + "".join(output.get("text", "") for output in outputs))
    return found


def same(stored: str, fresh: str) -> bool:
    """Whether texts are equal but for a few per cent in numbers: processors differ in the last bit, and training adds up."""
    number = re.compile(r"-?\d+\.\d+")
    if number.sub("#", stored) != number.sub("#", fresh):
        return False
    pairs = zip(map(float, number.findall(stored)), map(float, number.findall(fresh)))
    return all(abs(left - right) <= 0.05 * abs(left) + 0.02 for left, right in pairs)


def main() -> None:
    notebook = made()
    if "--check" in sys.argv:
        stored = nbformat.read(PATH, as_version=4)
        if not same("\0".join(texts(stored)), "\0".join(texts(notebook))):
            sys.exit(f"{PATH.name} is not what a fresh run gives; make it again with this script")
        return
    nbformat.write(notebook, PATH)
    print(f"{PATH.name}: {PATH.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
