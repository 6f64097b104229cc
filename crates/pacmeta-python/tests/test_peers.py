"""Against GPyTorch: its numbers as they were stored, and itself where it is installed."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import numpy as np
import pytest
from conftest import GOLDEN, sine_tasks

import pacmeta

if "PACMETA_PEERS" in os.environ:
    sys.path.append(os.environ["PACMETA_PEERS"])


def stored(name: str) -> Any:
    return json.loads((GOLDEN / name).read_text())


def support_of(task: Any) -> tuple[np.ndarray, np.ndarray]:
    chosen = task["adapt"]
    return np.asarray(task["x"])[chosen], np.asarray(task["y"])[chosen]


def test_predictions_are_those_of_jax() -> None:
    for case in stored("predictions.json").values():
        prior = pacmeta.load(GOLDEN / case["prior"])
        x, y = support_of(stored(case["tasks"])["tasks"][0])
        mean, std = prior.adapt(x, y, temperature=case["alpha"]).predict(case["queries"])
        np.testing.assert_allclose(mean, case["mean"], rtol=1e-8)
        np.testing.assert_allclose(std, case["std"], rtol=1e-8)


def safetensors(tensors: dict[str, np.ndarray]) -> bytes:
    header, data = {}, b""
    for name, tensor in sorted(tensors.items()):
        begin, data = len(data), data + np.ascontiguousarray(tensor, dtype="<f8").tobytes()
        header[name] = {"dtype": "F64", "shape": list(tensor.shape), "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data


def test_predictions_are_those_that_gpytorch_left() -> None:
    case = stored("pacoh_recipe.json")
    tensors = dict(pacmeta.load(GOLDEN / case["prior"]).parameters())
    tensors["kernel.raw_output_scale"] = np.array([case["raw"]["kernel.raw_outputscale"]])
    tensors["kernel.raw_length_scale"] = np.array(case["raw"]["kernel.raw_lengthscale"])
    tensors["likelihood.raw_noise"] = np.array([case["raw"]["noise.raw"]])
    prior = pacmeta.Prior.from_bytes(safetensors(tensors))
    x, y = support_of(stored(case["tasks"])["tasks"][case["support_of_task"]])
    mean, std = prior.adapt(x, y).predict(case["queries"])
    np.testing.assert_allclose(mean, case["predictive_mean"], rtol=1e-8)
    np.testing.assert_allclose(std, case["predictive_std"], rtol=1e-8)


def test_posterior_is_that_of_gpytorch() -> None:
    gpytorch = pytest.importorskip("gpytorch")
    import torch

    torch.set_default_dtype(torch.float64)
    prior = pacmeta.meta_learn(sine_tasks(10), method="pacoh", beta=100, iterations=200).prior
    tensors = {name: torch.tensor(value) for name, value in prior.parameters().items()}

    def network(prefix: str, x: torch.Tensor) -> torch.Tensor:
        layer = 0
        while f"{prefix}hidden.{layer}.weight" in tensors:
            name = f"{prefix}hidden.{layer}"
            x = torch.tanh(x @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"])
            layer += 1
        return x @ tensors[f"{prefix}output.weight"].T + tensors[f"{prefix}output.bias"]

    class Model(gpytorch.models.ExactGP):  # type: ignore[misc]
        def __init__(self, x: torch.Tensor, y: torch.Tensor, likelihood: object) -> None:
            super().__init__(x, y, likelihood)
            self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
            self.kernel.outputscale = 0.5
            self.kernel.base_kernel.lengthscale = np.sqrt(0.5)  # exp(-d^2) = exp(-d^2 / (2 l^2))

        def forward(self, x: torch.Tensor) -> object:
            covariance = self.kernel(network("features.", x))
            return gpytorch.distributions.MultivariateNormal(network("mean.", x).squeeze(-1), covariance)

    header = prior.to_bytes()
    length = int.from_bytes(header[:8], "little")
    metadata = json.loads(json.loads(header[8 : 8 + length])["__metadata__"]["pacmeta"])
    scale = metadata["standardisation"]
    rng = np.random.default_rng(1)
    x, y, query = rng.uniform(-2, 2, 5), rng.normal(size=5), np.linspace(-2, 2, 30)

    def units(values: np.ndarray) -> torch.Tensor:
        return torch.tensor((values.reshape(-1, 1) - scale["x_mean"][0]) / scale["x_std"][0])

    temperature = 40.0
    # The Gibbs posterior of squared errors at temperature t on m examples is a regression with noise m / (2 t).
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    likelihood.noise = 5 / (2 * temperature)
    known = torch.tensor((y - scale["y_mean"]) / scale["y_std"])
    model = Model(units(x), known, likelihood)
    model.eval()
    likelihood.eval()
    with torch.no_grad(), gpytorch.settings.fast_computations(False, False, False):
        predicted = likelihood(model(units(query)))
    mean, std = prior.adapt(x, y, temperature=temperature).predict(query)
    np.testing.assert_allclose(mean, predicted.mean.numpy() * scale["y_std"] + scale["y_mean"], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(std, predicted.stddev.numpy() * scale["y_std"], rtol=1e-6)
