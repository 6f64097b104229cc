//! The figures of the paper's regression part, drawn from the record.

use super::analysis::{Analysis, BoundPoint, Drawn, MethodPoint};
use super::illustration::Illustration;
use super::spec::{SUPPORT, Setting, StudyMethod};
use crate::learners::TargetTemperature;
use crate::report::{
    Axis, AxisKind, GridPoint, LOOKS, LineChart, Point, PredictionPanel, PriorPanel, Series, StudyFigure,
};
use crate::studies::summary::Summary;

use StudyMethod::{Maml, Pacmaml, Pacoh, Reptile};

const STANDARD_ERROR: &str = "standard error over meta-training sets";
const UNIT: &str = "squared standardised units";

fn examples_axis(analysis: &Analysis<'_>) -> Axis {
    let ticks = analysis.plan.examples.iter().map(|examples| *examples as f64);
    Axis::new("mᵢ, examples of an observed task").log().ticks(ticks)
}

/// Errors of good and bad methods differ by a factor of ten: a logarithmic axis shows both.
fn error_axis(label: &str) -> Axis {
    Axis::new(label).log().ticks([0.2, 0.25, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5])
}

fn point(examples: usize, summary: &Summary) -> Point {
    let point =
        Point::new(examples as f64, summary.mean.unwrap_or(f64::NAN)).observations(summary.observations);
    match summary.standard_error {
        Some(error) => point.error(error),
        None => point,
    }
}

fn series(name: impl Into<String>, points: impl IntoIterator<Item = Point>) -> Series {
    Series::new(name, points).intervals_are(STANDARD_ERROR).observations_are("models")
}

/// A method looks the same in every figure.
fn look(method: StudyMethod) -> usize {
    StudyMethod::ALL.iter().position(|other| *other == method).unwrap_or_default()
}

/// Something else of the same method: its colour, with other marks and dashes.
fn variant_look(method: StudyMethod) -> usize {
    look(method) + LOOKS
}

/// What is no method's.
const OTHER_LOOK: usize = StudyMethod::ALL.len();

fn error_series(
    analysis: &Analysis<'_>,
    method: StudyMethod,
    name: impl Into<String>,
    rule: TargetTemperature,
    value: fn(&MethodPoint) -> &Summary,
) -> Series {
    let curve = analysis.curve(method, rule);
    series(name, curve.iter().map(|at| point(at.examples, value(at))))
}

/// Held-out error of a method by the last iterate. The plain GP has one model; its bar is over target tasks.
fn test_error(analysis: &Analysis<'_>, method: StudyMethod) -> Series {
    let series = test_error_over_sets(analysis, method);
    match method {
        StudyMethod::PlainGp => {
            series.intervals_are("standard error over target tasks").observations_are("target tasks")
        }
        _ => series,
    }
}

fn test_error_over_sets(analysis: &Analysis<'_>, method: StudyMethod) -> Series {
    error_series(analysis, method, method.name(), TargetTemperature::PerExample, |at| &at.test)
        .look(look(method))
}

/// Keeps one exploding method from flattening all others: the frame ends a little above the plain GP, or what else is
/// usual, and the caption says what is outside.
fn framed(mut chart: LineChart) -> (LineChart, String) {
    const USUAL: f64 = 1.5;
    let high = |series: &Series| {
        series.points.iter().map(|at| at.interval.map_or(at.y, |ends| ends.1)).fold(0.0, f64::max)
    };
    let outside: Vec<String> = chart
        .series
        .iter()
        .filter(|series| high(series) > USUAL)
        .flat_map(|series| {
            let beyond = series.points.iter().filter(|at| at.y > USUAL);
            beyond.map(|at| format!("{} at mᵢ = {} ({})", series.name, at.x, crate::report::brief(at.y)))
        })
        .collect();
    if !chart.series.iter().any(|series| high(series) > USUAL) {
        return (chart, String::new());
    }
    let lowest = chart.series.iter().flat_map(|series| &series.points).map(|at| at.y).fold(USUAL, f64::min);
    chart.y = match chart.y.kind {
        AxisKind::Log => chart.y.range((0.9 * lowest).max(1e-3), USUAL),
        AxisKind::Linear => chart.y.range(0.9 * lowest, USUAL),
    };
    let remark = match outside.as_slice() {
        [] => " The frame cuts off long error bars.".to_owned(),
        list => format!(" Outside the frame: {}.", list.join(", ")),
    };
    (chart, remark)
}

