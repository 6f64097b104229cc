"""The same meta-iteration in JAX as the formulas stand in a textbook: one function of one task, `vmap`, `grad`, no rules of
its own. Loop, Adam and data are those of `jax_gp`."""

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve

import jax_gp
import setting


def network(params, name, x):
    for layer in range(len(setting.WIDTHS)):
        x = jnp.tanh(x @ params[f"{name}.hidden.{layer}.weight"].T + params[f"{name}.hidden.{layer}.bias"])
    return x @ params[f"{name}.output.weight"].T + params[f"{name}.output.bias"]


def kernel(left, right):
    return 0.5 * jnp.exp(-jnp.sum((left[:, None, :] - right[None, :, :]) ** 2, axis=-1))


def log_z(residual, covariance, noise):
    size = len(residual)
    factor = cho_factor(covariance + noise * jnp.eye(size), lower=True)
    log_determinant = 2 * jnp.sum(jnp.log(jnp.diag(factor[0])))
    value = -0.5 * residual @ cho_solve(factor, residual) - 0.5 * log_determinant + 0.5 * size * jnp.log(noise)
    return value, factor


def task_objective(params, method, x, y, adapt, alpha, beta):
    mean, features = network(params, "mean", x)[:, 0], network(params, "features", x)
    if method == "pacoh":
        return -log_z(y - mean, kernel(features, features), len(y) / (2 * beta))[0] / beta
    seen = features[adapt]
    noise = len(adapt) / (2 * alpha)
    residual = y[adapt] - mean[adapt]
    value, factor = log_z(residual, kernel(seen, seen), noise)
    cross = kernel(seen, features)
    posterior_mean = mean + cross.T @ cho_solve(factor, residual)
    posterior_variance = 0.5 - jnp.sum(cross * cho_solve(factor, cross), axis=0)
    losses = (y - posterior_mean) ** 2 + posterior_variance
    return -value / beta + jnp.mean(losses) - alpha / beta * jnp.mean(losses[adapt])


def objective(params, method, x, y, adapt, alpha, beta, xi):
    task = jax.vmap(lambda x, y, adapt: task_objective(params, method, x, y, adapt, alpha, beta))
    squares = sum(jnp.sum(value**2) for value in params.values())
    return jnp.mean(task(x, y, adapt)) + xi * squares / (2 * setting.HYPER_PRIOR_VARIANCE)


def objective_and_gradient(params, method, x, y, adapt, alpha, beta, xi):
    function = jax.value_and_grad(lambda values: objective(values, method, x, y, jnp.asarray(adapt), alpha, beta, xi))
    return function({name: jnp.asarray(value) for name, value in params.items()})


def training(method, examples, iterations):
    beta, alpha = setting.temperatures(examples)
    xi = 1 / (setting.TASKS * beta)
    return jax_gp.train_loop(lambda p, x, y, s: objective(p, method, x, y, s, alpha, beta, xi), examples, iterations)
