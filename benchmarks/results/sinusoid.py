"""Prints the tables of the Sinusoid study in docs/results.md from the files beside its report.

    pacmeta reproduce sinusoid --preset paper --out DIR
    python3 benchmarks/results/sinusoid.py DIR
"""

import argparse
import csv
import json
from collections import Counter
from pathlib import Path

METHODS = [
    ("PACMAML", "per_example", "PACMAML"),
    ("PACOH", "per_example", "PACOH, temperature per example"),
    ("PACOH", "fixed", "PACOH, fixed temperature"),
    ("MAML", "per_example", "MAML"),
    ("Reptile", "per_example", "Reptile, the paper's ten steps"),
    ("FOMAML", "per_example", "FOMAML"),
    ("multi-task", "per_example", "multi-task"),
    ("plain GP", "per_example", "plain GP"),
]
TERMS = [
    ("w", "W"),
    ("xi_kl", "xi KL"),
    ("gap", "gap"),
    ("gap_fixed_temperature", "gap, fixed temperature"),
    ("total", "total"),
    ("true_risk", "true risk"),
]


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def table(header, rows):
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def estimate(row, name, digits, error=None):
    error = row[error or f"{name}_standard_error"]
    number = f"{float(row[name]):.{digits}f}"
    return f"{number} ± {float(error):.{digits}f}" if error else number


def errors(folder):
    rows = rows_of(folder / "errors.csv")
    sizes = sorted({int(row["examples"]) for row in rows})
    header = ["method", *(f"m_i = {size}" for size in sizes)]

    def found(method, rule):
        own = {int(row["examples"]): row for row in rows if (row["method"], row["target_temperature"]) == (method, rule)}
        return [own[size] for size in sizes] if len(own) == len(sizes) else None

    known = [(name, found(method, rule)) for method, rule, name in METHODS if found(method, rule)]
    table(header, [[name, *(estimate(row, "test_rmse", 3) for row in own)] for name, own in known])
    print("The lowest error during training:\n")
    table(header, [[name, *(f"{float(row['lowest_rmse']):.3f}" for row in own)] for name, own in known])
    print("Chosen:\n")
    table(["method", "m_i", "ours", "the paper's"], [
        [row["method"], row["examples"], row["chosen"], row["chosen_in_paper"] or "-"]
        for row in rows
        if row["method"] in ("PACOH", "PACMAML") and row["target_temperature"] == "per_example"
    ])


def bounds(folder):
    rows = rows_of(folder / "bounds.csv")
    sizes = sorted({int(row["examples"]) for row in rows})
    betas = sorted({float(row["beta_per_example"]) for row in rows})
    lines = []
    for method in ("PACOH", "PACMAML"):
        for beta in betas:
            for term, name in TERMS:
                own = [
                    row for size in sizes for row in rows
                    if (row["method"], float(row["beta_per_example"]), int(row["examples"]), row["term"]) == (method, beta, size, term)
                ]
                if not own:
                    continue
                alpha = [f" ({row['alpha_over_beta']})" if term == "total" and row["alpha_over_beta"] else "" for row in own]
                numbers = [
                    f"{float(row['value']):.4f}" if term == "xi_kl" else estimate(row, "value", 4, "standard_error") for row in own
                ]
                lines.append([method, f"{beta:g}", name, *(number + mark for number, mark in zip(numbers, alpha))])
    table(["method", "beta/m_i", "term", *(f"m_i = {size}" for size in sizes)], lines)


def ablations(folder):
    rows = rows_of(folder / "ablations.csv")
    sizes = sorted({int(row["examples"]) for row in rows})
    kinds = list(dict.fromkeys((row["method"], row["variant"]) for row in rows))
    lines = []
    for kind in kinds:
        own = {int(row["examples"]): row for row in rows if (row["method"], row["variant"]) == kind}
        cells = [f"{float(own[size]['difference']):+.3f} ± {float(own[size]['difference_standard_error']):.3f}" for size in sizes]
        lines.append([", ".join(kind), *cells])
    table(["method, done otherwise", *(f"m_i = {size}" for size in sizes)], lines)


def gaps(folder):
    rows = [row for row in rows_of(folder / "gaps.csv") if row["standard_error"]]
    table(["m_i", "beta/m_i", "lambda", "gap over the hyper-prior", "effective draws"], [
        [row["examples"], row["beta_per_example"], row["lambda"],
         f"{float(row['gap']):.1f} ± {float(row['standard_error']):.1f}", f"{float(row['effective_draws']):.0f} of {row['draws']}"]
        for row in rows
    ])


def claims(folder):
    known = json.loads((folder / "claims.json").read_text())
    print(Counter(claim["verdict"] for claim in known), "\n")
    for claim in known:
        number = "none" if claim["effect"] is None else f"{claim['effect']:.4f}"
        error = "" if claim["standard_error"] is None else f" ± {claim['standard_error']:.4f}"
        print(f"- {claim['verdict']}: {claim['statement']} ({number}{error}) {claim['detail']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for part in (errors, bounds, ablations, gaps, claims):
        part(folder)


if __name__ == "__main__":
    main()
