//! Claims about a study, each decided by a test on its data.
//!
//! A measured quantity is a table `values[set][task]` ([`Measured`]): one row for each meta-training set, averaged over
//! seeds, one column for each target task, or a single column for what has one value a set (terms of a bound). Two
//! quantities are compared by their paired differences, whose mean and standard error come from
//! [`crossed`]: what two methods share (the sets, the tasks) cancels.
//!
//! Every claim has one of three verdicts. *Supported*: the data would look like this in at most 5% of studies if the
//! claim were false. *Not supported*: in at most 5% if it were true. *Undecided*: neither. Claims of several parts keep
//! these levels:
//!
//! * "below all of them" ([`lowest`], [`below_at_every`]) is supported when *every* comparison is, each at 5% (an
//!   intersection-union test: the weakest comparison decides, and needs no correction), and not supported when *some*
//!   comparison goes the other way after Holm's correction for having looked at all;
//! * claims about curves are in [`rises_again`], [`rises_or_levels_off`], [`u_shaped`], [`keeps_falling`], [`grows`],
//!   [`falls`] and [`tend_to_fall`].
//!
//! A value that is not finite means that something failed. Failures are not random, so a claim that rests on a table
//! with any of them is undecided, and says so; so is one with a single set.

mod curves;

use serde::{Deserialize, Serialize};

use super::summary::{Crossed, crossed};
use crate::error::{Error, Result};
use crate::report::brief;

pub use curves::{falls, grows, keeps_falling, rises_again, rises_or_levels_off, tend_to_fall, u_shaped};

/// The probability of a wrong verdict that is accepted, on either side.
pub const LEVEL: f64 = 0.05;

/// What the data say of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The data would be surprising if the claim were false.
    Supported,
    /// The data would be surprising if the claim were true.
    NotSupported,
    /// The data do not tell.
    Undecided,
}

/// A claim, the test it was put to, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// A short name that does not change, e.g. `pacmaml-lowest`.
    pub id: String,
    /// The claim in words.
    pub statement: String,
    /// The test in words.
    pub test: String,
    /// The difference that decided (its detail says of what); none if nothing could be computed.
    pub effect: Option<f64>,
    /// Its standard error; none with fewer than two sets.
    pub standard_error: Option<f64>,
    /// How many paired differences (sets x tasks) it is the mean of.
    pub observations: usize,
    /// What the data say.
    pub verdict: Verdict,
    /// The numbers behind the verdict.
    pub detail: String,
}

/// The result of a test, before it is given to a [`Claim`].
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The test in words.
    pub test: String,
    /// The mean that decided.
    pub effect: Option<f64>,
    /// Its standard error.
    pub standard_error: Option<f64>,
    /// How many values it is the mean of.
    pub observations: usize,
    /// What the data say.
    pub verdict: Verdict,
    /// The numbers behind the verdict.
    pub detail: String,
}

impl Outcome {
    /// The claim that this is the outcome of.
    pub fn claim(self, id: impl Into<String>, statement: impl Into<String>) -> Claim {
        Claim {
            id: id.into(),
            statement: statement.into(),
            test: self.test,
            effect: self.effect,
            standard_error: self.standard_error,
            observations: self.observations,
            verdict: self.verdict,
            detail: self.detail,
        }
    }
}

/// One quantity: a method at a setting, or a point of a curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// What it is called in details, e.g. `pacmaml` or `m_i = 30`.
    pub label: String,
    /// `values[set][task]`.
    pub values: Vec<Vec<f64>>,
}

impl Measured {
    /// A quantity measured on sets and tasks.
    pub fn new(label: impl Into<String>, values: Vec<Vec<f64>>) -> Self {
        Self { label: label.into(), values }
    }

    /// A quantity with one value for each set.
    pub fn per_set(label: impl Into<String>, values: &[f64]) -> Self {
        Self::new(label, values.iter().map(|&value| vec![value]).collect())
    }
}

/// Whether `left` is below `right`, by their paired differences.
///
/// Supported if the mean difference plus Student's one-sided 95% quantile of standard errors is below 0, not supported
/// if the mean minus it is above 0.
///
/// # Errors
///
/// Tables of different shapes, or without values.
pub fn less(left: &Measured, right: &Measured) -> Result<Outcome> {
    let comparison = Comparison::new(left, right)?;
    let verdict = if comparison.failed() {
        Verdict::Undecided
    } else if comparison.p_below() < LEVEL {
        Verdict::Supported
    } else if comparison.p_above() < LEVEL {
        Verdict::NotSupported
    } else {
        Verdict::Undecided
    };
    let detail = comparison.describe();
    Ok(comparison.outcome("paired difference, one-sided Student test at 5%", verdict, detail))
}

/// Whether one quantity is below each of the others.
///
/// # Errors
///
/// No others; tables of different shapes, or without values.
pub fn lowest(candidate: &Measured, others: &[Measured]) -> Result<Outcome> {
    every(others.iter().map(|other| Comparison::new(candidate, other)).collect::<Result<_>>()?)
}

/// Whether the left quantity is below the right one in every pair (at every m_i and beta, say).
///
/// # Errors
///
/// No pairs; tables of different shapes within a pair, or without values.
pub fn below_at_every(pairs: &[(Measured, Measured)]) -> Result<Outcome> {
    every(pairs.iter().map(|(left, right)| Comparison::new(left, right)).collect::<Result<_>>()?)
}

/// `p = 0.032`, or that it is very small.
fn probability(p: f64) -> String {
    if p < 1e-4 { "p < 0.0001".to_owned() } else { format!("p = {}", brief((p * 1e4).round() / 1e4)) }
}

