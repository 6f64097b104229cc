//! The numbers behind the study's report as files.

use serde_json::{Value, json};

use super::analysis::Analysis;
use super::claims::claims;
use super::spec::StudyMethod;
use super::tables::{FEWEST_DRAWS, folds_that_agree, lambdas, of_paper, readings};
use crate::error::Result;
use crate::studies::numbers::{NumbersFile, csv_of, failed};
use crate::studies::summary::Summary;

/// Everything as files.
///
/// # Errors
/// When a table cannot be written, which does not happen in memory.
pub fn numbers(analysis: &Analysis<'_>) -> Result<Vec<NumbersFile>> {
    let claims = serde_json::to_string_pretty(&claims(analysis)).map_err(failed)?;
    let file = |name, what, content| NumbersFile { name, what, content };
    Ok(vec![
        file(
            "errors.csv",
            "Errors of every method at every mᵢ, with the chosen settings.",
            errors_csv(analysis)?,
        ),
        file("settings.csv", "Errors of every setting.", settings_csv(analysis)?),
        file("bounds.csv", "Every term of the bounds.", bounds_csv(analysis)?),
        file("gaps.csv", "The gap over the hyper-prior.", gaps_csv(analysis)?),
        file("ablations.csv", "Departures from the paper's protocol.", ablations_csv(analysis)?),
        file("predictions.csv", "The drawn predictions, priors and truths.", predictions_csv(analysis)?),
        file("claims.json", "The paper's claims and their tests.", claims + "\n"),
    ])
}

fn columns_of(summary: &Summary) -> [Value; 3] {
    [json!(summary.mean), json!(summary.standard_error), json!(summary.observations)]
}

fn errors_csv(analysis: &Analysis<'_>) -> Result<String> {
    let mut rows = Vec::new();
    for (method, rule, _) in readings() {
        for point in analysis.curve(method, rule) {
            let mut row = vec![
                json!(point.method.name()),
                json!(point.rule),
                json!(point.examples),
                json!(point.chosen.numbers()),
                json!(point.chosen.beta_per_example()),
                json!(point.chosen.alpha_over_beta()),
            ];
            let summaries = [
                point.test,
                point.validation,
                point.lowest,
                point.log_likelihood,
                point.calibration_error,
                point.coverage95,
            ];
            row.extend(summaries.iter().flat_map(columns_of));
            row.push(json!(point.failed));
            row.push(json!(folds_that_agree(&point)));
            row.push(json!(of_paper(point.method, point.examples).map(|setting| setting.numbers())));
            rows.push(row);
        }
    }
    let header = [
        "method",
        "target_temperature",
        "examples",
        "chosen",
        "beta_per_example",
        "alpha_over_beta",
        "test_rmse",
        "test_rmse_standard_error",
        "test_models",
        "validation_rmse",
        "validation_rmse_standard_error",
        "validation_models",
        "lowest_rmse",
        "lowest_rmse_standard_error",
        "lowest_models",
        "log_likelihood",
        "log_likelihood_standard_error",
        "log_likelihood_models",
        "calibration_error",
        "calibration_error_standard_error",
        "calibration_error_models",
        "coverage95",
        "coverage95_standard_error",
        "coverage95_models",
        "failed_models",
        "folds_that_agree",
        "chosen_in_paper",
    ];
    csv_of(header, rows)
}

fn settings_csv(analysis: &Analysis<'_>) -> Result<String> {
    let mut rows = Vec::new();
    for method in StudyMethod::ALL.into_iter().filter(|method| *method != StudyMethod::PlainGp) {
        for setting in analysis.plan.settings(method) {
            for &examples in &analysis.plan.examples {
                let point = analysis.setting(setting, examples);
                let mut row = vec![
                    json!(method.name()),
                    json!(setting.numbers()),
                    json!(setting.beta_per_example()),
                    json!(setting.alpha_over_beta()),
                    json!(setting.rate()),
                    json!(setting.steps()),
                    json!(examples),
                ];
                let summaries = [point.rmse, point.rmse_fixed, point.lowest];
                row.extend(summaries.iter().flat_map(columns_of));
                row.push(json!(point.rmse.failed));
                rows.push(row);
            }
        }
    }
    let header = [
        "method",
        "setting",
        "beta_per_example",
        "alpha_over_beta",
        "rate",
        "steps",
        "examples",
        "rmse",
        "rmse_standard_error",
        "models",
        "fixed_temperature_rmse",
        "fixed_temperature_rmse_standard_error",
        "fixed_temperature_models",
        "lowest_rmse",
        "lowest_rmse_standard_error",
        "lowest_models",
        "failed_models",
    ];
    csv_of(header, rows)
}

