//! Text classification on generated sentences with a small random encoder: learning, resumption, memory, adaptation, mistakes.

#![cfg(feature = "text")]
#![allow(clippy::unwrap_used, reason = "helpers of a test")]

use std::sync::atomic::{AtomicU64, Ordering};

use pacmeta::Error;
use pacmeta::benchmark::{ModelShape, TextStepSettings, measure_text_step};
use pacmeta::classification::{Observer, Quiet, Terms, Validation};
use pacmeta::config::{ClassificationMethodKind, TextConfig};
use pacmeta::environments::text::Sentences;
use pacmeta::methods::networks::WayBack;
use pacmeta::text::model::LabelledSentences;
use pacmeta::text::{TextExperiment, TextModel, TextRunFiles, text_report};

fn config(more: &str) -> TextConfig {
    let text = format!(
        "[data]\nenvironment = \"text\"\npath = \"synthetic\"\nexamples = 24\nsupport = 8\n{more}\n[prior]\nmodel = \"synthetic\"\n\
         [training]\niterations = 6\nrate = 0.001\nvalidate_every = 3\nvalidation_draws = 1\nlog_every = 2\n\
         [evaluation]\nshots = [4, 8]\ndraws = 3\nqueries = 40\nsteps = 60\nrate = 0.02\n"
    );
    TextConfig::parse("test.toml", &text, &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn set(config: &mut TextConfig, method: ClassificationMethodKind, threshold: usize) {
    let text = config.to_toml().replace("name = \"pacmaml\"", &format!("name = \"{}\"", method.name()));
    let kept: Vec<&str> = text
        .lines()
        .filter(|line| {
            let key = line.split(' ').next().unwrap_or("");
            method == ClassificationMethodKind::Pacmaml
                || !["alpha", "sigma_squared", "sampler", "split"].contains(&key)
        })
        .collect();
    let text = kept.join("\n").replace("[prior]", &format!("[prior]\nthreshold = {threshold}"));
    let text = text.replace("steps = 50", "steps = 5");
    *config = TextConfig::parse("test.toml", &text, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
}

/// Stops after some iterations.
struct StopAfter(AtomicU64, u64);

impl Observer for StopAfter {
    fn warning(&mut self, _: &str) {}
    fn begin(&mut self, _: u64, _: u64) {}
    fn iteration(&mut self, iteration: u64, _: u64, _: &Terms) {
        self.0.store(iteration, Ordering::Relaxed);
    }
    fn validated(&mut self, _: u64, _: &Validation) {}
    fn scoring(&mut self, _: usize) {}
    fn stop(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= self.1
    }
}

#[test]
fn every_method_trains_and_scores_with_heads_and_with_layers() {
    use ClassificationMethodKind::*;
    for method in ClassificationMethodKind::ALL {
        for threshold in [1, 2] {
            let mut config = config("");
            set(&mut config, method, threshold);
            let (experiment, _) = TextExperiment::prepare(config).unwrap();
            let folder = tempfile::tempdir().unwrap();
            let (outcome, scores) = experiment.train_and_score_in(folder.path(), &mut Quiet).unwrap();
            assert_eq!(outcome.iterations, 6);
            let names = scores.model.tasks();
            let mean = scores.model.average(&names, 8).unwrap();
            assert!(
                mean.accuracy > 0.3 && mean.accuracy <= 1.0 && mean.draws == 3,
                "{}: {mean:?}",
                method.name()
            );
            assert_ne!(outcome.model.parameters().values(), experiment.start().unwrap().values());
            if matches!(method, Maml | Fomaml) && threshold == 1 {
                let again = experiment.train_and_score_in(folder.path(), &mut Quiet).unwrap();
                assert_eq!((again.0.iterations, again.1), (0, scores), "a finished run is read again");
            }
        }
    }
}

#[test]
fn a_stopped_run_continues_to_the_same_bits_and_reports_itself() {
    let (experiment, _) = TextExperiment::prepare(config("smlmt = 0.3")).unwrap();
    let [whole, parts] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let first = experiment.train_and_score_in(whole.path(), &mut Quiet).unwrap();
    let stopped = experiment.train_in(parts.path(), &mut StopAfter(AtomicU64::new(0), 4)).unwrap_err();
    assert!(matches!(stopped, Error::Interrupted { iteration: 4 }), "{stopped}");
    let second = experiment.train_and_score_in(parts.path(), &mut Quiet).unwrap();
    assert_eq!(second.0.iterations, 2);
    assert_eq!(first.0.model.parameters().values(), second.0.model.parameters().values());
    assert_eq!(first.1, second.1);
    let bytes = |folder: &tempfile::TempDir| std::fs::read(folder.path().join("prior.safetensors")).unwrap();
    assert_eq!(bytes(&whole), bytes(&parts));
    let run = TextRunFiles::read(whole.path()).unwrap();
    let page = pacmeta::report::study_page(&text_report(&run, None));
    assert!(page.contains("pretrained only") && page.contains("PACMAML on texts"));
    let validations = run.metrics.iter().filter(|line| line.get("validation_accuracy").is_some()).count();
    assert_eq!(validations, 3, "before, in the middle and at the end");
}

#[test]
fn a_model_adapts_to_a_dozen_sentences() {
    let (experiment, _) = TextExperiment::prepare(config("")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    experiment.train_in(folder.path(), &mut Quiet).unwrap();
    let model = TextModel::read(folder.path()).unwrap();
    let support: Vec<Sentences> =
        ["good lovely", "bad awful", "great good", "awful bad", "lovely great", "bad bad"]
            .map(Sentences::single)
            .into();
    let labelled = LabelledSentences { sentences: &support, labels: &[0, 1, 0, 1, 0, 1], classes: 2 };
    let queries = ["good great", "awful"].map(Sentences::single);
    let answer = model.classify(labelled, &queries).unwrap();
    assert_eq!(answer.probabilities.len(), 2);
    for row in &answer.probabilities {
        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
    }
    assert!(answer.losses[1] < answer.losses[0]);
    let alone = model.classify(labelled, &queries[1..]).unwrap();
    // up to the rounding of products with another number of rows
    let difference = alone.probabilities[0][0] - answer.probabilities[1][0];
    assert!(difference.abs() < 1e-5, "a prediction does not depend on other queries: {difference}");
    let one_class = LabelledSentences { classes: 1, labels: &[0; 6], ..labelled };
    assert!(model.classify(one_class, &queries).unwrap_err().to_string().contains("at least two classes"));
    assert!(model.classify(labelled, &[]).unwrap_err().to_string().contains("at least one sentence"));
}

#[test]
fn generated_heads_learn_and_need_the_threshold_at_the_top() {
    let text = config("").to_toml().replace("head = \"learned\"", "head = \"generated\"");
    let generated = TextConfig::parse("test.toml", &text, &[]).unwrap();
    let (experiment, _) = TextExperiment::prepare(generated).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (outcome, _) = experiment.train_and_score_in(folder.path(), &mut Quiet).unwrap();
    let weight = outcome.model.parameters().tensor("generator.hidden.weight").unwrap();
    let start = experiment.start().unwrap();
    assert_ne!(weight, start.tensor("generator.hidden.weight").unwrap());
    let below = text.replace("[prior]", "[prior]\nthreshold = 1");
    let error = TextExperiment::prepare(TextConfig::parse("test.toml", &below, &[]).unwrap()).err().unwrap();
    assert!(error.to_string().contains("prior.head"), "{error}");
}

fn measured(
    method: ClassificationMethodKind,
    way_back: WayBack,
    steps: usize,
) -> pacmeta::benchmark::TextStep {
    let settings = TextStepSettings {
        shape: ModelShape::Tiny,
        method,
        way_back,
        threshold: 2,
        steps,
        examples: 8,
        support: 4,
        length: 12,
    };
    measure_text_step(settings).unwrap()
}

/// The paper's point: PACMAML keeps nothing of its inner steps.
#[test]
fn memory_is_flat_for_pacmaml_and_grows_for_maml() {
    use ClassificationMethodKind::{Bmaml, Maml, Pacmaml};
    let total = |method, way_back, steps| measured(method, way_back, steps).total_bytes;
    assert_eq!(total(Pacmaml, WayBack::Tape, 1), total(Pacmaml, WayBack::Tape, 12));
    for method in [Maml, Bmaml] {
        let [two, four, eight] =
            [2, 4, 8].map(|steps| measured(method, WayBack::Tape, steps).tape_bytes as f64);
        let (first, second) = (four - two, (eight - four) / 2.0);
        assert!(first > 0.0 && (second / first - 1.0).abs() < 0.05, "{first} {second}: a line in the steps");
        let recomputed = measured(method, WayBack::Recompute, 8);
        assert!(recomputed.tape_bytes < eight as usize / 3, "one step at a time");
        assert!(recomputed.kept_bytes > 0);
    }
}

#[test]
fn mistakes_say_what_to_do() {
    let error = |config: TextConfig| TextExperiment::prepare(config).err().unwrap().to_string();
    let mut unknown = config("");
    unknown.data.held_out = vec!["nowhere".to_owned()];
    assert!(error(unknown).contains("there is no task `nowhere`"));
    let mut large = config("");
    large.evaluation.shots = vec![10_000];
    assert!(error(large).contains("evaluation.shots"));
    let mut high = config("");
    high.prior.threshold = Some(7);
    assert!(error(high).contains("prior.threshold"));
    let mut absent = config("");
    absent.prior.model = "no/such/model".into();
    assert!(error(absent).contains("no/such/model"));
    let mut large = config("");
    large.data.examples = 1000;
    large.data.support = 1000;
    let message = error(large);
    assert!(message.contains("has 200 examples") && message.contains("S' alone takes 1000"), "{message}");
    let folder = tempfile::tempdir().unwrap();
    let (experiment, _) = TextExperiment::prepare(config("")).unwrap();
    experiment.train_in(folder.path(), &mut Quiet).unwrap();
    let mut split = config("");
    split.data.held_out = vec![experiment.observed()[0].name.clone()];
    let (other, _) = TextExperiment::prepare(split).unwrap();
    assert!(other.train_in(folder.path(), &mut Quiet).is_err(), "another split is another run");
}
