//! Tensors by our names and by those in files.

use std::collections::BTreeSet;

use super::config::Family;

/// The tensor by which a pooler is known, without the prefix.
pub(super) const POOLER: &str = "pooler.dense.weight";

/// A tensor that every file has, without the prefix.
const WORDS: &str = "embeddings.word_embeddings.weight";

/// What stands before the names of a file: nothing, `bert.`, `distilbert.` or whatever a wrapper added.
pub(super) fn prefix<'a>(names: impl Iterator<Item = &'a str>) -> String {
    // The shortest one, the first in the alphabet of several, in case a file holds several models.
    names
        .filter_map(|name| name.strip_suffix(WORDS))
        .min_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)))
        .unwrap_or("")
        .to_owned()
}

/// The names under which a file may hold a tensor of ours, the usual one first.
pub(super) fn candidates(family: Family, ours: &str) -> Vec<String> {
    let (place, kind) = match ours.rsplit_once('.') {
        Some((place, kind @ ("weight" | "bias"))) => (place, kind),
        _ => (ours, "weight"),
    };
    let stem = stem(family, place);
    let mut names = vec![format!("{stem}.{kind}")];
    if stem.ends_with("LayerNorm") {
        // As in files converted from the first release of BERT.
        names.push(format!("{stem}.{}", if kind == "weight" { "gamma" } else { "beta" }));
    }
    names
}

/// How many layers a file has above the first `layers`.
pub(super) fn unused_layers<'a>(
    family: Family,
    prefix: &str,
    layers: usize,
    names: impl Iterator<Item = &'a str>,
) -> usize {
    let folder = format!("{prefix}{}.layer.", folder(family));
    let number = |name: &str| name.strip_prefix(&folder)?.split('.').next()?.parse::<usize>().ok();
    let above: BTreeSet<usize> = names.filter_map(number).filter(|&layer| layer >= layers).collect();
    above.len()
}

/// What the names of layers begin with.
fn folder(family: Family) -> &'static str {
    match family {
        Family::Bert => "encoder",
        Family::DistilBert => "transformer",
    }
}

fn stem(family: Family, place: &str) -> String {
    match place {
        "embeddings.word" => return "embeddings.word_embeddings".into(),
        "embeddings.position" => return "embeddings.position_embeddings".into(),
        "embeddings.segment" => return "embeddings.token_type_embeddings".into(),
        "embeddings.norm" => return "embeddings.LayerNorm".into(),
        "pooler" => return "pooler.dense".into(),
        _ => {}
    }
    let inside_layers = place.strip_prefix("layer.").and_then(|rest| rest.split_once('.'));
    let Some((layer, part)) = inside_layers else { return place.to_owned() };
    let name = match family {
        Family::Bert => match part {
            "attention.query" => "attention.self.query",
            "attention.key" => "attention.self.key",
            "attention.value" => "attention.self.value",
            "attention.output" => "attention.output.dense",
            "attention.norm" => "attention.output.LayerNorm",
            "up" => "intermediate.dense",
            "down" => "output.dense",
            "norm" => "output.LayerNorm",
            other => other,
        },
        Family::DistilBert => match part {
            "attention.query" => "attention.q_lin",
            "attention.key" => "attention.k_lin",
            "attention.value" => "attention.v_lin",
            "attention.output" => "attention.out_lin",
            "attention.norm" => "sa_layer_norm",
            "up" => "ffn.lin1",
            "down" => "ffn.lin2",
            "norm" => "output_layer_norm",
            other => other,
        },
    };
    format!("{}.layer.{layer}.{name}", folder(family))
}
