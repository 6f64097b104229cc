"""Write features and gradients of two small convolutional bodies, computed by PyTorch in double precision.

    python benchmarks/golden/conv_reference.py [--output FILE]

Inputs are a formula of their index, so that the file holds results only: a name and numbers on each line.
"""

import argparse
from pathlib import Path

import torch
from torch.nn import functional

DEFAULT_OUTPUT = Path(__file__).resolve().parents[2] / "crates" / "pacmeta-tensor" / "tests" / "golden" / "conv.txt"
IMAGES, HEIGHT, WIDTH, CHANNELS, FILTERS, BLOCKS = 3, 9, 7, 2, 3, 2


def numbers(seed: int, count: int) -> torch.Tensor:
    """Spread over [-1, 1), exact in double precision."""
    index = torch.arange(1, count + 1, dtype=torch.int64)
    return ((index * 2654435761 + seed * 40503 * index * index) % 2**32).double() / 2**31 - 1


def body(downsampling: str) -> dict[str, torch.Tensor]:
    parameters, channels = [], CHANNELS
    for block in range(BLOCKS):
        shapes = [(FILTERS, channels, 3, 3), (FILTERS,), (FILTERS,), (FILTERS,)]
        for place, shape in enumerate(shapes):
            values = numbers(10 * block + place + 1, torch.Size(shape).numel())
            parameters.append(values.reshape(shape).requires_grad_())
        channels = FILTERS
    images = numbers(99, IMAGES * HEIGHT * WIDTH * CHANNELS).reshape(IMAGES, HEIGHT, WIDTH, CHANNELS)
    activation = images.permute(0, 3, 1, 2)
    for block in range(BLOCKS):
        weight, bias, scale, shift = parameters[4 * block : 4 * block + 4]
        stride = 2 if downsampling == "stride" else 1
        activation = functional.conv2d(activation, weight, bias, stride=stride, padding=1)
        activation = functional.batch_norm(activation, None, None, scale, shift, training=True, eps=1e-5).relu()
        if downsampling == "max-pool":
            activation = functional.max_pool2d(activation, 2)
    features = activation.permute(0, 2, 3, 1).reshape(-1)
    gradients = torch.autograd.grad(features @ numbers(77, features.numel()), parameters)
    return {
        f"{downsampling}.features": features.detach(),
        f"{downsampling}.gradient": torch.cat([gradient.reshape(-1) for gradient in gradients]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT)
    lines = []
    for downsampling in ("max-pool", "stride"):
        for name, values in body(downsampling).items():
            lines.append(" ".join([name, *(repr(value) for value in values.tolist())]))
    parser.parse_args().output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
