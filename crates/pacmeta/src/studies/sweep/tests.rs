//! Grids that collapse, tasks that stay the same, records that are used again, choices that are known beforehand.

use std::fmt::Write as _;

use tempfile::TempDir;

use super::*;
use crate::config::{Config, SweepFile};
use crate::experiment::Experiment;
use crate::report::study_page;
use crate::studies::record::{Ending, Records};
use crate::studies::runner::{self, Failures, SilentStudy};
use crate::studies::spec::Spec;

const SMALL: &str = "[data]\ntasks = 4\nexamples = 8\ntarget_tasks = 4\nquery = 6\nsupport = 3\n[prior]\nhidden = [4]\n\
                     [method]\nbeta_per_example = 30\nalpha_over_beta = 0.3\n[training]\niterations = 3\nbatch = 2\n";

fn file(text: &str) -> SweepFile {
    SweepFile::parse("test.toml", text, &[]).unwrap()
}

fn prepared(sweep: &str) -> Prepared {
    prepare(&file(&format!("{SMALL}{sweep}")), "test.toml", &[]).unwrap()
}

fn refusal(sweep: &str) -> String {
    let text = format!("{SMALL}{sweep}");
    let error = SweepFile::parse("test.toml", &text, &[])
        .and_then(|file| prepare(&file, "test.toml", &[]))
        .expect_err("the sweep should be refused");
    assert!(error.is_input(), "{error}");
    error.to_string()
}

#[test]
fn points_that_differ_in_keys_without_effect_become_one_setting() {
    let plan = prepared(
        "[sweep.grid]\n\"method.name\" = [\"pacoh\", \"pacmaml\", \"multi-task\"]\n\"method.beta_per_example\" = [10, 30]\n\
         method.alpha_over_beta = [0.1, 0.3]\n",
    )
    .plan;
    // pacoh has no alpha, multi-task has no temperature at all.
    assert_eq!((plan.points, plan.settings.len(), plan.collapsed()), (12, 2 + 4 + 1, 5));
    assert_eq!(plan.axes[0].name, "method.name", "axes of words come first");
    let labels: Vec<String> = plan.settings.iter().map(|setting| plan.label(setting)).collect();
    for label in [
        "method.name=pacoh, method.beta_per_example=10",
        "method.name=pacmaml, method.alpha_over_beta=0.3, method.beta_per_example=30",
        "method.name=multi-task",
    ] {
        assert!(labels.iter().any(|other| other == label), "no {label} in {labels:?}");
    }
    assert_eq!(plan.settings.iter().map(|setting| setting.points).sum::<usize>(), plan.points);
    for setting in &plan.settings {
        setting.config.check().unwrap();
    }
    // The file's own alpha would stand in the way of `--set method.name=pacoh`; of pacmaml's it would not.
    let direct = |name: &str| {
        let of = plan.settings.iter().find(|setting| setting.config.method.kind.name() == name).unwrap();
        train_command(&plan, of)
    };
    assert_eq!(direct("pacoh"), None);
    let command = direct("pacmaml").unwrap();
    assert!(command.starts_with("pacmeta train test.toml --set method.name=pacmaml --set "), "{command}");
}

#[test]
fn what_cannot_be_swept_is_refused_with_the_axis_and_the_value() {
    for (grid, words) in [
        ("\"method.beta_per_exampel\" = [10]", &["method.beta_per_exampel", "did you mean"][..]),
        ("\"metod.name\" = [\"pacoh\"]", &["metod.name", "did you mean"]),
        ("\"method.name\" = [\"pacoh\", \"pacmal\"]", &["method.name", "pacmal", "did you mean"]),
        ("\"method.beta_per_example\" = [10, -3]", &["method.beta_per_example", "the value -3"]),
        ("\"method.subset\" = [3, 9]", &["method.subset", "the value 9", "does not fit"]),
        ("\"method.rate\" = [0.1, 0.2]", &["method.rate", "no effect at any point"]),
        ("\"search.folds\" = [2, 3]", &["search.folds", "no effect at any point"]),
        ("\"data.examples\" = [5, 10]", &["data.examples", "changes the tasks"]),
        ("\"seed\" = [1, 2]", &["seed", "sweep.seeds"]),
        ("\"bound.delta\" = [0.1, 0.2]", &["bound.delta", "does not change"]),
        ("\"training.batch\" = 3", &["training.batch", "expected a list"]),
        ("\"method.beta\" = [1]\n\"method.beta_per_example\" = [2]", &["method.beta", "remove one"]),
    ] {
        let message = refusal(&format!("[sweep.grid]\n{grid}\n"));
        for word in words {
            assert!(message.contains(word), "{grid}: no `{word}` in: {message}");
        }
    }
    assert!(refusal("").contains("[sweep.grid]"), "an example is given");
    assert!(refusal("[sweep]\nseed = 3\n").contains("did you mean `seeds`"));
    assert!(refusal("[sweep]\nfolds = 5\n[sweep.grid]\n\"training.batch\" = [1]").contains("only 4 tasks"));
    assert!(refusal("[sweep]\nmetric = \"mse\"\n[sweep.grid]\n\"training.batch\" = [1]").contains("rmse"));
}