fn bounds_csv(analysis: &Analysis<'_>) -> Result<String> {
    let mut rows = Vec::new();
    for method in [StudyMethod::Pacoh, StudyMethod::Pacmaml] {
        for &beta in &analysis.plan.beta_per_example {
            for &examples in &analysis.plan.examples {
                let Some(point) = analysis.bound(method, examples, beta) else { continue };
                let terms: [(&str, Option<Summary>); 8] = [
                    ("w", Some(point.w)),
                    ("xi_kl", Some(point.hyper_prior)),
                    ("xi_log", Some(point.confidence)),
                    ("gap", point.gap),
                    ("gap_fixed_temperature", point.gap_fixed),
                    ("total", Some(point.total)),
                    ("total_fixed_temperature", point.gap_fixed.map(|_| point.total_fixed)),
                    ("true_risk", Some(point.target_risk)),
                ];
                for (term, summary) in terms {
                    let Some(summary) = summary else { continue };
                    let mut row = vec![
                        json!(method.name()),
                        json!(examples),
                        json!(beta),
                        json!(point.setting.alpha_over_beta()),
                        json!(term),
                    ];
                    row.extend(columns_of(&summary));
                    rows.push(row);
                }
            }
        }
    }
    let header = [
        "method",
        "examples",
        "beta_per_example",
        "alpha_over_beta",
        "term",
        "value",
        "standard_error",
        "models",
    ];
    csv_of(header, rows)
}

fn gaps_csv(analysis: &Analysis<'_>) -> Result<String> {
    let mut rows = Vec::new();
    for &examples in &analysis.plan.examples {
        for &beta in &analysis.plan.beta_per_example {
            for lambda in lambdas(examples, beta) {
                let Some(point) = analysis.hyper_prior(examples, beta, lambda)? else { continue };
                rows.push(vec![
                    json!(examples),
                    json!(beta),
                    json!(lambda),
                    json!(point.gap),
                    json!((point.effective_draws >= FEWEST_DRAWS).then_some(point.standard_error)),
                    json!(point.effective_draws),
                    json!(point.draws),
                ]);
            }
        }
    }
    let header =
        ["examples", "beta_per_example", "lambda", "gap", "standard_error", "effective_draws", "draws"];
    csv_of(header, rows)
}

fn ablations_csv(analysis: &Analysis<'_>) -> Result<String> {
    let rows = analysis.ablations().into_iter().map(|point| {
        let mut row = vec![
            json!(point.setting.method().name()),
            json!(point.setting.numbers()),
            json!(point.variant),
            json!(point.examples),
        ];
        row.extend([point.paper, point.rmse, point.difference].iter().flat_map(columns_of));
        row
    });
    let header = [
        "method",
        "setting",
        "variant",
        "examples",
        "paper_rmse",
        "paper_rmse_standard_error",
        "paper_models",
        "rmse",
        "rmse_standard_error",
        "models",
        "difference",
        "difference_standard_error",
        "pairs",
    ];
    csv_of(header, rows)
}

fn predictions_csv(analysis: &Analysis<'_>) -> Result<String> {
    let mut rows = Vec::new();
    for drawn in analysis.illustrations() {
        let of = drawn.illustration;
        let columns = [&of.x, &of.truth, &of.prior_mean, &of.prior_std, &of.mean, &of.std];
        for point in 0..of.x.len() {
            let mut row = vec![json!(drawn.method.name()), json!(drawn.examples), json!(of.task)];
            row.extend(columns.iter().map(|column| json!(column.get(point))));
            rows.push(row);
        }
    }
    let header = ["method", "examples", "task", "x", "truth", "prior_mean", "prior_std", "mean", "std"];
    csv_of(header, rows)
}
