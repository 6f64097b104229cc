"""Times forward and backward of `transformers.BertModel` in PyTorch (f32, eval mode).

    python benchmarks/encoder/torch_encoder.py --layers 12 --hidden 768 --batch 8 --length 64 --threads 2

Prints one line of JSON. The work is that of `pacmeta bench encoder`: gradients of all parameters given the gradient at the pooler's
output.
"""

import argparse
import json
import resource
import statistics
import time

import torch
from transformers import BertConfig, BertModel


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("layers", 12), ("hidden", 768), ("batch", 8), ("length", 64), ("threads", 1), ("repeats", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    start_megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    config = BertConfig(
        num_hidden_layers=arguments.layers,
        hidden_size=arguments.hidden,
        num_attention_heads=arguments.hidden // 64,
        intermediate_size=4 * arguments.hidden,
        vocab_size=30522,
    )
    model = BertModel(config).eval()
    ids = torch.randint(0, config.vocab_size, (arguments.batch, arguments.length))
    gradient = torch.randn(arguments.batch, arguments.hidden)
    times, busy = [], []
    for _ in range(arguments.repeats + 1):
        model.zero_grad(set_to_none=True)
        start, before = time.perf_counter(), time.thread_time()
        model(input_ids=ids).pooler_output.backward(gradient)
        times.append(1e3 * (time.perf_counter() - start))
        busy.append(1e3 * (time.thread_time() - before))
    times, busy = times[1:], busy[1:]
    print(
        json.dumps(
            {
                "median_ms": round(statistics.median(times), 1),
                "min_ms": round(min(times), 1),
                # of one thread it is the whole work
                "cpu_min_ms": round(min(busy), 1) if arguments.threads == 1 else None,
                "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                # the interpreter and its libraries
                "start_megabytes": start_megabytes,
            }
        )
    )


if __name__ == "__main__":
    main()
