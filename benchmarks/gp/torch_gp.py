"""The PACOH and PACMAML meta-iteration in PyTorch (eager, batched over tasks) and PACOH's in GPyTorch."""

import warnings

# GPyTorch's dependencies use functions that PyTorch has deprecated; nothing here can change that.
warnings.filterwarnings("ignore", category=FutureWarning, module="torch")

import gpytorch
import numpy as np
import torch

import setting

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)


def apply_network(params, network, x):
    for layer in range(len(setting.WIDTHS)):
        prefix = f"{network}.hidden.{layer}"
        x = torch.tanh(torch.nn.functional.linear(x, params[f"{prefix}.weight"], params[f"{prefix}.bias"]))
    return torch.nn.functional.linear(x, params[f"{network}.output.weight"], params[f"{network}.output.bias"])


def kernel(left, right):
    return 0.5 * torch.exp(-((left[:, :, None, :] - right[:, None, :, :]) ** 2).sum(-1))


def _log_z(lower, whitened, noise):
    size = lower.shape[-1]
    log_diagonal = lower.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return -0.5 * (whitened**2).sum((-2, -1)) - log_diagonal + 0.5 * size * np.log(noise)


def w1(params, x, y, beta):
    size = y.shape[1]
    noise = size / (2 * beta)
    features = apply_network(params, "features", x)
    residual = y[..., None] - apply_network(params, "mean", x)
    lower = torch.linalg.cholesky(kernel(features, features) + noise * torch.eye(size))
    whitened = torch.linalg.solve_triangular(lower, residual, upper=False)
    return -_log_z(lower, whitened, noise) / beta


def w2(params, x, y, adapt, alpha, beta):
    size = adapt.shape[1]
    noise = size / (2 * alpha)
    features = apply_network(params, "features", x)
    residual = y - apply_network(params, "mean", x)[..., 0]
    seen = torch.take_along_dim(features, adapt[..., None], 1)
    lower = torch.linalg.cholesky(kernel(seen, seen) + noise * torch.eye(size))
    right = torch.cat([kernel(seen, features), residual.gather(1, adapt)[..., None]], dim=-1)
    solved = torch.linalg.solve_triangular(lower, right, upper=False)
    cross, whitened = solved[..., :-1], solved[..., -1:]
    losses = (residual - (cross * whitened).sum(1)) ** 2 + 0.5 - (cross**2).sum(1)
    return -_log_z(lower, whitened, noise) / beta + losses.mean(1) - alpha / beta * losses.gather(1, adapt).mean(1)


class PaperGP(gpytorch.models.ExactGP):
    """Kernel 1/2 exp(-|phi - phi'|^2) as a scaled RBF kernel of lengthscale sqrt(1/2), nothing of it learned."""

    def __init__(self, x, y, likelihood, params):
        super().__init__(x, y, likelihood)
        self.tensors = params
        batch = torch.Size([x.shape[0]])
        base = gpytorch.kernels.RBFKernel(batch_shape=batch)
        self.covar_module = gpytorch.kernels.ScaleKernel(base, batch_shape=batch)
        self.covar_module.outputscale = 0.5
        self.covar_module.base_kernel.lengthscale = np.sqrt(0.5)
        self.covar_module.requires_grad_(False)

    def forward(self, x):
        mean = apply_network(self.tensors, "mean", x)[..., 0]
        return gpytorch.distributions.MultivariateNormal(
            mean, self.covar_module(apply_network(self.tensors, "features", x))
        )


def gpytorch_w1(params, x, y, beta):
    """A function of a batch that computes W_1 by ExactMarginalLogLikelihood; the model is built once."""
    size = y.shape[1]
    noise = size / (2 * beta)
    likelihood = gpytorch.likelihoods.FixedNoiseGaussianLikelihood(torch.full(y.shape, noise))
    model = PaperGP(x, y, likelihood, params)
    model.train()
    likelihood.train()
    marginal = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    constant = 0.5 * size * np.log(2 * np.pi * noise)

    def w(x, y):
        model.set_train_data(x, y, strict=False)
        return -(marginal(model(x), y) * size + constant) / beta

    return w


def objective(params, implementation, method, x, y, adapt, alpha, beta, xi):
    if implementation == "gpytorch":
        w = gpytorch_w1(params, x, y, beta)(x, y)
    else:
        w = w1(params, x, y, beta) if method == "pacoh" else w2(params, x, y, adapt, alpha, beta)
    return w.mean() + xi * _squared_norm(params) / (2 * setting.HYPER_PRIOR_VARIANCE)


def _squared_norm(params):
    return torch.cat([value.ravel() for value in params.values()]).square().sum()


def objective_and_gradient(params, implementation, method, x, y, adapt, alpha, beta, xi):
    params = {name: torch.tensor(value, requires_grad=True) for name, value in params.items()}
    batch = torch.tensor(x), torch.tensor(y), torch.tensor(adapt)
    value = objective(params, implementation, method, *batch, alpha, beta, xi)
    value.backward()
    return value.item(), {name: tensor.grad.numpy() for name, tensor in params.items()}


def training(implementation, method, examples, iterations):
    """A call that runs `iterations` more Adam steps; the set-up is paid once, outside."""
    beta, alpha = setting.temperatures(examples)
    xi = 1 / (setting.TASKS * beta)
    all_x, all_y = map(torch.tensor, setting.sinusoid_tasks(examples))
    all_tasks, all_adapt = map(torch.tensor, setting.random_batches(examples, iterations))

    params = {name: torch.tensor(v, requires_grad=True) for name, v in setting.initial_parameters().items()}
    adam = setting.ADAM
    optimiser = torch.optim.Adam(
        params.values(), adam["rate"], (adam["first"], adam["second"]), adam["epsilon"], fused=True
    )
    marginal = None
    if implementation == "gpytorch":
        marginal = gpytorch_w1(params, all_x[all_tasks[0]], all_y[all_tasks[0]], beta)

    def run():
        losses = []
        for tasks, adapt in zip(all_tasks, all_adapt):
            x, y = all_x[tasks], all_y[tasks]
            if marginal:
                w = marginal(x, y)
            elif method == "pacoh":
                w = w1(params, x, y, beta)
            else:
                w = w2(params, x, y, adapt, alpha, beta)
            loss = w.mean() + xi * _squared_norm(params) / (2 * setting.HYPER_PRIOR_VARIANCE)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.detach())
        return torch.stack(losses).numpy()

    return run
