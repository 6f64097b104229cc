"""Exact MAML, first-order MAML (JAX) and Reptile's proximal problem (PyTorch's L-BFGS) on the mean network with the
squared loss averaged over examples."""

import jax
import jax.numpy as jnp
import numpy as np
import torch

import gp_reference as gp
import recipe_reference


def loss(params, x, y):
    return jnp.mean((y - gp.mean_of(params, x)) ** 2)


def inner_steps(params, x, y, steps, rate):
    for _ in range(steps):
        gradient = jax.grad(loss)(params, x, y)
        params = {name: value - rate * gradient[name] for name, value in params.items()}
    return params


def maml(params, task, steps, rate):
    """The query loss after adaptation and its exact derivative in the initial parameters."""
    x, y, adapt = task

    def adapted_loss(start):
        return loss(inner_steps(start, x[adapt], y[adapt], steps, rate), x, y)

    return jax.value_and_grad(adapted_loss)(params)


def fomaml(params, task, steps, rate):
    """The gradient of the query loss at the adapted parameters."""
    x, y, adapt = task
    return jax.grad(loss)(inner_steps(params, x[adapt], y[adapt], steps, rate), x, y)


def reptile(params, task, beta, variance, rate, history, iterations):
    """One call of torch.optim.LBFGS without line search, from q = p. Returns q* and the objective before and after."""
    x, y = torch.tensor(task[0]), torch.tensor(task[1])
    start = {name: torch.tensor(np.asarray(value)) for name, value in params.items()}
    current = {name: value.clone().requires_grad_() for name, value in start.items()}

    def objective():
        fit = torch.mean((y - recipe_reference.apply_network(current, "mean", x)[:, 0]) ** 2)
        distance = sum(torch.sum((start[name] - current[name]) ** 2) for name in start)
        return fit + distance / (2 * beta * variance)

    optimiser = torch.optim.LBFGS(list(current.values()), lr=rate, max_iter=iterations, history_size=history)

    def closure():
        optimiser.zero_grad()
        value = objective()
        value.backward()
        return value

    before = optimiser.step(closure).item()
    after = objective().item()
    return {name: value.detach().numpy() for name, value in current.items()}, before, after
