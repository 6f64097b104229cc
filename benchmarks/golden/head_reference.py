"""Write the meta-gradient of every method on a linear softmax head, computed by PyTorch's autograd in double precision.

    python benchmarks/golden/head_reference.py [--output FILE]

Inputs are a formula of their index, so that the file holds settings and results only. Inner gradients are taken by autograd
too, with a graph where the method differentiates through them.
"""

import argparse
import json
import math
from pathlib import Path

import torch
from torch.nn import functional

DEFAULT_OUTPUT = Path(__file__).resolve().parents[2] / "crates" / "pacmeta" / "tests" / "golden" / "heads.json"
FEATURES, CLASSES, EXAMPLES, SUBSET, STEPS, PARTICLES = 7, 3, 6, 3, 3, 3
SIZE = CLASSES * FEATURES + CLASSES
LABELS = [0, 1, 2, 2, 0, 1]
ACCUMULATOR_START = 0.1


def numbers(seed: int, count: int) -> torch.Tensor:
    """Spread over [-1, 1), exact in double precision."""
    index = torch.arange(1, count + 1, dtype=torch.int64)
    return ((index * 2654435761 + seed * 40503 * index * index) % 2**32).double() / 2**31 - 1


def loss(head, features, labels):
    weight, bias = head[: CLASSES * FEATURES].reshape(CLASSES, FEATURES), head[CLASSES * FEATURES :]
    return functional.cross_entropy(features @ weight.T + bias, torch.tensor(labels))


def stein(offsets, slopes):
    """The direction of Stein variational gradient descent, bandwidth included in the graph."""
    count = len(offsets)
    if count == 1:
        return slopes
    squares = torch.sum((offsets[:, None] - offsets[None, :]) ** 2, dim=-1)
    upper = torch.triu_indices(count, count, offset=1)
    ordered = torch.sort(torch.sqrt(squares[upper[0], upper[1]])).values
    median = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    bandwidth = median**2 / math.log(count)
    kernel = torch.exp(-squares / bandwidth)
    repulsion = 2 / bandwidth * (offsets[None, :, :] - offsets[:, None, :])
    return torch.sum(kernel[:, :, None] * (slopes[None, :, :] + repulsion), dim=1) / count


def run(head, offsets, features, labels, temperature, variance, rate, optimiser, accumulator=None):
    """K steps of all particles; everything stays in the graph."""
    if accumulator is None:
        accumulator = torch.full_like(offsets, ACCUMULATOR_START)
    for _ in range(STEPS):
        slopes = []
        for offset in offsets:
            position = head + offset
            slope = torch.autograd.grad(loss(position, features, labels), position, create_graph=True)[0]
            slopes.append(offset / variance + temperature * slope)
        direction = stein(offsets, torch.stack(slopes))
        if optimiser == "adagrad":
            accumulator = accumulator + direction**2
            direction = direction / torch.sqrt(accumulator)
        offsets = offsets - rate * direction
    return offsets, accumulator


def meta_gradient(case):
    """Objective and derivatives in the head and in all features."""
    name, rate, optimiser = case["name"], case["rate"], case.get("optimiser", "gd")
    alpha, beta, variance = case.get("alpha"), case.get("beta"), case.get("sigma_squared")
    head = (0.4 * numbers(1, SIZE)).requires_grad_()
    features = numbers(2, EXAMPLES * FEATURES).reshape(EXAMPLES, FEATURES).requires_grad_()
    subset, subset_labels = features[:SUBSET], LABELS[:SUBSET]
    judged, judged_labels = features, LABELS
    if case.get("split") == "disjoint":
        judged, judged_labels = features[SUBSET:], LABELS[SUBSET:]
    start = torch.zeros(1, SIZE, dtype=torch.float64)
    if case.get("particles", 1) > 1:
        start = 0.3 * numbers(3, PARTICLES * SIZE).reshape(PARTICLES, SIZE)
    inner = {"rate": rate, "optimiser": optimiser}

    def plain():
        return head + run(head, start, subset, subset_labels, 1.0, math.inf, **inner)[0][0]

    if name == "multi-task":
        objective = loss(head, features, LABELS)
    elif name == "maml":
        objective = loss(plain(), judged, judged_labels)
    elif name == "fomaml":
        objective = loss(head + (plain() - head).detach(), judged, judged_labels)
    elif name == "reptile":
        offset = run(head, start, features, LABELS, 1.0, beta * variance, **inner)[0][0].detach()
        objective = loss(head.detach() + offset, features, LABELS)
        objective = objective + torch.sum((head - (head.detach() + offset)) ** 2) / (2 * beta * variance)
    elif name == "bmaml":
        chaser, accumulator = run(head, start, subset, subset_labels, alpha, variance, **inner)
        leader, _ = run(head, chaser, judged, judged_labels, beta, variance, accumulator=accumulator, **inner)
        objective = torch.sum(((head + chaser) - (head + leader).detach()) ** 2)
    elif name == "pacoh":
        offset = run(head, start, features, LABELS, beta, variance, **inner)[0][0].detach()
        objective = loss(head + offset, features, LABELS)
    else:
        w_alpha = run(head, start, subset, subset_labels, alpha, variance, **inner)[0][0].detach()
        w_beta = run(head, start, judged, judged_labels, beta, variance, **inner)[0][0].detach()
        objective = loss(head + w_alpha, judged, judged_labels) + alpha / beta * (
            loss(head + w_beta, subset, subset_labels) - loss(head + w_alpha, subset, subset_labels)
        )
    gradients = torch.autograd.grad(objective, [head, features], allow_unused=True)
    return {
        **case,
        "objective": objective.item(),
        "head": gradients[0].tolist(),
        "features": gradients[1].reshape(-1).tolist(),
    }


def cases():
    gibbs = {"alpha": 3.0, "beta": 7.0, "sigma_squared": 0.8}
    adagrad = {"rate": 0.2, "optimiser": "adagrad"}
    yield {"name": "multi-task", "rate": 0.3}
    yield {"name": "fomaml", "rate": 0.3}
    yield {"name": "fomaml", "rate": 0.3, "split": "disjoint"}
    yield {"name": "maml", "rate": 0.3}
    yield {"name": "maml", "split": "disjoint", **adagrad}
    yield {"name": "reptile", "rate": 0.3, **gibbs}
    yield {"name": "bmaml", "rate": 0.1, **gibbs}
    yield {"name": "bmaml", **adagrad, **gibbs}
    yield {"name": "bmaml", "split": "disjoint", **adagrad, **gibbs}
    yield {"name": "bmaml", "particles": PARTICLES, **adagrad, **gibbs}
    yield {"name": "bmaml", "particles": PARTICLES, "rate": 0.1, **gibbs}
    yield {"name": "pacoh", **adagrad, **gibbs}
    yield {"name": "pacmaml", **adagrad, **gibbs}
    yield {"name": "pacmaml", "split": "disjoint", **adagrad, **gibbs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT)
    lines = [json.dumps(meta_gradient(case)) for case in cases()]
    parser.parse_args().output.write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main()