/// The paper's first figure: totals of Theorems 2, 3 and 4 against m_i, at the largest beta.
pub(super) fn theorems(analysis: &Analysis<'_>) -> Option<StudyFigure> {
    let beta = analysis.plan.beta_per_example.iter().copied().fold(f64::NAN, f64::max);
    let curve = |method: StudyMethod| -> Vec<BoundPoint> {
        let sizes = analysis.plan.examples.iter();
        sizes.filter_map(|examples| analysis.bound(method, *examples, beta)).collect()
    };
    let totals = |points: &[BoundPoint]| -> Vec<Point> {
        points.iter().map(|at| point(at.examples, &at.total)).collect()
    };
    let (pacoh, pacmaml) = (curve(Pacoh), curve(Pacmaml));
    let second: Vec<Point> =
        pacoh.iter().filter(|at| at.examples == SUPPORT).map(|at| point(at.examples, &at.total)).collect();
    let chart = LineChart::new(
        format!("Totals of Theorems 2, 3 and 4 at β/mᵢ = {beta}"),
        examples_axis(analysis),
        Axis::new("total without constants").unit(UNIT),
    )
    .with(series("Theorem 4 (PACMAML)", totals(&pacmaml)).look(look(Pacmaml)))
    .with(series("Theorem 3 (PACOH, with the gap)", totals(&pacoh)).look(look(Pacoh)))
    .with(series("Theorem 2 (PACOH, mᵢ = m only)", second).look(OTHER_LOOK));
    let caption = format!(
        "Theorem 3 pays for observed tasks that are larger than target tasks (m = {SUPPORT}) with the gap; Theorem 4 does not. \
         Look for the two curves to part as mᵢ grows. Psi terms and the constant of a point hyper-posterior are left out, as \
         in the paper: these are totals to compare, not bounds."
    );
    (!pacoh.is_empty() || !pacmaml.is_empty())
        .then(|| StudyFigure::new("theorems", format!("Totals at β/mᵢ = {beta}"), chart, caption))
}

/// Generalisation error of all methods.
pub(super) fn errors(analysis: &Analysis<'_>) -> StudyFigure {
    let mut chart = LineChart::new(
        "Generalisation error of every method",
        examples_axis(analysis),
        error_axis("RMSE on target tasks"),
    );
    for method in StudyMethod::ALL {
        let of_method = test_error(analysis, method);
        if !of_method.points.is_empty() {
            chart = chart.with(of_method);
        }
    }
    let caption = "The last iterate, on target tasks that did not choose its settings. The paper says: PACOH and Reptile rise \
                   again on the right, MAML and PACMAML keep falling, PACMAML is lowest. The bar of the plain GP, which learns \
                   from no other task, is over target tasks. The vertical axis is logarithmic.";
    let (chart, remark) = framed(chart);
    StudyFigure::new("errors", "All methods", chart, format!("{caption}{remark}"))
}

/// The same without the methods that are far above the others.
pub(super) fn errors_close(analysis: &Analysis<'_>) -> StudyFigure {
    let caption = "These three alone, on a linear axis: look where the curves turn. PACOH appears twice, as its curve depends on what \
                   is kept of the temperature at target tasks.";
    let (chart, remark) = framed(main_chart(analysis));
    StudyFigure::new("errors-close", "PACMAML, PACOH and MAML", chart, format!("{caption}{remark}"))
}

