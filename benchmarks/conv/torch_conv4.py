"""Times forward and backward of the Conv4 body in PyTorch (channels_last, f32).

    python benchmarks/conv/torch_conv4.py --images 80 --threads 1

Prints one line of JSON: the median and the minimum of the repeats in milliseconds. The work is that of
`pacmeta bench conv4`: gradients of all parameters given the gradient at the features, none at the images.
"""

import argparse
import json
import statistics
import time

import torch
from torch import nn


def body() -> nn.Sequential:
    layers = []
    for block in range(4):
        layers += [
            nn.Conv2d(3 if block == 0 else 64, 64, 3, padding=1, bias=False),
            nn.BatchNorm2d(64, track_running_stats=False),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
    return nn.Sequential(*layers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=80)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    network = body().to(memory_format=torch.channels_last)
    images = torch.rand(arguments.images, 3, 84, 84).contiguous(memory_format=torch.channels_last)
    gradient = torch.randn(arguments.images, 64, 5, 5).contiguous(memory_format=torch.channels_last)
    times, busy = [], []
    for _ in range(arguments.repeats + 2):
        network.zero_grad(set_to_none=True)
        start, before = time.perf_counter(), time.thread_time()
        network(images).backward(gradient)
        times.append(1e3 * (time.perf_counter() - start))
        busy.append(1e3 * (time.thread_time() - before))
    times, busy = times[2:], busy[2:]
    print(
        json.dumps(
            {
                "images": arguments.images,
                "threads": arguments.threads,
                "median_ms": round(statistics.median(times), 1),
                "min_ms": round(min(times), 1),
                # of one thread it is the whole work
                "cpu_min_ms": round(min(busy), 1) if arguments.threads == 1 else None,
            }
        )
    )


if __name__ == "__main__":
    main()
