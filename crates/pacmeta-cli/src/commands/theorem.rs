//! `pacmeta bound --theorem`: a bound of the paper, under assumptions that the user states.

use pacmeta::bounds::{
    GapSettings, Statement, TheoremReport, TheoremRequest, bound, gap_by_hyper_prior, gap_by_risk_difference,
};
use pacmeta::environments::by_name;
use pacmeta::learners::{Learner, TargetTemperature};
use pacmeta::{Error, Model, Result, Task};
use pacmeta_bounds::{CorollaryGap, HyperPriorGap, RiskDifference, RiskPair};
use pacmeta_tensor::Key;

use super::bound::temperature;
use super::scores::wrapped;
use crate::arguments::{Bound, ObjectiveName, TheoremName};
use crate::output::{print, print_json};
use crate::table::{Table, number, with_error};

pub(super) fn run(arguments: &Bound, name: TheoremName, model: &Model, tasks: &[Task]) -> Result<()> {
    check_objective(arguments, name)?;
    let options = &arguments.theorem;
    let Some(example_assumption) = options.assume else {
        return Err(Error::input(
            "option `--assume`",
            "a bound needs an assumption about the loss: bounded:A,B, sub-gaussian:VARIANCE, sub-gamma:VARIANCE,SCALE or \
             non-negative:SECOND_MOMENT (the natural one for squared errors); without one there is only the objective",
        ));
    };
    let std = options.hyper_posterior_std.unwrap_or(0.0);
    if !(std.is_finite() && std >= 0.0) {
        let message = format!("is {std}, expected a number above 0");
        return Err(Error::input("option `--hyper-posterior-std`", message));
    }
    let beta = temperature(model, "beta", arguments.beta)?;
    let lambda = arguments.lambda.unwrap_or(tasks.len() as f64);
    let request = TheoremRequest {
        statement: statement(arguments, name, model, tasks, beta, lambda)?,
        beta,
        lambda,
        delta: arguments.delta,
        sigma0_squared: arguments.sigma0_squared,
        hyper_posterior_variance: std * std,
        example_assumption,
        task_assumption: options.assume_tasks,
        draws: options.draws,
        key: Key::new(options.seed).named("bound"),
    };
    let report = bound(model, tasks, &request)?;
    if arguments.json { print_json(&report) } else { print(&as_text(&report)) }
}

/// The theorems are about one base learner each.
fn check_objective(arguments: &Bound, name: TheoremName) -> Result<()> {
    let message = match (name, arguments.objective, arguments.alpha) {
        (TheoremName::Four, Some(ObjectiveName::Pacoh), _) => {
            "Theorem 4 is about PACMAML's base learner, which sees S' only; use --theorem 2 or 3 for pacoh"
        }
        (TheoremName::Two | TheoremName::Three | TheoremName::Corollary, Some(ObjectiveName::Pacmaml), _) => {
            "this theorem is about a base learner that sees all of S, as PACOH's; use --theorem 4 for pacmaml"
        }
        (TheoremName::Two | TheoremName::Three | TheoremName::Corollary, _, Some(_)) => {
            return Err(Error::input("option `--alpha`", "belongs to Theorem 4; the others have beta only"));
        }
        _ => return Ok(()),
    };
    Err(Error::input("option `--objective`", message))
}

