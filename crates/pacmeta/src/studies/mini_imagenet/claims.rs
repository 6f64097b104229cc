//! The paper's claims on pictures, each put to a test on this study's test tasks.
//!
//! All models of a study are scored on the same test tasks, so two of them are compared by the differences of their accuracies
//! task by task. There is one model of each kind: the standard error is over test tasks, and says nothing of what another
//! training run would have given. A claim is supported where the difference is above its bound in a one-sided test at 5%
//! (Student), not supported where it is below, and undecided otherwise. A claim of several comparisons is supported where each
//! is, and not supported where one is not, after Bonferroni's correction.

use super::ModelRun;
use super::plan::Model;
use crate::classification::scores::mean_and_error;
use crate::config::ClassificationMethodKind::{self, Bmaml, Fomaml, Maml, Pacmaml, Pacoh};
use crate::images::ImageScores;
use crate::report::{ClaimRow, ClaimVerdict};
use crate::studies::claims::LEVEL;
use crate::studies::summary::student_quantile;

/// A claim of the paper: some methods lie above others by more than a margin.
#[derive(Debug, Clone, Copy)]
pub struct ImageClaim {
    /// The claim in words.
    pub statement: &'static str,
    /// The better and the worse method of each comparison.
    pub pairs: &'static [(ClassificationMethodKind, ClassificationMethodKind)],
    /// By how much, as a fraction.
    pub margin: f64,
}

/// What the paper says of its Table 1.
const CLAIMS: [ImageClaim; 5] = [
    ImageClaim {
        statement: "PACMAML, of first order, is at least as good as MAML (within one point)",
        pairs: &[(Pacmaml, Maml)],
        margin: -0.01,
    },
    ImageClaim { statement: "PACMAML is better than FOMAML", pairs: &[(Pacmaml, Fomaml)], margin: 0.0 },
    ImageClaim { statement: "MAML is better than FOMAML", pairs: &[(Maml, Fomaml)], margin: 0.0 },
    ImageClaim {
        statement: "PACOH is far below the methods that keep some pictures from the base learner (by five points)",
        pairs: &[(Fomaml, Pacoh), (Maml, Pacoh), (Pacmaml, Pacoh)],
        margin: 0.05,
    },
    ImageClaim {
        statement: "BMAML is as poor: five points below FOMAML, MAML and PACMAML",
        pairs: &[(Fomaml, Bmaml), (Maml, Bmaml), (Pacmaml, Bmaml)],
        margin: 0.05,
    },
];

/// The mean difference of two models over common test tasks.
struct Difference {
    pair: (ClassificationMethodKind, ClassificationMethodKind),
    mean: f64,
    standard_error: f64,
    tasks: usize,
}

impl Difference {
    fn new(
        pair: (ClassificationMethodKind, ClassificationMethodKind),
        better: &ImageScores,
        worse: &ImageScores,
    ) -> Option<Self> {
        let tasks = better.per_task.len();
        if tasks < 2 || tasks != worse.per_task.len() {
            return None;
        }
        let differences: Vec<f64> =
            better.per_task.iter().zip(&worse.per_task).map(|(better, worse)| better - worse).collect();
        let (mean, standard_error) = mean_and_error(&differences);
        Some(Self { pair, mean, standard_error: standard_error?, tasks })
    }

    fn verdict(&self, margin: f64, level: f64) -> ClaimVerdict {
        let reach = student_quantile(1.0 - level, (self.tasks - 1) as f64) * self.standard_error;
        if self.mean - reach > margin {
            ClaimVerdict::Supported
        } else if self.mean + reach < margin {
            ClaimVerdict::NotSupported
        } else {
            ClaimVerdict::Undecided
        }
    }

    fn in_words(&self) -> String {
        let (better, worse) = self.pair;
        format!(
            "{} - {} = {:+.2} points, standard error {:.2}",
            better.title(),
            worse.title(),
            100.0 * self.mean,
            100.0 * self.standard_error
        )
    }
}

/// The claims for one m_i, as far as their models are scored.
pub fn claims(runs: &[ModelRun], examples: usize) -> Vec<ClaimRow> {
    let scores = |method| {
        let wanted = Model { method, examples };
        let run = runs.iter().find(|run| run.model == wanted)?;
        run.run.as_ref()?.scores.as_ref()
    };
    let claim = |claim: &ImageClaim| {
        let differences: Vec<Difference> = claim
            .pairs
            .iter()
            .map(|&pair| Difference::new(pair, scores(pair.0)?, scores(pair.1)?))
            .collect::<Option<_>>()?;
        let weakest = differences.iter().min_by(|a, b| a.mean.total_cmp(&b.mean))?;
        let corrected = LEVEL / differences.len() as f64;
        let all = differences.iter().all(|d| d.verdict(claim.margin, LEVEL) == ClaimVerdict::Supported);
        let some =
            differences.iter().any(|d| d.verdict(claim.margin, corrected) == ClaimVerdict::NotSupported);
        let in_paper = claim.pairs.iter().filter_map(|&(better, worse)| {
            let number = |method| Model { method, examples }.accuracy_in_paper();
            Some(format!("{} - {} {:+.1}", better.title(), worse.title(), number(better)? - number(worse)?))
        });
        let in_paper = in_paper.collect::<Vec<_>>().join(", ");
        Some(ClaimRow {
            statement: format!("{}, mᵢ = {examples}", claim.statement),
            test: format!(
                "the smallest difference of accuracies on the same test tasks, in points, against {:+.0}",
                100.0 * claim.margin
            ),
            effect: 100.0 * weakest.mean,
            standard_error: Some(100.0 * weakest.standard_error),
            observations: weakest.tasks,
            verdict: match (all, some) {
                (true, _) => ClaimVerdict::Supported,
                (_, true) => ClaimVerdict::NotSupported,
                _ => ClaimVerdict::Undecided,
            },
            detail: format!(
                "{}. In the paper: {}.",
                differences.iter().map(Difference::in_words).collect::<Vec<_>>().join("; "),
                if in_paper.is_empty() { "not reported".to_owned() } else { in_paper }
            ),
        })
    };
    CLAIMS.iter().filter_map(claim).collect()
}
