//! A study with realistic numbers for tests: seven methods and a floor over five task sizes, claims of every verdict,
//! priors beside predictions, bounds against the number of examples, tables with holes.

use super::super::sample::{Noise, posterior};
use super::super::{
    Axis, BoundBar, BoundPanel, BoundTerm, CalibrationKind, CalibrationSeries, Chart, FileLink, Guide,
    LineChart, Point, PredictionPanel, PriorPanel, Series,
};
use super::data::{
    Block, Cell, ClaimRow, ClaimVerdict, Column, StudyFigure, StudyReport, StudySection, StudyTable,
};

/// The task sizes that were run.
pub(crate) const SIZES: [f64; 5] = [5.0, 10.0, 30.0, 50.0, 100.0];
/// The methods, with the error at large sizes and what few examples cost on top of it.
const METHODS: [(&str, f64, f64); 8] = [
    ("PACMAML", 0.30, 0.5),
    ("PACOH", 0.30, 2.1),
    ("MAML", 0.37, 0.9),
    ("FOMAML", 0.39, 1.1),
    ("Reptile", 0.40, 1.6),
    ("BMAML", 0.35, 1.2),
    ("Multi-task", 0.70, 0.3),
    ("Plain GP, no meta-learning", 1.02, 0.2),
];

/// Error against task size, for the first `methods` methods.
pub(crate) fn error_chart(methods: usize, target: f64, noise: &mut Noise) -> LineChart {
    let x = Axis::new("examples per training task, mᵢ").log().ticks(SIZES);
    let mut chart = LineChart::new(
        format!("Error on target tasks of {target} examples"),
        x,
        Axis::new("RMSE on target tasks"),
    );
    for (look, (name, floor, cost)) in METHODS.iter().take(methods).enumerate() {
        let points = SIZES.map(|m| {
            let mean = floor + cost / m + 0.12 / target + 0.006 * noise.normal();
            Point::new(m, mean).error(0.012 + 0.05 * noise.uniform() / m.sqrt()).observations(40)
        });
        let series =
            Series::new(*name, points).intervals_are("one standard error").observations_are("models");
        chart = chart.with(series.look(look));
    }
    chart.guide(Guide::Horizontal(0.26, "noise of the observations".to_owned()))
}

/// A prior and the prediction that it leads to, for one method.
pub(crate) fn before_and_after(method: &str, shift: f64, noise: &mut Noise) -> Vec<StudyFigure> {
    let xs = || (0..=80).map(|i| -5.0 + 0.125 * f64::from(i));
    let mean = move |x: f64| 0.5 * x + 0.9 * (1.5 * x + shift).sin() + 5.0;
    let truth = |x: f64| 0.6 * x + 1.1 * (1.5 * x + 0.2).sin() + 5.1;
    let samples = (0..10)
        .map(|_| {
            let (a, b, phase) = (noise.normal(), noise.normal(), noise.uniform());
            xs().map(|x| (x, mean(x) + 0.35 * a + 0.5 * b * (0.8 * x + 6.0 * phase).sin())).collect()
        })
        .collect();
    let support: Vec<(f64, f64)> =
        [-4.1, -1.7, 0.4, 1.9, 3.2].map(|x| (x, truth(x) + 0.1 * noise.normal())).to_vec();
    let slug = method.to_lowercase();
    let prior = PriorPanel {
        title: format!("{method}: prior"),
        x_label: "x".to_owned(),
        y_label: "y".to_owned(),
        samples,
        grid: xs().map(|x| posterior(x, &[], mean, 0.02)).collect(),
        truth: None,
    };
    let after = PredictionPanel {
        title: format!("{method}: after five examples"),
        caption: String::new(),
        x_label: "x".to_owned(),
        y_label: "y".to_owned(),
        grid: xs().map(|x| posterior(x, &support, mean, 0.02)).collect(),
        prior: None,
        support,
        query: Vec::new(),
        truth: Some(xs().map(|x| (x, truth(x))).collect()),
    };
    vec![
        StudyFigure::new(
            format!("prior-{slug}"),
            format!("{method}: before adaptation"),
            prior,
            "Functions that agree with each other say that the prior has learned what the tasks share.",
        ),
        StudyFigure::new(
            format!("posterior-{slug}"),
            format!("{method}: after five examples"),
            after,
            "The truth should lie in the bands, and the bands should widen away from the examples.",
        ),
    ]
}

fn bounds() -> BoundPanel {
    let bar = |m: f64| {
        let terms = [
            ("empirical risk", 0.21 + 0.8 / m),
            ("hyper-posterior KL", 0.094),
            ("task KL", 1.1 / m.sqrt()),
            ("confidence", 0.061),
            ("moment terms Ψ", 0.02 + 0.3 / m),
        ];
        BoundBar {
            name: format!("mᵢ = {m}"),
            total: terms.iter().map(|t| t.1).sum(),
            terms: terms.map(|(name, value)| BoundTerm { name: name.to_owned(), value }).to_vec(),
        }
    };
    BoundPanel {
        title: "Theorem 4 against the number of examples".to_owned(),
        explanation: String::new(),
        bars: SIZES.map(bar).to_vec(),
    }
}

