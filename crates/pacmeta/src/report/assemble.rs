//! From the results of runs to the data of a report.

use pacmeta_tensor::Key;

use super::number::brief;
use super::results::RunResults;
use super::{
    BoundBar, BoundPanel, BoundTerm, CalibrationSeries, CurveSeries, FileLink, GridPoint, ObservedPanel,
    PredictionPanel, RunReport, ScoreRow,
};
use crate::bounds::ObjectiveReport;
use crate::config::DataSource;
use crate::error::Result;
use crate::evaluation::{Floor, Scores};
use crate::experiment::{RunBound, StatedBound};
use crate::learners::Predictive;
use crate::methods::MethodSettings;
use crate::task::Task;

/// Panels of predictions on a page.
const PANELS: usize = 4;
/// Inputs along a panel.
const GRID: usize = 160;

/// The report of one run, or of several on the same tasks. `command` is what the user typed.
///
/// # Errors
/// When adaptation to one of the drawn tasks fails.
pub fn assemble(runs: &[RunResults], command: Option<String>) -> Result<RunReport> {
    let Some(first) = runs.first() else { return Ok(RunReport::default()) };
    let (predictions, observed) = panels(runs)?;
    Ok(RunReport {
        title: title(runs),
        subtitle: describe_data(first),
        command,
        facts: facts(runs)?,
        curve: runs.iter().map(|run| curve(run, runs.len())).collect(),
        curve_label: match runs {
            [_] => "objective (batch mean, standardised units)".to_owned(),
            _ => "empirical risk in the objective (batch mean, standardised units)".to_owned(),
        },
        scores: score_rows(runs),
        calibration: calibration(runs),
        predictions,
        observed,
        bound: objective(runs),
        guarantee: guarantee(runs),
        notes: notes(runs),
        files: runs.iter().flat_map(|run| files(run, runs.len())).collect(),
        ..RunReport::default()
    })
}

/// One sentence on the tasks of a run.
pub fn describe_data(run: &RunResults) -> String {
    let (observed, scored) = (run.experiment.observed(), run.experiment.scored());
    let source = match &run.experiment.config().data.source {
        DataSource::Synthetic(data) => format!("the {} environment", data.environment.name()),
        DataSource::Table(data) => {
            data.path.file_name().unwrap_or(data.path.as_os_str()).to_string_lossy().into_owned()
        }
    };
    let mut text = format!(
        "{} of {} from {source}",
        crate::environments::table::counted(observed.len(), "observed task"),
        range(observed, Task::len)
    );
    if scored.is_empty() {
        text.push_str("; no task was kept out, so nothing is scored.");
    } else {
        let support = range(scored, |task| task.adapt().map_or(0, <[usize]>::len));
        let query = range(scored, |task| task.len() - task.adapt().map_or(0, <[usize]>::len));
        text.push_str(&format!(
            "; scored on {} {}: adapt to {support}, predict {} others.",
            scored.len(),
            if scored.len() == 1 { "further task" } else { "further tasks" },
            query.trim_end_matches(" examples").trim_end_matches(" example")
        ));
    }
    text
}

/// `5 examples`, or `3 to 12 examples`.
fn range(tasks: &[Task], size: impl Fn(&Task) -> usize) -> String {
    let (mut low, mut high) = (usize::MAX, 0);
    tasks.iter().for_each(|task| (low, high) = (low.min(size(task)), high.max(size(task))));
    match (low, high) {
        (1, 1) => "1 example".to_owned(),
        _ if low == high => format!("{low} examples"),
        _ => format!("{low} to {high} examples"),
    }
}

fn title(runs: &[RunResults]) -> String {
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    let source = match runs.first().map(|run| &run.experiment.config().data.source) {
        Some(DataSource::Synthetic(data)) => data.environment.name().to_owned(),
        Some(DataSource::Table(data)) => {
            data.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
        }
        None => String::new(),
    };
    format!("{} on {source}", names.join(", "))
}

