"""Compare meta-iterations on pictures with PyTorch: gradients first, then times and memory, both programs in turn.

    python benchmarks/images/compare.py [--rounds 3] [--threads 2] [--examples 10 80]

Needs PyTorch and cargo. Prints, for each method and size of tasks, the largest relative difference of a tensor's gradient from PyTorch's
in double precision, pacmeta's and PyTorch's own in single precision (decisions of rectifiers and pools that fall differently make both
larger than rounding), the ratio of the fastest repeats, the ratio of memory, and what PACMAML costs beside FOMAML. Fails at its end when a
gradient of pacmeta differs by more than FARTHEST times what PyTorch's differs by.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
METHODS = ["fomaml", "maml", "pacmaml"]
FARTHEST = 2.0


def run(command: list) -> dict:
    text = subprocess.run([str(part) for part in command], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return json.loads(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--examples", type=int, nargs="+", default=[10, 80])
    arguments = parser.parse_args()
    subprocess.run(["cargo", "build", "--quiet", "--release", "-p", "pacmeta-cli"], cwd=ROOT, check=True)
    binary = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "pacmeta"
    script = Path(__file__).with_name("torch_anil.py")
    too_far = []
    with tempfile.TemporaryDirectory() as folder:
        for examples in arguments.examples:
            fastest = {}
            for method in METHODS:
                file = Path(folder) / f"{method}-{examples}.safetensors"
                ours = [binary, "bench", "anil", "--method", method, "--examples", examples, "--json"]
                ours += ["--threads", arguments.threads]
                run([*ours, "--gradient", file])
                theirs = [sys.executable, script, file, "--threads", arguments.threads]
                compared = run([*theirs, "--what", "compare"])
                difference, rounding = compared["largest_relative_difference"], compared["of_single_precision"]
                if not difference <= FARTHEST * rounding:
                    too_far.append(f"{method}, m = {examples}: gradients differ by {difference:.1e}, PyTorch's by {rounding:.1e}")
                us, them = [], []
                for _ in range(arguments.rounds):
                    us.append(run(ours))
                    them.append(run([*theirs, "--repeats", 3 if examples > 40 else 10]))
                quick = lambda runs: min(run["fastest_milliseconds"] for run in runs)
                memory = lambda runs: max(run["peak_megabytes"] for run in runs)
                fastest[method] = quick(us)
                print(
                    f"{method:8} m = {examples:2}: gradients differ by {difference:.1e} (PyTorch's {rounding:.1e}); {quick(us):.1f} ms against {quick(them):.1f} ms, "
                    f"ratio {quick(them) / quick(us):.1f}; {memory(us):.0f} MB against {memory(them):.0f} MB",
                    flush=True,
                )
            print(f"pacmaml / fomaml, m = {examples}: {fastest['pacmaml'] / fastest['fomaml']:.2f}", flush=True)
    if too_far:
        sys.exit("\n".join(too_far))


if __name__ == "__main__":
    main()
