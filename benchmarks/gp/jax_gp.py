"""The PACOH and PACMAML meta-iteration in JAX: one jitted `lax.scan` over iterations, tasks batched by `vmap`.

What was tried on one core at m = 10 and 100: PACOH's closed-form derivative as a custom rule over an explicit inverse is
clearly faster at m = 100 than differentiating the Cholesky factorisation. Within noise of each other: points along
the fast or the slow axis of the networks; LAPACK's 5 x 5 factorisation for PACMAML or one unrolled into scalar
operations. XLA's own tanh is faster than one written with exp.
"""

import os

# Before JAX is imported: one thread.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")

import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.scipy.linalg import cho_solve, solve_triangular

import setting


def apply_network(params, network, x):
    """[inputs, points] to [outputs, points]."""
    for layer in range(len(setting.WIDTHS)):
        prefix = f"{network}.hidden.{layer}"
        weight, bias = params[f"{prefix}.weight"], params[f"{prefix}.bias"][:, None]
        # One input: an outer product, which fuses with the tanh.
        x = jnp.tanh((weight * x if x.shape[0] == 1 else weight @ x) + bias)
    return params[f"{network}.output.weight"] @ x + params[f"{network}.output.bias"][:, None]


def prior(params, x):
    """Means [tasks, m] and features [tasks, m, dimension] of x [tasks, m, 1]."""
    tasks, examples, inputs = x.shape
    columns = x.reshape(-1, inputs).T
    mean = apply_network(params, "mean", columns)[0].reshape(tasks, examples)
    return mean, apply_network(params, "features", columns).T.reshape(tasks, examples, -1)


def kernel(left, right):
    distance = sum((left[:, None, d] - right[None, :, d]) ** 2 for d in range(left.shape[1]))
    return 0.5 * jnp.exp(-distance)


def _minus_log_z(mean, features, y, noise):
    """-log Z with its derivatives: A^-1 r in the mean (negated) and, with G = (A^-1 - a a') o K, -2 (diag(G 1) - G) phi
    in the features."""
    size = len(y)
    covariance = kernel(features, features)
    lower = jnp.linalg.cholesky(covariance + noise * jnp.eye(size), symmetrize_input=False)
    inverse = cho_solve((lower, True), jnp.eye(size))
    residual = y - mean
    weights = inverse @ residual
    value = 0.5 * residual @ weights + jnp.sum(jnp.log(jnp.diag(lower))) - 0.5 * size * jnp.log(noise)
    pull = (inverse - weights[:, None] * weights[None, :]) * covariance
    return value, (-weights, -2 * (jnp.sum(pull, axis=1)[:, None] * features - pull @ features))


@jax.custom_vjp
def minus_log_z(mean, features, y, noise):
    return _minus_log_z(mean, features, y, noise)[0]


minus_log_z.defvjp(
    _minus_log_z, lambda saved, cotangent: (cotangent * saved[0], cotangent * saved[1], None, None)
)


def w1(mean, features, y, beta):
    return minus_log_z(mean, features, y, len(y) / (2 * beta)) / beta


def w2(mean, features, y, adapt, alpha, beta):
    size = len(adapt)
    noise = size / (2 * alpha)
    seen = features[adapt]
    lower = jnp.linalg.cholesky(kernel(seen, seen) + noise * jnp.eye(size))
    whitened = solve_triangular(lower, y[adapt] - mean[adapt], lower=True)
    cross = solve_triangular(lower, kernel(seen, features), lower=True)
    losses = (y - mean - whitened @ cross) ** 2 + 0.5 - jnp.sum(cross**2, axis=0)
    log_z = -0.5 * whitened @ whitened - jnp.sum(jnp.log(jnp.diag(lower))) + 0.5 * size * jnp.log(noise)
    return -log_z / beta + jnp.mean(losses) - alpha / beta * jnp.mean(losses[adapt])


def objective(params, method, x, y, adapt, alpha, beta, xi):
    """Mean W over the batch plus xi |theta|^2 / (2 sigma0^2)."""
    mean, features = prior(params, x)
    if method == "pacoh":
        w = jax.vmap(lambda a, b, c: w1(a, b, c, beta))(mean, features, y)
    else:
        w = jax.vmap(lambda a, b, c, d: w2(a, b, c, d, alpha, beta))(mean, features, y, adapt)
    squares = sum(jnp.sum(value**2) for value in params.values())
    return jnp.mean(w) + xi * squares / (2 * setting.HYPER_PRIOR_VARIANCE)


def objective_and_gradient(params, method, x, y, adapt, alpha, beta, xi):
    function = jax.value_and_grad(lambda values: objective(values, method, x, y, jnp.asarray(adapt), alpha, beta, xi))
    return function({name: jnp.asarray(value) for name, value in params.items()})


def train_loop(loss, examples, iterations):
    """A call that runs `iterations` Adam steps on `loss(params, x, y, adapt)` and returns the losses."""
    start, unravel = ravel_pytree({name: jnp.asarray(v) for name, v in setting.initial_parameters().items()})
    all_x, all_y = map(jnp.asarray, setting.sinusoid_tasks(examples))
    first, second = setting.ADAM["first"], setting.ADAM["second"]

    def step(state, draw):
        theta, momentum, square, count = state
        tasks, adapt = draw
        value, gradient = jax.value_and_grad(lambda flat: loss(unravel(flat), all_x[tasks], all_y[tasks], adapt))(theta)
        count = count + 1
        momentum = first * momentum + (1 - first) * gradient
        square = second * square + (1 - second) * gradient**2
        scale = jnp.sqrt(square / (1 - second**count)) + setting.ADAM["epsilon"]
        theta = theta - setting.ADAM["rate"] * momentum / (1 - first**count) / scale
        return (theta, momentum, square, count), value

    @jax.jit
    def train(theta, draws):
        return jax.lax.scan(step, (theta, jnp.zeros_like(theta), jnp.zeros_like(theta), 0.0), draws)[1]

    draws = tuple(jnp.asarray(draw, jnp.int32) for draw in setting.random_batches(examples, iterations))
    return lambda: train(start, draws).block_until_ready()


def training(method, examples, iterations):
    beta, alpha = setting.temperatures(examples)
    xi = 1 / (setting.TASKS * beta)
    return train_loop(lambda p, x, y, s: objective(p, method, x, y, s, alpha, beta, xi), examples, iterations)


def networks_only(examples, iterations):
    """The same loop with the Gaussian process left out: both networks forward and backward, and Adam."""

    def loss(params, x, y, _):
        mean, features = prior(params, x)
        return jnp.mean(mean * y) + jnp.mean(features**2)

    return train_loop(loss, examples, iterations)