#[test]
fn other_commands_read_a_file_with_a_sweep_as_if_it_had_none() {
    let with = format!("{SMALL}[sweep]\nseeds = 3\n[sweep.grid]\n\"method.name\" = [\"pacoh\"]\n");
    let (with, without) =
        (Config::parse("test", &with, &[]).unwrap(), Config::parse("test", SMALL, &[]).unwrap());
    assert_eq!(with, without);
    let mistake = Config::parse("test", "[sweep]\nseed = 1", &[]).unwrap_err().to_string();
    assert!(mistake.contains("sweep.seed"), "{mistake}");
}

/// Nine tasks of six examples.
fn table(folder: &TempDir, offset: f64) -> String {
    let mut text = "task,x,y\n".to_owned();
    for task in 0..9 {
        for example in 0..6 {
            let x = f64::from(example) * 0.3 - 0.8;
            let y = (f64::from(task) * 0.7).sin() * x + f64::from(task) * 0.1 + offset * x * x;
            writeln!(text, "t{task},{x},{y}").unwrap();
        }
    }
    let path = folder.path().join("tasks.csv");
    std::fs::write(&path, text).unwrap();
    format!(
        "seed = 3\n[data]\npath = {:?}\nsupport = 3\nheld_out = 4\n[prior]\nhidden = [3]\n[method]\nname = \"pacoh\"\n\
         beta_per_example = 10\n[training]\niterations = 2\nbatch = 2\n",
        path.display().to_string()
    )
}

#[test]
fn all_settings_and_seeds_are_scored_on_the_same_held_out_tasks() {
    let folder = tempfile::tempdir().unwrap();
    let text = table(&folder, 0.0);
    let sweep = "[sweep]\nseeds = 3\n[sweep.grid]\n\"training.batch\" = [1, 2]\n";
    let prepared = prepare(&file(&format!("{text}{sweep}")), "t", &[]).unwrap();
    let mut seeds = Vec::new();
    for spec in prepared.specs() {
        let SweepSpec::Model { config, tasks, .. } = spec else { continue };
        let seed = config.seed;
        let experiment = tasks.unwrap().with_config(*config).unwrap();
        assert_eq!(experiment.scored(), prepared.tasks.scored());
        assert_eq!(experiment.observed(), prepared.tasks.observed());
        seeds.push((experiment.config().seed, experiment.config().training.batch));
        // Which is not what the seed alone would give.
        let own = Experiment::prepare(experiment.config().clone()).unwrap();
        assert_eq!(own.scored() == prepared.tasks.scored(), seed == 3);
    }
    assert_eq!(seeds, [(0, 1), (0, 2), (1, 1), (1, 2), (2, 1), (2, 2)]);
    // They are those of the configuration's own seed, as `train` holds them out.
    let config = Config::parse("t", &text, &[]).unwrap();
    assert_eq!(Experiment::prepare(config).unwrap().scored(), prepared.tasks.scored());
}

fn run(prepared: &Prepared, folder: &TempDir) -> usize {
    let mut records = Records::<SweepSpec>::read(folder.path()).unwrap();
    let progress = runner::run(&prepared.specs(), &mut records, Failures::Keep, &SilentStudy).unwrap();
    assert_eq!(progress.failed, 0);
    progress.done
}

#[test]
fn only_what_is_new_is_trained() {
    let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let sweep = |offset: f64, seeds: u64, batches: &str, logs: u64| {
        let text = table(&data, offset);
        let text = format!(
            "{text}log_every = {logs}\n[sweep]\nseeds = {seeds}\n[sweep.grid]\n\"training.batch\" = {batches}\n"
        );
        prepare(&file(&text), "t", &[]).unwrap()
    };
    assert_eq!(run(&sweep(0.0, 1, "[1, 2]", 50), &folder), 1 + 2, "two models and the floor");
    assert_eq!(run(&sweep(0.0, 1, "[1, 2]", 50), &folder), 0);
    assert_eq!(run(&sweep(0.0, 1, "[1, 2]", 7), &folder), 0, "what is logged does not matter");
    assert_eq!(run(&sweep(0.0, 1, "[1, 2, 3]", 50), &folder), 1);
    assert_eq!(run(&sweep(0.0, 2, "[1, 2, 3]", 50), &folder), 3);
    assert_eq!(run(&sweep(0.0, 2, "[2]", 50), &folder), 0);
    assert_eq!(run(&sweep(0.5, 2, "[2]", 50), &folder), 1 + 2, "changed data are other models");
    assert_eq!(run(&sweep(0.0, 2, "[2]", 50), &folder), 0, "and the old ones are still there");
}

#[test]
fn a_plan_that_was_written_and_read_finds_the_same_pieces() {
    let plan = prepared(
        "[sweep.grid]\n\"method.name\" = [\"pacmaml\", \"maml\"]\n\"training.rate\" = [0.1, 1e-3]\n",
    )
    .plan;
    let again: Plan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
    assert_eq!(again, plan);
    let hashes =
        |plan: &Plan| -> Vec<String> { plan.specs().iter().map(|spec| spec.hash().unwrap()).collect() };
    assert_eq!(hashes(&again), hashes(&plan));
    let mut distinct = hashes(&plan);
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 1 + 4);
}

