"""Time a transformer encoder of pacmeta and of PyTorch in turn, and print the ratios.

    python benchmarks/encoder/compare.py [--rounds 3] [--layers 12] [--hidden 768] [--batch 8] [--length 64]

Needs PyTorch, transformers and cargo. Wall-clock ratios are of the fastest repeats over all rounds. On a machine that is busy with other
things the ratio of processor times of one thread is the more honest one: waiting does not count in it. Memory is the most that each
process held; PyTorch's is also given without what its interpreter and libraries hold before there is a model.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def line(command: list[str]) -> dict:
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    for name, default in (("layers", 12), ("hidden", 768), ("batch", 8), ("length", 64)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--binary", type=Path, help="a pacmeta that is built already")
    arguments = parser.parse_args()
    binary = arguments.binary and arguments.binary.resolve()
    if binary is None:
        subprocess.run(["cargo", "build", "--quiet", "--release"], cwd=ROOT, check=True)
        binary = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "pacmeta"
    script = ROOT / "benchmarks" / "encoder" / "torch_encoder.py"
    sizes = [f"--{name}={getattr(arguments, name)}" for name in ("layers", "hidden", "batch", "length")]
    for threads in arguments.threads:
        ours, theirs = [], []
        for _ in range(arguments.rounds):
            ours.append(line([str(binary), "bench", "encoder", *sizes, f"--threads={threads}", "--json"]))
            theirs.append(line([sys.executable, str(script), *sizes, f"--threads={threads}"]))
        text = f"{threads} thread(s):"
        for our_key, key, name in (
            ("fastest_milliseconds", "min_ms", "clock"),
            ("processor_milliseconds", "cpu_min_ms", "processor"),
        ):
            if ours[0][our_key] is not None and theirs[0][key] is not None:
                us, them = min(run[our_key] for run in ours), min(run[key] for run in theirs)
                text += f"  {name} {us:.0f} ms against {them:.0f} ms, ratio {them / us:.2f};"
        us, them = (max(run["peak_megabytes"] for run in runs) for runs in (ours, theirs))
        bare = them - max(run["start_megabytes"] for run in theirs)
        text += f"  memory {us:.0f} MB against {them:.0f} MB ({bare:.0f} MB without libraries), ratio {them / us:.2f};"
        print(f"{text}  {max(run['gflops'] / run['peak_gflops'] for run in ours):.0%} of the multiply-add limit", flush=True)


if __name__ == "__main__":
    main()
