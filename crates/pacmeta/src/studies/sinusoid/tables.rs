//! The tables of the study's report.

use super::analysis::{Analysis, MethodPoint};
use super::spec::{OBSERVED_TASKS, SUPPORT, Setting, StudyMethod};
use crate::error::Result;
use crate::learners::TargetTemperature;
use crate::report::{Cell, Column, StudyTable, brief};
use crate::studies::summary::{Summary, crossed};

/// With fewer effective draws than this, a Monte-Carlo mean of exponentials has no usable standard error.
pub(super) const FEWEST_DRAWS: f64 = 10.0;

/// beta/m_i and alpha/beta that the paper's cross-validation chose.
pub(super) fn of_paper(method: StudyMethod, examples: usize) -> Option<Setting> {
    let beta_per_example = match (method, examples) {
        (StudyMethod::Pacoh, 5 | 10 | 100) | (StudyMethod::Pacmaml, 10 | 30 | 50 | 100) => 100.0,
        (StudyMethod::Pacoh, 30 | 50) => 30.0,
        _ => return None,
    };
    Some(match method {
        StudyMethod::Pacoh => Setting::Pacoh { beta_per_example },
        _ => Setting::Pacmaml { beta_per_example, alpha_over_beta: if examples == 100 { 0.1 } else { 0.2 } },
    })
}

fn cell(summary: &Summary) -> Cell {
    match (summary.mean, summary.standard_error) {
        (Some(mean), Some(error)) => Cell::estimate(mean, error, summary.observations),
        (Some(mean), None) => Cell::number(mean),
        _ => Cell::missing(),
    }
}

fn number(value: Option<f64>) -> Cell {
    value.map_or_else(Cell::missing, Cell::number)
}

/// The lambdas at which the gap over the hyper-prior is shown: one so small that many draws carry the mean, 1, n, and n beta, where the
/// paper's xi would put it at least.
pub(super) fn lambdas(examples: usize, beta_per_example: f64) -> [f64; 4] {
    let tasks = OBSERVED_TASKS as f64;
    [0.01, 1.0, tasks, tasks * beta_per_example * examples as f64]
}

/// Test errors of every method, best of each m_i marked.
pub(super) fn errors(analysis: &Analysis<'_>) -> StudyTable {
    let sizes = &analysis.plan.examples;
    let columns = [Column::text("method")].into_iter();
    let columns = columns.chain(sizes.iter().map(|examples| Column::number(format!("mᵢ = {examples}"))));
    let curves: Vec<(StudyMethod, Vec<Option<MethodPoint>>)> = StudyMethod::ALL
        .into_iter()
        .map(|method| {
            let point = |examples: &usize| analysis.method(method, *examples, TargetTemperature::PerExample);
            (method, sizes.iter().map(point).collect())
        })
        .collect();
    let best: Vec<f64> = (0..sizes.len())
        .map(|index| {
            let means = curves.iter().filter_map(|(_, points)| points[index].as_ref()?.test.mean);
            means.fold(f64::INFINITY, f64::min)
        })
        .collect();
    let rows = curves.iter().map(|(method, points)| {
        let cells = points.iter().zip(&best).map(|(point, best)| match point {
            Some(point) if point.test.mean == Some(*best) => cell(&point.test).best(),
            Some(point) => cell(&point.test),
            None => Cell::missing(),
        });
        [Cell::text(method.name())].into_iter().chain(cells).collect()
    });
    StudyTable {
        id: "errors-table".to_owned(),
        heading: "RMSE on held-out target tasks".to_owned(),
        columns: columns.collect(),
        rows: rows.collect(),
        caption: "Last iterate; mean over models, standard error over meta-training sets (plain GP: over target tasks)."
            .to_owned(),
        csv: Some("errors.csv".to_owned()),
    }
}

pub(super) fn folds_that_agree(point: &MethodPoint) -> usize {
    point.per_fold.iter().filter(|setting| **setting == point.chosen).count()
}

/// The numbers of a chosen setting that are the smallest or the largest of its grid.
fn ends_of_grid(grid: &[Setting], chosen: &Setting) -> Vec<String> {
    type Number = fn(&Setting) -> Option<f64>;
    let numbers: [(&str, Number); 4] = [
        ("β/mᵢ", Setting::beta_per_example),
        ("α/β", Setting::alpha_over_beta),
        ("rate", |setting| setting.rate().filter(|_| setting.steps() != Some(0))),
        ("steps", |setting| setting.steps().map(|steps| steps as f64)),
    ];
    let end = |(name, number): (&str, Number)| {
        let own = number(chosen)?;
        let others = || grid.iter().filter_map(number);
        match (others().any(|other| other < own), others().any(|other| other > own)) {
            (true, false) => Some(format!("largest {name}")),
            (false, true) => Some(format!("smallest {name}")),
            _ => None,
        }
    };
    numbers.into_iter().filter_map(end).collect()
}

