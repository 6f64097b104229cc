//! A report with realistic numbers for tests: a noisy training curve, a real (small) GP posterior, bounds with a
//! negative term, floors, calibration.

use super::{
    BoundBar, BoundPanel, BoundTerm, CalibrationKind, CalibrationSeries, CurveSeries, FileLink, GridPoint,
    ObservedPanel, PredictionPanel, RunReport, ScoreRow,
};

/// Numbers that look random and are always the same.
pub(super) struct Noise(pub(super) u64);

impl Noise {
    pub(super) fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 11) as f64) / (1u64 << 53) as f64
    }

    pub(super) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// Posterior of a GP with mean `prior` and kernel 0.5 exp(-(x - x')^2 / (2 * 1.3^2)) at one input.
pub(super) fn posterior(x: f64, support: &[(f64, f64)], prior: impl Fn(f64) -> f64, noise: f64) -> GridPoint {
    let kernel = |a: f64, b: f64| 0.5 * (-(a - b) * (a - b) / (2.0 * 1.69)).exp();
    let n = support.len();
    // Gauss-Jordan on [K + noise I | residual, k*].
    let mut rows: Vec<Vec<f64>> = (0..n)
        .map(|i| {
            let mut row: Vec<f64> = (0..n)
                .map(|j| kernel(support[i].0, support[j].0) + if i == j { noise } else { 0.0 })
                .collect();
            row.extend([support[i].1 - prior(support[i].0), kernel(support[i].0, x)]);
            row
        })
        .collect();
    for pivot in 0..n {
        let scale = rows[pivot][pivot];
        rows[pivot].iter_mut().for_each(|v| *v /= scale);
        let base = rows[pivot].clone();
        for (index, row) in rows.iter_mut().enumerate().filter(|(index, _)| *index != pivot) {
            let factor = row[pivot];
            assert!(index < n);
            row.iter_mut().zip(&base).for_each(|(v, b)| *v -= factor * b);
        }
    }
    let cross = |i: usize| kernel(support[i].0, x);
    let mean = prior(x) + (0..n).map(|i| cross(i) * rows[i][n]).sum::<f64>();
    let variance = 0.5 - (0..n).map(|i| cross(i) * rows[i][n + 1]).sum::<f64>();
    GridPoint { x, mean, std: (variance.max(0.0) + noise).sqrt() }
}

fn panel(index: usize, noise: &mut Noise) -> PredictionPanel {
    let (amplitude, shift, slope) =
        (0.7 + 0.6 * noise.uniform(), 0.1 * noise.normal(), 0.5 + 0.2 * noise.normal());
    let level = 5.0 + 0.1 * noise.normal();
    let truth = move |x: f64| slope * x + amplitude * (1.5 * (x - shift)).sin() + level;
    let prior = |x: f64| 0.5 * x + 0.9 * (1.5 * x).sin() + 5.0;
    let mut draw = |count: usize| -> Vec<(f64, f64)> {
        (0..count)
            .map(|_| {
                let x = 10.0 * noise.uniform() - 5.0;
                (x, truth(x) + 0.1 * noise.normal())
            })
            .collect()
    };
    let (support, query) = (draw(5), draw(40));
    let xs = || (0..=100).map(|i| -5.0 + 0.1 * f64::from(i));
    PredictionPanel {
        title: format!("Target task {index}"),
        caption: if index == 1 {
            "A task with a slope that the training tasks rarely had.".to_owned()
        } else {
            String::new()
        },
        x_label: "x".to_owned(),
        y_label: "y".to_owned(),
        grid: xs().map(|x| posterior(x, &support, prior, 0.02)).collect(),
        prior: Some(xs().map(|x| posterior(x, &[], prior, 0.02)).collect()),
        support,
        query,
        truth: Some(xs().map(|x| (x, truth(x))).collect()),
    }
}

fn curve(name: &str, end: f64, noise: &mut Noise) -> CurveSeries {
    let points = (1..=8000)
        .map(|i| {
            let i = f64::from(i);
            (i, end + 1.6 * (-i / 420.0).exp() + 0.35 * (-i / 2600.0).exp() + 0.09 * noise.normal())
        })
        .collect();
    CurveSeries { name: name.to_owned(), points }
}

fn bar(name: &str, values: [f64; 5]) -> BoundBar {
    let names = ["empirical risk", "hyper-posterior KL", "task KL", "confidence", "moment terms Ψ"];
    let terms =
        names.iter().zip(values).map(|(name, value)| BoundTerm { name: (*name).to_owned(), value }).collect();
    BoundBar { name: name.to_owned(), terms, total: values.iter().sum() }
}