/// A record in which the setting with batch b has RMSE b and log-likelihood b on every task.
fn made_up(prepared: &Prepared, folder: &TempDir, failing: usize) -> Records<SweepSpec> {
    let mut records = Records::<SweepSpec>::read(folder.path()).unwrap();
    for spec in prepared.specs() {
        let (value, prior_mean) = match &spec {
            SweepSpec::Model { config, .. } => (config.training.batch as f64, true),
            SweepSpec::PlainGp { .. } => (9.0, false),
        };
        // Seeds pull apart and cancel; tasks differ by a constant.
        let seed = if let SweepSpec::Model { config, .. } = &spec { config.seed as f64 - 0.5 } else { 0.0 };
        let list = |value: f64| (0..4).map(|task| value + seed + f64::from(task)).collect::<Vec<f64>>();
        let errors = |value: f64| TaskErrors {
            rmse: list(value),
            log_likelihood: list(value),
            calibration_error: vec![0.1; 4],
            coverage95: vec![0.9; 4],
        };
        let outcome = SweepOutcome {
            scores: errors(value),
            prior_mean: prior_mean.then(|| errors(value + 10.0)),
            beta: None,
            alpha: None,
        };
        let ending =
            if value == failing as f64 { Ending::Failed("no".to_owned()) } else { Ending::Done(outcome) };
        records.append(&spec, ending, 1.0).unwrap();
    }
    records
}

#[test]
fn the_metric_chooses_and_failed_settings_are_not_chosen() {
    for (metric, best, better) in [("rmse", 2.0, true), ("log_likelihood", 5.0, false)] {
        let prepared = prepared(&format!(
            "[sweep]\nseeds = 2\nmetric = \"{metric}\"\n[sweep.grid]\n\"training.batch\" = [1, 2, 4, 5]\n"
        ));
        let folder = tempfile::tempdir().unwrap();
        let records = made_up(&prepared, &folder, 1);
        let analysis = Analysis::new(&prepared.plan, &records).unwrap();
        let chosen = analysis.chosen.as_ref().unwrap();
        let batch = prepared.plan.settings[chosen.setting].config.training.batch as f64;
        assert_eq!(batch, best);
        assert_eq!(chosen.rmse.mean, Some(best + 1.5), "the mean over seeds and tasks");
        assert_eq!((chosen.rmse.observations, chosen.seeds), (4, 2), "tasks, not models, are counted");
        assert_eq!(chosen.over_plain_gp.unwrap().mean, Some(best - 9.0));
        assert_eq!(chosen.over_prior_mean.unwrap().mean, Some(-10.0));
        assert_eq!(analysis.failures.len(), 2, "both seeds of batch 1");
        assert_eq!(analysis.settings[0].failed, 2);
        assert_eq!(analysis.settings[0].difference, None);
        assert_eq!(analysis.settings[chosen.setting].difference.unwrap().mean, Some(0.0));
        assert_eq!(analysis.settings[2].difference.unwrap().mean, Some(4.0 - best));
        assert_eq!(analysis.ranking()[0], chosen.setting);
        assert_eq!(analysis.ends().len(), usize::from(best == 5.0), "2 lies inside of 1 to 5");
        assert_eq!(analysis.verdict().unwrap().contains("does not help"), !better);
        let html = study_page(&report(&analysis, "pacmeta sweep", &[]).unwrap());
        for word in ["training.batch=", "RMSE", "plain GP", "chosen.toml", "2 failed models"] {
            assert!(html.contains(word), "{word}");
        }
        let files = numbers(&analysis).unwrap();
        let config = files.iter().find(|file| file.name == "chosen.toml").unwrap();
        let config = Config::parse("chosen.toml", &config.content, &[]).unwrap();
        assert_eq!(config, prepared.plan.settings[chosen.setting].config);
        let settings = &files.iter().find(|file| file.name == "settings.csv").unwrap().content;
        assert_eq!(settings.lines().count(), 1 + 4);
    }
}

#[test]
fn a_sweep_that_is_not_finished_or_failed_altogether_has_no_choice() {
    let prepared = prepared("[sweep.grid]\n\"training.batch\" = [1]\n");
    let folder = tempfile::tempdir().unwrap();
    let empty = Records::<SweepSpec>::read(folder.path()).unwrap();
    assert_eq!(Analysis::new(&prepared.plan, &empty).unwrap().chosen, None);
    let failed = made_up(&prepared, &folder, 1);
    let analysis = Analysis::new(&prepared.plan, &failed).unwrap();
    assert_eq!((&analysis.chosen, analysis.failures.len()), (&None, 1));
    assert!(study_page(&report(&analysis, "c", &[]).unwrap()).contains("1 failed model"));
    assert!(!numbers(&analysis).unwrap().iter().any(|file| file.name == "chosen.toml"));
}