fn facts(runs: &[RunResults]) -> Result<Vec<(String, String)>> {
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let mut facts = Vec::new();
    for run in runs {
        let name = if runs.len() == 1 { "Temperatures".to_owned() } else { run.name.clone() };
        if let Some(text) = temperatures(run)? {
            facts.push((name, text));
        }
    }
    if let Some(run) = runs.first() {
        let config = run.experiment.config();
        facts.push(fact("Observed tasks", run.experiment.observed().len().to_string()));
        facts.push(fact("Scored tasks", run.experiment.scored().len().to_string()));
        if runs.len() == 1 {
            facts.push(fact("Iterations", config.training.iterations.to_string()));
            facts.push(fact("Prior parameters", run.model.parameters().values().len().to_string()));
        }
        facts.push(fact("Seed", config.seed.to_string()));
    }
    facts.push(fact("Version", env!("CARGO_PKG_VERSION").to_owned()));
    Ok(facts)
}

/// `beta = 3000, alpha = 600`; none for methods without temperatures.
///
/// # Errors
/// When a temperature that the method needs is not known.
pub fn temperatures(run: &RunResults) -> Result<Option<String>> {
    Ok(match run.settings()? {
        MethodSettings::Pacoh { beta } => Some(format!("beta = {}", brief(beta))),
        MethodSettings::Pacmaml { alpha, beta } => {
            Some(format!("beta = {}, alpha = {}", brief(beta), brief(alpha)))
        }
        MethodSettings::Reptile { beta_sigma_squared, .. } => {
            Some(format!("beta sigma^2 = {}", brief(beta_sigma_squared)))
        }
        _ => None,
    })
}

fn curve(run: &RunResults, runs: usize) -> CurveSeries {
    let key = if runs == 1 { "objective" } else { "risk" };
    let points = run.metrics.iter().map(|line| (line.iteration as f64, line.get(key).unwrap_or(f64::NAN)));
    CurveSeries { name: run.name.clone(), points: points.collect() }
}

fn score_rows(runs: &[RunResults]) -> Vec<ScoreRow> {
    let row = |name: &str, note: &str, scores: &Scores| ScoreRow {
        name: name.to_owned(),
        note: Some(note.to_owned()),
        rmse: scores.rmse,
        rmse_standard_error: scores.rmse_standard_error.unwrap_or(f64::NAN),
        log_likelihood: Some(scores.log_likelihood),
        calibration_error: Some(scores.calibration_error),
        coverage95: Some(scores.coverage95),
        tasks: scores.tasks,
    };
    let own = runs.iter().filter_map(|run| {
        run.own_scores().map(|scores| row(&run.name, "learned prior, adapted to the support", scores))
    });
    let means = runs.iter().filter_map(|run| {
        let note = match runs {
            [_] => "floor: the learned prior without adaptation".to_owned(),
            _ => format!("floor: the prior of {} without adaptation", run.name),
        };
        run.floor(Floor::PriorMean).map(|scores| row("prior mean", &note, scores))
    });
    let plain = runs.first().and_then(|run| run.floor(Floor::PlainGp));
    let plain = plain.map(|scores| row("plain GP", "floor: fitted to the support alone", scores));
    own.chain(means).chain(plain).collect()
}

fn calibration(runs: &[RunResults]) -> Vec<CalibrationSeries> {
    let series = |name: &str, scores: &Scores| CalibrationSeries {
        name: name.to_owned(),
        points: scores.calibration_curve(),
    };
    let own = runs.iter().filter_map(|run| run.own_scores().map(|scores| series(&run.name, scores)));
    let plain = runs.first().and_then(|run| run.floor(Floor::PlainGp));
    own.chain(plain.map(|scores| series("plain GP", scores))).collect()
}