fn score(name: &str, note: &str, numbers: [f64; 4]) -> ScoreRow {
    ScoreRow {
        name: name.to_owned(),
        note: (!note.is_empty()).then(|| note.to_owned()),
        rmse: numbers[0],
        rmse_standard_error: numbers[1],
        log_likelihood: numbers[2].is_finite().then_some(numbers[2]),
        calibration_error: numbers[3].is_finite().then_some(numbers[3]),
        coverage95: None,
        tasks: 20,
    }
}

/// The sample.
pub(crate) fn report() -> RunReport {
    let mut noise = Noise(7);
    let fact = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let levels = || (1..20).map(|i| 0.05 * f64::from(i));
    let file = |name: &str, what: &str| FileLink {
        name: name.to_owned(),
        href: name.to_owned(),
        what: what.to_owned(),
    };
    RunReport {
        title: "Sinusoid: PACMAML with a Gaussian-process prior".to_owned(),
        subtitle: "A prior was learned from 20 tasks of 50 examples and adapted to 20 new tasks of 5 examples each. \
                   Predictions were scored on 100 further examples of every new task."
            .to_owned(),
        command: Some("pacmeta train configs/sinusoid.toml --set method.alpha=0.2 --seed 1 --out runs/sinusoid".to_owned()),
        facts: vec![
            fact("Method", "PACMAML"),
            fact("Training tasks", "20"),
            fact("Examples per task", "50, adapt to 5"),
            fact("Iterations", "8,000"),
            fact("Temperatures", "β/m = 100, α/β = 0.2"),
            fact("Time", "1 min 12 s"),
            fact("Seed", "1"),
            fact("Version", "0.1.0"),
        ],
        curve: vec![curve("training tasks", 0.62, &mut noise), curve("left-out tasks", 0.86, &mut noise)],
        curve_label: "objective W₂ per task".to_owned(),
        scores: vec![
            score("PACMAML", "learned prior, adapted", [0.309, 0.012, 0.033, 0.071]),
            score("PACOH", "learned prior, adapted", [0.348, 0.016, -0.124, 0.094]),
            score("MAML", "learned mean, adapted", [0.391, 0.021, f64::NAN, f64::NAN]),
            score("Prior mean", "floor: no adaptation", [0.702, 0.043, -1.206, 0.188]),
            score("Plain GP", "floor: support points only", [1.083, 0.051, -1.611, 0.142]),
        ],
        calibration: vec![
            CalibrationSeries {
                name: "PACMAML".to_owned(),
                points: levels().map(|p| (p, p + 0.05 * (std::f64::consts::TAU * p).sin())).collect(),
            },
            CalibrationSeries {
                name: "Plain GP".to_owned(),
                points: levels().map(|p| (p, p - 0.14 * (std::f64::consts::TAU * p).sin())).collect(),
            },
        ],
        calibration_kind: CalibrationKind::Quantile,
        predictions: (1..=4).map(|i| panel(i, &mut noise)).collect(),
        observed: vec![ObservedPanel {
            title: "Target task 1".to_owned(),
            caption: String::new(),
            points: (0..60)
                .map(|_| {
                    let observed = 5.0 + 2.0 * noise.normal();
                    (observed, observed + 0.35 * noise.normal(), 0.25 + 0.3 * noise.uniform())
                })
                .collect(),
        }],
        guarantee: None,
        bound: Some(BoundPanel {
            title: "The bound, term by term".to_owned(),
            explanation: "With probability at least 95% over the draw of tasks and examples, the expected squared error on a \
                          new task of 5 examples is at most the total. Assumes a squared loss with bounded second moment."
                .to_owned(),
            bars: vec![
                bar("Theorem 4, subsampled", [0.412, 0.094, 0.187, 0.061, 0.142]),
                bar("Theorem 3, two environments", [0.236, 0.094, 0.241, 0.061, 0.142]),
                bar("Gap as a difference", [0.512, 0.094, 0.241, 0.061, -0.22]),
            ],
            }),
        notes: vec![
            "Temperatures were chosen by leaving tasks out: of six values of α/β, 0.2 had the highest log-likelihood.".to_owned(),
            "The final iterate is scored, not the best one on target tasks.".to_owned(),
        ],
        files: vec![
            file("config.toml", "Every setting of this run, defaults included."),
            file("prior.safetensors", "The learned prior; load it to adapt to new tasks."),
            file("metrics.jsonl", "One line an iteration: objective terms, times."),
        ],
    }
}
