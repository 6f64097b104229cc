"""What every implementation in this folder has in common: sizes, temperatures, random tasks and parameters."""

import numpy as np

TASKS, BATCH, ADAPT = 20, 5, 5
WIDTHS, FEATURE_DIMENSION = (32, 32), 2
HYPER_PRIOR_VARIANCE = 3.0
ADAM = {"rate": 3e-3, "first": 0.9, "second": 0.999, "epsilon": 1e-8}
EXAMPLES = (5, 10, 30, 50, 100)
METHODS = ("pacoh", "pacmaml")


def temperatures(examples):
    """beta/m = 100 and alpha/beta = 0.2, the paper's usual choice."""
    beta = 100.0 * examples
    return beta, 0.2 * beta


def initial_parameters(seed=0):
    random = np.random.default_rng(seed)
    params = {}
    for network, outputs in (("mean", 1), ("features", FEATURE_DIMENSION)):
        fan_in = 1
        layers = [(f"hidden.{index}", width) for index, width in enumerate(WIDTHS)] + [("output", outputs)]
        for layer, width in layers:
            limit = 1 / np.sqrt(fan_in)
            params[f"{network}.{layer}.weight"] = random.uniform(-limit, limit, (width, fan_in))
            params[f"{network}.{layer}.bias"] = random.uniform(-limit, limit, width)
            fan_in = width
    return params


def sinusoid_tasks(examples, seed=0):
    """x [TASKS, m, 1] and y [TASKS, m], standardised over all examples."""
    random = np.random.default_rng(seed)
    x = random.uniform(-5, 5, (TASKS, examples))
    amplitude = random.uniform(0.7, 1.3, (TASKS, 1))
    phase = random.normal(0, 0.1, (TASKS, 1))
    offset = random.normal(5, 0.1, (TASKS, 1))
    slope = random.normal(0.5, 0.2, (TASKS, 1))
    y = slope * x + amplitude * np.sin(1.5 * (x - phase)) + offset + random.normal(0, 0.1, x.shape)
    return ((x - x.mean()) / x.std())[..., None], (y - y.mean()) / y.std()


def random_batches(examples, iterations, seed=0):
    """Task indices [iterations, BATCH] with replacement, S' indices [iterations, BATCH, ADAPT] without."""
    random = np.random.default_rng(seed)
    tasks = random.integers(TASKS, size=(iterations, BATCH))
    adapt = random.permuted(np.broadcast_to(np.arange(examples), (iterations, BATCH, examples)), axis=-1)
    return tasks, adapt[..., :ADAPT]
