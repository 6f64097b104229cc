"""Write the golden fixtures of the library's tests.

    python benchmarks/golden/make_golden.py [--output DIRECTORY]

Everything is drawn from fixed seeds. Independent computations are compared on the way and the largest relative
differences are printed; the script fails when two of them disagree.
"""

import argparse
import json
from pathlib import Path

import gp_reference as gp  # first: it switches JAX to double precision
import jax
import numpy as np
from safetensors.numpy import save

import maml_reference
import precise
import recipe_reference

DEFAULT_OUTPUT = Path(__file__).resolve().parents[2] / "crates" / "pacmeta" / "tests" / "golden"

PRIOR_SEED, TASK_SEED, DIRECTION_SEED = 11, 23, 37


def random_prior(random, inputs, widths, feature_dimension, scale=2.0):
    """U(-1/sqrt(fan_in), 1/sqrt(fan_in)) times a scale that makes the functions visibly curved."""
    params = {}
    for network, outputs in (("mean", 1), ("features", feature_dimension)):
        fan_in = inputs
        layers = [(f"hidden.{index}", width) for index, width in enumerate(widths)] + [("output", outputs)]
        for layer, width in layers:
            limit = scale / np.sqrt(fan_in)
            params[f"{network}.{layer}.weight"] = random.uniform(-limit, limit, (width, fan_in))
            params[f"{network}.{layer}.bias"] = random.uniform(-limit, limit, width)
            fan_in = width
    return params


def sinusoid_task(random, size):
    x = random.uniform(-5, 5, (size, 1))
    amplitude, phase, offset, slope = random.uniform(0.7, 1.3), *random.normal([0, 0, 0.5], [0.1, 0.1, 0.2])
    return x, slope * x[:, 0] + amplitude * np.sin(1.5 * (x[:, 0] - phase)) + offset + random.normal(0, 0.1, size)


def bump_task(random, size):
    x = random.normal([1.0, -2.0], [2.5, 0.7], (size, 2))
    height = random.uniform(2, 4)
    return x, 7 + height / (1 + np.sum((x + [0, 2.5]) ** 2, axis=1)) + random.normal(0, 0.05, size)


def draw_tasks(random, draw, sizes):
    """`sizes` as (examples, adapt); the adapt indices are in the order drawn, not sorted."""
    tasks = []
    for size, adapt in sizes:
        x, y = draw(random, size)
        tasks.append((np.round(x, 6), np.round(y, 6), random.permutation(size)[:adapt]))
    return tasks


def save_file(tensors, path, metadata=None):
    """As the library's own `save_file`, which would leave the file readable by its owner only."""
    path.write_bytes(save(tensors, metadata))


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1) + "\n")


def write_tasks(path, tasks):
    """One-dimensional x is a flat list in every other task and a list of rows in the rest: both are allowed."""
    entries = []
    for index, (x, y, adapt) in enumerate(tasks):
        flat = x.shape[1] == 1 and index % 2 == 0
        entry = {"name": f"task {index}"} if index % 3 == 0 else {}
        entry |= {"x": (x[:, 0] if flat else x).tolist(), "y": y.tolist(), "adapt": adapt.tolist()}
        entries.append(entry)
    write_json(path, {"tasks": entries})


def standardise(tasks, scales):
    return [
        ((x - scales["x_mean"]) / scales["x_std"], (y - scales["y_mean"]) / scales["y_std"], adapt)
        for x, y, adapt in tasks
    ]