fn statement(
    arguments: &Bound,
    name: TheoremName,
    model: &Model,
    tasks: &[Task],
    beta: f64,
    lambda: f64,
) -> Result<Statement> {
    let options = &arguments.theorem;
    let gap_is_given = options.gap.is_some() || options.environment.is_some();
    if matches!(name, TheoremName::Two | TheoremName::Four) && gap_is_given {
        return Err(Error::input(
            "options `--gap`, `--environment`",
            "belong to Theorem 3 and its corollary; Theorems 2 and 4 have no gap",
        ));
    }
    match name {
        TheoremName::Two => return Ok(Statement::OneEnvironment),
        TheoremName::Four => {
            return Ok(Statement::Subsampling { alpha: temperature(model, "alpha", arguments.alpha)? });
        }
        TheoremName::Three | TheoremName::Corollary => {}
    }
    let target_examples = options.target_examples.ok_or_else(|| {
        Error::input("option `--target-examples`", "Theorem 3 needs the number of examples of a target task")
    })?;
    let estimated = match &options.environment {
        Some(environment) => {
            Some((by_name(environment)?, gap_settings(arguments, model, tasks, target_examples, beta)?))
        }
        None => None,
    };
    let hyper_prior = || match (&estimated, options.gap) {
        (Some((environment, settings)), _) => {
            gap_by_hyper_prior(&**environment, model, arguments.sigma0_squared, lambda, settings)
        }
        (None, Some(gap)) => {
            let pair = RiskPair { target: gap, observed: 0.0 };
            Ok(HyperPriorGap::from_masses(lambda, &[1.0], &[pair])?)
        }
        (None, None) if tasks.iter().all(|task| task.len() == target_examples) => {
            Ok(HyperPriorGap::identical())
        }
        (None, None) => Err(Error::input(
            "options `--environment`, `--gap`",
            "Theorem 3 has a gap between observed and target tasks, which cannot be computed from the observed tasks alone: \
             name a synthetic environment to estimate it on, or give its value",
        )),
    };
    let examples = target_examples as f64;
    if name == TheoremName::Three {
        return Ok(Statement::TwoEnvironments { target_examples: examples, gap: hyper_prior()? });
    }
    let gap = match (&estimated, options.gap) {
        (Some((environment, settings)), _) => {
            let std = options.hyper_posterior_std.unwrap_or(0.0);
            let difference = gap_by_risk_difference(&**environment, model, std * std, settings)?;
            CorollaryGap::Smaller { hyper_prior: hyper_prior()?, difference }
        }
        (None, Some(gap)) => CorollaryGap::Difference(RiskDifference::from_risks(gap, 0.0)?),
        (None, None) => {
            hyper_prior()?;
            CorollaryGap::Difference(RiskDifference::identical())
        }
    };
    Ok(Statement::Corollary { target_examples: examples, gap })
}

fn gap_settings(
    arguments: &Bound,
    model: &Model,
    tasks: &[Task],
    target_examples: usize,
    beta: f64,
) -> Result<GapSettings> {
    let options = &arguments.theorem;
    let observed_examples = tasks.first().map_or(0, Task::len);
    if let Some(other) = tasks.iter().find(|task| task.len() != observed_examples) {
        return Err(Error::input(
            "option `--environment`",
            format!(
                "the gap is simulated for observed tasks of one size, but there are tasks of {observed_examples} and of \
                 {} examples; give its value with --gap",
                other.len()
            ),
        ));
    }
    let rule = match model.learner() {
        Some(Learner::Gibbs { rule, .. }) => *rule,
        _ => TargetTemperature::default(),
    };
    Ok(GapSettings {
        target_examples,
        observed_examples,
        beta,
        rule,
        draws: options.draws,
        tasks_per_draw: options.tasks_per_draw,
        fresh_examples: options.fresh_examples,
        key: Key::new(options.seed).named("bound"),
    })
}

fn as_text(report: &TheoremReport) -> String {
    let mut table = Table::new(["term", "value"]);
    let terms = &report.terms;
    for (name, term) in [
        ("  empirical risk, mean over tasks", terms.empirical_risk),
        ("+ KL(posterior, prior)/beta, mean over tasks", terms.task_kl),
        ("+ xi KL(hyper-posterior, hyper-prior)", terms.hyper_kl),
        ("+ xi log(events/delta)", terms.confidence),
        ("+ cumulants of examples, Psi1", terms.psi1),
        ("+ cumulants of tasks, Psi2", terms.psi2),
        ("+ gap between the environments", terms.gap),
        ("= bound", report.total),
    ] {
        table.row([name.to_owned(), with_error(term.value, term.standard_error)]);
    }
    let settings = &report.settings;
    let alpha = settings.alpha.map(|alpha| format!(", alpha = {alpha}")).unwrap_or_default();
    let mut text = format!(
        "{}, {} tasks, {} by {} draws\n{}beta = {}{alpha}, lambda = {}, delta = {}, xi = {}\n",
        report.theorem,
        report.tasks.len(),
        report.certainty,
        settings.draws,
        table.render(),
        settings.beta,
        settings.lambda,
        settings.delta,
        number(report.xi)
    );
    text.push_str("± is the Monte-Carlo standard error. The number rests on:\n");
    report.assumed.iter().for_each(|line| text.push_str(&wrapped(&format!("- {line}"), "  ")));
    text
}
