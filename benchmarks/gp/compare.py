"""Compare pacmeta's Gaussian-process meta-iteration with JAX, PyTorch and GPyTorch on one core.

    python compare.py [--pacmeta BINARY | --peers-only [--cpu-time]] [--repeats N] [--core C] [--json FILE]

First all implementations must agree on the objective and its gradient; then they are timed in one run, repeats
interleaved. The fastest repeat counts: on a shared machine the others measure the neighbours.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import jax_gp  # first: it sets the threading variables
import jax_plain
import numpy as np
import torch_gp
from safetensors.numpy import load_file, save_file

import setting

AGREEMENT = 1e-8
CHUNK_SECONDS = 0.03


def peers_of(method):
    """Name and `training(examples, iterations)` of each peer."""
    peers = {
        "JAX": lambda examples, iterations: jax_plain.training(method, examples, iterations),
        "JAX tuned": lambda examples, iterations: jax_gp.training(method, examples, iterations),
        "PyTorch": lambda examples, iterations: torch_gp.training("torch", method, examples, iterations),
    }
    if method == "pacoh":
        peers["GPyTorch"] = lambda examples, iterations: torch_gp.training("gpytorch", method, examples, iterations)
    return peers


def pacmeta_bound(binary, directory, params, method, x, y, adapt, alpha, beta):
    """Objective and gradient by `pacmeta bound` on files."""
    prior, tasks, gradient = (directory / name for name in ("prior.safetensors", "tasks.json", "gradient.safetensors"))
    save_file(params, prior)
    entries = [
        {"x": xs.tolist(), "y": ys.tolist(), "adapt": indices.tolist()} for xs, ys, indices in zip(x, y, adapt)
    ]
    tasks.write_text(json.dumps({"tasks": entries}))
    command = [binary, "bound", prior, "--tasks", tasks, "--objective", method, "--beta", repr(beta)]
    command += ["--alpha", repr(alpha)] if method == "pacmaml" else []
    command += ["--gradient", gradient, "--json"]
    output = subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE).stdout
    return json.loads(output)["total"], load_file(gradient)


def difference(result, reference):
    """The larger of the relative errors of value and gradient (in the Euclidean norm)."""
    (value, gradient), (expected_value, expected) = result, reference
    error = np.sqrt(sum(np.sum((np.asarray(gradient[name]) - expected[name]) ** 2) for name in expected))
    norm = np.sqrt(sum(np.sum(np.asarray(entry) ** 2) for entry in expected.values()))
    return max(abs(float(value) - float(expected_value)) / abs(float(expected_value)), float(error / norm))


def check_agreement(binary):
    """Every implementation against JAX, on every task at once, at weights twice the initial scale."""
    params = {name: 2 * value for name, value in setting.initial_parameters(seed=1).items()}
    print("agreement with JAX (largest relative error of objective and gradient)")
    with tempfile.TemporaryDirectory() as directory:
        for method in setting.METHODS:
            for examples in (5, 30, 100):
                beta, alpha = setting.temperatures(examples)
                x, y = setting.sinusoid_tasks(examples, seed=1)
                x, y = x[: setting.BATCH], y[: setting.BATCH]
                adapt = setting.random_batches(examples, 1, seed=1)[1][0]
                data = x, y, adapt, alpha, beta, 1 / (setting.BATCH * beta)
                reference = jax_gp.objective_and_gradient(params, method, *data)
                results = {"JAX plain": jax_plain.objective_and_gradient(params, method, *data)}
                results |= {"PyTorch": torch_gp.objective_and_gradient(params, "torch", method, *data)}
                if method == "pacoh":
                    results["GPyTorch"] = torch_gp.objective_and_gradient(params, "gpytorch", method, *data)
                if binary:
                    results["pacmeta"] = pacmeta_bound(binary, Path(directory), params, method, *data[:5])
                errors = {name: difference(result, reference) for name, result in results.items()}
                shown = ", ".join(f"{name} {error:.1e}" for name, error in errors.items())
                print(f"  {method:8} m = {examples:3}: {shown}", flush=True)
                for name, error in errors.items():
                    if not error < AGREEMENT:
                        raise SystemExit(f"{name} disagrees with JAX on {method} at m = {examples}: {error:.2e}")


clock = time.perf_counter


def elapsed(run):
    start = clock()
    run()
    return clock() - start


def prepare(build, examples):
    """A compiled, warm run of about CHUNK_SECONDS and its number of iterations."""
    probe = build(examples, 10)
    probe()
    iterations = int(np.clip(CHUNK_SECONDS / (min(elapsed(probe) for _ in range(3)) / 10), 5, 1000))
    run = build(examples, iterations)
    run()
    return run, iterations


def time_pacmeta(binary, method, examples):
    command = [binary, "bench", "gp", "--method", method, "--examples", str(examples), "--json"]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    return json.loads(output)["fastest_microseconds"]  # as for the peers


def measure(binary, method, examples, repeats):
    """Microseconds per iteration by name, the fastest of interleaved repeats."""
    runs = {name: prepare(build, examples) for name, build in peers_of(method).items()}
    best = {name: np.inf for name in (["pacmeta"] if binary else []) + list(runs)}
    pacmeta_every = max(repeats // 5, 1)  # its own bench already repeats inside
    for repeat in range(repeats):
        for name, (run, iterations) in runs.items():
            best[name] = min(best[name], elapsed(run) / iterations * 1e6)
        if binary and repeat % pacmeta_every == 0:
            best["pacmeta"] = min(best["pacmeta"], time_pacmeta(binary, method, examples))
    return best


def row(method, examples, best):
    cells = [f"{name} {value:9.1f} us" for name, value in best.items()]
    if "pacmeta" in best:
        cells += [f"{name}/pacmeta {value / best['pacmeta']:6.2f}" for name, value in best.items() if name != "pacmeta"]
    else:
        cells += [f"{name}/JAX {value / best['JAX']:6.2f}" for name, value in best.items() if name != "JAX"]
    return f"{method:8} m = {examples:3}  " + "  ".join(cells)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pacmeta", default="pacmeta", help="the binary to compare with the peers")
    parser.add_argument("--peers-only", action="store_true", help="leave pacmeta out")
    parser.add_argument(
        "--cpu-time", action="store_true", help="with --peers-only: count processor time, for a machine that is busy"
    )
    parser.add_argument("--repeats", type=int, default=25)
    parser.add_argument("--core", type=int, help="pin to this core (default: the first one allowed)")
    parser.add_argument("--json", type=Path, help="also write the measurements to this file")
    arguments = parser.parse_args()
    if arguments.cpu_time:
        if not arguments.peers_only:
            parser.error("--cpu-time needs --peers-only: pacmeta reports wall-clock time")
        global clock
        clock = time.process_time
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0)) if arguments.core is None else arguments.core})
    binary = None if arguments.peers_only else arguments.pacmeta

    check_agreement(binary)
    print("microseconds per meta-iteration (5 tasks of m examples, double precision, one core)")
    records = []
    for method in setting.METHODS:
        for examples in setting.EXAMPLES:
            best = measure(binary, method, examples, arguments.repeats)
            print(row(method, examples, best), flush=True)
            records.append({"method": method, "examples": examples, "microseconds": best})
    for examples in setting.EXAMPLES:
        run, iterations = prepare(jax_gp.networks_only, examples)
        best = min(elapsed(run) for _ in range(arguments.repeats)) / iterations * 1e6
        points = setting.BATCH * examples
        print(f"JAX, both networks and Adam, no Gaussian process, {points:3} points: {best:9.1f} us", flush=True)
        records.append({"method": "networks", "examples": examples, "microseconds": {"JAX": best}})
    if arguments.json:
        arguments.json.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
