//! The claims of the paper's regression sections, each put to a test on the study's record.

use super::analysis::Analysis;
use super::spec::{SUPPORT, StudyMethod};
use crate::error::Result;
use crate::learners::TargetTemperature;
use crate::studies::claims::{
    Claim, Measured, Outcome, Verdict, below_at_every, falls, grows, keeps_falling, u_shaped,
};

use StudyMethod::{Maml, Pacmaml, Pacoh, Reptile};

/// All claims that the record can say something about, in the paper's order.
pub fn claims(analysis: &Analysis<'_>) -> Vec<Claim> {
    let mut claims = Vec::new();
    for method in [Pacoh, Reptile] {
        let name = method.name();
        claims.push(outcome(u_shaped(&error_curve(analysis, method))).claim(
            format!("{}-u-shaped", id(method)),
            format!("The generalisation error of {name} falls first and rises again as mᵢ grows."),
        ));
    }
    for method in [Maml, Pacmaml] {
        let name = method.name();
        claims.push(outcome(keeps_falling(&error_curve(analysis, method))).claim(
            format!("{}-falls", id(method)),
            format!("The generalisation error of {name} keeps falling as mᵢ grows."),
        ));
    }
    let others = [Pacoh, Reptile, Maml];
    claims.push(outcome(below_at_every(&error_pairs(analysis, &others.map(|other| (Pacmaml, other)), SUPPORT + 1))).claim(
        "pacmaml-lowest",
        "PACMAML has the lowest generalisation error of PACOH, Reptile, MAML and itself at every mᵢ above m.",
    ));
    claims.push(outcome(below_at_every(&error_pairs(analysis, &[(Pacoh, Reptile), (Pacmaml, Maml)], 0))).claim(
        "gibbs-below-dirac",
        "Base learners that are not points have lower errors than points: PACOH below Reptile, PACMAML below MAML, at \
         every mᵢ.",
    ));
    for &beta in &analysis.plan.beta_per_example {
        let gaps = bound_curve(analysis, Pacoh, beta, |terms| terms.gap.unwrap_or(f64::NAN));
        claims.push(outcome(grows(&gaps)).claim(
            format!("gap-grows-{beta}"),
            format!("The gap between observed and target tasks grows with mᵢ (PACOH, β/mᵢ = {beta})."),
        ));
    }
    for &beta in &analysis.plan.beta_per_example {
        let totals = bound_curve(analysis, Pacoh, beta, |terms| terms.total());
        claims.push(outcome(grows(&totals)).claim(
            format!("theorem-3-rises-{beta}"),
            format!("The total of Theorem 3 rises with mᵢ (PACOH, β/mᵢ = {beta})."),
        ));
    }
    for &beta in &analysis.plan.beta_per_example {
        let totals = bound_curve(analysis, Pacmaml, beta, |terms| terms.total());
        claims.push(outcome(falls(&totals)).claim(
            format!("theorem-4-falls-{beta}"),
            format!("The total of Theorem 4 falls monotonically with mᵢ (PACMAML, β/mᵢ = {beta})."),
        ));
    }
    claims.push(outcome(below_at_every(&bound_pairs(analysis))).claim(
        "pacmaml-bound-below",
        "PACMAML's total is below PACOH's at every mᵢ above m and every beta.",
    ));
    claims
}

/// A claim that could not be tested is undecided, with the reason.
fn outcome(tested: Result<Outcome>) -> Outcome {
    tested.unwrap_or_else(|error| Outcome {
        test: "not enough of the study is recorded".to_owned(),
        effect: None,
        standard_error: None,
        observations: 0,
        verdict: Verdict::Undecided,
        detail: error.to_string(),
    })
}

fn id(method: StudyMethod) -> &'static str {
    match method {
        Pacoh => "pacoh",
        Pacmaml => "pacmaml",
        Reptile => "reptile",
        Maml => "maml",
        StudyMethod::Fomaml => "fomaml",
        StudyMethod::MultiTask => "multi-task",
        StudyMethod::PlainGp => "plain-gp",
    }
}

/// Held-out RMSE at each m_i.
fn error_curve(analysis: &Analysis<'_>, method: StudyMethod) -> Vec<Measured> {
    let points = analysis.curve(method, TargetTemperature::PerExample).into_iter();
    points.map(|point| Measured::new(format!("mᵢ = {}", point.examples), point.by_set_and_task)).collect()
}

/// Held-out RMSE of two methods at the same m_i, for each m_i from `smallest`.
fn error_pairs(
    analysis: &Analysis<'_>,
    methods: &[(StudyMethod, StudyMethod)],
    smallest: usize,
) -> Vec<(Measured, Measured)> {
    let rule = TargetTemperature::PerExample;
    let sizes = analysis.plan.examples.iter().filter(|examples| **examples >= smallest);
    sizes
        .flat_map(|&examples| methods.iter().map(move |pair| (examples, *pair)))
        .filter_map(|(examples, (left, right))| {
            let measured = |method: StudyMethod| {
                let point = analysis.method(method, examples, rule)?;
                Some(Measured::new(format!("{} at mᵢ = {examples}", method.name()), point.by_set_and_task))
            };
            Some((measured(left)?, measured(right)?))
        })
        .collect()
}

/// A term or total of a bound at each m_i, by meta-training set.
fn bound_curve(
    analysis: &Analysis<'_>,
    method: StudyMethod,
    beta_per_example: f64,
    value: fn(&super::model::BoundTerms) -> f64,
) -> Vec<Measured> {
    let sizes = analysis.plan.examples.iter();
    sizes
        .filter_map(|&examples| {
            let point = analysis.bound(method, examples, beta_per_example)?;
            let values: Vec<f64> = point.by_set.iter().map(value).collect();
            Some(Measured::per_set(format!("mᵢ = {examples}"), &values))
        })
        .collect()
}

fn bound_pairs(analysis: &Analysis<'_>) -> Vec<(Measured, Measured)> {
    let sizes = analysis.plan.examples.iter().filter(|examples| **examples > SUPPORT);
    sizes
        .flat_map(|&examples| analysis.plan.beta_per_example.iter().map(move |beta| (examples, *beta)))
        .filter_map(|(examples, beta)| {
            let measured = |method: StudyMethod| {
                let point = analysis.bound(method, examples, beta)?;
                let totals: Vec<f64> = point.by_set.iter().map(|terms| terms.total()).collect();
                let label = format!("{} at mᵢ = {examples}, β/mᵢ = {beta}", method.name());
                Some(Measured::per_set(label, &totals))
            };
            Some((measured(Pacmaml)?, measured(Pacoh)?))
        })
        .collect()
}
