//! The claims of the paper's regression sections, each put to a test on the study's record.

use super::analysis::Analysis;
use super::model::BoundTerms;
use super::spec::{SUPPORT, Setting, StudyMethod};
use crate::error::Result;
use crate::learners::TargetTemperature;
use crate::studies::claims::{
    Claim, Measured, Outcome, Verdict, below_at_every, falls, grows, keeps_falling, rises_or_levels_off,
    u_shaped,
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
    claims.push(
        outcome(below_at_every(&error_pairs(analysis, &others.map(|other| (Pacmaml, other)), SUPPORT + 1)))
            .claim(
                "pacmaml-lowest",
                "PACMAML has a lower generalisation error than PACOH, Reptile and MAML at every mᵢ above m.",
            ),
    );
    claims.push(outcome(below_at_every(&error_pairs(analysis, &[(Pacoh, Reptile), (Pacmaml, Maml)], 0))).claim(
        "gibbs-below-dirac",
        "Base learners that are not points have lower errors than points: PACOH below Reptile, PACMAML below MAML, at \
         every mᵢ.",
    ));
    claims.extend(of_temperatures(analysis));
    claims.extend(of_bounds(analysis));
    claims
}

/// What the paper reads off its figures of the dependence on beta and alpha, as far as the plan has those values.
fn of_temperatures(analysis: &Analysis<'_>) -> Vec<Claim> {
    let has = |beta: f64| analysis.plan.beta_per_example.contains(&beta);
    let mut claims = Vec::new();
    if has(10.0) && has(30.0) {
        for method in [Pacoh, Pacmaml] {
            let pairs = setting_pairs(analysis, |examples| {
                Some((best_at(analysis, method, examples, 30.0)?, best_at(analysis, method, examples, 10.0)?))
            });
            claims.push(outcome(below_at_every(&pairs)).claim(
                format!("{}-beta-10-large", id(method)),
                format!("The error of {} is larger at β/mᵢ = 10 than at 30, at every mᵢ.", method.name()),
            ));
        }
    }
    if has(30.0) && has(100.0) {
        let pairs = setting_pairs(analysis, |examples| {
            Some((best_at(analysis, Pacmaml, examples, 100.0)?, best_at(analysis, Pacmaml, examples, 30.0)?))
        });
        claims.push(outcome(below_at_every(&pairs)).claim(
            "pacmaml-beta-100-best",
            "The error of PACMAML is lower at β/mᵢ = 100 than at 30, at every mᵢ.",
        ));
    }
    let largest = analysis.plan.alpha_over_beta.iter().copied().fold(0.0, f64::max);
    if has(30.0) && analysis.plan.alpha_over_beta.contains(&0.2) && largest > 0.2 {
        let at = |alpha_over_beta: f64| Setting::Pacmaml { beta_per_example: 30.0, alpha_over_beta };
        let pairs = setting_pairs(analysis, |_| Some((at(0.2), at(largest))));
        claims.push(outcome(below_at_every(&pairs)).claim(
            "pacmaml-alpha-0.2-best",
            format!(
                "At β/mᵢ = 30 the error of PACMAML is lower at α/β = 0.2 than at {largest}, the end of the grid, at \
                 every mᵢ."
            ),
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
            let mut steps = Vec::new();
            for &beta in betas {
                let at_beta = |point: &Measured| {
                    Measured::new(format!("{}, β/mᵢ = {beta}", point.label), point.values.clone())
                };
                let curve = bound_curve(analysis, method, beta, value);
                steps.extend(curve.windows(2).map(|pair| (at_beta(&pair[1]), at_beta(&pair[0]))));
            }
            claims.push(outcome(below_at_every(&steps)).claim(
                format!("{}-{term}-falls", id(method)),
                format!("{name} of {} falls as mᵢ grows, at every step and every β.", method.name()),
            ));
        }
    }
    for &beta in betas {
        let gaps = bound_curve(analysis, Pacoh, beta, |terms| terms.gap.unwrap_or(f64::NAN));
        claims.push(outcome(grows(&gaps)).claim(
            format!("gap-grows-{beta}"),
            format!("The gap between observed and target tasks grows with mᵢ (PACOH, β/mᵢ = {beta})."),
        ));
    }
    for &beta in betas {
        let totals = bound_curve(analysis, Pacoh, beta, BoundTerms::total);
        claims.push(outcome(rises_or_levels_off(&totals)).claim(
            format!("theorem-3-rises-{beta}"),
            format!(
                "The total of Theorem 3 rises with mᵢ, or rises and then levels off (PACOH, β/mᵢ = {beta})."
            ),
        ));
    }
    for &beta in betas {
        let totals = bound_curve(analysis, Pacmaml, beta, BoundTerms::total);
        claims.push(outcome(falls(&totals)).claim(
            format!("theorem-4-falls-{beta}"),
            format!("The total of Theorem 4 falls monotonically with mᵢ (PACMAML, β/mᵢ = {beta})."),
        ));
    }
    let below: [(&str, &str, Value); 2] = [
        ("pacmaml-bound-below", "the temperature per example", BoundTerms::total),
        ("pacmaml-bound-below-fixed", "the temperature itself", BoundTerms::total_fixed),
    ];
    for (id, kept, total) in below {
        claims.push(outcome(below_at_every(&bound_pairs(analysis, total))).claim(
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

/// Held-out RMSE at each m_i.
fn error_curve(analysis: &Analysis<'_>, method: StudyMethod) -> Vec<Measured> {
    let points = analysis.curve(method, TargetTemperature::PerExample).into_iter();
    aligned(points.map(|point| (format!("mᵢ = {}", point.examples), point.by_set_and_task)).collect())
}

/// Held-out RMSE of two methods at the same m_i, for each m_i from `smallest`.
fn error_pairs(
    analysis: &Analysis<'_>,
    methods: &[(StudyMethod, StudyMethod)],
    smallest: usize,
) -> Vec<(Measured, Measured)> {
    let mut quantities = Vec::new();
    for &examples in analysis.plan.examples.iter().filter(|examples| **examples >= smallest) {
        for &(left, right) in methods {
            let of_method = |method: StudyMethod| {
                let point = analysis.method(method, examples, TargetTemperature::PerExample)?;
                Some((format!("{} at mᵢ = {examples}", method.name()), point.by_set_and_task))
            };
            if let (Some(left), Some(right)) = (of_method(left), of_method(right)) {
                quantities.extend([left, right]);
            }
        }
    }
    pairs(quantities)
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

/// RMSE of two settings at the same m_i, for each m_i.
fn setting_pairs(
    analysis: &Analysis<'_>,
    settings: impl Fn(usize) -> Option<(Setting, Setting)>,
) -> Vec<(Measured, Measured)> {
    let mut quantities = Vec::new();
    for &examples in &analysis.plan.examples {
        let Some((left, right)) = settings(examples) else { continue };
        quantities.extend([left, right].map(|setting| {
            let label = format!("{} ({}) at mᵢ = {examples}", setting.method().name(), setting.numbers());
            (label, analysis.setting_by_set_and_task(setting, examples))
        }));
    }
    pairs(quantities)
}

/// A term or total of a bound by meta-training set.
fn bound_values(
    analysis: &Analysis<'_>,
    method: StudyMethod,
    examples: usize,
    beta_per_example: f64,
    value: Value,
) -> Option<Vec<(u64, Vec<f64>)>> {
    let point = analysis.bound(method, examples, beta_per_example)?;
    Some(point.by_set.iter().map(|(set, terms)| (*set, vec![value(terms)])).collect())
}

/// A term or total of a bound at each m_i.
fn bound_curve(
    analysis: &Analysis<'_>,
    method: StudyMethod,
    beta_per_example: f64,
    value: Value,
) -> Vec<Measured> {
    let sizes = analysis.plan.examples.iter();
    let points = sizes.filter_map(|&examples| {
        Some((format!("mᵢ = {examples}"), bound_values(analysis, method, examples, beta_per_example, value)?))
    });
    aligned(points.collect())
}

/// The totals of PACMAML and PACOH for every m_i above m and every beta.
fn bound_pairs(analysis: &Analysis<'_>, total: Value) -> Vec<(Measured, Measured)> {
    let mut quantities = Vec::new();
    for &examples in analysis.plan.examples.iter().filter(|examples| **examples > SUPPORT) {
        for &beta in &analysis.plan.beta_per_example {
            let of_method = |method: StudyMethod| {
                let label = format!("{} at mᵢ = {examples}, β/mᵢ = {beta}", method.name());
                Some((label, bound_values(analysis, method, examples, beta, total)?))
            };
            if let (Some(pacmaml), Some(pacoh)) = (of_method(Pacmaml), of_method(Pacoh)) {
                quantities.extend([pacmaml, pacoh]);
            }
        }
    }
    pairs(quantities)
}