/// Predictions on the first scored tasks: over the input where there is one, else predicted against observed.
fn panels(runs: &[RunResults]) -> Result<(Vec<PredictionPanel>, Vec<ObservedPanel>)> {
    let (mut predictions, mut observed) = (Vec::new(), Vec::new());
    let Some(first) = runs.first() else { return Ok((predictions, observed)) };
    let tasks = (PANELS / runs.len()).max(1).min(first.experiment.scored().len());
    for index in 0..tasks {
        for run in runs {
            let task = &run.experiment.scored()[index];
            let (support, query) = task.support_and_query()?;
            let title = match runs {
                [_] => task.name().to_owned(),
                _ => format!("{}: {}", task.name(), run.name),
            };
            let adapted = run.model.adapt(&support)?;
            if task.dimension() == 1 {
                let xs = grid(task);
                predictions.push(PredictionPanel {
                    title,
                    x_label: run.model.columns().features.join(", "),
                    y_label: run.model.columns().target,
                    grid: grid_points(&xs, &adapted.predict(&xs)?),
                    support: pairs(&support),
                    query: pairs(&query),
                    truth: truth(run, index, &xs),
                    ..PredictionPanel::default()
                });
            } else {
                let Predictive { mean, std } = adapted.predict(query.inputs())?;
                let points = query.targets().iter().zip(mean.into_iter().zip(std));
                observed.push(ObservedPanel {
                    title,
                    caption: String::new(),
                    points: points.map(|(y, (mean, std))| (*y, mean, std)).collect(),
                });
            }
        }
    }
    Ok((predictions, observed))
}

fn pairs(task: &Task) -> Vec<(f64, f64)> {
    task.inputs().iter().copied().zip(task.targets().iter().copied()).collect()
}

/// Evenly spaced inputs over the range of a task.
fn grid(task: &Task) -> Vec<f64> {
    let fold = |start: f64, pick: fn(f64, f64) -> f64| task.inputs().iter().copied().fold(start, pick);
    let (low, high) = (fold(f64::INFINITY, f64::min), fold(f64::NEG_INFINITY, f64::max));
    (0..=GRID).map(|step| low + (high - low) * step as f64 / GRID as f64).collect()
}

fn grid_points(xs: &[f64], predictive: &Predictive) -> Vec<GridPoint> {
    let values = predictive.mean.iter().zip(&predictive.std);
    xs.iter().zip(values).map(|(x, (mean, std))| GridPoint { x: *x, mean: *mean, std: *std }).collect()
}

/// The function behind scored task `index`, where tasks are drawn; the keys are those of [`Experiment::prepare`].
///
/// [`Experiment::prepare`]: crate::experiment::Experiment::prepare
fn truth(run: &RunResults, index: usize, xs: &[f64]) -> Option<Vec<(f64, f64)>> {
    let config = run.experiment.config();
    let environment = config.data.synthetic()?.environment.environment();
    let key = Key::new(config.seed).named("data").named("target").index(index as u64);
    let function = environment.function(key.named("function"));
    xs.iter().all(|x| environment.covers(&[*x])).then(|| xs.iter().map(|x| (*x, function(&[*x]))).collect())
}

/// The objectives as stacked bars.
fn objective(runs: &[RunResults]) -> Option<BoundPanel> {
    let term = |name: &str, value: f64| BoundTerm { name: name.to_owned(), value };
    let bars: Vec<BoundBar> = runs
        .iter()
        .filter_map(|run| {
            let objective = run.objective.as_ref()?;
            let risk = mean_risk(objective);
            Some(BoundBar {
                name: format!("{} ({})", run.name, symbol(objective)),
                terms: vec![
                    term("empirical risk", risk),
                    term("KL(posterior, prior)/beta", objective.mean_w - risk),
                    term("xi KL(hyper-posterior, hyper-prior)", objective.xi * objective.hyper_kl),
                ],
                total: objective.total,
            })
        })
        .collect();
    (!bars.is_empty()).then(|| BoundPanel {
        title: "The objective, term by term".to_owned(),
        explanation: "What the method minimises, on all observed tasks, in squared standardised units. It is an \
                      objective, not a bound: the infinite constant of a point as hyper-posterior, the confidence term \
                      xi log(2/delta) and the cumulant terms are left out."
            .to_owned(),
        bars,
    })
}