/// Chosen beta and alpha, the paper's beside ours.
pub(super) fn chosen(analysis: &Analysis<'_>) -> StudyTable {
    let mut rows = Vec::new();
    for method in StudyMethod::ALL.into_iter().filter(|method| *method != StudyMethod::PlainGp) {
        for &examples in &analysis.plan.examples {
            let Some(point) = analysis.method(method, examples, TargetTemperature::PerExample) else {
                continue;
            };
            let agree = folds_that_agree(&point);
            let paper = of_paper(method, examples);
            rows.push(vec![
                Cell::text(method.name()),
                Cell::number(examples as f64),
                Cell::text(point.chosen.numbers()),
                Cell::text(format!("{agree} of {}", point.per_fold.len())),
                paper.map_or_else(Cell::missing, |setting| Cell::text(setting.numbers())),
                Cell::text(ends_of_grid(&analysis.plan.settings(method), &point.chosen).join(", ")),
            ]);
        }
    }
    StudyTable {
        id: "chosen".to_owned(),
        heading: "Chosen by cross-validation".to_owned(),
        columns: vec![
            Column::text("method"),
            Column::number("mᵢ"),
            Column::text("ours"),
            Column::text("folds that agree"),
            Column::text("the paper's"),
            Column::text("at an end of its grid"),
        ],
        rows,
        caption: "The setting with the lowest validation error over all folds, by the last iterate. The paper names values for PACOH and \
                  PACMAML only, and none for PACMAML at mᵢ = 5. Where the smallest or the largest value was chosen, something better may lie \
                  beyond; the methods have grids of different sizes."
            .to_owned(),
        csv: Some("errors.csv".to_owned()),
    }
}

/// Likelihood, calibration, both readings and both temperatures.
pub(super) fn quality(analysis: &Analysis<'_>) -> StudyTable {
    let mut rows = Vec::new();
    for (method, rule, name) in readings() {
        for point in analysis.curve(method, rule) {
            rows.push(vec![
                Cell::text(name),
                Cell::number(point.examples as f64),
                cell(&point.test),
                cell(&point.lowest),
                cell(&point.log_likelihood),
                cell(&point.calibration_error),
                number(point.coverage95.mean),
            ]);
        }
    }
    StudyTable {
        id: "quality".to_owned(),
        heading: "Error in both readings, likelihood and calibration".to_owned(),
        columns: vec![
            Column::text("method"),
            Column::number("mᵢ"),
            Column::number("RMSE, last iterate"),
            Column::number("RMSE, lowest during training"),
            Column::number("log-likelihood"),
            Column::number("calibration error"),
            Column::number("95% coverage"),
        ],
        rows,
        caption: "RMSE of the last iterate is on held-out folds; the other columns are of the setting chosen over all folds. Lowest \
                  during training stops early on test data, as the paper does. Log-likelihood is the joint predictive log-density of a task's \
                  100 query points divided by 100, in nats: it rewards the right correlations between points as much as small errors. \
                  Coverage far below 0.95 means overconfidence."
            .to_owned(),
        csv: Some("errors.csv".to_owned()),
    }
}

pub(super) fn readings() -> Vec<(StudyMethod, TargetTemperature, &'static str)> {
    let mut list = Vec::new();
    for method in StudyMethod::ALL {
        list.push((method, TargetTemperature::PerExample, method.name()));
        if method == StudyMethod::Pacoh {
            list.push((method, TargetTemperature::Fixed, "PACOH, fixed temperature"));
        }
    }
    list
}

