//! Scores as text and as JSON.

use pacmeta::evaluation::{Floor, Scores};
use pacmeta::report::{RunResults, describe_data, mean_risk, symbol, temperatures};
use pacmeta::{Model, Result, bounds::ObjectiveReport};
use serde_json::{Map, Value, json};

use crate::table::{Table, number, with_error};

/// What the columns of the table are.
const LEGEND: &str = "RMSE: root mean squared error of each task in the target's units, averaged over tasks, ± standard error over\n\
tasks; lower is better. Log-likelihood: joint predictive log-density per query point, in nats; higher is better.\n\
Calibration error: 0 is perfect. Coverage: part of the query inside the 95% interval; 95% is right.\n";

/// A table of predictors and its legend.
pub(super) fn score_table<'a>(rows: impl IntoIterator<Item = (String, &'a Scores)>) -> String {
    let mut table =
        Table::new(["method", "RMSE", "log-likelihood", "calibration error", "95% coverage", "tasks"]);
    for (name, scores) in rows {
        table.row([
            name,
            with_error(scores.rmse, scores.rmse_standard_error),
            with_error(scores.log_likelihood, scores.log_likelihood_standard_error),
            number(scores.calibration_error),
            format!("{:.1}%", 100.0 * scores.coverage95),
            scores.tasks.to_string(),
        ]);
    }
    table.render() + LEGEND
}

/// The rows of one run: itself, then the floors.
pub(super) fn rows_of(run: &RunResults) -> Vec<(String, &Scores)> {
    run.scores
        .iter()
        .enumerate()
        .map(|(index, (name, scores))| (if index == 0 { run.name.clone() } else { name.clone() }, scores))
        .collect()
}

/// The rows of several runs: each, the prior mean of each, and the plain GP once.
pub(super) fn rows_of_all(runs: &[RunResults]) -> Vec<(String, &Scores)> {
    let own = runs.iter().filter_map(|run| Some((run.name.clone(), run.own_scores()?)));
    let means = runs.iter().filter_map(|run| {
        Some((format!("prior mean of {}, not adapted", run.name), run.floor(Floor::PriorMean)?))
    });
    let plain = runs.first().and_then(|run| run.floor(Floor::PlainGp));
    own.chain(means).chain(plain.map(|scores| (Floor::PlainGp.name().to_owned(), scores))).collect()
}

/// The floors as JSON, by the names `plain_gp` and `prior_mean`.
pub(super) fn floors_json(run: &RunResults) -> Value {
    let floor = |floor: Floor| run.floor(floor).map(|scores| json!(scores));
    json!({ "plain_gp": floor(Floor::PlainGp), "prior_mean": floor(Floor::PriorMean) })
}

/// One run as JSON.
pub(super) fn run_json(run: &RunResults) -> Result<Map<String, Value>> {
    let mut map = Map::new();
    map.insert("name".into(), json!(run.name));
    map.insert("method".into(), json!(run.settings()?));
    map.insert("temperatures".into(), json!(run.choice));
    map.insert("explanation".into(), json!(run.choice.explanation()));
    map.insert("scores".into(), json!(run.own_scores()));
    map.insert("floors".into(), floors_json(run));
    map.insert("meta_learning_helped".into(), json!(run.verdict().map(|verdict| verdict.word())));
    map.insert("objective".into(), json!(run.objective));
    map.insert("bound".into(), json!(run.bound));
    map.insert("left_out".into(), json!(run.experiment.left_out()));
    Ok(map)
}

/// What there is to know before the table.
pub(super) fn heading(run: &RunResults) -> String {
    wrapped(&format!("{} Seed {}.", describe_data(run), run.experiment.config().seed), "")
}

/// The temperatures of a run and where they come from, if it has any.
pub(super) fn temperature_line(run: &RunResults) -> Result<Option<String>> {
    Ok(temperatures(run)?.map(|text| match run.choice.explanation() {
        Some(explanation) => format!("{}: {text}; {explanation}.", run.name),
        None => format!("{}: {text}, from the configuration.", run.name),
    }))
}

/// The objectives side by side, term by term.
pub(super) fn objective_table(objectives: &[(String, &ObjectiveReport)]) -> String {
    let mut table = Table::new(
        std::iter::once("term".to_owned())
            .chain(objectives.iter().map(|(name, objective)| format!("{name} ({})", symbol(objective)))),
    );
    let mut row = |name: &str, value: &dyn Fn(&ObjectiveReport) -> String| {
        table.row(
            std::iter::once(name.to_owned()).chain(objectives.iter().map(|(_, objective)| value(objective))),
        );
    };
    row("  empirical risk on S", &|o| number(mean_risk(o)));
    row("+ KL(posterior, prior)/beta", &|o| number(o.mean_w - mean_risk(o)));
    row("= W, mean over tasks", &|o| number(o.mean_w));
    row("+ xi KL(hyper-posterior, hyper-prior)", &|o| number(o.xi * o.hyper_kl));
    row("= total", &|o| number(o.total));
    table.rule();
    let mut row = |name: &str, value: &dyn Fn(&ObjectiveReport) -> String| {
        table.row(
            std::iter::once(name.to_owned()).chain(objectives.iter().map(|(_, objective)| value(objective))),
        );
    };
    let delta = objectives.iter().find_map(|(_, objective)| objective.delta);
    if let Some(delta) = delta {
        row(&format!("  xi log(2/delta), delta = {delta}; not in the total"), &|o| {
            o.confidence.map(number).unwrap_or_default()
        });
    }
    row("  beta", &|o| plain(o.beta));
    if objectives.iter().any(|(_, objective)| objective.alpha.is_some()) {
        row("  alpha", &|o| o.alpha.map(plain).unwrap_or_default());
    }
    row("  xi", &|o| number(o.xi));
    table.render()
}

/// What an objective is not.
pub(super) fn not_a_bound(model: &Model) -> String {
    let units = match model.standardisation() {
        Some(_) => "standardised units of the target",
        None => "units of the target",
    };
    let text = format!(
        "All in squared {units}. This is what the method minimises, not a bound: the infinite constant of a single \
         prior as hyper-posterior, the confidence term and the cumulant terms of the theorems are left out."
    );
    wrapped(&text, "")
}

/// A temperature or a count: as many digits as it has.
pub(super) fn plain(value: f64) -> String {
    if value.abs() < 1e6 && value.abs() >= 1e-3 {
        format!("{}", (value * 1e6).round() / 1e6)
    } else {
        number(value)
    }
}

/// Words in lines of at most 110 characters; lines after the first begin with `indent`.
pub(super) fn wrapped(text: &str, indent: &str) -> String {
    const WIDTH: usize = 110;
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a line from the start");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(format!("{indent}{word}"));
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n") + "\n"
}