/// The bounds as stacked bars, with what they are worth and rest on; refusals in words.
fn guarantee(runs: &[RunResults]) -> Option<BoundPanel> {
    let bounds: Vec<(&RunResults, &RunBound)> =
        runs.iter().filter_map(|run| Some((run, run.bound.as_ref()?))).collect();
    if bounds.is_empty() {
        return None;
    }
    let risk =
        "the risk on a new task, averaged over priors from a Gaussian around the learned one, is at most";
    let estimated = bounds
        .iter()
        .filter_map(|(_, bound)| bound.stated())
        .any(|stated| stated.report.certainty == "estimated");
    let mut explanation = if estimated {
        format!(
            "The total is an estimate, not a guarantee, of what {risk} with probability at least 1 - delta; squared standardised units."
        )
    } else {
        format!(
            "With probability at least 1 - delta over the observed tasks, {risk} the total; squared standardised units."
        )
    };
    let mut bars = Vec::new();
    for (run, bound) in bounds {
        match bound {
            RunBound::Refused { refused } => {
                explanation.push_str(&format!(
                    " {}: no bound is stated. {}.",
                    run.name,
                    capitalised(refused)
                ));
            }
            RunBound::Stated(stated) => {
                let StatedBound { report, remarks, .. } = &**stated;
                explanation.push_str(&format!(
                    " {}: {}, {}{}, delta = {}, {}. {} It rests on this: {}.",
                    run.name,
                    report.theorem,
                    brief(report.total.value),
                    report.total.standard_error.map(|e| format!(" ± {}", brief(e))).unwrap_or_default(),
                    brief(report.settings.delta),
                    report.certainty,
                    remarks.join(" "),
                    report.assumed.join("; ")
                ));
                bars.push(BoundBar {
                    name: run.name.clone(),
                    terms: report
                        .terms
                        .named()
                        .map(|(name, term)| BoundTerm { name: name.to_owned(), value: term.value })
                        .into(),
                    total: report.total.value,
                });
            }
        }
    }
    Some(BoundPanel { title: "The bound, term by term".to_owned(), explanation, bars })
}

/// The sentence with a capital at its beginning and no full stop at its end.
fn capitalised(text: &str) -> String {
    let text = text.trim_end_matches('.');
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// The mean over tasks of the empirical risk on all of S.
pub fn mean_risk(objective: &ObjectiveReport) -> f64 {
    objective.tasks.iter().map(|task| task.risk).sum::<f64>() / objective.tasks.len() as f64
}

/// W_1 or W_2.
pub fn symbol(objective: &ObjectiveReport) -> &'static str {
    if objective.alpha.is_some() { "W_2" } else { "W_1" }
}

fn notes(runs: &[RunResults]) -> Vec<String> {
    let mut notes = Vec::new();
    for run in runs {
        let prefix = if runs.len() == 1 { String::new() } else { format!("{}: ", run.name) };
        notes.extend(run.verdict().map(|verdict| format!("{prefix}{verdict}")));
        notes.extend(run.choice.explanation().map(|text| format!("{prefix}{text}.")));
        let constant = run.constant_features();
        if !constant.is_empty() {
            notes.push(format!("{prefix}constant in all observed tasks: {}.", constant.join(", ")));
        }
    }
    if let Some(run) = runs.first() {
        let left_out = run.experiment.left_out();
        if !left_out.is_empty() {
            notes.push(format!("Left out as too small: {} tasks.", left_out.len()));
        }
    }
    notes.push("The last iterate is scored, not the best one on the scored tasks.".to_owned());
    notes
}

