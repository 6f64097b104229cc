//! The paper's claims on texts, each put to a test on this study's draws.
//!
//! All models are scored on the same draws of the same tasks, so two of them are compared by the differences of their accuracies draw by
//! draw. The twelve tasks are given, their draws are independent samples: with d_t the mean difference on task t over n_t draws and s_t its
//! standard error, the mean over T tasks is sum d_t / T with standard error sqrt(sum s_t^2) / T, and Student's t has the degrees of
//! freedom of Welch and Satterthwaite, (sum s_t^2)^2 / sum (s_t^4 / (n_t - 1)). Where several k are compared at once, a draw counts with its
//! mean over them.
//!
//! There is one model of each kind: standard errors say nothing of what another training run would have given. A claim is
//! supported where the difference is above zero in a one-sided test at 5%, not supported where it is below, and undecided otherwise. A claim
//! of several comparisons is supported where each is, and not supported where one is not, after Bonferroni's correction.

use std::collections::BTreeMap;

use super::plan::LeopardModel::{self, Bmaml, Maml, Pacmaml, Pacoh};
use super::scores::Tests;
use super::{LeopardScores, ModelRun, paper};
use crate::classification::scores::mean_and_error;
use crate::report::{ClaimRow, ClaimVerdict};
use crate::studies::claims::LEVEL;
use crate::studies::summary::{student_probability, student_quantile};
use crate::text::TextScores;

/// The mean difference of two models over common draws, as a fraction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// The mean over tasks.
    pub mean: f64,
    /// Its standard error over draws.
    pub standard_error: f64,
    /// The degrees of freedom of Student's t.
    pub degrees_of_freedom: f64,
    /// Draws of all tasks.
    pub draws: usize,
}

impl Difference {
    /// Compares two models on tasks and numbers of shots; none if they have fewer than two common draws of some task.
    pub fn new(better: &TextScores, worse: &TextScores, tasks: &[&str], shots: &[usize]) -> Option<Self> {
        let (mut sum, mut squares, mut fourths, mut draws) = (0.0, 0.0, 0.0, 0);
        for task in tasks {
            let differences = paired(better, worse, task, shots);
            if differences.len() < 2 {
                return None;
            }
            let (mean, error) = mean_and_error(&differences);
            let square = error?.powi(2);
            sum += mean;
            squares += square;
            fourths += square * square / (differences.len() - 1) as f64;
            draws += differences.len();
        }
        let count = tasks.len() as f64;
        // Equal differences everywhere: no variance, and any degrees of freedom give the same.
        let degrees_of_freedom =
            if fourths > 0.0 { squares * squares / fourths } else { (draws - tasks.len()) as f64 };
        (!tasks.is_empty()).then_some(Self {
            mean: sum / count,
            standard_error: squares.sqrt() / count,
            degrees_of_freedom,
            draws,
        })
    }

    /// The probability of such a mean or a larger one if there were no difference.
    pub fn p_value(&self) -> f64 {
        match (self.standard_error > 0.0, self.mean.total_cmp(&0.0)) {
            (true, _) => 1.0 - student_probability(self.mean / self.standard_error, self.degrees_of_freedom),
            (false, std::cmp::Ordering::Greater) => 0.0,
            _ if self.mean == 0.0 => 0.5,
            _ => 1.0,
        }
    }

    fn verdict(&self, level: f64) -> ClaimVerdict {
        let reach = student_quantile(1.0 - level, self.degrees_of_freedom) * self.standard_error;
        if self.mean - reach > 0.0 {
            ClaimVerdict::Supported
        } else if self.mean + reach < 0.0 {
            ClaimVerdict::NotSupported
        } else {
            ClaimVerdict::Undecided
        }
    }
}

/// The differences on a task, one a draw that both models have for every k.
fn paired(better: &TextScores, worse: &TextScores, task: &str, shots: &[usize]) -> Vec<f64> {
    let of = |scores: &TextScores| -> BTreeMap<(usize, usize), f64> {
        let draws = scores.draws.iter().filter(|draw| draw.task == task && shots.contains(&draw.shots));
        draws.map(|draw| ((draw.draw, draw.shots), draw.accuracy)).collect()
    };
    let (ours, theirs) = (of(better), of(worse));
    let mut by_draw: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (&(draw, k), accuracy) in &ours {
        if let Some(other) = theirs.get(&(draw, k)) {
            by_draw.entry(draw).or_default().push(accuracy - other);
        }
    }
    let whole = by_draw.values().filter(|differences| differences.len() == shots.len());
    whole.map(|differences| differences.iter().sum::<f64>() / differences.len() as f64).collect()
}

