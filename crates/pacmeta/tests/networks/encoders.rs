//! Methods on the upper layers of an encoder: derivatives in what adapts and in the states below, against finite differences; and with the
//! threshold at the top, the methods of heads.

use pacmeta::learners::head::HeadShape;
use pacmeta::learners::network::{Derivative, Labelled, Network, NetworkRoom, UpperLayers};
use pacmeta::methods::heads::{FeatureTask, HeadGradient, HeadMethodSettings, HeadRoom, HeadTerms};
use pacmeta::methods::networks::{NetworkMethod, NetworkTask, WayBack};
use pacmeta_tensor::Key;
use pacmeta_tensor::encoder::{
    Activation, EncoderRoom, EncoderShape, Keep, Pooling, States, upper_backward, upper_forward,
};

use crate::{assert_close, differences, method, minus, plus};

const SHAPE: EncoderShape = EncoderShape {
    vocabulary: 7,
    positions: 5,
    segments: 1,
    hidden: 4,
    heads: 2,
    intermediate: 5,
    layers: 2,
    epsilon: 1e-12,
    activation: Activation::Gelu,
    pooling: Pooling::Mean,
};
const STARTS: [usize; 5] = [0, 2, 5, 6, 9];
const LABELS: [usize; 4] = [0, 1, 1, 0];
const SUBSET: usize = 2;
const CLASSES: usize = 2;
const KEY: u64 = 5;

/// Layers above a threshold in f64, and the states of four sequences.
struct Case {
    body: UpperLayers<f64>,
    parameters: Vec<f64>,
    states: Vec<f64>,
}

impl Case {
    fn new(threshold: usize, seed: u64) -> Self {
        let body = UpperLayers::new(SHAPE, threshold).unwrap();
        let network = Network { body: &body, classes: CLASSES };
        let mut generator = Key::new(seed).generator();
        let mut numbers = |count: usize| (0..count).map(|_| 0.5 * generator.normal()).collect::<Vec<f64>>();
        let (parameters, states) = (numbers(network.parameters()), numbers(9 * SHAPE.hidden));
        Self { body, parameters, states }
    }

    fn network(&self) -> Network<'_, UpperLayers<f64>> {
        Network { body: &self.body, classes: CLASSES }
    }

    /// Objective and derivative in parameters and states, one behind the other.
    fn gradient(&self, method: &NetworkMethod) -> (HeadTerms, Vec<f64>) {
        let inputs = States { values: &self.states, starts: &STARTS };
        let task = NetworkTask { inputs, labels: &LABELS, subset: SUBSET };
        let (mut parameters, mut states) = (vec![9.0; self.parameters.len()], vec![9.0; self.states.len()]);
        let derivative = Derivative { parameters: &mut parameters, inputs: &mut states };
        let mut room = NetworkRoom::new(&self.body);
        let terms = method
            .task_gradient(self.network(), &self.parameters, &task, Key::new(KEY), &mut room, derivative)
            .unwrap();
        parameters.extend(states);
        (terms, parameters)
    }

    /// The case at other parameters and states, one behind the other.
    fn at(&self, numbers: &[f64]) -> Self {
        let (parameters, states) = numbers.split_at(self.parameters.len());
        Self { body: self.body.clone(), parameters: parameters.to_vec(), states: states.to_vec() }
    }

    fn numbers(&self) -> Vec<f64> {
        [&self.parameters[..], &self.states].concat()
    }

    /// w after adapting to the sequences from `first` to `end`.
    fn offset(&self, method: &NetworkMethod, first: usize, end: usize) -> Vec<f64> {
        let mut room = NetworkRoom::new(&self.body);
        let support = self.examples(first, end);
        let adapted =
            method.adapt(self.network(), &self.parameters, support, Key::new(KEY), &mut room).unwrap();
        minus(&adapted[0], &self.parameters)
    }

    fn examples(&self, first: usize, end: usize) -> Labelled<'_, States<'_, f64>> {
        let values = &self.states[STARTS[first] * SHAPE.hidden..STARTS[end] * SHAPE.hidden];
        Labelled { inputs: States { values, starts: &STARTS[first..=end] }, labels: &LABELS[first..end] }
    }

    /// L^ on sequences, from the predicted probabilities.
    fn loss(&self, offset: &[f64], first: usize, end: usize) -> f64 {
        let position = plus(&self.parameters, offset);
        let examples = self.examples(first, end);
        let mut room = NetworkRoom::new(&self.body);
        let rows = self.network().probabilities(&position, examples.inputs, &mut room).unwrap();
        let losses = rows.chunks_exact(CLASSES).zip(examples.labels).map(|(row, &label)| -row[label].ln());
        losses.sum::<f64>() / examples.labels.len() as f64
    }
}

