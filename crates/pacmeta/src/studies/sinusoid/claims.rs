//! The claims of the paper's regression sections, each put to a test on the study's record.

use super::analysis::Analysis;
use super::model::BoundTerms;
use super::spec::{SUPPORT, Setting, StudyMethod};
use crate::error::{Error, Result};
use crate::learners::TargetTemperature::{self, Fixed, PerExample};
use crate::studies::claims::{
    Claim, Measured, Outcome, Verdict, below_at_every, falls, grows, keeps_falling, rises_or_levels_off,
    tend_to_fall, u_shaped,
};

use StudyMethod::{Maml, Pacmaml, Pacoh, Reptile};

/// All claims that the record can say something about, in the paper's order.
pub fn claims(analysis: &Analysis<'_>) -> Vec<Claim> {
    let mut claims = of_errors(analysis);
    claims.extend(of_temperatures(analysis));
    claims.extend(of_bounds(analysis));
    claims
}

/// What the paper says of generalisation errors. It does not say what PACOH keeps of its temperature at target tasks, so that claims
/// about PACOH are tested both ways.
fn of_errors(analysis: &Analysis<'_>) -> Vec<Claim> {
    let mut claims = Vec::new();
    let u_shapes = [
        (
            "pacoh-u-shaped",
            Pacoh,
            PerExample,
            "PACOH, with the temperature per example kept at target tasks,",
        ),
        ("pacoh-u-shaped-fixed", Pacoh, Fixed, "PACOH, with the temperature itself kept at target tasks,"),
        ("reptile-u-shaped", Reptile, PerExample, "Reptile"),
    ];
    for (id, method, rule, name) in u_shapes {
        claims.push(outcome(error_curve(analysis, method, rule).and_then(|curve| u_shaped(&curve))).claim(
            id,
            format!("The generalisation error of {name} falls first and rises again as mᵢ grows."),
        ));
    }
    for method in [Maml, Pacmaml] {
        let name = method.name();
        let curve = error_curve(analysis, method, PerExample);
        claims.push(outcome(curve.and_then(|curve| keeps_falling(&curve))).claim(
            format!("{}-falls", id(method)),
            format!("The generalisation error of {name} keeps falling as mᵢ grows."),
        ));
    }
    let above_support = SUPPORT + 1;
    type Pairs<'a> = &'a [(StudyMethod, StudyMethod)];
    let below: [(&str, Pairs<'_>, TargetTemperature, usize, &str); 3] = [
        (
            "pacmaml-lowest",
            &[(Pacmaml, Pacoh), (Pacmaml, Reptile), (Pacmaml, Maml)],
            PerExample,
            above_support,
            "PACMAML has a lower generalisation error than PACOH (temperature per example), Reptile and MAML at every mᵢ above m.",
        ),
        (
            "pacmaml-below-pacoh-fixed",
            &[(Pacmaml, Pacoh)],
            Fixed,
            above_support,
            "PACMAML has a lower generalisation error than PACOH with the temperature itself kept at target tasks, at every mᵢ above m.",
        ),
        (
            "gibbs-below-dirac",
            &[(Pacoh, Reptile), (Pacmaml, Maml)],
            PerExample,
            0,
            "Base learners that are not points have lower errors than points: PACOH (temperature per example) below Reptile, PACMAML \
             below MAML, at every mᵢ.",
        ),
    ];
    for (id, methods, rule, smallest, statement) in below {
        let pairs = error_pairs(analysis, methods, rule, smallest);
        claims.push(outcome(pairs.and_then(|pairs| below_at_every(&pairs))).claim(id, statement));
    }
    claims
}

/// What the paper reads off its figures of the dependence on beta and alpha, as far as the plan has those values.
fn of_temperatures(analysis: &Analysis<'_>) -> Vec<Claim> {
    let has = |beta: f64| analysis.plan.beta_per_example.contains(&beta);
    let tested =
        |pairs: Result<Vec<(Measured, Measured)>>| outcome(pairs.and_then(|pairs| below_at_every(&pairs)));
    // Both settings are the best of their beta.
    let best = |method: StudyMethod, lower: f64, higher: f64| {
        setting_pairs(analysis, |examples| {
            let at = |beta: f64| {
                let what = || format!("{} at mᵢ = {examples}, β/mᵢ = {beta}", method.name());
                known(best_at(analysis, method, examples, beta), what)
            };
            Ok(vec![(at(lower)?, at(higher)?)])
        })
    };
    let mut claims = Vec::new();
    if has(10.0) && has(30.0) {
        for method in [Pacoh, Pacmaml] {
            claims.push(tested(best(method, 30.0, 10.0)).claim(
                format!("{}-beta-10-large", id(method)),
                format!("The error of {} is larger at β/mᵢ = 10 than at 30, at every mᵢ.", method.name()),
            ));
        }
    }
    if has(30.0) && has(100.0) {
        claims.push(tested(best(Pacmaml, 100.0, 30.0)).claim(
            "pacmaml-beta-100-best",
            "The error of PACMAML is lower at β/mᵢ = 100 than at 30, at every mᵢ.",
        ));
    }
    // The paper says "around 0.2", having looked from 0.1 to 0.6.
    let [first, best, last] = [0.1, 0.2, 0.6];
    if has(30.0) && [first, best, last].iter().all(|ratio| analysis.plan.alpha_over_beta.contains(ratio)) {
        let at = |alpha_over_beta: f64| Setting::Pacmaml { beta_per_example: 30.0, alpha_over_beta };
        let pairs = setting_pairs(analysis, |_| Ok(vec![(at(best), at(first)), (at(best), at(last))]));
        claims.push(tested(pairs).claim(
            "pacmaml-alpha-0.2-best",
            "At β/mᵢ = 30 the error of PACMAML is lower at α/β = 0.2 than at 0.1 and at 0.6, the ends of the grid, at every mᵢ.",
        ));
    }
    claims
}

/// What the paper says of the terms of its bounds.
fn of_bounds(analysis: &Analysis<'_>) -> Vec<Claim> {
    let betas = &analysis.plan.beta_per_example;
    let mut claims = Vec::new();
    for method in [Pacoh, Pacmaml] {
        let terms: [(&str, &str, Value); 2] =
            [("w", "W", |terms| terms.w), ("kl", "ξ KL", |terms| terms.hyper_prior)];
        for (term, name, value) in terms {
            let curve =
                |&beta: &f64| Ok((format!("β/mᵢ = {beta}"), bound_curve(analysis, method, beta, value)?));
            let curves: Result<Vec<(String, Vec<Measured>)>> = betas.iter().map(curve).collect();
            claims.push(outcome(curves.and_then(|curves| tend_to_fall(&curves))).claim(
                format!("{}-{term}-falls", id(method)),
                format!("{name} of {} tends to fall as mᵢ grows, at every β.", method.name()),
            ));
        }
    }
    type Test = fn(&[Measured]) -> Result<Outcome>;
    let curves: [(&str, StudyMethod, Value, Test, &str); 3] = [
        (
            "gap-grows",
            Pacoh,
            |terms| terms.gap.unwrap_or(f64::NAN),
            grows,
            "The gap between observed and target tasks grows with mᵢ",
        ),
        (
            "theorem-3-rises",
            Pacoh,
            BoundTerms::total,
            rises_or_levels_off,
            "The total of Theorem 3 rises with mᵢ, or rises and then levels off",
        ),
        (
            "theorem-4-falls",
            Pacmaml,
            BoundTerms::total,
            falls,
            "The total of Theorem 4 falls monotonically with mᵢ",
        ),
    ];
    for (id, method, value, test, statement) in curves {
        // Theorem 4 has no gap, so that only PACOH's totals depend on what is kept of the temperature.
        let kept = if method == Pacoh { ", temperature per example" } else { "" };
        for &beta in betas {
            let curve = bound_curve(analysis, method, beta, value);
            claims.push(outcome(curve.and_then(|curve| test(&curve))).claim(
                format!("{id}-{beta}"),
                format!("{statement} ({}, β/mᵢ = {beta}{kept}).", method.name()),
            ));
        }
    }
    let below: [(&str, &str, Value); 2] = [
        ("pacmaml-bound-below", "the temperature per example", BoundTerms::total),
        ("pacmaml-bound-below-fixed", "the temperature itself", BoundTerms::total_fixed),
    ];
    for (id, kept, total) in below {
        let pairs = bound_pairs(analysis, total);
        claims.push(outcome(pairs.and_then(|pairs| below_at_every(&pairs))).claim(
            id,
            format!(
                "PACMAML's total is below PACOH's at every mᵢ above m and every β, with {kept} kept at target tasks."
            ),
        ));
    }
    claims
}

/// A term or total of a bound.
type Value = fn(&BoundTerms) -> f64;

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

/// A quantity by meta-training set, before it is known which sets all of a claim's quantities have.
type BySet = (String, Vec<(u64, Vec<f64>)>);

/// The quantities on the sets that all of them have: as long as a study is going on, some are further than others.
fn aligned(quantities: Vec<BySet>) -> Vec<Measured> {
    let in_all = |set: &u64| quantities.iter().all(|(_, rows)| rows.iter().any(|(own, _)| own == set));
    let shared: Vec<u64> = quantities
        .first()
        .map(|(_, rows)| rows.iter().map(|(set, _)| *set).filter(in_all).collect())
        .unwrap_or_default();
    let kept = |rows: &[(u64, Vec<f64>)]| -> Vec<Vec<f64>> {
        rows.iter().filter(|(set, _)| shared.contains(set)).map(|(_, row)| row.clone()).collect()
    };
    quantities.iter().map(|(label, rows)| Measured::new(label.clone(), kept(rows))).collect()
}

/// Neighbours as pairs.
fn pairs(quantities: Vec<BySet>) -> Vec<(Measured, Measured)> {
    let mut measured = aligned(quantities).into_iter();
    std::iter::from_fn(|| Some((measured.next()?, measured.next()?))).collect()
}

/// A claim about every planned point needs every one of them: what failed, or is missing, did not do so at random.
fn known<T>(value: Option<T>, what: impl FnOnce() -> String) -> Result<T> {
    value.ok_or_else(|| Error::input("the record", format!("nothing is known of {}", what())))
}

/// Held-out RMSE of a method at m_i.
fn error_at(
    analysis: &Analysis<'_>,
    method: StudyMethod,
    examples: usize,
    rule: TargetTemperature,
) -> Result<Vec<(u64, Vec<f64>)>> {
    let what = || format!("{} at mᵢ = {examples}", method.name());
    Ok(known(analysis.method(method, examples, rule), what)?.by_set_and_task)
}

/// Held-out RMSE at each m_i.
fn error_curve(
    analysis: &Analysis<'_>,
    method: StudyMethod,
    rule: TargetTemperature,
) -> Result<Vec<Measured>> {
    let point =
        |&examples: &usize| Ok((format!("mᵢ = {examples}"), error_at(analysis, method, examples, rule)?));
    Ok(aligned(analysis.plan.examples.iter().map(point).collect::<Result<_>>()?))
}

/// Held-out RMSE of two methods at the same m_i, for each m_i from `smallest`.
fn error_pairs(
    analysis: &Analysis<'_>,
    methods: &[(StudyMethod, StudyMethod)],
    rule: TargetTemperature,
    smallest: usize,
) -> Result<Vec<(Measured, Measured)>> {
    let mut quantities = Vec::new();
    for &examples in analysis.plan.examples.iter().filter(|examples| **examples >= smallest) {
        for &(left, right) in methods {
            for method in [left, right] {
                let label = format!("{} at mᵢ = {examples}", method.name());
                quantities.push((label, error_at(analysis, method, examples, rule)?));
            }
        }
    }
    Ok(pairs(quantities))
}

/// The setting of a method with the lowest error at m_i among those of one beta.
fn best_at(
    analysis: &Analysis<'_>,
    method: StudyMethod,
    examples: usize,
    beta_per_example: f64,
) -> Option<Setting> {
    analysis.best(method, examples, |setting| setting.beta_per_example() == Some(beta_per_example))
}

/// RMSE of pairs of settings at the same m_i, for each m_i.
fn setting_pairs(
    analysis: &Analysis<'_>,
    settings: impl Fn(usize) -> Result<Vec<(Setting, Setting)>>,
) -> Result<Vec<(Measured, Measured)>> {
    let mut quantities = Vec::new();
    for &examples in &analysis.plan.examples {
        for (left, right) in settings(examples)? {
            for setting in [left, right] {
                let label = format!("{} ({}) at mᵢ = {examples}", setting.method().name(), setting.numbers());
                let values = analysis.setting_by_set_and_task(setting, examples);
                let values = known((!values.is_empty()).then_some(values), || label.clone())?;
                quantities.push((label, values));
            }
        }
    }
    Ok(pairs(quantities))
}

/// A term or total of a bound by meta-training set.
fn bound_values(
    analysis: &Analysis<'_>,
    method: StudyMethod,
    examples: usize,
    beta_per_example: f64,
    value: Value,
) -> Result<Vec<(u64, Vec<f64>)>> {
    let what = || format!("the bound of {} at mᵢ = {examples}, β/mᵢ = {beta_per_example}", method.name());
    let point = known(analysis.bound(method, examples, beta_per_example), what)?;
    Ok(point.by_set.iter().map(|(set, terms)| (*set, vec![value(terms)])).collect())
}

/// A term or total of a bound at each m_i.
fn bound_curve(
    analysis: &Analysis<'_>,
    method: StudyMethod,
    beta_per_example: f64,
    value: Value,
) -> Result<Vec<Measured>> {
    let point = |&examples: &usize| {
        Ok((format!("mᵢ = {examples}"), bound_values(analysis, method, examples, beta_per_example, value)?))
    };
    Ok(aligned(analysis.plan.examples.iter().map(point).collect::<Result<_>>()?))
}

/// The totals of PACMAML and PACOH for every m_i above m and every beta.
fn bound_pairs(analysis: &Analysis<'_>, total: Value) -> Result<Vec<(Measured, Measured)>> {
    let mut quantities = Vec::new();
    for &examples in analysis.plan.examples.iter().filter(|examples| **examples > SUPPORT) {
        for &beta in &analysis.plan.beta_per_example {
            for method in [Pacmaml, Pacoh] {
                let label = format!("{} at mᵢ = {examples}, β/mᵢ = {beta}", method.name());
                quantities.push((label, bound_values(analysis, method, examples, beta, total)?));
            }
        }
    }
    Ok(pairs(quantities))
}
