"""What examples/glue_and_leopard.py makes of the published layouts is what `pacmeta reproduce leopard` reads."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "examples" / "glue_and_leopard.py"
# The first line of each file, if it has one, and a row of sentence1, sentence2 and label.
GLUE = {
    "CoLA": ("", "gj04\t{2}\t\t{0}"),
    "SST-2": ("sentence\tlabel", "{0}\t{2}"),
    "MRPC": ("Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", "{2}\t1\t2\t{0}\t{1}"),
    "QQP": ("id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate", "1\t2\t3\t{0}\t{1}\t{2}"),
    "STS-B": ("index\tgenre\tsentence1\tsentence2\tscore", "1\tnews\t{0}\t{1}\t{2}.5"),
    "MNLI": ("index\tsentence1\tsentence2\tlabel1\tgold_label", "1\t{0}\t{1}\t-\t{2}"),
    "QNLI": ("index\tquestion\tsentence\tlabel", "1\t{0}\t{1}\t{2}"),
    "RTE": ("index\tsentence1\tsentence2\tlabel", "1\t{0}\t{1}\t{2}"),
    "WNLI": ("index\tsentence1\tsentence2\tlabel", "1\t{0}\t{1}\t{2}"),
}
# Target tasks and their numbers of classes; the first two have pairs.
LEOPARD = {
    "conll": 4,
    "restaurant": 8,
    "airline": 3,
    "disaster": 2,
    "emotion": 13,
    "political_bias": 2,
    "political_audience": 2,
    "political_message": 9,
    "rating_books": 3,
    "rating_dvd": 3,
    "rating_electronics": 3,
    "rating_kitchen": 3,
}


def write_glue(folder: Path) -> None:
    for task, (header, row) in GLUE.items():
        (folder / task).mkdir(parents=True)
        classes = {"STS-B": 5, "MNLI": 3}.get(task, 2)
        for part, count in {"train": 90, "dev": 10}.items():
            rows = [row.format(f'say "{task} {place}', f"and {place}", place % classes) for place in range(count)]
            name = "dev_matched" if (task, part) == ("MNLI", "dev") else part
            if task == "QQP":
                rows.insert(1, "1\t2\t3\tonly one question\t\t0")
            (folder / task / f"{name}.tsv").write_text("\n".join([header] * bool(header) + rows) + "\n")
    (folder / "SNLI").mkdir()
    for part in ("train", "dev"):
        labels = ["-", *["entailment", "neutral", "contradiction"] * 30]
        lines = [{"gold_label": label, "sentence1": f"one {n}", "sentence2": f"two {n}"} for n, label in enumerate(labels)]
        (folder / "SNLI" / f"snli_1.0_{part}.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")


def write_leopard(folder: Path) -> None:
    for task, classes in LEOPARD.items():
        (folder / task).mkdir(parents=True)

        def rows(count: int, task: str = task, classes: int = classes) -> list[dict[str, Any]]:
            pair = {"sentence2": "a phrase"} if task in ("conll", "restaurant") else {}
            labels = [f"class {place % classes}" for place in range(count * classes)]
            return [{"sentence1": f"{task} {n}", **pair, "label": label, "processed_sent": "x"} for n, label in enumerate(labels)]

        name = "conll_c" if task == "conll" else task
        for draw in range(10):
            for k in (4, 8, 16):
                empty = (task, draw, k) == ("disaster", 0, 16)
                (folder / task / f"{name}_train_{draw}_{k}.json").write_text("" if empty else json.dumps(rows(k)))
        (folder / task / f"{name}_eval.json").write_text(json.dumps(rows(5)))


def lines_of(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt") as file:
        return [json.loads(line) for line in file]


def convert(glue: Path, leopard: Path, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, SCRIPT, "--glue", glue, "--leopard", leopard, "--out", out, *more]
    return subprocess.run([str(part) for part in command], capture_output=True, text=True)


def test_published_layouts_become_a_study(tmp_path: Path, command: str) -> None:
    glue, leopard, out = tmp_path / "published", tmp_path / "json", tmp_path / "data"
    write_glue(glue)
    write_leopard(leopard)
    done = convert(glue, leopard, out, "--train", "80")
    assert done.returncode == 0, done.stderr

    cola = lines_of(out / "glue" / "CoLA.jsonl.gz")
    # ninety rows cut to eighty, ten of dev; quotation marks mean nothing
    assert [line["split"] for line in cola] == ["train"] * 80 + ["dev"] * 10
    assert cola[-1] == {"split": "dev", "sentence1": 'say "CoLA 9', "label": "1"}
    assert lines_of(out / "glue" / "STS-B.jsonl.gz")[-1]["label"] == 4.5
    assert lines_of(out / "glue" / "MRPC.jsonl.gz")[-1]["sentence2"] == "and 9"
    assert all(line["sentence2"] for line in lines_of(out / "glue" / "QQP.jsonl.gz"))
    assert {line["label"] for line in lines_of(out / "glue" / "SNLI.jsonl.gz")} == {"entailment", "neutral", "contradiction"}
    conll = lines_of(out / "leopard" / "conll.jsonl.gz")
    assert len(conll) == 10 * 28 * 4 + 20
    assert conll[0] == {
        "split": "eval",
        "eval_source": "json",
        "sentence1": "conll 0",
        "sentence2": "a phrase",
        "label": "class 0",
    }
    assert sum(line.get("k") == 16 for line in lines_of(out / "leopard" / "disaster.jsonl.gz")) == 9 * 16 * 2

    arguments = ["reproduce", "leopard", "--data", out, "--model", "synthetic", "--methods", "pacmaml", "--iterations", "1"]
    study = subprocess.run([command, *arguments, "--out", tmp_path / "study"], capture_output=True, text=True)
    assert study.returncode == 0, study.stderr


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    glue, leopard = tmp_path / "published", tmp_path / "json"
    write_glue(glue)
    (glue / "RTE" / "dev.tsv").unlink()
    refused = convert(glue, leopard, tmp_path / "data")
    assert refused.returncode == 1 and "RTE/dev.tsv is missing" in refused.stderr
    (glue / "RTE" / "dev.tsv").write_text("index\tsentence1\tlabel\n")
    refused = convert(glue, leopard, tmp_path / "data")
    assert "no column 'sentence2'" in refused.stderr
    (glue / "RTE" / "dev.tsv").write_text("index\tsentence1\tsentence2\tlabel\n1\ta\tb\t0\n")
    refused = convert(glue, leopard, tmp_path / "data")
    assert refused.returncode == 1 and "data/json of iesl/leopard" in refused.stderr
    write_leopard(leopard)
    (leopard / "emotion" / "emotion_eval.json").unlink()
    refused = convert(glue, leopard, tmp_path / "data")
    assert refused.returncode == 1 and "there is no emotion;" in refused.stderr