const INNER: &str = r#""inner": {"steps": 3, "rate": 0.05, "optimiser": "adagrad"}"#;

#[test]
fn first_order_methods_are_derivatives_with_constant_offsets() {
    for threshold in [0, 1, 2] {
        let case = Case::new(threshold, 40 + threshold as u64);
        let fomaml = method(&format!(r#"{{"name": "fomaml", {INNER}}}"#));
        let pacmaml = method(&format!(
            r#"{{"name": "pacmaml", "alpha": 3.0, "beta": 4.0, "sigma_squared": 0.5, {INNER}}}"#
        ));
        let at_beta =
            method(&format!(r#"{{"name": "pacmaml", "alpha": 4.0, "sigma_squared": 0.5, {INNER}}}"#));
        let disjoint = method(&format!(
            r#"{{"name": "pacmaml", "alpha": 3.0, "beta": 4.0, "sigma_squared": 0.5, "split": "disjoint", {INNER}}}"#
        ));
        let (of_fomaml, of_alpha) = (case.offset(&fomaml, 0, SUBSET), case.offset(&pacmaml, 0, SUBSET));
        let (of_beta, of_rest) = (case.offset(&at_beta, 0, 4), case.offset(&at_beta, SUBSET, 4));
        let check = |name: &str, method: &NetworkMethod, objective: &dyn Fn(&Case) -> f64| {
            let (terms, gradient) = case.gradient(method);
            assert!((terms.objective - objective(&case)).abs() < 1e-11, "{name}");
            let expected = differences(&case.numbers(), 1e-4, |numbers| objective(&case.at(numbers)));
            assert_close(&format!("{name}, v = {threshold}"), &gradient, &expected, 1e-7);
        };
        check("fomaml", &fomaml, &|case| case.loss(&of_fomaml, 0, 4));
        check("pacmaml", &pacmaml, &|case| {
            let subset = case.loss(&of_beta, 0, SUBSET) - case.loss(&of_alpha, 0, SUBSET);
            case.loss(&of_alpha, 0, 4) + 0.75 * subset
        });
        check("disjoint pacmaml", &disjoint, &|case| {
            let subset = case.loss(&of_rest, 0, SUBSET) - case.loss(&of_alpha, 0, SUBSET);
            case.loss(&of_alpha, SUBSET, 4) + 0.75 * subset
        });
    }
}

#[test]
fn maml_and_bmaml_are_exact_in_parameters_and_states_both_ways_back() {
    let case = Case::new(1, 44);
    let maml = method(&format!(r#"{{"name": "maml", {INNER}}}"#));
    let value = |numbers: &[f64]| {
        let case = case.at(numbers);
        case.loss(&case.offset(&maml, 0, SUBSET), 0, 4)
    };
    let (terms, gradient) = case.gradient(&maml);
    assert!((terms.objective - value(&case.numbers())).abs() < 1e-11);
    assert_close("maml", &gradient, &differences(&case.numbers(), 1e-4, value), 1e-6);
    let (_, recomputed) = case.gradient(&maml.clone().with_way_back(WayBack::Recompute));
    assert_close("maml, recomputed", &recomputed, &gradient, 1e-10);

    let bmaml = method(&format!(r#"{{"name": "bmaml", "alpha": 2.0, "sigma_squared": 0.4, {INNER}}}"#));
    let (_, gradient) = case.gradient(&bmaml);
    let (_, recomputed) = case.gradient(&bmaml.clone().with_way_back(WayBack::Recompute));
    assert_close("bmaml, recomputed", &recomputed, &gradient, 1e-10);
    // only the chaser's sequences are part of it
    let others = (STARTS[SUBSET] * SHAPE.hidden) + case.parameters.len();
    assert!(gradient[others..].iter().all(|&value| value == 0.0));
}

#[test]
fn with_the_threshold_at_the_top_layers_adapt_as_heads_do() {
    let case = Case::new(SHAPE.layers, 45);
    let states = States { values: &case.states[..], starts: &STARTS[..] };
    let mut room = EncoderRoom::new();
    let features =
        upper_forward(&SHAPE, 2, &[], states, Keep::ForBackward, None, &mut room).unwrap().to_vec();
    for json in [
        format!(r#"{{"name": "pacmaml", "alpha": 3.0, "sigma_squared": 0.5, {INNER}}}"#),
        format!(r#"{{"name": "maml", {INNER}}}"#),
        format!(r#"{{"name": "bmaml", "alpha": 3.0, "sigma_squared": 0.5, {INNER}}}"#),
        format!(r#"{{"name": "reptile", "alpha": 1.0, "sigma_squared": 0.5, {INNER}}}"#),
    ] {
        let settings: HeadMethodSettings = serde_json::from_str(&json).unwrap();
        let shape = HeadShape { features: SHAPE.hidden, classes: CLASSES };
        let task = FeatureTask { shape, features: &features, labels: &LABELS, subset: SUBSET };
        let mut head = HeadGradient::default();
        let built = settings.build::<f64>().unwrap();
        let terms = built
            .task_gradient(&case.parameters, &task, Key::new(KEY), &mut HeadRoom::default(), &mut head)
            .unwrap();
        let mut of_states = vec![0.0; case.states.len()];
        upper_backward(&SHAPE, 2, &[], states, &head.features, &mut room, &mut [], Some(&mut of_states))
            .unwrap();
        let (found, gradient) = case.gradient(&NetworkMethod::new(&settings).unwrap());
        assert!((found.objective - terms.objective).abs() < 1e-11, "{json}");
        assert_close(&json, &gradient, &[&head.head[..], &of_states].concat(), 1e-9);
    }
}

/// One task of each, against PyTorch: see `benchmarks/golden/text_step_reference.py`.
#[test]
fn a_task_of_maml_and_of_pacmaml_agrees_with_pytorch() {
    let golden: serde_json::Value = serde_json::from_str(include_str!("../golden/text_steps.json")).unwrap();
    let formula = |count: usize, phase: f64| -> Vec<f64> {
        (0..count).map(|place| 0.6 * (1.3 * place as f64 + phase).sin()).collect()
    };
    let case = Case::new(1, 0);
    let (parameters, states) = (formula(case.parameters.len(), 0.2), formula(case.states.len(), 0.9));
    let case = Case { parameters, states, ..case };
    for (name, rest) in [("maml", ""), ("pacmaml", r#""alpha": 3.0, "sigma_squared": 0.5, "#)] {
        let (terms, gradient) = case.gradient(&method(&format!(r#"{{"name": "{name}", {rest}{INNER}}}"#)));
        let expected: Vec<f64> =
            golden[name].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
        assert_close(name, &gradient, &expected, 1e-9);
        if name == "pacmaml" {
            assert!((terms.objective - golden["objective"].as_f64().unwrap()).abs() < 1e-12);
        }
    }
}
