"""Write features and gradients of a tiny BERT, computed by PyTorch (`transformers.BertModel`) in double precision.

    python benchmarks/golden/encoder_reference.py [--output FILE]

Inputs are a formula of their index, so that the file holds results only: a name and numbers on each line. Sequences of different
lengths are padded and masked here; pacmeta packs them.
"""

import argparse
from pathlib import Path

import torch
from transformers import BertConfig, BertModel

DEFAULT_OUTPUT = Path(__file__).resolve().parents[2] / "crates" / "pacmeta-tensor" / "tests" / "golden" / "encoder.txt"
LENGTHS, HIDDEN, LAYERS = (4, 1, 9), 8, 2
ACTIVATIONS = {"gelu": "gelu", "gelu-tanh": "gelu_pytorch_tanh", "relu": "relu"}


def numbers(seed: int, count: int) -> torch.Tensor:
    """Spread over [-1, 1), exact in double precision."""
    index = torch.arange(1, count + 1, dtype=torch.int64)
    return ((index * 2654435761 + seed * 40503 * index * index) % 2**32).double() / 2**31 - 1


def names() -> list[str]:
    """The model's parameters in pacmeta's order."""
    order = [f"embeddings.{kind}_embeddings.weight" for kind in ("word", "position", "token_type")]
    order += [f"embeddings.LayerNorm.{kind}" for kind in ("weight", "bias")]
    parts = [f"attention.self.{name}" for name in ("query", "key", "value")]
    parts += ["attention.output.dense", "attention.output.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm"]
    for layer in range(LAYERS):
        order += [f"encoder.layer.{layer}.{part}.{kind}" for part in parts for kind in ("weight", "bias")]
    return order + ["pooler.dense.weight", "pooler.dense.bias"]


def encoder(activation: str) -> BertModel:
    config = BertConfig(
        vocab_size=11,
        max_position_embeddings=9,
        type_vocab_size=2,
        hidden_size=HIDDEN,
        num_attention_heads=2,
        intermediate_size=12,
        num_hidden_layers=LAYERS,
        layer_norm_eps=1e-12,
        hidden_act=activation,
        attn_implementation="eager",
    )
    model = BertModel(config).double().eval()
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for place, name in enumerate(names()):
            parameters[name].copy_(numbers(place + 1, parameters[name].numel()).reshape(parameters[name].shape))
    assert set(parameters) == set(names())
    return model


def batch() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    ids, segments, mask = (torch.zeros(len(LENGTHS), max(LENGTHS), dtype=torch.int64) for _ in range(3))
    token = 0
    for sequence, length in enumerate(LENGTHS):
        for place in range(length):
            ids[sequence, place] = (token * token * 3 + 1) % 11
            segments[sequence, place] = token // 3 % 2
            mask[sequence, place] = 1
            token += 1
    return ids, segments, mask


def pool(pooling: str, output, mask: torch.Tensor) -> torch.Tensor:
    if pooling == "first":
        return output.last_hidden_state[:, 0]
    if pooling == "pooler":
        return output.pooler_output
    weights = mask.double() / mask.sum(1, keepdim=True)
    return torch.einsum("st,sth->sh", weights, output.last_hidden_state)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT)
    ids, segments, mask = batch()
    results = {}
    for title, activation in ACTIVATIONS.items():
        model = encoder(activation)
        parameters = dict(model.named_parameters())
        for pooling in ("first", "mean", "pooler"):
            model.zero_grad(set_to_none=True)
            output = model(input_ids=ids, token_type_ids=segments, attention_mask=mask)
            features = pool(pooling, output, mask)
            results[f"{title}.{pooling}.features"] = features.detach().reshape(-1)
            if title == "gelu":
                (features.reshape(-1) @ numbers(77, features.numel())).backward()
                own = names() if pooling == "pooler" else names()[:-2]
                results[f"{title}.{pooling}.gradient"] = torch.cat([parameters[name].grad.reshape(-1) for name in own])
    lines = [" ".join([name, *(repr(value) for value in values.tolist())]) for name, values in results.items()]
    parser.parse_args().output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
