"""The Gaussian-process base learner in JAX, in double precision, as plainly as the formulas read.

Notation: temperature tau on m examples is Gaussian noise of variance s2 = m / (2 tau); A = K + s2 I;
r = y - mu(X); a = A^-1 r. Gradients come from automatic differentiation of these values, so that they share
nothing with derivative rules written by hand.
"""

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve

HYPER_PRIOR_VARIANCE = 3.0
CALIBRATION_LEVELS = np.linspace(0.05, 0.95, 20)


def hidden_layers(params, network):
    return sum(name.startswith(f"{network}.hidden.") and name.endswith(".weight") for name in params)


def apply_network(params, network, x):
    """A tanh multi-layer perceptron; weights are [out, in]."""
    for layer in range(hidden_layers(params, network)):
        prefix = f"{network}.hidden.{layer}"
        x = jnp.tanh(x @ params[f"{prefix}.weight"].T + params[f"{prefix}.bias"])
    return x @ params[f"{network}.output.weight"].T + params[f"{network}.output.bias"]


def mean_of(params, x):
    return apply_network(params, "mean", x)[:, 0]


def kernel(params, x1, x2):
    """k(x, x') = 1/2 exp(-|phi(x) - phi(x')|^2)."""
    difference = apply_network(params, "features", x1)[:, None] - apply_network(params, "features", x2)[None, :]
    return 0.5 * jnp.exp(-jnp.sum(difference**2, axis=-1))


def posterior(params, x, y, temperature, queries):
    """Mean and covariance of h at the queries under the Gibbs posterior, and the noise variance s2."""
    noise = len(y) / (2 * temperature)
    factor = cho_factor(kernel(params, x, x) + noise * jnp.eye(len(y)), lower=True)
    cross = kernel(params, x, queries)
    mean = mean_of(params, queries) + cross.T @ cho_solve(factor, y - mean_of(params, x))
    covariance = kernel(params, queries, queries) - cross.T @ cho_solve(factor, cross)
    return mean, covariance, noise


def risk(params, x, y, temperature, x_scored, y_scored):
    """L^(Q, S): the expected squared loss over the posterior, averaged over the scored examples."""
    mean, covariance, _ = posterior(params, x, y, temperature, x_scored)
    return (jnp.sum((y_scored - mean) ** 2) + jnp.trace(covariance)) / len(y_scored)


def log_partition(params, x, y, temperature):
    """log Z_tau(S)."""
    size = len(y)
    noise = size / (2 * temperature)
    lower, _ = cho_factor(kernel(params, x, x) + noise * jnp.eye(size), lower=True)
    residual = y - mean_of(params, x)
    log_determinant = 2 * jnp.sum(jnp.log(jnp.diag(lower)))
    return (
        -0.5 * residual @ cho_solve((lower, True), residual) - 0.5 * log_determinant + 0.5 * size * jnp.log(noise)
    )


def kl_divergence(params, x, y, temperature):
    """KL(Q||P) of the two Gaussians over h(X).

    The textbook formula with prior covariance K and posterior covariance s2 A^-1 K, after K has been cancelled
    by hand (K is too close to singular to be inverted in double precision): trace(K^-1 C) = s2 trace(A^-1),
    the means' distance is a' K a and log(|K|/|C|) = log|A| - m log s2.
    """
    size = len(y)
    noise = size / (2 * temperature)
    covariance = kernel(params, x, x)
    factor = cho_factor(covariance + noise * jnp.eye(size), lower=True)
    weights = cho_solve(factor, y - mean_of(params, x))
    trace = noise * jnp.trace(cho_solve(factor, jnp.eye(size)))
    log_ratio = 2 * jnp.sum(jnp.log(jnp.diag(factor[0]))) - size * jnp.log(noise)
    return 0.5 * (trace - size + weights @ covariance @ weights + log_ratio)


def squared_norm(params):
    return sum(jnp.sum(value**2) for value in params.values())


def pacoh_bound(params, tasks, beta):
    """The terms of mean W_1 + xi |theta|^2 / (2 sigma0^2)."""
    terms = []
    for x, y, _ in tasks:
        log_z = log_partition(params, x, y, beta)
        terms.append(
            {
                "log_z": log_z,
                "risk": risk(params, x, y, beta, x, y),
                "kl": kl_divergence(params, x, y, beta),
                "w": -log_z / beta,
            }
        )
    return _total("pacoh", params, terms, beta)


def pacmaml_bound(params, tasks, beta, alpha):
    """The terms of mean W_2 + xi |theta|^2 / (2 sigma0^2)."""
    terms = []
    for x, y, adapt in tasks:
        x_adapt, y_adapt = x[adapt], y[adapt]
        log_z = log_partition(params, x_adapt, y_adapt, alpha)
        all_risk = risk(params, x_adapt, y_adapt, alpha, x, y)
        adapt_risk = risk(params, x_adapt, y_adapt, alpha, x_adapt, y_adapt)
        terms.append(
            {
                "log_z": log_z,
                "risk": all_risk,
                "risk_adapt": adapt_risk,
                "kl": kl_divergence(params, x_adapt, y_adapt, alpha),
                "w": -log_z / beta + all_risk - alpha / beta * adapt_risk,
            }
        )
    return _total("pacmaml", params, terms, beta)


def _total(objective, params, terms, beta):
    xi = 1 / (len(terms) * beta)
    hyper_kl = squared_norm(params) / (2 * HYPER_PRIOR_VARIANCE)
    total = sum(term["w"] for term in terms) / len(terms) + xi * hyper_kl
    return {"objective": objective, "xi": xi, "hyper_kl": hyper_kl, "total": total, "tasks": terms}


def joint_log_density(mean, covariance, noise, y):
    """log N(y | mean, covariance + s2 I) divided by the number of points."""
    size = len(y)
    lower, _ = cho_factor(covariance + noise * jnp.eye(size), lower=True)
    residual = y - mean
    quadratic = residual @ cho_solve((lower, True), residual)
    log_determinant = 2 * jnp.sum(jnp.log(jnp.diag(lower)))
    return -0.5 * (quadratic + log_determinant + size * jnp.log(2 * jnp.pi)) / size


def calibration_error(mean, deviation, y):
    """Root mean square distance between levels and the share of points whose predictive CDF is at most the level."""
    cdf = jax.scipy.stats.norm.cdf(y, mean, deviation)
    shares = np.mean(np.asarray(cdf)[:, None] <= CALIBRATION_LEVELS[None, :], axis=0)
    return np.sqrt(np.mean((shares - CALIBRATION_LEVELS) ** 2))