fn score_table() -> StudyTable {
    let mut columns = vec![Column::text("Method"), Column::text("Adapts")];
    columns.extend(SIZES.map(|m| Column::number(format!("mᵢ = {m}"))));
    columns.push(Column::number("Parameters"));
    let rows = METHODS
        .iter()
        .enumerate()
        .map(|(index, (name, floor, cost))| {
            let mut row = vec![Cell::text(*name), Cell::text(if index < 6 { "yes" } else { "no" })];
            row.extend(SIZES.iter().map(|m| {
                if index == 5 && *m > 50.0 {
                    return Cell::missing();
                }
                let cell =
                    Cell::estimate(floor + cost / m, 0.01 + 0.04 / m, if index == 4 { 38 } else { 40 });
                if index == 0 { cell.best() } else { cell }
            }));
            row.push(Cell::number(4_417.0 + 1_000.0 * index as f64));
            row
        })
        .collect();
    StudyTable {
        id: "scores".to_owned(),
        heading: "RMSE on target tasks of five examples".to_owned(),
        columns,
        rows,
        caption: "Mean over models; lower is better. BMAML was not run with 100 examples.".to_owned(),
        csv: Some("scores.csv".to_owned()),
    }
}

fn claim(statement: &str, effect: f64, standard_error: Option<f64>, verdict: ClaimVerdict) -> ClaimRow {
    ClaimRow {
        statement: statement.to_owned(),
        test: "Difference of RMSE on the same target tasks, paired by seed; positive favours the claim."
            .to_owned(),
        effect,
        standard_error,
        observations: 40,
        verdict,
        detail: String::new(),
    }
}

fn claims() -> Vec<ClaimRow> {
    let mut claims = vec![
        claim(
            "Training with smaller subsets (PACMAML) beats PACOH where target tasks are small.",
            0.113,
            Some(0.021),
            ClaimVerdict::Supported,
        ),
        claim(
            "The advantage vanishes as training tasks become as small as target tasks.",
            -0.034,
            Some(0.012),
            ClaimVerdict::NotSupported,
        ),
        claim(
            "Bayesian methods are better calibrated than MAML.",
            0.004,
            Some(0.006),
            ClaimVerdict::Undecided,
        ),
        claim("The bound holds.", 0.0, None, ClaimVerdict::Supported),
    ];
    claims[2].detail =
        "Calibration error of MAML needs a noise model; the learned noise was used.".to_owned();
    claims[3].test = "Fraction of 40 draws whose risk exceeds the bound; at most 5% are allowed.".to_owned();
    claims
}

fn calibration_panels() -> Vec<StudyFigure> {
    [("PACMAML", 0.04), ("PACOH", -0.05), ("BMAML", -0.12)]
        .map(|(method, bend)| {
            let levels = || (1..20).map(|i| 0.05 * f64::from(i));
            let series = [5.0, 100.0].map(|m: f64| CalibrationSeries {
                name: format!("mᵢ = {m}"),
                points: levels()
                    .map(|p| (p, p + bend * (5.0 / m).sqrt() * (std::f64::consts::TAU * p).sin()))
                    .collect(),
            });
            StudyFigure::new(
                format!("calibration-{}", method.to_lowercase()),
                method,
                Chart::Calibration(CalibrationKind::Quantile, series.to_vec()),
                "Honest uncertainty lies on the diagonal.",
            )
        })
        .to_vec()
}

/// The sample.
pub(crate) fn study() -> StudyReport {
    let mut noise = Noise(11);
    let fact = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let sizes = [5.0, 10.0, 30.0].map(|target| {
        StudyFigure::new(
            format!("errors-{target}"),
            format!("Target tasks of {target} examples"),
            error_chart(4, target, &mut noise),
            "The gap between PACMAML and PACOH should close from left to right.",
        )
    });
    let mut both = before_and_after("PACMAML", 0.1, &mut noise);
    both.extend(before_and_after("PACOH", 0.5, &mut noise));
    StudyReport {
        title: "Sinusoid study: which method for which task size".to_owned(),
        subtitle: "Seven methods and a floor were trained on 20 tasks of 5 to 100 examples each, with 40 seeds a setting, \
                   and scored on 20 new tasks of 5, 10 and 30 examples."
            .to_owned(),
        command: Some("pacmeta study sinusoid --models 40 --out runs/sinusoid-study".to_owned()),
        facts: vec![
            fact("Models", "4,800"),
            fact("Methods", "8"),
            fact("Task sizes", "5, 10, 30, 50, 100"),
            fact("Time", "3 h 12 min"),
            fact("Seeds", "1 to 40"),
            fact("Version", "0.1.0"),
        ],
        sections: vec![
            StudySection::new("claims", "Claims of the paper")
                .paragraph("Each claim is tested on the numbers below; a verdict needs two standard errors.")
                .with(claims()),
            StudySection::new("errors", "Error against examples per task")
                .paragraph("All methods saw the same tasks. The horizontal axis is the size of training tasks; target tasks \
                            stay small.")
                .with(StudyFigure::new(
                    "errors-all",
                    "All methods",
                    error_chart(8, 5.0, &mut noise),
                    "Lower is better. Look for lines that cross: a method that wins with many examples may lose with few.",
                ))
                .with(Block::Text("The same for the four best, by the size of target tasks.".to_owned()))
                .with(sizes.to_vec())
                .with(score_table()),
            StudySection::new("uncertainty", "Uncertainty").with(calibration_panels()),
            StudySection::new("tasks", "One task, before and after adaptation").with(both),
            StudySection::new("bound", "The bound, term by term").with(StudyFigure::new(
                "bound-terms",
                "",
                bounds(),
                "The term that shrinks most from top to bottom is what more examples buy.",
            )),
        ],
        notes: vec!["Temperatures were chosen by leaving training tasks out, never on target tasks.".to_owned()],
        files: vec![FileLink {
            name: "scores.csv".to_owned(),
            href: "scores.csv".to_owned(),
            what: "One row a model and target task.".to_owned(),
        }],
    }
}