fn files(run: &RunResults, runs: usize) -> Vec<FileLink> {
    let mut list = vec![
        ("config.toml", "Every setting of the run, defaults included."),
        ("prior.safetensors", "The learned prior; `pacmeta adapt` uses it on new data."),
        ("metrics.jsonl", "The terms of the objective during training."),
        ("temperatures.json", "The temperatures, and the candidates that were tried."),
    ];
    if runs > 1 {
        list.push(("report.html", "The report of this run alone."));
    }
    list.into_iter()
        .map(|(name, what)| FileLink {
            name: format!("{}{name}", run.link),
            href: format!("{}{name}", run.link),
            what: what.to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::experiment::{Experiment, Silent};
    use crate::report::page;

    fn results(text: &str) -> (RunResults, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let experiment = Experiment::prepare(Config::parse("test", text, &[]).unwrap()).unwrap();
        let outcome = experiment.train_in(folder.path().join("run"), &mut Silent).unwrap();
        let results =
            RunResults::new(experiment, outcome.model, outcome.choice, folder.path().join("run")).unwrap();
        (results, folder)
    }

    const SMALL: &str = "[data]\nexamples = 6\ntasks = 4\ntarget_tasks = 5\nquery = 7\n[training]\niterations = 20\n\
                         log_every = 5\n[method]\nbeta_per_example = 30\nalpha_over_beta = 0.5\n";

    #[test]
    fn the_truth_is_the_function_behind_the_examples() {
        let (run, _folder) = results(SMALL);
        for (index, task) in run.experiment.scored().iter().enumerate() {
            let truth = truth(&run, index, task.inputs()).unwrap();
            for ((_, truth), y) in truth.iter().zip(task.targets()) {
                assert!((truth - y).abs() < 0.6, "noise has standard deviation 0.1: {truth} {y}");
            }
        }
    }

    #[test]
    fn a_report_has_every_part_and_is_the_same_from_the_folder() {
        let (run, folder) = results(SMALL);
        let report = assemble(std::slice::from_ref(&run), Some("pacmeta train".to_owned())).unwrap();
        assert_eq!(report.predictions.len(), 4);
        assert_eq!(report.predictions[0].support.len(), 5);
        assert_eq!(report.predictions[0].query.len(), 7);
        assert_eq!(report.scores.len(), 3);
        assert_eq!(report.curve[0].points.len(), 4);
        let bar = &report.bound.as_ref().unwrap().bars[0];
        let sum: f64 = bar.terms.iter().map(|term| term.value).sum();
        assert!((sum - bar.total).abs() < 1e-12 * bar.total.abs().max(1.0));
        assert!(report.notes.iter().any(|note| note.contains("eta-learning")));
        let again = RunResults::read(folder.path().join("run")).unwrap();
        let again = assemble(&[again], Some("pacmeta train".to_owned())).unwrap();
        assert_eq!(page(&again), page(&report));
    }

    #[test]
    fn several_inputs_are_drawn_as_predicted_against_observed() {
        let text = SMALL.replace("[data]", "[data]\nenvironment = \"cauchy\"");
        let (run, _folder) = results(&text);
        let report = assemble(&[run], None).unwrap();
        assert!(report.predictions.is_empty());
        assert_eq!(report.observed.len(), 4);
        assert_eq!(report.observed[0].points.len(), 7);
    }

    #[test]
    fn the_verdict_is_plain() {
        let (run, _folder) = results(SMALL);
        let (own, plain) = (run.own_scores().unwrap(), run.floor(Floor::PlainGp).unwrap());
        let same = super::super::Verdict::compare(own, own);
        assert_eq!((same.word(), same.better), ("unclear", 0));
        let mut better = plain.clone();
        better.per_task.iter_mut().for_each(|task| task.rmse *= 0.5);
        better.rmse *= 0.5;
        let verdict = super::super::Verdict::compare(&better, plain);
        assert_eq!((verdict.word(), verdict.better), ("yes", 5));
        assert!(verdict.to_string().contains("(-50%), lower on 5 of 5 tasks"), "{verdict}");
        assert_eq!(super::super::Verdict::compare(plain, &better).word(), "no");
    }
}
