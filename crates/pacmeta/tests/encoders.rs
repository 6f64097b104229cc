//! Pretrained encoders and their tokenisers against `transformers`: see `benchmarks/golden/pretrained_reference.py`.

#![cfg(feature = "text")]
#![allow(clippy::unwrap_used, reason = "helpers of a test")]

use std::path::{Path, PathBuf};

use pacmeta::environments::text::TokenSet;
use pacmeta::priors::pretrained::{self, Pretrained};
use pacmeta_tensor::encoder::{EncoderRoom, Keep, Pooling, States, lower_forward, upper_forward};
use serde_json::Value;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/encoders").join(name)
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

/// The tokens of all cases, after they were compared one by one.
fn tokens(model: &Pretrained, cases: &[Value]) -> TokenSet {
    let mut set = TokenSet::new();
    for case in cases {
        let encoded =
            model.tokeniser.encode(case["first"].as_str().unwrap(), case["second"].as_str()).unwrap();
        let ids: Vec<f64> = encoded.ids.iter().map(|&id| f64::from(id)).collect();
        assert_eq!(ids, numbers(&case["ids"]), "{case}");
        let segments: Vec<f64> = encoded.segments.iter().map(|&segment| f64::from(segment)).collect();
        assert_eq!(segments, numbers(&case["segments"]), "{case}");
        set.push(&encoded, 0);
    }
    set
}

/// Final states [tokens, hidden] and features [sequences, hidden].
fn forward(model: &Pretrained, set: &TokenSet) -> (Vec<f32>, Vec<f32>) {
    let shape = &model.encoder.shape;
    let (lower, upper) = model.encoder.parameters.values().split_at(shape.boundary(shape.layers));
    let mut room = EncoderRoom::new();
    let tokens = set.all_tokens();
    let states = lower_forward(shape, shape.layers, lower, tokens, Keep::Nothing, None, &mut room).unwrap();
    let states = states.to_vec();
    let packed = States { values: &states, starts: tokens.starts };
    let features = upper_forward(shape, shape.layers, upper, packed, Keep::Nothing, None, &mut room).unwrap();
    let features = features.to_vec();
    (states, features)
}

#[track_caller]
fn assert_close(found: &[f32], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((f64::from(*found) - expected).abs() < tolerance, "{found} is not {expected}");
    }
}

#[test]
fn tiny_encoders_agree_with_transformers() {
    for (name, pooling) in
        [("bert", Pooling::Pooler), ("bert-f16", Pooling::First), ("distilbert", Pooling::First)]
    {
        let folder = golden(name);
        let golden = read(&folder.join("cases.json"));
        let limit = golden["limit"].as_u64().unwrap() as usize;
        let model = pretrained::open(&folder, limit, None).unwrap();
        assert_eq!(model.encoder.shape.pooling, pooling, "{name}");
        let cases = golden["cases"].as_array().unwrap();
        let set = tokens(&model, cases);
        let (_, features) = forward(&model, &set);
        // With this pooling all states are computed, not the first ones only.
        let whole = pretrained::open(&folder, limit, Some(Pooling::Mean)).unwrap();
        let (states, _) = forward(&whole, &set);
        let hidden = model.encoder.shape.hidden;
        for (index, case) in cases.iter().enumerate() {
            let expected: Vec<f64> = case["states"].as_array().unwrap().iter().flat_map(numbers).collect();
            assert_close(
                &states[set.starts[index] * hidden..set.starts[index + 1] * hidden],
                &expected,
                2e-5,
            );
            let expected = if pooling == Pooling::Pooler {
                numbers(&case["pooled"])
            } else {
                expected[..hidden].to_vec()
            };
            assert_close(&features[index * hidden..][..hidden], &expected, 2e-5);
        }
    }
}

/// all-MiniLM-L6-v2, from the folder that `PACMETA_MINILM` names, or beside the repository.
fn minilm() -> Option<PathBuf> {
    let known = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/models/all-MiniLM-L6-v2");
    let folder = std::env::var_os("PACMETA_MINILM").map_or(known, PathBuf::from);
    let there = folder.join("model.safetensors").is_file();
    if !there {
        eprintln!(
            "skipped: there is no model in {}; set PACMETA_MINILM to a folder with all-MiniLM-L6-v2",
            folder.display()
        );
    }
    there.then_some(folder)
}

#[test]
fn minilm_agrees_with_transformers() {
    let Some(folder) = minilm() else { return };
    let golden = read(&golden("minilm.json"));
    let limit = golden["limit"].as_u64().unwrap() as usize;
    let model = pretrained::open(&folder, limit, None).unwrap();
    assert_eq!(
        (model.encoder.shape.layers, model.encoder.shape.hidden, model.encoder.shape.pooling),
        (6, 384, Pooling::Mean)
    );
    assert_eq!((model.tokeniser.vocabulary(), model.tokeniser.mask_id()), (30_522, Some(103)));
    let cases = golden["cases"].as_array().unwrap();
    let set = tokens(&model, cases);
    let (_, features) = forward(&model, &set);
    for (index, case) in cases.iter().enumerate() {
        assert_close(&features[index * 384..][..384], &numbers(&case["mean"]), 1e-4);
    }
}

#[test]
fn saved_folders_are_read_again_to_the_bit() {
    let folder = tempfile::tempdir().unwrap();
    let model = pretrained::open(&golden("bert"), 12, Some(Pooling::Mean)).unwrap();
    let words: Vec<String> =
        (0..model.tokeniser.vocabulary() as u32).map(|id| model.tokeniser.token(id).unwrap()).collect();
    pretrained::save(folder.path(), &model.encoder.shape, &model.encoder.parameters, &words).unwrap();
    let again = pretrained::open(folder.path(), 12, None).unwrap();
    assert_eq!(again.encoder.shape, model.encoder.shape, "mean pooling is stated in the folder");
    assert_eq!(again.encoder.parameters, model.encoder.parameters);
    let text = "The cat's running, été!";
    assert_eq!(
        again.tokeniser.encode(text, Some(text)).unwrap(),
        model.tokeniser.encode(text, Some(text)).unwrap()
    );
    let refused = pretrained::save(
        folder.path(),
        &model.encoder.shape,
        &model.encoder.parameters,
        &vec![String::new(); 100],
    );
    assert!(refused.unwrap_err().to_string().contains("100 words are more than the"));
}
