//! The derivatives of each method against finite differences of what they belong to.

use std::sync::Arc;

use pacmeta::learners::network::Pictures;
use pacmeta::methods::networks::WayBack;
use pacmeta_tensor::conv::composite;
use pacmeta_tensor::{Parameters, Tape};

use crate::{Case, LABELS, SPEC, SUBSET, assert_close, differences, method, minus, plus};

const GD: &str = r#""inner": {"steps": 3, "rate": 0.05}"#;
const ADAGRAD: &str = r#""inner": {"steps": 3, "rate": 0.05, "optimiser": "adagrad"}"#;

/// A part of an objective: weight, particles, pictures.
type Part<'a> = (f64, Vec<Vec<f64>>, Pictures<'a>);

/// Checks objective and derivative of a method against a weighted sum of mean losses, w constant.
fn check(case: &Case, json: &str, parts: &[Part<'_>]) {
    let (terms, gradient) = case.gradient(&method(json));
    // choices are frozen, so that a step cannot jump over a kink
    let frozen: Vec<Vec<_>> = parts
        .iter()
        .map(|(_, offsets, pictures)| {
            let decisions = |offset: &Vec<f64>| case.loss(&plus(&case.parameters, offset), *pictures, None).1;
            offsets.iter().map(decisions).collect()
        })
        .collect();
    let objective = |parameters: &[f64]| -> f64 {
        let mut total = 0.0;
        for ((weight, offsets, pictures), frozen) in parts.iter().zip(&frozen) {
            for (offset, frozen) in offsets.iter().zip(frozen) {
                let loss = case.loss(&plus(parameters, offset), *pictures, Some(frozen)).0;
                total += weight * loss / offsets.len() as f64;
            }
        }
        total
    };
    let value = objective(&case.parameters);
    assert!((terms.objective - value).abs() < 1e-12 * value.abs(), "{json}: {} {value}", terms.objective);
    assert_close(json, &gradient, &differences(&case.parameters, 1e-5, objective), 1e-7);
}

#[test]
fn multi_task_and_fomaml() {
    let case = Case::new(1);
    let (all, subset) = (case.pictures(0, 6), case.pictures(0, SUBSET));
    let nothing = vec![vec![0.0; case.parameters.len()]];
    check(&case, &format!(r#"{{"name": "multi-task", {GD}}}"#), &[(1.0, nothing, all)]);
    for inner in [GD, ADAGRAD] {
        let json = format!(r#"{{"name": "fomaml", {inner}}}"#);
        check(&case, &json, &[(1.0, case.offsets(&method(&json), subset), all)]);
        let json = format!(r#"{{"name": "fomaml", "split": "disjoint", {inner}}}"#);
        check(&case, &json, &[(1.0, case.offsets(&method(&json), subset), case.pictures(SUBSET, 6))]);
    }
}

#[test]
fn pacoh_and_pacmaml_with_every_sampler() {
    let case = Case::new(2);
    let (all, subset) = (case.pictures(0, 6), case.pictures(0, SUBSET));
    for (sampler, inner) in [
        (r#"{"kind": "steps"}"#, ADAGRAD),
        (r#"{"kind": "sgld", "particles": 2}"#, GD),
        (r#"{"kind": "svgd", "particles": 3}"#, ADAGRAD),
    ] {
        let json = |name: &str, alpha: f64, rest: &str| {
            format!(
                r#"{{"name": "{name}", "alpha": {alpha}, "sigma_squared": 0.2, "sampler": {sampler}, {inner}{rest}}}"#
            )
        };
        // beta = alpha m / m'; adapting at that temperature on S gives the samples of Q_beta(S)
        let at_beta = case.offsets(&method(&json("pacoh", 6.0, "")), all);
        check(&case, &json("pacoh", 3.0, ""), &[(1.0, at_beta, all)]);
        let with_beta = json("pacmaml", 3.0, r#", "beta": 4.0"#);
        let at_alpha = case.offsets(&method(&with_beta), subset);
        let at_beta = case.offsets(&method(&json("pacmaml", 4.0, "")), all);
        let parts = [(1.0, at_alpha.clone(), all), (0.75, at_beta, subset), (-0.75, at_alpha, subset)];
        check(&case, &with_beta, &parts);
    }
    let rest = case.pictures(SUBSET, 6);
    let json = format!(r#"{{"name": "pacmaml", "alpha": 3.0, "split": "disjoint", {ADAGRAD}}}"#);
    let at_alpha = case.offsets(&method(&json), subset);
    let at_beta = case.offsets(&method(&json), rest);
    check(&case, &json, &[(1.0, at_alpha.clone(), rest), (1.0, at_beta, subset), (-1.0, at_alpha, subset)]);
}

#[test]
fn reptile_points_to_its_optimum_and_agrees_with_the_loss_there() {
    let case = Case::new(3);
    let all = case.pictures(0, 6);
    let json = |alpha: f64, inner: &str| {
        format!(r#"{{"name": "reptile", "alpha": {alpha}, "sigma_squared": 0.05, {inner}}}"#)
    };
    let (_, gradient) = case.gradient(&method(&json(1.0, GD)));
    let offsets = case.offsets(&method(&json(2.0, GD)), all);
    let expected: Vec<f64> = offsets[0].iter().map(|w| -w / (2.0 * 0.05)).collect();
    assert_close("(p - q)/(beta sigma^2)", &gradient, &expected, 1e-12);

    // with a strong pull the optimum is near and inside a smooth piece; on a kink of rectifiers and pools, where a weaker pull often
    // leads, steps go to and fro and there is no one slope to compare with
    let strong = r#"{"name": "reptile", "alpha": 0.001, "sigma_squared": 0.5, "inner": {"steps": 400, "rate": 0.0005}}"#;
    let (_, gradient) = case.gradient(&method(strong));
    let optimum: Vec<f64> = case.parameters.iter().zip(&gradient).map(|(p, g)| p - 0.001 * g).collect();
    let frozen = case.loss(&optimum, all, None).1;
    let slope = differences(&optimum, 1e-5, |parameters| case.loss(parameters, all, Some(&frozen)).0);
    assert_close("grad L^(q*, S)", &gradient, &slope, 1e-6);
}

#[test]
fn fomaml_is_the_gradient_of_the_tape_at_the_adapted_parameters() {
    let case = Case::new(4);
    let fomaml = method(&format!(r#"{{"name": "fomaml", {ADAGRAD}}}"#));
    let adapted = plus(&case.parameters, &case.offsets(&fomaml, case.pictures(0, SUBSET))[0]);
    let tape = Tape::new();
    let layout = Arc::new(SPEC.layout().unwrap());
    let variables = tape.parameters(&Parameters::from_values(layout, adapted).unwrap());
    let images: Vec<f64> = case.pixels.iter().map(|&byte| f64::from(byte) / 255.0).collect();
    let features = composite::features(case.shape(), &variables, &images).unwrap();
    let logits = features.matmul_transposed(variables.get("head.weight").unwrap()).unwrap();
    let logits = (logits + variables.get("head.bias").unwrap()).unwrap();
    let loss = -logits.log_softmax(1).unwrap().pick(&LABELS).unwrap().mean();
    let expected = tape.parameter_gradient(loss, &variables).unwrap();
    let (terms, gradient) = case.gradient(&fomaml);
    assert!((terms.risk - loss.item().unwrap()).abs() < 1e-12);
    assert_close("the tape", &gradient, expected.values(), 1e-10);
}

/// The steps inside are those of the hand-written passes, which know nothing of the tape.
#[test]
fn maml_is_the_derivative_through_its_steps() {
    let case = Case::new(5);
    for (inner, split) in [(GD, "nested"), (ADAGRAD, "nested"), (GD, "disjoint"), (ADAGRAD, "disjoint")] {
        let maml = method(&format!(r#"{{"name": "maml", "split": "{split}", {inner}}}"#));
        let (terms, gradient) = case.gradient(&maml);
        let (again, recomputed) = case.gradient(&maml.clone().with_way_back(WayBack::Recompute));
        assert!((again.objective - terms.objective).abs() < 1e-12);
        assert_close("step by step", &recomputed, &gradient, 1e-10);
        let first = if split == "nested" { 0 } else { SUBSET };
        let value = |parameters: &[f64]| {
            let offsets = case.at(parameters).offsets(&maml, case.pictures(0, SUBSET));
            case.loss(&plus(parameters, &offsets[0]), case.pictures(first, 6), None).0
        };
        assert!((terms.objective - value(&case.parameters)).abs() < 1e-12);
        let expected = differences(&case.parameters, 1e-6, value);
        assert_close(inner, &gradient, &expected, 1e-6);
        // not the first-order gradient
        let (_, first_order) = case.gradient(&method(&format!(r#"{{"name": "fomaml", {inner}}}"#)));
        let distance = minus(&gradient, &first_order).iter().fold(0.0_f64, |most, d| most.max(d.abs()));
        assert!(distance > 1e-3, "{distance}");
    }
}

/// |chaser - leader|^2 with a leader that goes on from the chaser by steps written out here, and is then constant.
#[test]
fn bmaml_is_the_derivative_through_the_chasers_steps() {
    const ALPHA: f64 = 2.0;
    const BETA: f64 = 5.0;
    const SIGMA_SQUARED: f64 = 0.3;
    const RATE: f64 = 0.05; // that of ADAGRAD
    let case = Case::new(7);
    // one plain step of rate 1 goes down the slope
    let plain = method(r#"{"name": "fomaml", "inner": {"steps": 1, "rate": 1.0}}"#);
    let walk = |mut offset: Vec<f64>, squares: &mut Vec<f64>, temperature: f64, end: usize| {
        for _ in 0..3 {
            let down = &case.at(&plus(&case.parameters, &offset)).offsets(&plain, case.pictures(0, end))[0];
            for ((w, down), a) in offset.iter_mut().zip(down).zip(squares.iter_mut()) {
                let slope = *w / SIGMA_SQUARED - temperature * down;
                *a += slope * slope;
                *w -= RATE * slope / a.sqrt();
            }
        }
        offset
    };
    let bmaml = method(&format!(
        r#"{{"name": "bmaml", "alpha": {ALPHA}, "beta": {BETA}, "sigma_squared": {SIGMA_SQUARED}, {ADAGRAD}}}"#
    ));
    let mut squares = vec![0.1; case.parameters.len()];
    let chaser = walk(vec![0.0; case.parameters.len()], &mut squares, ALPHA, SUBSET);
    assert_close("chaser", &case.offsets(&bmaml, case.pictures(0, SUBSET))[0], &chaser, 1e-9);
    let leader = plus(&case.parameters, &walk(chaser, &mut squares, BETA, 6));
    let value = |parameters: &[f64]| {
        let offsets = case.at(parameters).offsets(&bmaml, case.pictures(0, SUBSET));
        minus(&plus(parameters, &offsets[0]), &leader).iter().map(|d| d * d).sum::<f64>()
    };
    let (terms, gradient) = case.gradient(&bmaml);
    let objective = value(&case.parameters);
    assert!((terms.objective - objective).abs() < 1e-9 * objective, "{} {objective}", terms.objective);
    assert_close("bmaml", &gradient, &differences(&case.parameters, 1e-6, value), 1e-6);
    let (_, recomputed) = case.gradient(&bmaml.with_way_back(WayBack::Recompute));
    assert_close("step by step", &recomputed, &gradient, 1e-10);
}

#[test]
fn pictures_without_labels_count_in_the_statistics_only() {
    let case = Case::new(6);
    let plain = method(r#"{"name": "fomaml", "inner": {"steps": 1, "rate": 1.0}}"#);
    let mixed = Pictures { inputs: &case.pixels, labels: &LABELS[..SUBSET] };
    let step: Vec<f64> = case.offsets(&plain, mixed)[0].iter().map(|w| -w).collect();
    let frozen = case.loss(&case.parameters, mixed, None).1;
    let expected =
        differences(&case.parameters, 1e-5, |parameters| case.loss(parameters, mixed, Some(&frozen)).0);
    assert_close("a step", &step, &expected, 1e-7);
    let alone: Vec<f64> = case.offsets(&plain, case.pictures(0, SUBSET))[0].iter().map(|w| -w).collect();
    assert!(minus(&step, &alone).iter().any(|difference| difference.abs() > 1e-3));
}