/// PACMAML, PACOH and MAML, in the report and for the README.
pub fn main_chart(analysis: &Analysis<'_>) -> LineChart {
    let mut chart = LineChart::new(
        "Few-shot error on new tasks, after learning from 20 tasks of mᵢ examples",
        examples_axis(analysis),
        Axis::new("RMSE on target tasks of 5 examples"),
    );
    for method in [Pacmaml, Pacoh, Maml] {
        chart = chart.with(test_error(analysis, method));
    }
    let fixed =
        error_series(analysis, Pacoh, "PACOH, fixed temperature", TargetTemperature::Fixed, |at| &at.test);
    chart.with(fixed.look(variant_look(Pacoh)))
}

/// Validation and test error, one panel a method; the test error in both readings.
pub(super) fn validation(analysis: &Analysis<'_>, methods: &[StudyMethod], prefix: &str) -> Vec<StudyFigure> {
    methods
        .iter()
        .map(|&method| {
            let name = method.name();
            let rule = TargetTemperature::PerExample;
            let chart = LineChart::new(
                format!("{name}: validation and test error"),
                examples_axis(analysis),
                Axis::new("RMSE"),
            )
            .with(error_series(analysis, method, "validation", rule, |at| &at.validation))
            .with(error_series(analysis, method, "test, last iterate", rule, |at| &at.test))
            .with(error_series(analysis, method, "test, lowest during training", rule, |at| &at.lowest));
            let caption = "Lowest during training is the paper's reading, which stops early on test data; look how far it is \
                           below the last iterate.";
            let (chart, remark) = framed(chart);
            StudyFigure::new(format!("{prefix}-{name}"), name, chart, format!("{caption}{remark}"))
        })
        .collect()
}

/// PACOH with the temperature itself, and per example, at target tasks.
pub(super) fn temperatures(analysis: &Analysis<'_>) -> StudyFigure {
    let mut chart = LineChart::new(
        "PACOH: what is kept of the temperature at target tasks",
        examples_axis(analysis),
        Axis::new("RMSE on target tasks"),
    );
    for (name, rule) in
        [("per example (β/mᵢ)", TargetTemperature::PerExample), ("fixed (β)", TargetTemperature::Fixed)]
    {
        chart = chart.with(error_series(analysis, Pacoh, name, rule, |at| &at.test));
    }
    let caption = "The paper does not say how a temperature chosen for mᵢ examples is used on 5. For PACMAML both are the same, since \
                   m' = m. Reptile keeps β itself.";
    StudyFigure::new("temperature-rule", "Temperature at target tasks", chart, caption)
}

/// Dependence of the error on beta, for PACOH and PACMAML (at its best alpha), and on alpha.
pub(super) fn dependence(analysis: &Analysis<'_>) -> Vec<StudyFigure> {
    let sizes = &analysis.plan.examples;
    let of_beta = |method: StudyMethod| {
        let mut chart = LineChart::new(
            format!("{}: error by β", method.name()),
            examples_axis(analysis),
            Axis::new("RMSE on target tasks"),
        );
        for &beta in &analysis.plan.beta_per_example {
            let points = sizes.iter().filter_map(|&examples| {
                let best =
                    analysis.best(method, examples, |setting| setting.beta_per_example() == Some(beta))?;
                Some(point(examples, &analysis.setting(best, examples).rmse))
            });
            chart = chart.with(series(format!("β/mᵢ = {beta}"), points));
        }
        chart
    };
    let betas = &analysis.plan.beta_per_example;
    let middle = betas.get((betas.len().max(1) - 1) / 2).copied().unwrap_or(30.0);
    let mut by_alpha = LineChart::new(
        format!("PACMAML: error by α at β/mᵢ = {middle}"),
        Axis::new("α/β").ticks(analysis.plan.alpha_over_beta.iter().copied()),
        Axis::new("RMSE on target tasks"),
    );
    for &examples in sizes {
        let points = analysis.plan.alpha_over_beta.iter().map(|&alpha_over_beta| {
            let setting = Setting::Pacmaml { beta_per_example: middle, alpha_over_beta };
            Point { x: alpha_over_beta, ..point(examples, &analysis.setting(setting, examples).rmse) }
        });
        by_alpha = by_alpha.with(series(format!("mᵢ = {examples}"), points));
    }
    vec![
        StudyFigure::new(
            "beta-pacoh",
            "PACOH by β",
            of_beta(Pacoh),
            "The paper, which has β/mᵢ = 10, 30 and 100, finds a large error at 10, and little difference between 30 and 100.",
        ),
        StudyFigure::new(
            "beta-pacmaml",
            "PACMAML by β",
            of_beta(Pacmaml),
            "At the best α for each point. The paper finds 100 slightly and consistently best.",
        ),
        StudyFigure::new(
            "alpha-pacmaml",
            format!("PACMAML by α, at β/mᵢ = {middle}"),
            by_alpha,
            "The paper, at β/mᵢ = 30, finds the lowest error near α/β = 0.2.",
        ),
    ]
}