/// The order that the paper finds, pair by pair.
pub(super) const ORDER: [(LeopardModel, LeopardModel); 3] = [(Pacmaml, Pacoh), (Pacoh, Maml), (Maml, Bmaml)];
/// What PACMAML is better than.
const OTHERS: [LeopardModel; 3] = [Pacoh, Maml, Bmaml];

/// The claims, as far as their models are scored: the order for all k together, and PACMAML as the best for every single k.
pub fn claims(runs: &[ModelRun]) -> Vec<ClaimRow> {
    let scores = |model| runs.iter().find(|run| run.model == model)?.scores.as_ref();
    let order = ORDER.iter().filter_map(|&pair| order_claim(pair, scores(pair.0)?, scores(pair.1)?));
    let mut rows: Vec<ClaimRow> = order.collect();
    rows.extend(best_claim(&|model| scores(model)));
    rows
}

fn order_claim(
    pair: (LeopardModel, LeopardModel),
    better: &LeopardScores,
    worse: &LeopardScores,
) -> Option<ClaimRow> {
    let shots = better.scores.shots();
    let of = |tests: Tests, shots: &[usize]| {
        Difference::new(&better.scores, &worse.scores, &better.tasks(tests), shots)
    };
    let all = of(Tests::All, &shots)?;
    let mut parts: Vec<String> = Vec::new();
    for &k in &shots {
        parts.extend(of(Tests::All, &[k]).map(|difference| format!("k = {k}: {}", in_words(&difference))));
    }
    let original = better.tasks(Tests::Original);
    if original.len() < better.targets.len() {
        let words = of(Tests::Original, &shots).map(|difference| in_words(&difference));
        parts.extend(
            words.map(|words| format!("the {} tasks with original test sets: {words}", original.len())),
        );
    }
    let in_paper: Vec<String> = shots
        .iter()
        .filter_map(|&k| Some(format!("{:+.2}", paper::average(pair.0, k)? - paper::average(pair.1, k)?)))
        .collect();
    Some(ClaimRow {
        statement: format!("{} is better than {}", pair.0.title(), pair.1.title()),
        test: format!(
            "the mean difference of accuracies on the same draws, in points, over {} tasks and k = {} (p = {:.3})",
            better.targets.len(),
            list(&shots),
            all.p_value()
        ),
        effect: 100.0 * all.mean,
        standard_error: Some(100.0 * all.standard_error),
        observations: all.draws,
        verdict: all.verdict(LEVEL),
        detail: format!(
            "{}. In the paper: {}.",
            parts.join("; "),
            if in_paper.is_empty() { "not reported".to_owned() } else { in_paper.join(", ") }
        ),
    })
}

fn best_claim<'a>(scores: &dyn Fn(LeopardModel) -> Option<&'a LeopardScores>) -> Option<ClaimRow> {
    let ours = scores(Pacmaml)?;
    let mut comparisons = Vec::new();
    for &k in &ours.scores.shots() {
        for other in OTHERS {
            let theirs = scores(other)?;
            let difference = Difference::new(&ours.scores, &theirs.scores, &ours.tasks(Tests::All), &[k])?;
            comparisons.push((k, other, difference));
        }
    }
    let corrected = LEVEL / comparisons.len() as f64;
    let all = comparisons.iter().all(|(_, _, d)| d.verdict(LEVEL) == ClaimVerdict::Supported);
    let some = comparisons.iter().any(|(_, _, d)| d.verdict(corrected) == ClaimVerdict::NotSupported);
    let (k, other, weakest) = comparisons.iter().min_by(|a, b| a.2.mean.total_cmp(&b.2.mean))?;
    Some(ClaimRow {
        statement: "PACMAML is the best of the four for every k".to_owned(),
        test: "the smallest of its differences to MAML, BMAML and PACOH for one k, in points".to_owned(),
        effect: 100.0 * weakest.mean,
        standard_error: Some(100.0 * weakest.standard_error),
        observations: weakest.draws,
        verdict: match (all, some) {
            (true, _) => ClaimVerdict::Supported,
            (_, true) => ClaimVerdict::NotSupported,
            _ => ClaimVerdict::Undecided,
        },
        detail: format!(
            "The smallest is that to {} at k = {k}. All: {}.",
            other.title(),
            comparisons
                .iter()
                .map(|(k, other, difference)| format!(
                    "{} at k = {k} {:+.2}",
                    other.title(),
                    100.0 * difference.mean
                ))
                .collect::<Vec<_>>()
                .join(", ")
        ),
    })
}

fn in_words(difference: &Difference) -> String {
    format!("{:+.2} ± {:.2}", 100.0 * difference.mean, 100.0 * difference.standard_error)
}

pub(super) fn list(numbers: &[usize]) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}
