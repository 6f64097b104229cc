//! Against PyTorch: `golden/heads.json`, written by `benchmarks/golden/head_reference.py`.

use std::path::PathBuf;

use pacmeta::learners::head::steps::{Adaptation, Chain, Gibbs, HeadSteps, Sampler, StepsRoom, Trajectory};
use pacmeta::methods::heads::HeadGradient;
use serde_json::{Map, Value, json};

use super::{Case, Examples, LABELS, SHAPE, SUBSET, assert_near, settings};

const TOLERANCE: f64 = 1e-11;
const STEPS: usize = 3;

/// The inputs' formula: spread over [-1, 1).
fn numbers(seed: u64, count: usize, scale: f64) -> Vec<f64> {
    (1..=count as u64)
        .map(|index| {
            let bits = (index * 2_654_435_761 + seed * 40_503 * index * index) % (1 << 32);
            scale * (bits as f64 / f64::from(1_u32 << 31) - 1.0)
        })
        .collect()
}

fn case() -> Case<f64> {
    Case {
        head: numbers(1, SHAPE.parameters(), 0.4),
        features: numbers(2, LABELS.len() * SHAPE.features, 1.0),
        labels: LABELS.to_vec(),
        subset: SUBSET,
    }
}

fn expected(value: &Value, key: &str) -> Vec<f64> {
    value[key].as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

/// Settings of this library in the file's words.
fn configuration(record: &Value) -> String {
    let mut map = Map::new();
    for key in ["name", "alpha", "beta", "sigma_squared", "split"] {
        if let Some(value) = record.get(key) {
            map.insert(key.to_owned(), value.clone());
        }
    }
    let optimiser = record.get("optimiser").cloned().unwrap_or(json!("gd"));
    map.insert("inner".to_owned(), json!({"steps": STEPS, "rate": record["rate"], "optimiser": optimiser}));
    Value::Object(map).to_string()
}

/// BMAML with particles that start where the file says, from its parts.
fn bmaml_with_particles(record: &Value) -> (f64, HeadGradient<f64>) {
    let Case { head, features, .. } = case();
    let particles = record["particles"].as_u64().unwrap() as usize;
    let rate = record["rate"].as_f64().unwrap();
    let inner = match record["optimiser"].as_str() {
        Some("adagrad") => HeadSteps::adagrad(STEPS, rate),
        _ => HeadSteps::gradient_descent(STEPS, rate),
    };
    let size = SHAPE.parameters();
    let number = |key: &str| record[key].as_f64().unwrap();
    let subset = Examples { features: &features[..SUBSET * SHAPE.features], labels: &LABELS[..SUBSET] };
    let chasing = Adaptation {
        method: "bmaml",
        shape: SHAPE,
        head: &head,
        examples: subset,
        gibbs: Gibbs { temperature: number("alpha"), sigma_squared: number("sigma_squared") },
        inner: &inner,
        sampler: Sampler::Svgd { particles },
    };
    let leading = Adaptation {
        examples: Examples { features: &features, labels: &LABELS },
        gibbs: Gibbs { temperature: number("beta"), ..chasing.gibbs },
        ..chasing
    };
    let key = pacmeta_tensor::Key::new(0);
    let (mut room, mut trajectory) = (StepsRoom::default(), Trajectory::default());
    let mut chaser = Chain::at(size, numbers(3, particles * size, 0.3), &inner);
    chasing.run(&mut chaser, key, Some(&mut trajectory), &mut room).unwrap();
    let mut leader = chaser.clone();
    leading.run(&mut leader, key, None, &mut room).unwrap();
    let differences: Vec<f64> = chaser
        .iter()
        .zip(leader.iter())
        .flat_map(|(chaser, leader)| chaser.iter().zip(leader).map(|(a, b)| a - b))
        .collect();
    let mut adjoints: Vec<f64> = differences.iter().map(|difference| 2.0 * difference).collect();
    let mut gradient = HeadGradient { head: vec![0.0; size], features: vec![0.0; features.len()] };
    let rows = &mut gradient.features[..subset.features.len()];
    chasing.pull_back(&trajectory, &mut adjoints, &mut gradient.head, rows, &mut room);
    (differences.iter().map(|difference| difference * difference).sum(), gradient)
}

#[test]
fn meta_gradients_of_every_method() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/heads.json");
    let records: Vec<Value> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(records.len(), 14);
    for record in &records {
        let what = configuration(record);
        let (objective, gradient) = if record.get("particles").is_some() {
            bmaml_with_particles(record)
        } else {
            let (terms, gradient) = case().gradient(&*settings(&what).build().unwrap());
            (terms.objective, gradient)
        };
        let value = record["objective"].as_f64().unwrap();
        assert!((objective / value - 1.0).abs() < TOLERANCE, "{what}: {objective}, expected {value}");
        assert_near(&what, &gradient.head, &expected(record, "head"), TOLERANCE);
        assert_near(&what, &gradient.features, &expected(record, "features"), TOLERANCE);
    }
}
