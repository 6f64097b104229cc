"""Repeats the regression results of docs/results.md over seeds and prints means with standard errors over seeds.

A seed draws other observed tasks, target tasks and initial networks. Usage, from the repository's root:

    cargo build --release
    python3 benchmarks/results/regression.py --seeds 10
"""

import argparse
import json
import math
import statistics
import subprocess
import tempfile
from pathlib import Path

SETTINGS = [
    ("PACOH's own recipe, m = 5", "pacoh-recipe", []),
    ("PACOH, m = 5, beta/m = 100", "sinusoid-pacoh", ["data.examples=5", "method.beta_per_example=100"]),
    ("PACOH, m = 30, beta/m = 30", "sinusoid-pacoh", []),
    ("PACOH, m = 30, beta/m = 30, fixed temperature", "sinusoid-pacoh", ["method.target_temperature=fixed"]),
    ("PACOH, m = 30, beta/m = 100", "sinusoid-pacoh", ["method.beta_per_example=100"]),
    ("PACMAML, m = 5, alpha/beta = 0.2", "sinusoid", ["data.examples=5"]),
    ("PACMAML, m = 30, alpha/beta = 0.2", "sinusoid", []),
    ("PACMAML, m = 30, fixed S'", "sinusoid", ["method.resample=fixed"]),
    ("PACMAML, m = 30, disjoint", "sinusoid", ["method.split=disjoint"]),
    ("MAML, m = 30", "sinusoid-maml", []),
    ("FOMAML, m = 30", "sinusoid-maml", ["method.name=fomaml"]),
    ("Reptile, m = 30, paper's ten steps", "sinusoid-reptile", []),
]


def summary(values):
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else float("nan")
    return f"{statistics.mean(values):.4f} ± {error:.4f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--binary", default="target/release/pacmeta")
    parser.add_argument("--only", default="", help="settings whose name contains this")
    arguments = parser.parse_args()
    print("| setting | RMSE | log-likelihood | calibration error | 95% coverage | seconds a run |")
    print("|---|---|---|---|---|---|", flush=True)
    plain = []
    for name, config, changes in SETTINGS:
        if arguments.only not in name:
            continue
        runs = []
        for seed in range(arguments.seeds):
            with tempfile.TemporaryDirectory() as folder:
                command = [arguments.binary, "train", f"configs/{config}.toml", "--seed", str(seed), "--json", "--quiet"]
                command += ["--out", str(Path(folder) / "run")]
                for change in changes:
                    command += ["--set", change]
                output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                runs.append(json.loads(output))
        scores = [run["scores"] for run in runs]
        plain = [run["floors"]["plain_gp"] for run in runs]
        cells = [summary([score[key] for score in scores]) for key in ("rmse", "log_likelihood", "calibration_error")]
        coverage = statistics.mean(score["coverage95"] for score in scores)
        seconds = statistics.mean(run["seconds"] for run in runs)
        print(f"| {name} | {' | '.join(cells)} | {100 * coverage:.1f}% | {seconds:.1f} |", flush=True)
    cells = [summary([score[key] for score in plain]) for key in ("rmse", "log_likelihood", "calibration_error")]
    print(f"| plain GP, support only | {' | '.join(cells)} | {100 * statistics.mean(s['coverage95'] for s in plain):.1f}% | |")


if __name__ == "__main__":
    main()
