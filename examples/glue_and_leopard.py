#!/usr/bin/env python3
"""GLUE, SNLI and LEOPARD as they are published -> the folders that `pacmeta reproduce leopard --data OUT` reads.

    python3 examples/glue_and_leopard.py --glue GLUE --leopard LEOPARD --out OUT

GLUE      a folder with CoLA, SST-2, MRPC, QQP, STS-B, MNLI, QNLI, RTE, WNLI, and SNLI beside them, each with train.tsv and dev.tsv
          (MNLI: dev_matched.tsv), as gluebenchmark.com packs them; for SNLI also snli_1.0_train.jsonl and snli_1.0_dev.jsonl
LEOPARD   the folder data/json of github.com/iesl/leopard
OUT       gets glue/<task>.jsonl.gz and leopard/<task>.jsonl.gz (docs/formats.md, "Sentences")

Needs nothing but Python. Large GLUE tasks are cut to --train and --dev rows, drawn by a fixed seed.
"""

import argparse
import gzip
import json
import pathlib
import random
import re
import sys

# Task: the columns of sentence1, sentence2 and label, by name or, where the file has no header, by place.
GLUE = {
    "CoLA": (3, None, 1),
    "SST-2": ("sentence", None, "label"),
    "MRPC": ("#1 String", "#2 String", "Quality"),
    "QQP": ("question1", "question2", "is_duplicate"),
    "STS-B": ("sentence1", "sentence2", "score"),
    "MNLI": ("sentence1", "sentence2", "gold_label"),
    "QNLI": ("question", "sentence", "label"),
    "RTE": ("sentence1", "sentence2", "label"),
    "WNLI": ("sentence1", "sentence2", "label"),
    "SNLI": ("sentence1", "sentence2", "gold_label"),
}
# The tasks that the study is scored on.
TARGETS = (
    "conll restaurant airline disaster emotion political_bias political_audience political_message rating_books rating_dvd "
    "rating_electronics rating_kitchen"
).split()
NO_CONSENSUS = "-"  # a label of SNLI and MNLI that stands for none


def fail(message):
    sys.exit(f"error: {message}")


def rows_of_tsv(path, columns):
    """Rows as (sentence1, sentence2 or None, label). Quotation marks mean nothing in these files."""
    lines = path.read_text(encoding="utf-8-sig").split("\n")
    if any(isinstance(column, str) for column in columns):
        header = lines.pop(0).rstrip("\r").split("\t")
        missing = [name for name in columns if name is not None and name not in header]
        if missing:
            fail(f"{path}: there is no column {missing[0]!r}; the first line has {', '.join(header)}")
        columns = [None if name is None else header.index(name) for name in columns]
    width = max(column for column in columns if column is not None) + 1
    for number, line in enumerate(lines, 1):
        cells = line.rstrip("\r").split("\t")
        if len(cells) < width:
            if line.strip():
                print(f"{path}: row {number} has {len(cells)} of {width} columns and is left out", file=sys.stderr)
            continue
        yield tuple(None if column is None else cells[column] for column in columns)


def rows_of_json_lines(path, columns):
    # Not splitlines, which also splits at characters that may stand inside a JSON string.
    for line in filter(str.strip, path.read_text(encoding="utf-8").split("\n")):
        row = json.loads(line)
        yield tuple(row[name] for name in columns)


def has_text(row):
    """Some rows of QQP have an empty question."""
    return row[0].strip() and (row[1] is None or row[1].strip())


def glue_rows(folder, task, part):
    columns = GLUE[task]
    name = "dev_matched" if (task, part) == ("MNLI", "dev") else part
    tsv, lines = folder / task / f"{name}.tsv", folder / task / f"snli_1.0_{part}.jsonl"
    if tsv.exists():
        return rows_of_tsv(tsv, columns)
    if task == "SNLI" and lines.exists():
        return rows_of_json_lines(lines, columns)
    fail(f"{tsv} is missing; expected GLUE as gluebenchmark.com packs it")


def write(path, lines):
    # The time of packing stays out, so that equal rows give equal files.
    with open(path, "wb") as file, gzip.GzipFile(fileobj=file, mode="wb", mtime=0, filename="") as packed:
        for line in lines:
            packed.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
    print(f"{path}: {len(lines)} lines")


def glue(folder, out, most):
    for task in GLUE:
        lines = []
        for part in ("train", "dev"):
            rows = [row for row in glue_rows(folder, task, part) if row[2] != NO_CONSENSUS and has_text(row)]
            if len(rows) > most[part]:
                kept = sorted(random.Random(f"{task} {part}").sample(range(len(rows)), most[part]))
                rows = [rows[place] for place in kept]
            for first, second, label in rows:
                line = {"split": part, "sentence1": first, "sentence2": second, "label": label}
                if second is None:
                    del line["sentence2"]
                if task == "STS-B":
                    line["label"] = float(label)
                lines.append(line)
        write(out / f"{task}.jsonl.gz", lines)


def leopard(folder, out):
    tasks = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    found = []
    for task in tasks:
        name, lines = task.name, []
        for path in sorted(task.iterdir()):
            # conll has files called conll_c_...
            train = re.fullmatch(r"\w+_train_(\d+)_(4|8|16)\.json", path.name)
            if not train and not path.name.endswith("_eval.json"):
                continue
            if train:
                start = {"split": "train", "k": int(train[2]), "draw": int(train[1])}
            else:
                start = {"split": "eval", "eval_source": "json"}
            for row in json.loads(path.read_text(encoding="utf-8") or "[]"):
                fields = {key: row[key] for key in ("sentence1", "sentence2", "label") if key in row}
                lines.append({**start, **fields})
        if {line["split"] for line in lines} == {"train", "eval"}:
            write(out / f"{name}.jsonl.gz", lines)
            found.append(name)
        elif lines:
            print(f"{task}: has draws or a test set only and is left out", file=sys.stderr)
    missing = [name for name in TARGETS if name not in found]
    if missing:
        fail(
            f"{folder}: there is no {', '.join(missing)}; expected <task>/<task>_train_<draw>_<k>.json and <task>/<task>_eval.json, "
            "as in data/json of iesl/leopard"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--glue", type=pathlib.Path, required=True)
    parser.add_argument("--leopard", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--train", type=int, default=20_000, help="the most training rows of a GLUE task")
    parser.add_argument("--dev", type=int, default=2_000, help="the most dev rows of a GLUE task")
    arguments = parser.parse_args()
    for name in ("glue", "leopard"):
        (arguments.out / name).mkdir(parents=True, exist_ok=True)
    glue(arguments.glue, arguments.out / "glue", {"train": arguments.train, "dev": arguments.dev})
    leopard(arguments.leopard, arguments.out / "leopard")


if __name__ == "__main__":
    main()
