"""Time the Conv4 body of pacmeta and of PyTorch in turn, and print the ratios.

    python benchmarks/conv/compare.py [--rounds 3]

Needs PyTorch and cargo. Wall-clock ratios are of the fastest repeats over all rounds. On a machine that is busy with other things
the ratio of processor times of one thread is the more honest one: waiting does not count in it.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = [(10, 1), (10, 2), (80, 1), (80, 2)]


def line(command: list[str]) -> dict:
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    subprocess.run(["cargo", "build", "--quiet", "--release", "-p", "pacmeta-cli"], cwd=ROOT, check=True)
    binary = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "pacmeta"
    script = ROOT / "benchmarks" / "conv" / "torch_conv4.py"
    for images, threads in SETTINGS:
        ours, theirs = [], []
        for _ in range(rounds):
            ours.append(
                line([str(binary), "bench", "conv4", "--images", str(images), "--threads", str(threads), "--json"])
            )
            theirs.append(
                line(
                    [sys.executable, str(script), "--images", str(images), "--threads", str(threads)]
                    + ["--repeats", "4" if images > 40 else "20"]
                )
            )
        text = f"{images:3d} images, {threads} thread(s):"
        for our_key, key, name in (
            ("fastest_milliseconds", "min_ms", "clock"),
            ("processor_milliseconds", "cpu_min_ms", "processor"),
        ):
            if ours[0][our_key] is not None and theirs[0][key] is not None:
                us, them = min(run[our_key] for run in ours), min(run[key] for run in theirs)
                text += f"  {name} {us:.1f} ms against {them:.1f} ms, ratio {them / us:.1f}"
        print(text, flush=True)


if __name__ == "__main__":
    main()