def plain(tree):
    """Numbers of any library as Python floats, in the same structure."""
    if isinstance(tree, dict):
        return {key: plain(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [plain(value) for value in tree]
    return tree if isinstance(tree, str) else float(tree)


def relative(value, reference):
    value, reference = np.asarray(value, dtype=float), np.asarray(reference, dtype=float)
    return float(np.max(np.abs(value - reference)) / max(np.max(np.abs(reference)), 1e-300))


def require(what, difference, limit):
    print(f"  {what}: relative difference {difference:.1e}")
    if not difference < limit:
        raise SystemExit(f"{what}: {difference:.3e} is not below {limit:.0e}")


def bound_case(output, name, params, prior_file, tasks, tasks_file, beta, alpha):
    """One `pacmeta bound` case: exact terms as JSON, the gradient as safetensors. Returns its manifest entry."""
    print(name)

    def total(values):
        bound = gp.pacoh_bound(values, tasks, beta) if alpha is None else gp.pacmaml_bound(values, tasks, beta, alpha)
        return bound["total"], bound

    (_, bound), gradient = jax.value_and_grad(total, has_aux=True)(params)
    tree = precise.exact_parameters(params)
    exact = plain(precise.bound(tree, tasks, beta, alpha))
    require("total, JAX against 160 digits", relative(bound["total"], exact["total"]), 1e-10)
    for term in exact["tasks"][0]:
        jax_terms = [float(task[term]) for task in bound["tasks"]]
        require(f"{term}, JAX against 160 digits", relative(jax_terms, [t[term] for t in exact["tasks"]]), 2e-6)
    random = np.random.default_rng(DIRECTION_SEED)
    direction = {key: random.normal(size=value.shape) for key, value in params.items()}
    derivative = float(precise.directional_derivative(tree, precise.exact_parameters(direction), tasks, beta, alpha))
    slope = sum(float(np.sum(np.asarray(gradient[key]) * direction[key])) for key in params)
    length = np.sqrt(sum(float(np.sum(np.asarray(value) ** 2)) for value in gradient.values()))
    require("gradient along a random direction", abs(slope - derivative) / length, 1e-8)

    write_json(output / f"bound_{name}.json", {"objective": bound["objective"], **exact})
    gradient_file = f"bound_{name}_gradient.safetensors"
    save_file({key: np.array(value, dtype=np.float64) for key, value in gradient.items()}, output / gradient_file)
    return {
        "name": name,
        "objective": bound["objective"],
        "prior": prior_file,
        "tasks": tasks_file,
        "beta": beta,
        "alpha": alpha,
        "expected": f"bound_{name}.json",
        "gradient": gradient_file,
    }


def predictions(params, tasks, queries, alpha, scales=None):
    """Predictions at queries after adapting to the first task's support, and metrics of every task, in the units of
    the data. `scales` standardises before and undoes it after."""
    inner = standardise(tasks, scales) if scales else tasks
    inner_queries = (queries - scales["x_mean"]) / scales["x_std"] if scales else queries
    y_mean, y_std = (scales["y_mean"], scales["y_std"]) if scales else (0.0, 1.0)
    metrics = {"rmse": [], "log_likelihood": [], "calibration_error": []}
    for (_, y, adapt), (x_inner, y_inner, _) in zip(tasks, inner):
        rest = np.setdiff1d(np.arange(len(y)), adapt)
        mean, covariance, noise = gp.posterior(params, x_inner[adapt], y_inner[adapt], alpha, x_inner[rest])
        deviation = np.sqrt(np.diag(covariance) + noise)
        metrics["rmse"].append(float(np.sqrt(np.mean((mean * y_std + y_mean - y[rest]) ** 2))))
        density = gp.joint_log_density(mean, covariance, noise, y_inner[rest]) - np.log(y_std)
        metrics["log_likelihood"].append(float(density))
        metrics["calibration_error"].append(float(gp.calibration_error(mean, deviation, y_inner[rest])))
    x, y, adapt = inner[0]
    mean, covariance, noise = gp.posterior(params, x[adapt], y[adapt], alpha, inner_queries)
    return {
        "alpha": alpha,
        "queries": queries.tolist(),
        "mean": np.asarray(mean * y_std + y_mean).tolist(),
        "std": np.asarray(np.sqrt(np.diag(covariance) + noise) * y_std).tolist(),
        "metrics": metrics,
        "averages": {name: float(np.mean(values)) for name, values in metrics.items()},
    }


def write_recipe(output, params, tasks, queries):
    print("pacoh_recipe")
    raw = {"kernel.raw_outputscale": 0.3, "kernel.raw_lengthscale": [-0.4, 0.7], "noise.raw": -2.5}
    losses, gradient = recipe_reference.objective_and_gradient(params, raw, tasks)

    def jax_mean(values, raw):
        positive = jax.tree.map(lambda value: jax.nn.softplus(jax.numpy.asarray(value)), raw)
        noise = positive["noise.raw"] + 1e-3
        total = 0.0
        for x, y, _ in tasks:
            scaled = gp.apply_network(values, "features", x) / positive["kernel.raw_lengthscale"]
            distance = jax.numpy.sum((scaled[:, None] - scaled[None]) ** 2, axis=-1)
            covariance = positive["kernel.raw_outputscale"] * jax.numpy.exp(-0.5 * distance)
            total -= gp.joint_log_density(gp.mean_of(values, x), covariance, noise, y)
        return total / len(tasks)

    raw_arrays = {name: jax.numpy.asarray(value) for name, value in raw.items()}
    value, (jax_gradient, jax_raw) = jax.value_and_grad(jax_mean, argnums=(0, 1))(params, raw_arrays)
    require("objective, GPyTorch against JAX", relative(np.mean(losses), value), 1e-10)
    flat = [np.ravel(gradient[name]) for name in jax_gradient | jax_raw]
    jax_flat = [np.ravel(entry) for entry in (jax_gradient | jax_raw).values()]
    require("gradient, GPyTorch against JAX", relative(np.concatenate(flat), np.concatenate(jax_flat)), 1e-10)
    x, y, adapt = tasks[3]
    mean, deviation = recipe_reference.predict(params, raw, x[adapt], y[adapt], queries)
    save_file(gradient, output / "pacoh_recipe_gradient.safetensors")
    write_json(
        output / "pacoh_recipe.json",
        {
            "prior": "gp_prior.safetensors",
            "tasks": "tasks.json",
            "raw": raw,
            "per_task": losses,
            "mean": float(np.mean(losses)),
            "gradient": "pacoh_recipe_gradient.safetensors",
            "support_of_task": 3,
            "queries": queries.tolist(),
            "predictive_mean": mean.tolist(),
            "predictive_std": deviation.tolist(),
        },
    )


def write_maml(output, params, tasks):
    print("maml")
    mean_params = {name: value for name, value in params.items() if name.startswith("mean.")}
    chosen = [2, 3]
    steps, rate = 3, 0.05
    proximal = {"beta": 300.0, "variance": 1.0, "rate": 5e-3, "history": 10, "iterations": 10}
    tensors, per_task = {}, []
    for position, index in enumerate(chosen):
        value, exact = maml_reference.maml(mean_params, tasks[index], steps, rate)
        first_order = maml_reference.fomaml(mean_params, tasks[index], steps, rate)
        optimum, before, after = maml_reference.reptile(mean_params, tasks[index], **proximal)
        loss = maml_reference.loss(mean_params, *tasks[index][:2])
        require("start of L-BFGS, PyTorch against JAX", relative(before, loss), 1e-13)
        per_task.append({"task": index, "query_loss": float(value), "reptile_before": before, "reptile_after": after})
        for kind, tree in (("maml", exact), ("fomaml", first_order), ("reptile", optimum)):
            for name, entry in tree.items():
                tensors[f"{kind}.{position}.{name}"] = np.array(entry, dtype=np.float64)
    save_file(tensors, output / "maml.safetensors")
    write_json(
        output / "maml.json",
        {
            "prior": "gp_prior.safetensors",
            "tasks": "tasks.json",
            "steps": steps,
            "rate": rate,
            "reptile": proximal,
            "per_task": per_task,
            "tensors": "maml.safetensors",
        },
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT)
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)

    random = np.random.default_rng(PRIOR_SEED)
    prior = random_prior(random, 1, (32, 32), 2)
    prior_2d = {name: value.astype(np.float32) for name, value in random_prior(random, 2, (10, 7), 3).items()}
    random = np.random.default_rng(TASK_SEED)
    tasks = draw_tasks(random, sinusoid_task, [(1, 1), (2, 1), (5, 3), (12, 5), (23, 23), (40, 5)])
    tasks_2d = draw_tasks(random, bump_task, [(3, 2), (17, 6), (30, 9)])
    evaluation = draw_tasks(random, sinusoid_task, [(25, 5), (25, 5), (30, 5), (12, 3)])
    evaluation_2d = draw_tasks(random, bump_task, [(25, 5), (18, 7)])

    every_x = np.concatenate([x for x, _, _ in tasks_2d])
    every_y = np.concatenate([y for _, y, _ in tasks_2d])
    scales = {
        "x_mean": every_x.mean(axis=0).tolist(),
        "x_std": (every_x.std(axis=0) + 1e-8).tolist(),
        "y_mean": float(every_y.mean()),
        "y_std": float(every_y.std() + 1e-8),
    }
    metadata = {"format": 1, "prior": {"kind": "gaussian_process", "kernel": "paper"}, "standardisation": scales}
    save_file(prior, output / "gp_prior.safetensors")
    save_file(prior_2d, output / "gp_prior_2d_f32.safetensors", metadata={"pacmeta": json.dumps(metadata)})
    write_tasks(output / "tasks.json", tasks)
    write_tasks(output / "tasks_2d.json", tasks_2d)
    write_tasks(output / "evaluation_tasks.json", evaluation)
    write_tasks(output / "evaluation_tasks_2d.json", evaluation_2d)

    one = (prior, "gp_prior.safetensors", tasks, "tasks.json")
    wide = {name: value.astype(np.float64) for name, value in prior_2d.items()}
    two = (wide, "gp_prior_2d_f32.safetensors", standardise(tasks_2d, scales), "tasks_2d.json")
    cases = [
        bound_case(output, "pacoh", *one, 300.0, None),
        bound_case(output, "pacoh_hot", *one, 1e-3, None),
        bound_case(output, "pacoh_cold", *one, 1e6, None),
        bound_case(output, "pacmaml", *one, 300.0, 60.0),
        bound_case(output, "pacmaml_hot", *one, 1e4, 1e-2),
        bound_case(output, "pacmaml_cold", *one, 2.0, 1e5),
        bound_case(output, "pacoh_2d", *two, 300.0, None),
        bound_case(output, "pacmaml_2d", *two, 300.0, 60.0),
    ]
    write_json(output / "bounds.json", {"cases": cases})

    grid = np.round(np.linspace(-5.5, 5.5, 12), 3)[:, None]
    grid_2d = np.round(np.random.default_rng(5).normal([1.0, -2.0], [2.5, 0.7], (8, 2)), 3)
    first = predictions(prior, evaluation, grid, 60.0)
    first |= {"prior": "gp_prior.safetensors", "tasks": "evaluation_tasks.json"}
    second = predictions(wide, evaluation_2d, grid_2d, 60.0, scales)
    second |= {"prior": "gp_prior_2d_f32.safetensors", "tasks": "evaluation_tasks_2d.json"}
    write_json(output / "predictions.json", {"plain": first, "standardised": second})

    write_recipe(output, prior, tasks, grid)
    write_maml(output, prior, tasks)
    size = sum(path.stat().st_size for path in output.iterdir() if path.is_file())
    print(f"{output}: {size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
