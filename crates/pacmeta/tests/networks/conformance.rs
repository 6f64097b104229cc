//! Special cases, repeatability, precision and refusals.

use pacmeta::learners::network::{Derivative, Network, NetworkRoom, Pictures};
use pacmeta::methods::heads::HeadMethodSettings;
use pacmeta::methods::networks::{NetworkMethod, NetworkTask};
use pacmeta_tensor::Key;

use crate::{Case, LABELS, PICTURE, SPEC, assert_close, method};

const NONE: &str = r#""inner": {"steps": 0, "rate": 0.1}"#;
const SOME: &str = r#""inner": {"steps": 4, "rate": 0.05}"#;

#[test]
fn without_steps_every_method_is_multi_task() {
    let case = Case::new(21);
    let (terms, expected) = case.gradient(&method(&format!(r#"{{"name": "multi-task", {NONE}}}"#)));
    assert!((terms.risk - case.loss(&case.parameters, case.pictures(0, 6), None).0).abs() < 1e-12);
    for name in ["fomaml", "maml", "pacoh", "pacmaml"] {
        let alpha = if name.starts_with("pac") { r#""alpha": 2.0, "# } else { "" };
        let (found, gradient) = case.gradient(&method(&format!(r#"{{"name": "{name}", {alpha}{NONE}}}"#)));
        assert!((found.objective - terms.objective).abs() < 1e-12, "{name}");
        assert_close(name, &gradient, &expected, 1e-12);
    }
}

#[test]
fn pacmaml_with_everything_in_the_subset_is_pacoh() {
    let case = Case { subset: LABELS.len(), ..Case::new(22) };
    let json = |name| format!(r#"{{"name": "{name}", "alpha": 3.0, "beta": 3.0, {SOME}}}"#);
    let (of_pacoh, expected) = case.gradient(&method(&json("pacoh")));
    let (of_pacmaml, gradient) = case.gradient(&method(&json("pacmaml")));
    assert!((of_pacoh.objective - of_pacmaml.objective).abs() < 1e-12);
    assert_eq!(of_pacoh.accuracy, of_pacmaml.accuracy);
    assert_close("pacmaml", &gradient, &expected, 1e-12);
}

#[test]
fn a_wide_prior_makes_gibbs_steps_plain_and_one_particle_of_svgd_is_steps() {
    let case = Case::new(23);
    let pacoh = |sampler: &str| {
        let json = format!(
            r#"{{"name": "pacoh", "alpha": 1.0, "beta": 1.0, "sigma_squared": 1e14, "sampler": {sampler}, {SOME}}}"#
        );
        case.offsets(&method(&json), case.pictures(0, 6))
    };
    let steps = pacoh(r#"{"kind": "steps"}"#);
    assert_eq!(steps, pacoh(r#"{"kind": "svgd", "particles": 1}"#));
    let plain = case.offsets(&method(&format!(r#"{{"name": "fomaml", {SOME}}}"#)), case.pictures(0, 6));
    assert_close("plain steps", &steps[0], &plain[0], 1e-10);
}

#[test]
fn same_key_same_bits_and_another_key_other_noise() {
    let case = Case::new(24);
    let json = format!(
        r#"{{"name": "pacmaml", "alpha": 2.0, "sampler": {{"kind": "sgld", "particles": 2}}, {SOME}}}"#
    );
    let pacmaml = method(&json);
    let first = case.gradient(&pacmaml);
    assert_eq!(first, case.gradient(&pacmaml));
    assert_ne!(first, case.try_gradient(&pacmaml, Key::new(77)).unwrap());

    // also in a room that other tasks have used
    let mut room = NetworkRoom::new(&case.body);
    let mut gradient = vec![0.0; case.parameters.len()];
    for subset in [5, 3] {
        let task = NetworkTask { inputs: &case.pixels[..], labels: &LABELS, subset };
        let key = Key::new(crate::KEY);
        pacmaml
            .task_gradient(
                case.network(),
                &case.parameters,
                &task,
                key,
                &mut room,
                Derivative { parameters: &mut gradient, inputs: &mut [] },
            )
            .unwrap();
    }
    assert_eq!(gradient, first.1);
}

/// In f32, on the body that training uses.
#[test]
fn single_precision_agrees() {
    let case = Case::new(25);
    let body = SPEC.body().unwrap();
    let parameters: Vec<f32> = case.parameters.iter().map(|&value| value as f32).collect();
    let task = NetworkTask { inputs: &case.pixels[..], labels: &LABELS, subset: case.subset };
    for name in ["fomaml", "maml", "reptile", "pacoh", "pacmaml"] {
        let alpha = if name.ends_with("maml") && name != "pacmaml" { "" } else { r#""alpha": 1.0, "# };
        let method = method(&format!(r#"{{"name": "{name}", {alpha}{SOME}}}"#));
        let (terms, expected) = case.gradient(&method);
        let network = Network { body: &body, classes: SPEC.classes };
        let (mut room, mut gradient) = (NetworkRoom::new(&body), vec![0.0; parameters.len()]);
        let key = Key::new(crate::KEY);
        let found = method
            .task_gradient(
                network,
                &parameters,
                &task,
                key,
                &mut room,
                Derivative { parameters: &mut gradient, inputs: &mut [] },
            )
            .unwrap();
        assert!((found.objective - terms.objective).abs() < 1e-4, "{name}");
        let gradient: Vec<f64> = gradient.iter().map(|&value| f64::from(value)).collect();
        assert_close(name, &gradient, &expected, 2e-3);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let refusal = |json: &str| {
        let settings: HeadMethodSettings = serde_json::from_str(json).unwrap();
        NetworkMethod::new(&settings).unwrap_err().to_string()
    };
    let bmaml = refusal(&format!(
        r#"{{"name": "bmaml", "alpha": 1.0, "sampler": {{"kind": "svgd", "particles": 2}}, {SOME}}}"#
    ));
    assert!(bmaml.contains("`sampler`") && bmaml.contains("take one here"), "{bmaml}");
    let pacoh = refusal(&format!(
        r#"{{"name": "pacoh", "alpha": 1.0, "estimator": {{"kind": "prior", "samples": 3}}, {SOME}}}"#
    ));
    assert!(pacoh.contains("`estimator`") && pacoh.contains("\"posterior\""), "{pacoh}");
    let wrong = refusal(r#"{"name": "fomaml", "inner": {"steps": 3, "rate": -1.0}}"#);
    assert!(wrong.contains("inner.rate"), "{wrong}");

    let case = Case::new(26);
    let fomaml = method(&format!(r#"{{"name": "fomaml", {SOME}}}"#));
    let fails =
        |case: &Case, method: &NetworkMethod| case.try_gradient(method, Key::new(1)).unwrap_err().to_string();
    let empty = fails(&Case { subset: 0, ..Case::new(26) }, &fomaml);
    assert!(empty.contains("S' has 0 of 6 examples"), "{empty}");
    let disjoint = method(&format!(r#"{{"name": "fomaml", "split": "disjoint", {SOME}}}"#));
    let none = fails(&Case { subset: 6, ..Case::new(26) }, &disjoint);
    assert!(none.contains("leaves none to judge on"), "{none}");
    let mut short = Case::new(26);
    short.parameters.pop();
    assert!(fails(&short, &fomaml).contains("parameters, expected"));
    let wild = method(r#"{"name": "fomaml", "inner": {"steps": 4, "rate": 1e300}}"#);
    assert!(fails(&case, &wild).starts_with("fomaml: "));

    let mut room = NetworkRoom::new(&case.body);
    let mut adapt = |pictures| {
        let result = fomaml.adapt(case.network(), &case.parameters, pictures, Key::new(1), &mut room);
        result.unwrap_err().to_string()
    };
    assert!(adapt(Pictures { inputs: &case.pixels, labels: &[] }).contains("at least one"));
    let few = Pictures { inputs: &case.pixels[..PICTURE], labels: &LABELS };
    assert!(adapt(few).contains("6 labels for 1 examples"));
    assert!(adapt(Pictures { inputs: &case.pixels, labels: &[0, 3] }).contains("expected one below 3"));
}