/// The intersection-union test that every difference is below 0.
fn every(comparisons: Vec<Comparison>) -> Result<Outcome> {
    let test = format!(
        "intersection-union over {} differences: supported if each is below 0 at 5%, not supported if some is \
         above 0 (Holm)",
        comparisons.len()
    );
    let weakest = most(&comparisons, Comparison::p_below)?;
    let above = holm(&comparisons.iter().map(Comparison::p_above).collect::<Vec<_>>());
    let below = comparisons.iter().filter(|comparison| comparison.p_below() < LEVEL).count();
    let verdict = if comparisons.iter().any(Comparison::failed) {
        Verdict::Undecided
    } else if above.contains(&true) {
        Verdict::NotSupported
    } else if below == comparisons.len() {
        Verdict::Supported
    } else {
        Verdict::Undecided
    };
    // The largest p-value for "below" is also the smallest for "above": one comparison decides either way.
    let detail = format!(
        "{below} of {} differences are below 0 at 5%, {} above 0 (Holm); the weakest: {}{}",
        comparisons.len(),
        above.iter().filter(|&&above| above).count(),
        weakest.describe(),
        failures(&comparisons)
    );
    Ok(weakest.outcome(&test, verdict, detail))
}

/// A mean of paired differences (or of another contrast of tables), with its name.
#[derive(Debug, Clone)]
struct Comparison {
    label: String,
    estimate: Crossed,
}

impl Comparison {
    /// `left` minus `right`.
    fn new(left: &Measured, right: &Measured) -> Result<Self> {
        let label = format!("{} minus {}", left.label, right.label);
        Self::contrast(label, &[(1.0, left), (-1.0, right)])
    }

    /// A weighted sum of tables of one shape.
    fn contrast(label: String, terms: &[(f64, &Measured)]) -> Result<Self> {
        let shape = |measured: &Measured| measured.values.iter().map(Vec::len).collect::<Vec<_>>();
        let Some((_, first)) = terms.first() else {
            return Err(Error::input("a comparison", "has nothing to compare"));
        };
        if let Some((_, other)) = terms.iter().find(|(_, other)| shape(other) != shape(first)) {
            return Err(Error::input(
                format!("the comparison `{label}`"),
                format!(
                    "`{}` is measured on {} sets of {:?} tasks, `{}` on {} of {:?}; expected the same sets and tasks",
                    first.label,
                    first.values.len(),
                    shape(first),
                    other.label,
                    other.values.len(),
                    shape(other)
                ),
            ));
        }
        let values: Vec<Vec<f64>> = (0..first.values.len())
            .map(|set| {
                (0..first.values[set].len())
                    .map(|task| terms.iter().map(|(weight, table)| weight * table.values[set][task]).sum())
                    .collect()
            })
            .collect();
        Ok(Self { label, estimate: crossed(&values)? })
    }

    /// The p-value for "below 0"; 1, which supports nothing, where there is none.
    fn p_below(&self) -> f64 {
        self.estimate.p_below().unwrap_or(1.0)
    }

    /// The p-value for "above 0"; 1 where there is none.
    fn p_above(&self) -> f64 {
        self.estimate.p_above().unwrap_or(1.0)
    }

    fn failed(&self) -> bool {
        self.estimate.failed > 0
    }

    fn describe(&self) -> String {
        let Crossed { mean, standard_error, degrees_of_freedom, sets, tasks, failed } = self.estimate;
        let mean = mean.map_or("no value".to_owned(), brief);
        let error = match (standard_error, degrees_of_freedom) {
            (Some(error), Some(degrees)) => {
                let (below, above) = (self.p_below(), self.p_above());
                let (side, p) = if below <= above { ("below", below) } else { ("above", above) };
                format!(
                    "standard error {}, {degrees:.1} degrees of freedom, {} for {side} 0",
                    brief(error),
                    probability(p)
                )
            }
            _ => "no standard error from fewer than two sets".to_owned(),
        };
        let failed = if failed > 0 {
            format!(", {failed} values failed and their sets are left out")
        } else {
            String::new()
        };
        format!("{}: {mean} ({error}; sets {sets}, tasks {tasks}{failed})", self.label)
    }

    fn outcome(&self, test: &str, verdict: Verdict, detail: String) -> Outcome {
        Outcome {
            test: test.to_owned(),
            effect: self.estimate.mean,
            standard_error: self.estimate.standard_error,
            observations: self.estimate.observations(),
            verdict,
            detail,
        }
    }
}

/// A note on comparisons with failed values, which leave a claim undecided.
fn failures(comparisons: &[Comparison]) -> String {
    match comparisons.iter().filter(|comparison| comparison.failed()).count() {
        0 => String::new(),
        count => {
            format!("; undecided because {count} of {} comparisons have failed values", comparisons.len())
        }
    }
}

/// The comparison with the largest p-value.
fn most(comparisons: &[Comparison], p: impl Fn(&Comparison) -> f64) -> Result<&Comparison> {
    comparisons
        .iter()
        .max_by(|left, right| p(left).total_cmp(&p(right)))
        .ok_or_else(|| Error::input("a claim", "has nothing to compare; expected at least one comparison"))
}

/// Which hypotheses Holm's step-down procedure rejects: the smallest p-value is compared with 5% / count, the next with
/// 5% / (count - 1), and so on until one is too large. The probability of any wrong rejection is at most 5%.
fn holm(p_values: &[f64]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&left, &right| p_values[left].total_cmp(&p_values[right]));
    let mut rejected = vec![false; p_values.len()];
    for (rank, &index) in order.iter().enumerate() {
        if p_values[index] * ((p_values.len() - rank) as f64) >= LEVEL {
            break;
        }
        rejected[index] = true;
    }
    rejected
}

#[cfg(test)]
mod tests;