/// One panel a term of the bound, with a line for each beta.
pub(super) fn terms(analysis: &Analysis<'_>, method: StudyMethod) -> Vec<StudyFigure> {
    type Term = fn(&BoundPoint) -> Option<Summary>;
    let w = if method == Pacoh { "W₁" } else { "W₂" };
    let mut list: Vec<(String, &str, Term)> = vec![
        (format!("{w}, the objective of a task"), "w", |at| Some(at.w)),
        ("ξ KL, the hyper-prior's term".to_owned(), "kl", |at| Some(at.hyper_prior)),
        ("ξ log(2/δ), the confidence term".to_owned(), "confidence", |at| Some(at.confidence)),
    ];
    if method == Pacoh {
        list.push(("the gap, by difference of risks".to_owned(), "gap", |at| at.gap));
        list.push(("the gap, fixed temperature".to_owned(), "gap-fixed", |at| at.gap_fixed));
    }
    list.push(("total".to_owned(), "total", |at| Some(at.total)));
    list.into_iter()
        .map(|(name, id, term)| {
            let mut chart = LineChart::new(
                format!("{}: {name}", method.name()),
                examples_axis(analysis),
                Axis::new(UNIT),
            );
            for &beta in &analysis.plan.beta_per_example {
                let points = analysis.plan.examples.iter().filter_map(|&examples| {
                    Some(point(examples, &term(&analysis.bound(method, examples, beta)?)?))
                });
                chart = chart.with(series(format!("β/mᵢ = {beta}"), points));
            }
            let caption = match id {
                "gap" => "R(Q, T) - R(Q, T~) on fresh tasks with m = 5 and with mᵢ examples; 0 at mᵢ = m. Look for growth with mᵢ.",
                "gap-fixed" => "The same with β itself kept at target tasks, in place of β/mᵢ. The totals use the other.",
                "total" if method == Pacoh => "The sum of the terms, the gap included. The paper: it rises, or rises and saturates.",
                "total" => "The sum of the terms. The paper: it falls monotonically.",
                _ => "The paper: falls as mᵢ grows.",
            };
            StudyFigure::new(format!("bound-{}-{id}", method.name()), name, chart, caption)
        })
        .collect()
}

/// PACOH's total against PACMAML's, and the risk on target tasks that both are about, one panel a beta.
pub(super) fn comparison(analysis: &Analysis<'_>) -> Vec<StudyFigure> {
    let betas = analysis.plan.beta_per_example.iter();
    betas
        .map(|&beta| {
            let of = |method: StudyMethod, value: fn(&BoundPoint) -> &Summary| {
                let sizes = analysis.plan.examples.iter();
                sizes
                    .filter_map(|&examples| Some(point(examples, value(&analysis.bound(method, examples, beta)?))))
                    .collect::<Vec<_>>()
            };
            let chart = LineChart::new(
                format!("Totals at β/mᵢ = {beta}"),
                examples_axis(analysis),
                Axis::new("total, and true risk").unit(UNIT),
            )
            .with(series("PACMAML, total", of(Pacmaml, |at| &at.total)).look(look(Pacmaml)))
            .with(series("PACOH, total", of(Pacoh, |at| &at.total)).look(look(Pacoh)))
            .with(series("PACMAML, true risk", of(Pacmaml, |at| &at.target_risk)).look(variant_look(Pacmaml)))
            .with(series("PACOH, true risk", of(Pacoh, |at| &at.target_risk)).look(variant_look(Pacoh)));
            let caption = "True risk: of the Gibbs posterior after 5 examples, measured on fresh tasks. The paper: PACMAML's total is \
                           below PACOH's for every mᵢ above 5.";
            StudyFigure::new(format!("totals-{beta}"), format!("β/mᵢ = {beta}"), chart, caption)
        })
        .collect()
}

