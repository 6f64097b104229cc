"""One meta-iteration of FOMAML, MAML or PACMAML on pictures in PyTorch: the network's head adapts (ANIL), written straightforwardly.

    pacmeta bench anil --method pacmaml --examples 10 --gradient first.safetensors
    python benchmarks/images/torch_anil.py first.safetensors --threads 2 --repeats 10

Reads the parameters and tasks that pacmeta exported, computes the same gradient in double precision and compares it, then times the
iteration in single precision (channels_last, Adam included). Prints one line of JSON: the largest relative difference of a tensor's
gradient, milliseconds, and the process's high-water mark of memory.
"""

import argparse
import json
import statistics
import time

import numpy
import torch
from torch.nn import functional


def read(path: str) -> tuple[dict, dict]:
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    metadata = json.loads(header.pop("__metadata__")["pacmeta"])
    kinds = {"F64": numpy.float64, "F32": numpy.float32}
    tensors = {}
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        values = numpy.frombuffer(data[start:end], dtype=kinds[entry["dtype"]]).astype(numpy.float64)
        tensors[name] = torch.from_numpy(values.reshape(entry["shape"]))
    return tensors, metadata


class Problem:
    """Parameters, tasks and method, in one precision."""

    def __init__(self, tensors: dict, metadata: dict, dtype: torch.dtype):
        self.method, self.subset = metadata["method"], metadata["subset"]
        self.parameters = {
            name: value.to(dtype, copy=True).requires_grad_()
            for name, value in tensors.items()
            if name.startswith(("body.", "head."))
        }
        for name, value in self.parameters.items():
            if name.endswith("conv.weight"):
                value.data = value.data.contiguous(memory_format=torch.channels_last)
        self.tasks = []
        while f"task.{len(self.tasks)}.pixels" in tensors:
            task = f"task.{len(self.tasks)}"
            pixels = (tensors[f"{task}.pixels"].to(dtype) / 255).permute(0, 3, 1, 2)
            pixels = pixels.contiguous(memory_format=torch.channels_last)
            self.tasks.append((pixels, tensors[f"{task}.labels"].long()))

    def features(self, images: torch.Tensor) -> torch.Tensor:
        block = 0
        while f"body.block.{block}.conv.weight" in self.parameters:
            of = lambda name: self.parameters[f"body.block.{block}.{name}"]
            images = functional.conv2d(images, of("conv.weight"), of("conv.bias"), padding=1)
            images = functional.batch_norm(images, None, None, of("norm.scale"), of("norm.shift"), training=True)
            images = functional.max_pool2d(functional.relu(images), 2)
            block += 1
        return images.permute(0, 2, 3, 1).flatten(1)  # rows, columns, filters

    def steps(self, features, labels, weight, bias, temperature, variance, keep_graph):
        """The head's offset after the inner steps; differentiable if asked."""
        inner = self.method["inner"]
        offset = [torch.zeros_like(weight), torch.zeros_like(bias)]
        squares = [torch.full_like(part, inner["accumulator_start"]) for part in offset]
        for _ in range(inner["steps"]):
            if not keep_graph:
                offset = [part.detach().requires_grad_() for part in offset]
            else:
                offset = [part if part.requires_grad else part.requires_grad_() for part in offset]
            logits = functional.linear(features, weight + offset[0], bias + offset[1])
            loss = functional.cross_entropy(logits, labels)
            slopes = torch.autograd.grad(loss, offset, create_graph=keep_graph)
            slopes = [temperature * slope + part / variance for slope, part in zip(slopes, offset)]
            if inner["optimiser"] == "adagrad":
                squares = [square + slope**2 for square, slope in zip(squares, slopes)]
                slopes = [slope / square.sqrt() for slope, square in zip(slopes, squares)]
            offset = [part - inner["rate"] * slope for part, slope in zip(offset, slopes)]
        return offset if keep_graph else [part.detach() for part in offset]

    def objective(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        weight, bias = self.parameters["head.weight"], self.parameters["head.bias"]
        features = self.features(images)
        few, all_labels = self.subset, labels

        def loss(offset, count=None):
            logits = functional.linear(features[:count], weight + offset[0], bias + offset[1])
            return functional.cross_entropy(logits, all_labels[:count])

        fixed = features.detach(), weight.detach(), bias.detach()
        name = self.method["name"]
        if name == "maml":
            offset = self.steps(features[:few], labels[:few], weight, bias, 1.0, float("inf"), True)
            return loss(offset)
        if name == "fomaml":
            return loss(self.steps(fixed[0][:few], labels[:few], *fixed[1:], 1.0, float("inf"), False))
        if name == "pacmaml":
            alpha, variance = self.method["alpha"], self.method["sigma_squared"]
            beta = self.method.get("beta") or alpha * len(labels) / few
            of_subset = self.steps(fixed[0][:few], labels[:few], *fixed[1:], alpha, variance, False)
            of_all = self.steps(fixed[0], labels, *fixed[1:], beta, variance, False)
            return loss(of_subset) + alpha / beta * (loss(of_all, few) - loss(of_subset, few))
        raise SystemExit(f"{name} is not written here")

    def backward(self) -> None:
        for images, labels in self.tasks:
            (self.objective(images, labels) / len(self.tasks)).backward()


def gradients(tensors: dict, metadata: dict, dtype: torch.dtype) -> dict:
    problem = Problem(tensors, metadata, dtype)
    problem.backward()
    # Those of biases before batch norm are exactly zero, up to PyTorch's rounding.
    kept = {name: value for name, value in problem.parameters.items() if not name.endswith("conv.bias")}
    return {name: value.grad.double() for name, value in kept.items()}


def largest_differences(tensors: dict, metadata: dict) -> dict:
    """Of pacmeta's gradients, and of PyTorch's own in single precision, from those in double precision."""
    exact = gradients(tensors, metadata, torch.float64)
    single = gradients(tensors, metadata, torch.float32)
    worst = lambda found: max(((found(name) - value).norm() / value.norm()).item() for name, value in exact.items())
    return {
        "largest_relative_difference": worst(lambda name: tensors[f"gradient.{name}"]),
        "of_single_precision": worst(lambda name: single[name]),
    }


def peak_megabytes() -> float:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--what", choices=["compare", "time"], default="time")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    tensors, metadata = read(arguments.file)
    if arguments.what == "compare":
        print(json.dumps(largest_differences(tensors, metadata)))
        return
    problem = Problem(tensors, metadata, torch.float32)
    del tensors
    optimiser = torch.optim.Adam(problem.parameters.values(), lr=1e-3)
    times = []
    for _ in range(arguments.repeats + 1):
        start = time.perf_counter()
        optimiser.zero_grad(set_to_none=True)
        problem.backward()
        optimiser.step()
        times.append(1e3 * (time.perf_counter() - start))
    times = times[1:]
    print(
        json.dumps(
            {
                "milliseconds": statistics.median(times),
                "fastest_milliseconds": min(times),
                "peak_megabytes": peak_megabytes(),
            }
        )
    )


if __name__ == "__main__":
    main()
