"""What Python costs: `predict` on 5 support and 100 query points from the module, from Rust, and in GPyTorch.

    python benchmarks/python/overhead.py

Needs the module `pacmeta`; GPyTorch is timed where it is installed. Prints the best of many repeats and their ratios, all of
one run on one thread of one process.
"""

from __future__ import annotations

import json
import time
from typing import Any, Callable

import numpy as np

import pacmeta
from pacmeta import _pacmeta

REPEATS = 2000


def best(work: Callable[[], Any], repeats: int = REPEATS) -> float:
    """The seconds of the fastest of many calls."""
    fastest = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        fastest = min(fastest, time.perf_counter() - start)
    return fastest


def tasks(count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    made = []
    for _ in range(count):
        x = rng.uniform(-5, 5, 20)
        made.append((x, rng.uniform(0.5, 2) * np.sin(x + rng.uniform(0, 3))))
    return made


def gpytorch_seconds(prior: pacmeta.Prior, x: np.ndarray, y: np.ndarray, query: np.ndarray) -> tuple[float, float, float]:
    """Adapting and predicting in GPyTorch, and the largest difference of its means from ours."""
    import gpytorch
    import torch

    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    header = prior.to_bytes()
    length = int.from_bytes(header[:8], "little")
    scale = json.loads(json.loads(header[8 : 8 + length])["__metadata__"]["pacmeta"])["standardisation"]
    tensors = {name: torch.tensor(value) for name, value in prior.parameters().items()}

    def network(prefix: str, inputs: torch.Tensor) -> torch.Tensor:
        for layer in range(2):
            name = f"{prefix}hidden.{layer}"
            inputs = torch.tanh(inputs @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"])
        return inputs @ tensors[f"{prefix}output.weight"].T + tensors[f"{prefix}output.bias"]

    class Model(gpytorch.models.ExactGP):
        def __init__(self, inputs: torch.Tensor, targets: torch.Tensor, likelihood: Any) -> None:
            super().__init__(inputs, targets, likelihood)
            self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
            self.kernel.outputscale = 0.5
            self.kernel.base_kernel.lengthscale = np.sqrt(0.5)

        def forward(self, inputs: torch.Tensor) -> Any:
            covariance = self.kernel(network("features.", inputs))
            return gpytorch.distributions.MultivariateNormal(network("mean.", inputs).squeeze(-1), covariance)

    def units(values: np.ndarray) -> torch.Tensor:
        return torch.tensor((values.reshape(-1, 1) - scale["x_mean"][0]) / scale["x_std"][0])

    known, asked = units(x), units(query)
    targets = torch.tensor((y - scale["y_mean"]) / scale["y_std"])
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    likelihood.noise = len(x) / (2 * 40.0)
    likelihood.eval()

    def adapted() -> Model:
        model = Model(known, targets, likelihood)
        model.eval()
        return model

    model = adapted()
    with torch.no_grad(), gpytorch.settings.fast_computations(False, False, False):

        def predict(model: Model) -> Any:
            made = likelihood(model(asked))
            return made.mean, made.variance

        mean = predict(model)[0].numpy() * scale["y_std"] + scale["y_mean"]
        predicting = best(lambda: predict(model), 300)
        both = best(lambda: predict(adapted()), 300)
    ours = prior.adapt(x, y, temperature=40.0).predict(query)[0]
    return both, predicting, float(np.abs(mean - ours).max())


def main() -> None:
    prior = pacmeta.meta_learn(tasks(20), method="pacoh", beta=500, iterations=500).prior
    rng = np.random.default_rng(1)
    x, y, query = rng.uniform(-5, 5, 5), rng.normal(size=5), rng.uniform(-5, 5, 100)
    posterior = prior.adapt(x, y)
    rust_adapt, rust_predict = _pacmeta.rust_seconds(prior, x, y, query, REPEATS)
    python_predict = best(lambda: posterior.predict(query))
    python_both = best(lambda: prior.adapt(x, y).predict(query))
    rust_both = rust_adapt + rust_predict

    def row(name: str, seconds: float, ratio: float | None = None) -> None:
        print(f"{name:<44}{1e6 * seconds:>10.1f} us" + ("" if ratio is None else f"{ratio:>9.2f} x"))

    print("5 support points, 100 query points, one feature; the best of many calls")
    row("predict, Rust", rust_predict)
    row("predict, Python (over Rust)", python_predict, python_predict / rust_predict)
    row("adapt and predict, Rust", rust_both)
    row("adapt and predict, Python (over Rust)", python_both, python_both / rust_both)
    try:
        both, predicting, difference = gpytorch_seconds(prior, x, y, query)
    except ModuleNotFoundError:
        print("GPyTorch is not installed")
        return
    row("predict, GPyTorch (over Python)", predicting, predicting / python_predict)
    row("adapt and predict, GPyTorch (over Python)", both, both / python_both)
    print(f"largest difference of the means: {difference:.1e}")


if __name__ == "__main__":
    main()
