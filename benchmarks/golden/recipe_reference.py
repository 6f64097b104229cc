"""PACOH's own recipe in GPyTorch: kernel outputscale * exp(-1/2 |(phi - phi')/l|^2) with one l per feature dimension,
learned noise variance; all three are softplus of raw values, the noise with 1e-3 added."""

import warnings

# GPyTorch's dependencies use functions that PyTorch has deprecated; nothing here can change that.
warnings.filterwarnings("ignore", category=FutureWarning, module="torch")

import gpytorch
import torch

RAW_NAMES = ["kernel.raw_outputscale", "kernel.raw_lengthscale", "noise.raw"]


def apply_network(params, network, x):
    layer = 0
    while f"{network}.hidden.{layer}.weight" in params:
        prefix = f"{network}.hidden.{layer}"
        x = torch.tanh(torch.nn.functional.linear(x, params[f"{prefix}.weight"], params[f"{prefix}.bias"]))
        layer += 1
    return torch.nn.functional.linear(x, params[f"{network}.output.weight"], params[f"{network}.output.bias"])


class NetworkMean(gpytorch.means.Mean):
    """The mean network; its parameters belong to the caller."""

    def __init__(self, params):
        super().__init__()
        self.tensors = params

    def forward(self, x):
        return apply_network(self.tensors, "mean", x)[..., 0]


class RecipeGP(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood, params):
        super().__init__(x, y, likelihood)
        self.tensors = params
        self.mean_module = NetworkMean(params)
        feature_dimension = params["features.output.weight"].shape[0]
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=feature_dimension))

    def forward(self, x):
        features = apply_network(self.tensors, "features", x)
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(features))


def build(params, raw, x, y):
    """A model and likelihood for one task at the given raw values."""
    constraint = gpytorch.constraints.GreaterThan(1e-3)
    likelihood = gpytorch.likelihoods.GaussianLikelihood(noise_constraint=constraint).double()
    constraint.lower_bound.fill_(1e-3)  # the constraint was made in single precision, which rounds 1e-3
    model = RecipeGP(x, y, likelihood, params).double()
    destinations = {
        "kernel.raw_outputscale": model.covar_module.raw_outputscale,
        "kernel.raw_lengthscale": model.covar_module.base_kernel.raw_lengthscale,
        "noise.raw": likelihood.noise_covar.raw_noise,
    }
    with torch.no_grad():
        for name, destination in destinations.items():
            destination.copy_(torch.tensor(raw[name], dtype=torch.float64))
    return model, likelihood


def objective_and_gradient(arrays, raw, tasks):
    """Each task's negative marginal log-likelihood divided by m, and the gradient of their mean by name."""
    params = {name: torch.tensor(value, requires_grad=True) for name, value in arrays.items()}
    gradient = {name: 0.0 for name in RAW_NAMES}
    losses = []
    for x, y, _ in tasks:
        x, y = torch.tensor(x), torch.tensor(y)
        model, likelihood = build(params, raw, x, y)
        model.train()
        likelihood.train()
        loss = -gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)(model(x), y)
        (loss / len(tasks)).backward()
        losses.append(loss.item())
        gradient["kernel.raw_outputscale"] += model.covar_module.raw_outputscale.grad.reshape(1).numpy()
        gradient["kernel.raw_lengthscale"] += model.covar_module.base_kernel.raw_lengthscale.grad[0].numpy()
        gradient["noise.raw"] += likelihood.noise_covar.raw_noise.grad.reshape(1).numpy()
    for name, value in params.items():
        gradient[name] = value.grad.numpy()
    return losses, gradient


def predict(arrays, raw, x, y, queries):
    """Predictive mean and standard deviation of y at the queries."""
    params = {name: torch.tensor(value) for name, value in arrays.items()}
    model, likelihood = build(params, raw, torch.tensor(x), torch.tensor(y))
    model.eval()
    likelihood.eval()
    with torch.no_grad():
        predictive = likelihood(model(torch.tensor(queries)))
        return predictive.mean.numpy(), predictive.stddev.numpy()
