//! Objectives and bounds, as `pacmeta bound` computes them.

use pacmeta::bounds::{ObjectiveKind, ObjectiveRequest, Statement, TheoremRequest, bound, objective};
use pacmeta::config::Assumption;
use pacmeta::{Error, Model, Result, Task};
use pacmeta_bounds::{CorollaryGap, HyperPriorGap, RiskDifference, RiskPair};
use pacmeta_tensor::Key;
use serde_json::Value;

/// What Python was given.
pub(crate) struct Options {
    pub(crate) theorem: Option<String>,
    pub(crate) objective: Option<String>,
    pub(crate) beta: Option<f64>,
    pub(crate) alpha: Option<f64>,
    pub(crate) assume: Option<String>,
    pub(crate) assume_tasks: Option<String>,
    pub(crate) hyper_posterior_std: Option<f64>,
    pub(crate) lambda: Option<f64>,
    pub(crate) delta: f64,
    pub(crate) sigma0_squared: f64,
    pub(crate) draws: usize,
    pub(crate) seed: u64,
    pub(crate) observed_tasks: Option<usize>,
    pub(crate) target_examples: Option<usize>,
    pub(crate) gap: Option<f64>,
}

/// The report as JSON, the same as the command line prints.
pub(crate) fn compute(model: &Model, tasks: &[Task], options: &Options) -> Result<Value> {
    let report = match &options.theorem {
        None => {
            let request = ObjectiveRequest {
                kind: kind(model, options)?,
                observed_tasks: options.observed_tasks,
                lambda: options.lambda,
                sigma0_squared: options.sigma0_squared,
                delta: Some(options.delta),
            };
            serde_json::to_value(objective(model, tasks, &request, None)?)
        }
        Some(theorem) => {
            serde_json::to_value(bound(model, tasks, &request(theorem, model, tasks, options)?)?)
        }
    };
    report.map_err(|error| Error::input("the bound", error.to_string()))
}

/// A temperature as given, else as the prior states it.
fn temperature(model: &Model, name: &str, given: Option<f64>) -> Result<f64> {
    let stored = || model.notes.get("method")?.get(name)?.as_f64();
    given
        .or_else(stored)
        .ok_or_else(|| Error::input(name, "the prior does not state this temperature; give it"))
}

fn kind(model: &Model, options: &Options) -> Result<ObjectiveKind> {
    let trained = model.notes.get("method").and_then(|method| method.get("name")).and_then(Value::as_str);
    let beta = || temperature(model, "beta", options.beta);
    match options.objective.as_deref().or(trained) {
        Some("pacoh") if options.alpha.is_some() => {
            Err(Error::input("alpha", "belongs to the objective pacmaml; pacoh has beta only"))
        }
        Some("pacoh") => Ok(ObjectiveKind::Pacoh { beta: beta()? }),
        Some("pacmaml") => {
            Ok(ObjectiveKind::Pacmaml { alpha: temperature(model, "alpha", options.alpha)?, beta: beta()? })
        }
        _ => Err(Error::input(
            "objective",
            "expected \"pacoh\" or \"pacmaml\"; the prior was trained with neither",
        )),
    }
}

fn request(theorem: &str, model: &Model, tasks: &[Task], options: &Options) -> Result<TheoremRequest> {
    let lambda = options.lambda.unwrap_or(tasks.len() as f64);
    let statement = statement(theorem, model, tasks, options, lambda)?;
    let Some(assume) = &options.assume else {
        return Err(Error::input(
            "assume",
            "a bound needs an assumption about the loss: \"bounded:A,B\", \"sub-gaussian:VARIANCE\", \
             \"sub-gamma:VARIANCE,SCALE\" or \"non-negative:SECOND_MOMENT\"; without `theorem` there is the objective",
        ));
    };
    let example_assumption = assumption("assume", assume)?;
    let std = options.hyper_posterior_std.filter(|std| std.is_finite() && *std >= 0.0).ok_or_else(|| {
        Error::input(
            "hyper_posterior_std",
            "expected a number above 0: a bound is for a Gaussian around the prior",
        )
    })?;
    Ok(TheoremRequest {
        statement,
        beta: temperature(model, "beta", options.beta)?,
        lambda,
        delta: options.delta,
        sigma0_squared: options.sigma0_squared,
        hyper_posterior_variance: std * std,
        example_assumption,
        task_assumption: options
            .assume_tasks
            .as_deref()
            .map(|text| assumption("assume_tasks", text))
            .transpose()?,
        draws: options.draws,
        key: Key::new(options.seed).named("bound"),
    })
}

fn statement(
    theorem: &str,
    model: &Model,
    tasks: &[Task],
    options: &Options,
    lambda: f64,
) -> Result<Statement> {
    match theorem {
        "2" | "4" if options.gap.is_some() || options.target_examples.is_some() => Err(Error::input(
            "gap, target_examples",
            "belong to Theorem 3 and its corollary; Theorems 2 and 4 have no gap",
        )),
        "2" => Ok(Statement::OneEnvironment),
        "4" => Ok(Statement::Subsampling { alpha: temperature(model, "alpha", options.alpha)? }),
        "3" | "corollary" => {
            let examples = options.target_examples.ok_or_else(|| {
                Error::input("target_examples", "Theorem 3 needs the examples of a target task")
            })?;
            let same = tasks.iter().all(|task| task.len() == examples);
            let gap = match options.gap {
                Some(gap) if gap.is_finite() && gap >= 0.0 => gap,
                None if same => 0.0,
                _ => {
                    return Err(Error::input(
                        "gap",
                        "expected the gap between observed and target tasks, a number of at least 0; `pacmeta bound \
                         --environment` estimates it on a synthetic environment",
                    ));
                }
            };
            let target_examples = examples as f64;
            if theorem == "corollary" {
                let gap = CorollaryGap::Difference(RiskDifference::from_risks(gap, 0.0)?);
                return Ok(Statement::Corollary { target_examples, gap });
            }
            let gap = if same && gap == 0.0 {
                HyperPriorGap::identical()
            } else {
                HyperPriorGap::from_masses(lambda, &[1.0], &[RiskPair { target: gap, observed: 0.0 }])?
            };
            Ok(Statement::TwoEnvironments { target_examples, gap })
        }
        other => Err(Error::input("theorem", format!("is {other}, expected 2, 3, 4 or \"corollary\""))),
    }
}

fn assumption(name: &str, text: &str) -> Result<Assumption> {
    let expected = || {
        Error::input(
            name,
            "expected \"bounded:A,B\" with A < B, \"sub-gaussian:VARIANCE\", \"sub-gamma:VARIANCE,SCALE\" or \
             \"non-negative:SECOND_MOMENT\", numbers not negative but for A and B",
        )
    };
    let (kind, numbers) = text.split_once(':').ok_or_else(expected)?;
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    let numbers: Vec<f64> = numbers.split(',').map(number).collect::<Option<_>>().ok_or_else(expected)?;
    match (kind, &numbers[..]) {
        ("bounded", &[a, b]) if a < b => Ok(Assumption::Bounded { a, b }),
        ("sub-gaussian", &[variance]) if variance >= 0.0 => Ok(Assumption::SubGaussian { variance }),
        ("sub-gamma", &[variance, scale]) if variance >= 0.0 && scale >= 0.0 => {
            Ok(Assumption::SubGamma { variance, scale })
        }
        ("non-negative", &[second_moment]) if second_moment >= 0.0 => {
            Ok(Assumption::NonNegative { second_moment })
        }
        _ => Err(expected()),
    }
}
