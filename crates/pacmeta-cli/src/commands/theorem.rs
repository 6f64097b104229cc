//! `pacmeta bound --theorem`: a bound of the paper, under assumptions that the user states.

use pacmeta::bounds::{
    GapSettings, PsiSettings, SimulatedPsi, Statement, TaskFunctions, TaskPsiSettings, TheoremReport,
    TheoremRequest, bound, bound_with_simulated_psi, gap_by_hyper_prior, gap_by_risk_difference,
    psi_by_simulation, task_psi_by_simulation,
};
use pacmeta::config::Assumption;
use pacmeta::environments::by_name;
use pacmeta::learners::{Learner, TargetTemperature};
use pacmeta::{Error, Model, Result, Task};
use pacmeta_bounds::{CorollaryGap, HyperPriorGap, RiskDifference, RiskPair};
use pacmeta_tensor::Key;

use super::bound::temperature;
use super::bound_table::{assumed, bound_table};
use crate::arguments::{Bound, ObjectiveName, PsiSource, TheoremName};
use crate::output::{print, print_json, warn};

pub(super) fn run(arguments: &Bound, name: TheoremName, model: &Model, tasks: &[Task]) -> Result<()> {
    check_objective(arguments, name)?;
    let options = &arguments.theorem;
    let example_assumption = match (options.psi, options.assume) {
        (PsiSource::Assume, Some(assumption)) => assumption,
        (PsiSource::Assume, None) => {
            return Err(Error::input(
                "option `--assume`",
                "a bound needs an assumption about the loss: bounded:A,B, sub-gaussian:VARIANCE, sub-gamma:VARIANCE,SCALE \
                 or non-negative:SECOND_MOMENT (the natural one for squared errors); without one there is only the \
                 objective, or an estimate by `--psi simulate` on a synthetic environment",
            ));
        }
        (PsiSource::Simulate, None) if options.assume_tasks.is_none() => Assumption::Simulated,
        (PsiSource::Simulate, _) => {
            return Err(Error::input(
                "options `--assume`, `--psi`",
                "simulated cumulant terms need no assumption; remove one of the two",
            ));
        }
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
    let report = match options.psi {
        PsiSource::Assume => bound(model, tasks, &request)?,
        PsiSource::Simulate => {
            let simulated = simulated_psi(arguments, model, tasks, &request)?;
            bound_with_simulated_psi(model, tasks, &request, &simulated)?
        }
    };
    report.warnings.iter().for_each(|warning| warn(warning));
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
    if let Some(gap) = options.gap.filter(|gap| !(gap.is_finite() && *gap >= 0.0)) {
        let message = format!(
            "is {gap}, expected a number of at least 0: fewer examples do not make the risk smaller, and a negative gap would \
             only make the bound look better"
        );
        return Err(Error::input("option `--gap`", message));
    }
    let simulates = options.psi == PsiSource::Simulate;
    if simulates && options.environment.is_none() {
        return Err(Error::input(
            "option `--environment`",
            "`--psi simulate` draws tasks: name the environment that yours come from, sinusoid, cauchy or gp-draws",
        ));
    }
    if simulates && name == TheoremName::Three {
        return Err(Error::input(
            "options `--theorem`, `--psi`",
            "Theorem 3 needs a Psi2 that holds for every prior, and a simulated one is an average over them; the corollary, \
             with its gap as a difference of risks, takes it: --theorem corollary",
        ));
    }
    let gap_is_given = options.gap.is_some() || (options.environment.is_some() && !simulates);
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
            match options.psi {
                // The smaller of both would need Theorem 3's uniform Psi2.
                PsiSource::Simulate => CorollaryGap::Difference(difference),
                PsiSource::Assume => CorollaryGap::Smaller { hyper_prior: hyper_prior()?, difference },
            }
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
    let observed_examples = one_size(tasks.iter().map(Task::len), "the gap", "; give its value with --gap")?;
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

/// The size of all tasks, or a refusal to simulate several.
fn one_size(mut sizes: impl Iterator<Item = usize>, what: &str, remedy: &str) -> Result<usize> {
    let first = sizes.next().unwrap_or(0);
    match sizes.find(|size| *size != first) {
        None => Ok(first),
        Some(other) => Err(Error::input(
            "option `--environment`",
            format!(
                "{what} is simulated for observed tasks of one size, but there are tasks of {first} and of {other} \
                 examples{remedy}"
            ),
        )),
    }
}

/// The cumulant terms on the environment. Its functions behind the given tasks are not known, so that they are drawn too.
fn simulated_psi(
    arguments: &Bound,
    model: &Model,
    tasks: &[Task],
    request: &TheoremRequest,
) -> Result<SimulatedPsi> {
    let options = &arguments.theorem;
    let environment = by_name(options.environment.as_deref().unwrap_or_default())?;
    let examples = one_size(tasks.iter().map(Task::len), "Psi1", "")?;
    let (learner_examples, temperature) = match request.statement {
        Statement::Subsampling { alpha } => {
            let sizes = tasks.iter().map(|task| task.adapt().map_or(task.len(), <[usize]>::len));
            (one_size(sizes, "Psi2", " in S'")?, alpha)
        }
        _ => (examples, request.beta),
    };
    Ok(SimulatedPsi {
        examples: psi_by_simulation(
            &*environment,
            model,
            &PsiSettings {
                functions: TaskFunctions::Random(tasks.len()),
                examples,
                beta: request.beta,
                sigma0_squared: request.sigma0_squared,
                draws: options.draws,
                fresh_examples: options.fresh_examples,
                key: request.key,
            },
        )?,
        tasks: task_psi_by_simulation(
            &*environment,
            model,
            &TaskPsiSettings {
                tasks: tasks.len(),
                examples: learner_examples,
                temperature,
                lambda: request.lambda,
                sigma0_squared: request.sigma0_squared,
                draws: options.draws,
                tasks_per_draw: options.tasks_per_draw,
                fresh_examples: options.fresh_examples,
                key: request.key,
            },
        )?,
    })
}

fn as_text(report: &TheoremReport) -> String {
    format!(
        "{}, {} tasks, {} by {} draws\n{}± is the Monte-Carlo standard error. The number rests on:\n{}",
        report.theorem,
        report.tasks.len(),
        report.certainty,
        report.settings.draws,
        bound_table(&[("value".to_owned(), report)]),
        assumed(report)
    )
}
