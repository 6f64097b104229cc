"""The same bounds in 160-digit arithmetic (mpmath), by the definitions: every posterior is written out as a Gaussian
and compared with the prior by the textbook KL formula, K inverted and all. Nothing here is shared with
`gp_reference.py`. Values rounded from here to doubles are exact to the last bit or nearly so; directional
derivatives by central differences are good to about 25 digits."""

import mpmath as mp

DIGITS = 160
mp.mp.dps = DIGITS
HYPER_PRIOR_VARIANCE = 3


def _matrix(array):
    return [[mp.mpf(float(value)) for value in row] for row in array]


def exact_parameters(params):
    """Doubles as exact rationals in the tree of names; vectors stay vectors."""
    tree = {}
    for name, value in params.items():
        tree[name] = _matrix(value) if value.ndim == 2 else [mp.mpf(float(entry)) for entry in value]
    return tree


def shifted(tree, direction, step):
    """theta + step * direction."""
    moved = {}
    for name, value in tree.items():
        if isinstance(value[0], list):
            moved[name] = [[v + step * d for v, d in zip(vs, ds)] for vs, ds in zip(value, direction[name])]
        else:
            moved[name] = [v + step * d for v, d in zip(value, direction[name])]
    return moved


def _network(tree, network, point):
    layer = 0
    while f"{network}.hidden.{layer}.weight" in tree:
        weight, bias = tree[f"{network}.hidden.{layer}.weight"], tree[f"{network}.hidden.{layer}.bias"]
        point = [mp.tanh(mp.fdot(row, point) + b) for row, b in zip(weight, bias)]
        layer += 1
    weight, bias = tree[f"{network}.output.weight"], tree[f"{network}.output.bias"]
    return [mp.fdot(row, point) + b for row, b in zip(weight, bias)]


def _kernel(left, right):
    return mp.matrix([[mp.exp(-mp.fsum((a - b) ** 2 for a, b in zip(f, g))) / 2 for g in right] for f in left])


def _log_determinant(matrix):
    lower = mp.cholesky(matrix)
    return 2 * mp.fsum(mp.log(lower[i, i]) for i in range(lower.rows))


def _task_terms(tree, x, y, adapt, temperature):
    """log Z, risk on the whole task, risk on the adaptation set, KL; the posterior sees the adaptation set."""
    means = [_network(tree, "mean", row)[0] for row in x]
    features = [_network(tree, "features", row) for row in x]
    seen = [features[i] for i in adapt]
    size = len(adapt)
    noise = mp.mpf(size) / (2 * temperature)
    prior_covariance = _kernel(seen, seen)
    noisy = prior_covariance + noise * mp.eye(size)
    inverse = mp.inverse(noisy)
    residual = mp.matrix([y[i] - means[i] for i in adapt])
    weights = inverse * residual
    log_z = (-(residual.T * weights)[0] - _log_determinant(noisy) + size * mp.log(noise)) / 2

    def risk(indices):
        total = mp.mpf(0)
        for index in indices:
            cross = _kernel(seen, [features[index]])
            mean = means[index] + (cross.T * weights)[0]
            variance = mp.mpf(1) / 2 - (cross.T * inverse * cross)[0]
            total += (y[index] - mean) ** 2 + variance
        return total / len(indices)

    shift = prior_covariance * weights
    posterior_covariance = prior_covariance - prior_covariance * inverse * prior_covariance
    prior_inverse = mp.inverse(prior_covariance)
    product = prior_inverse * posterior_covariance
    kl = (
        mp.fsum(product[i, i] for i in range(size))
        - size
        + (shift.T * prior_inverse * shift)[0]
        + _log_determinant(prior_covariance)
        - _log_determinant(posterior_covariance)
    ) / 2
    return log_z, risk(range(len(y))), risk(adapt), kl


def bound(tree, tasks, beta, alpha=None):
    """The bound's terms; `alpha` None means PACOH. `tasks` as (x, y, adapt) of doubles."""
    beta = mp.mpf(beta)
    terms = []
    for x, y, adapt in tasks:
        x, y = _matrix(x), [mp.mpf(float(value)) for value in y]
        if alpha is None:
            log_z, risk, _, kl = _task_terms(tree, x, y, range(len(y)), beta)
            terms.append({"log_z": log_z, "risk": risk, "kl": kl, "w": risk + kl / beta})
        else:
            log_z, risk, risk_adapt, kl = _task_terms(tree, x, y, adapt, mp.mpf(alpha))
            terms.append({"log_z": log_z, "risk": risk, "risk_adapt": risk_adapt, "kl": kl, "w": risk + kl / beta})
    xi = 1 / (len(terms) * beta)
    squares = mp.fsum(
        v * v for value in tree.values() for row in value for v in (row if isinstance(row, list) else [row])
    )
    hyper_kl = squares / (2 * HYPER_PRIOR_VARIANCE)
    total = mp.fsum(term["w"] for term in terms) / len(terms) + xi * hyper_kl
    return {"xi": xi, "hyper_kl": hyper_kl, "total": total, "tasks": terms}


def directional_derivative(tree, direction, tasks, beta, alpha=None):
    step = mp.mpf(10) ** -25
    forward = bound(shifted(tree, direction, step), tasks, beta, alpha)["total"]
    backward = bound(shifted(tree, direction, -step), tasks, beta, alpha)["total"]
    return (forward - backward) / (2 * step)