/// The gap over the hyper-prior, with its Monte-Carlo error.
pub(super) fn hyper_prior_gap(analysis: &Analysis<'_>) -> Result<StudyTable> {
    let mut rows = Vec::new();
    for &examples in analysis.plan.examples.iter().filter(|examples| **examples != SUPPORT) {
        for &beta in &analysis.plan.beta_per_example {
            let difference = analysis.bound(StudyMethod::Pacoh, examples, beta).and_then(|point| point.gap);
            for lambda in lambdas(examples, beta) {
                let Some(point) = analysis.hyper_prior(examples, beta, lambda)? else { continue };
                rows.push(vec![
                    Cell::number(examples as f64),
                    Cell::number(beta),
                    Cell::number(lambda),
                    if point.effective_draws < FEWEST_DRAWS {
                        Cell::text(format!("{}, error unknown", brief(point.gap)))
                    } else {
                        Cell::estimate(point.gap, point.standard_error, point.draws)
                    },
                    Cell::number(point.effective_draws),
                    difference.as_ref().map_or_else(Cell::missing, cell),
                ]);
            }
        }
    }
    Ok(StudyTable {
        id: "hyper-prior-gap".to_owned(),
        heading: "The gap over the hyper-prior".to_owned(),
        columns: vec![
            Column::number("mᵢ"),
            Column::number("β/mᵢ"),
            Column::number("λ"),
            Column::number("gap, hyper-prior form"),
            Column::number("effective draws"),
            Column::number("gap, difference of risks"),
        ],
        rows,
        caption: "(1/λ) log E exp(λ (R(P, T) - R(P, T~))) over priors drawn from the hyper-prior, with its Monte-Carlo standard \
                  error. It grows with λ, so that the value at the smallest, which many draws carry, is below the others. Where fewer than ten draws carry the mean, the error cannot be estimated: the true mean over all priors is then \
                  probably larger, while the noise of 20 tasks for each prior pushes the value upwards. Priors from the hyper-prior are far \
                  worse than learned ones, so this form exceeds the difference of risks."
            .to_owned(),
        csv: Some("gaps.csv".to_owned()),
    })
}

/// What it does to PACOH's errors to keep the temperature itself at target tasks, which the paper leaves open, in words.
pub(super) fn other_temperature(analysis: &Analysis<'_>) -> Option<String> {
    let at = |&examples: &usize| {
        let of = |rule| Some(analysis.method(StudyMethod::Pacoh, examples, rule)?.by_set_and_task);
        let pairs = of(TargetTemperature::Fixed)?.into_iter().zip(of(TargetTemperature::PerExample)?);
        let differences: Vec<Vec<f64>> = pairs
            .map(|((_, fixed), (_, own))| fixed.iter().zip(&own).map(|(fixed, own)| fixed - own).collect())
            .collect();
        let difference = crossed(&differences).ok()?;
        let error = difference.standard_error.map_or(String::new(), |error| format!(" ± {error:.3}"));
        Some(format!("{:+.3}{error} at mᵢ = {examples}", difference.mean?))
    };
    let list: Vec<String> =
        analysis.plan.examples.iter().filter(|examples| **examples != SUPPORT).filter_map(at).collect();
    (!list.is_empty()).then(|| {
        format!(
            "The temperature: PACOH with β itself kept at target tasks, in place of β/mᵢ, changes its error by {} (paired, ± standard error).",
            list.join(", ")
        )
    })
}

/// Where the choice of cross-validation is not the paper's, in words.
pub(super) fn other_choices(analysis: &Analysis<'_>) -> Vec<String> {
    let mut list = Vec::new();
    for method in [StudyMethod::Pacoh, StudyMethod::Pacmaml] {
        for point in analysis.curve(method, TargetTemperature::PerExample) {
            let Some(paper) = of_paper(method, point.examples).filter(|paper| *paper != point.chosen) else {
                continue;
            };
            list.push(format!(
                "{} at mᵢ = {}: {} ({} of {} folds), the paper {}",
                method.name(),
                point.examples,
                point.chosen.numbers(),
                folds_that_agree(&point),
                point.per_fold.len(),
                paper.numbers()
            ));
        }
    }
    list
}

/// Departures from the paper's protocol.
pub(super) fn ablations(analysis: &Analysis<'_>) -> Option<StudyTable> {
    let points = analysis.ablations();
    let rows: Vec<Vec<Cell>> = points
        .iter()
        .map(|point| {
            vec![
                Cell::text(point.setting.method().name()),
                Cell::text(point.variant.name()),
                Cell::number(point.examples as f64),
                cell(&point.paper),
                cell(&point.rmse),
                cell(&point.difference),
            ]
        })
        .collect();
    (!rows.is_empty()).then(|| StudyTable {
        id: "ablations".to_owned(),
        heading: "What if".to_owned(),
        columns: vec![
            Column::text("method"),
            Column::text("what is done otherwise"),
            Column::number("mᵢ"),
            Column::number("RMSE as in the paper"),
            Column::number("RMSE otherwise"),
            Column::number("difference, paired"),
        ],
        rows,
        caption: format!(
            "At {}; one seed on each meta-training set. A difference of less than about two standard errors says nothing.",
            points.first().map(|point| point.setting.numbers()).unwrap_or_default()
        ),
        csv: Some("ablations.csv".to_owned()),
    })
}