/// Reptile and MAML beside their counterparts with Gibbs posteriors.
pub(super) fn dirac(analysis: &Analysis<'_>) -> Vec<StudyFigure> {
    [(Reptile, Pacoh), (Maml, Pacmaml)]
        .into_iter()
        .map(|(point_method, gibbs)| {
            let mut chart = LineChart::new(
                format!("{} and {}", point_method.name(), gibbs.name()),
                examples_axis(analysis),
                Axis::new("RMSE on target tasks"),
            );
            for method in [point_method, gibbs] {
                chart = chart.with(test_error(analysis, method));
            }
            let caption = "A point as base learner against a Gibbs posterior under the same theorem. The paper: same trend, lower with \
                           Gibbs posteriors.";
            let (chart, remark) = framed(chart);
            let heading = format!("{} and {}", point_method.name(), gibbs.name());
            StudyFigure::new(format!("dirac-{}", point_method.name()), heading, chart, format!("{caption}{remark}"))
        })
        .collect()
}

/// Prior and posterior on a few target tasks, for the chosen settings at the smallest and the largest m_i.
pub(super) fn predictions(analysis: &Analysis<'_>) -> Vec<StudyFigure> {
    let mut figures = Vec::new();
    let mut last = None;
    for Drawn { method, examples, illustration } in analysis.illustrations() {
        let name = format!("{}, mᵢ = {examples}", method.name());
        let id = format!("{}-{examples}-{}", method.name(), illustration.task);
        // One prior for all tasks of a model.
        if last.replace((method, examples)) != Some((method, examples)) {
            figures.push(StudyFigure::new(
                format!("prior-{id}"),
                format!("{name}: prior"),
                prior_panel(&name, illustration),
                format!(
                    "Functions drawn from the learned prior, its mean and 95% band, before any example. Look whether they have the shape of \
                     the truth, that of {}.",
                    illustration.task
                ),
            ));
        }
        figures.push(StudyFigure::new(
            format!("posterior-{id}"),
            format!("{name}: {}", illustration.task),
            posterior_panel(&name, illustration),
            "After 5 examples: prediction with 50% and 95% bands for a new observation, and the true function. Look whether the truth lies \
             inside the bands, and whether they are wide only where no example is near.",
        ));
    }
    figures
}

fn paired(x: &[f64], y: &[f64]) -> Vec<(f64, f64)> {
    x.iter().copied().zip(y.iter().copied()).collect()
}

fn grid(x: &[f64], mean: &[f64], std: &[f64]) -> Vec<GridPoint> {
    let values = mean.iter().zip(std);
    x.iter().zip(values).map(|(x, (mean, std))| GridPoint { x: *x, mean: *mean, std: *std }).collect()
}

fn prior_panel(name: &str, of: &Illustration) -> PriorPanel {
    PriorPanel {
        title: format!("{name}: prior"),
        x_label: "x".to_owned(),
        y_label: "y".to_owned(),
        samples: of.samples.iter().map(|path| paired(&of.x, path)).collect(),
        grid: grid(&of.x, &of.prior_mean, &of.prior_std),
        truth: Some(paired(&of.x, &of.truth)),
    }
}

fn posterior_panel(name: &str, of: &Illustration) -> PredictionPanel {
    PredictionPanel {
        title: format!("{name}: {}", of.task),
        x_label: "x".to_owned(),
        y_label: "y".to_owned(),
        grid: grid(&of.x, &of.mean, &of.std),
        support: of.support.clone(),
        query: of.query.clone(),
        truth: Some(paired(&of.x, &of.truth)),
        ..PredictionPanel::default()
    }
}
