"""Write the gradients of one PACMAML and one MAML task on the upper layer of a small encoder, by PyTorch's automatic differentiation.

    python benchmarks/golden/text_step_reference.py

One BERT layer (hidden 4, two heads, feed-forward 5, erf-GELU), mean pooling and a softmax head of two classes adapt by three Adagrad steps
to the first two of four sequences; everything in f64. Numbers come from a formula that the test in `crates/pacmeta/tests/networks/encoders.rs`
repeats. Needs torch.
"""

import json
import math
from pathlib import Path

import torch

torch.set_default_dtype(torch.float64)
HIDDEN, HEADS, WIDE, CLASSES = 4, 2, 5, 2
STARTS, LABELS, SUBSET = [0, 2, 5, 6, 9], [0, 1, 1, 0], 2
STEPS, RATE, START = 3, 0.05, 0.1
ALPHA, BETA, SIGMA_SQUARED = 3.0, 6.0, 0.5
SHAPES = [(HIDDEN, HIDDEN), (HIDDEN,)] * 4 + [(HIDDEN,), (HIDDEN,), (WIDE, HIDDEN), (WIDE,), (HIDDEN, WIDE), (HIDDEN,), (HIDDEN,), (HIDDEN,)]
SHAPES += [(CLASSES, HIDDEN), (CLASSES,)]
SIZE = sum(math.prod(shape) for shape in SHAPES)


def formula(count, phase):
    return torch.tensor([0.6 * math.sin(1.3 * place + phase) for place in range(count)])


def norm(x, weight, bias):
    mean = x.mean(-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(-1, keepdim=True)
    return weight * (x - mean) / torch.sqrt(variance + 1e-12) + bias


def loss(parameters, states, first, end):
    parts, place = [], 0
    for shape in SHAPES:
        size = math.prod(shape)
        parts.append(parameters[place : place + size].reshape(shape))
        place += size
    q, qb, k, kb, v, vb, o, ob, n1, n1b, up, upb, down, downb, n2, n2b, head, bias = parts
    total = 0.0
    for sequence in range(first, end):
        x = states[STARTS[sequence] : STARTS[sequence + 1]]
        split = lambda y: y.reshape(len(x), HEADS, HIDDEN // HEADS).transpose(0, 1)
        queries, keys, values = split(x @ q.T + qb), split(x @ k.T + kb), split(x @ v.T + vb)
        scores = torch.softmax(queries @ keys.transpose(1, 2) / math.sqrt(HIDDEN // HEADS), -1)
        mixed = (scores @ values).transpose(0, 1).reshape(len(x), HIDDEN)
        a = norm(x + mixed @ o.T + ob, n1, n1b)
        inner = a @ up.T + upb
        inner = 0.5 * inner * (1 + torch.erf(inner / math.sqrt(2)))
        y = norm(a + inner @ down.T + downb, n2, n2b)
        logits = head @ y.mean(0) + bias
        total = total + torch.logsumexp(logits, 0) - logits[LABELS[sequence]]
    return total / (end - first)


def steps(start, states, first, end, temperature, sigma_squared, create_graph):
    position, accumulator = start, torch.full((SIZE,), START)
    for _ in range(STEPS):
        if not create_graph:
            position = position.detach().requires_grad_()
        (slope,) = torch.autograd.grad(loss(position, states, first, end), position, create_graph=create_graph)
        slope = temperature * slope
        if sigma_squared is not None:
            slope = slope + (position - start) / sigma_squared
        accumulator = accumulator + slope**2
        position = position - RATE * slope / torch.sqrt(accumulator)
    return position


def main():
    parameters, states = formula(SIZE, 0.2).requires_grad_(), formula(STARTS[-1] * HIDDEN, 0.9).reshape(-1, HIDDEN).requires_grad_()
    adapted = steps(parameters, states, 0, SUBSET, 1.0, None, True)
    maml = torch.autograd.grad(loss(adapted, states, 0, 4), (parameters, states))

    fixed, still = parameters.detach(), states.detach()
    offset_a = (steps(fixed, still, 0, SUBSET, ALPHA, SIGMA_SQUARED, False) - fixed).detach()
    offset_b = (steps(fixed, still, 0, 4, BETA, SIGMA_SQUARED, False) - fixed).detach()
    objective = loss(parameters + offset_a, states, 0, 4) + ALPHA / BETA * (
        loss(parameters + offset_b, states, 0, SUBSET) - loss(parameters + offset_a, states, 0, SUBSET)
    )
    pacmaml = torch.autograd.grad(objective, (parameters, states))
    flat = lambda gradients: torch.cat([gradient.reshape(-1) for gradient in gradients]).tolist()
    folder = Path(__file__).resolve().parents[2] / "crates" / "pacmeta" / "tests" / "golden"
    text = json.dumps({"torch": torch.__version__, "maml": flat(maml), "pacmaml": flat(pacmaml), "objective": objective.item()})
    (folder / "text_steps.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
