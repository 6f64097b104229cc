//! The analysis on records that were made up so that every answer is known.

use tempfile::TempDir;

use super::*;
use crate::learners::TargetTemperature;
use crate::studies::claims::Verdict;
use crate::studies::record::{Ending, Records};
use crate::studies::spec::Spec;

fn small_plan() -> Plan {
    Plan {
        examples: vec![5, 10, 30, 100],
        beta_per_example: vec![30.0, 100.0],
        alpha_over_beta: vec![0.1, 0.2],
        inner_rates: vec![0.01, 0.1],
        inner_steps: vec![1],
        data_sets: 4,
        seeds: 2,
        iterations: 10,
        hyper_prior_draws: 2,
        ablation_sets: 2,
        ..Plan::new(Preset::Paper)
    }
}

/// A number between -1 and 1 that depends on the model and the task.
fn wobble(spec: &ModelSpec, task: usize) -> f64 {
    let text = format!("{spec:?}/{task}");
    let bytes = text.bytes().fold(17_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    (bytes % 2001) as f64 / 1000.0 - 1.0
}

/// What the paper says it found.
fn as_in_the_paper(spec: &ModelSpec) -> f64 {
    let position = (spec.examples as f64).ln();
    let u = (position - 3.0).powi(2) * 0.05;
    match spec.setting.method() {
        StudyMethod::Pacmaml => 0.40 - 0.04 * position,
        StudyMethod::Maml => 0.60 - 0.04 * position,
        StudyMethod::Pacoh => 0.45 + u,
        StudyMethod::Reptile => 0.75 + u,
        _ => 0.9,
    }
}

/// Errors that the best setting has; the others are worse by 0.1.
fn is_best(setting: &Setting) -> bool {
    match setting {
        Setting::Pacoh { beta_per_example } | Setting::Reptile { beta_per_example } => {
            *beta_per_example == 30.0
        }
        Setting::Pacmaml { beta_per_example, alpha_over_beta } => {
            (*beta_per_example, *alpha_over_beta) == (100.0, 0.2)
        }
        Setting::Maml { rate, .. } | Setting::Fomaml { rate, .. } => *rate == 0.1,
        _ => true,
    }
}

fn made_up(spec: &ModelSpec, level: fn(&ModelSpec) -> f64) -> Measured {
    let error = |task: usize| {
        let worse = if is_best(&spec.setting) { 0.0 } else { 0.1 };
        let other_way = if spec.variant == Variant::Paper { 0.0 } else { 0.5 };
        level(spec) + worse + other_way + 0.01 * task as f64 + 0.002 * wobble(spec, task)
    };
    let rmse: Vec<f64> = (0..TARGET_TASKS).map(error).collect();
    let mean = rmse.iter().sum::<f64>() / TARGET_TASKS as f64;
    let errors = TargetErrors {
        rmse: rmse.clone(),
        log_likelihood: -mean,
        calibration_error: 0.1,
        coverage95: 0.9,
        course: vec![mean + 0.3, mean - 0.05, mean],
    };
    let fixed = TargetErrors { rmse: rmse.iter().map(|error| error + 0.2).collect(), ..errors.clone() };
    let size = spec.examples as f64;
    let pacoh = spec.setting.method() == StudyMethod::Pacoh;
    let bound = BoundTerms {
        w: 1.0 / size + 0.001 * wobble(spec, 0),
        risk: 0.5 / size,
        hyper_prior: 0.2 / size,
        confidence: 0.1 / size,
        gap: pacoh.then(|| 0.2 * (size / 5.0).ln()),
        gap_fixed: pacoh.then_some(0.0),
        target_risk: 0.1,
    };
    Measured {
        fixed: pacoh.then_some(fixed),
        bound: spec.setting.method().is_gibbs().then_some(bound),
        per_example: errors,
        illustrations: Vec::new(),
    }
}

/// A record of the plan in a folder of its own.
fn record(
    plan: &Plan,
    level: fn(&ModelSpec) -> f64,
    keep: impl Fn(&SinusoidSpec) -> bool,
) -> (TempDir, Records<SinusoidSpec>) {
    let folder = tempfile::tempdir().unwrap();
    let mut records = Records::read(folder.path()).unwrap();
    for spec in plan.specs().into_iter().filter(keep) {
        let outcome = match &spec {
            SinusoidSpec::Model(model) => SinusoidOutcome::Model(Box::new(made_up(model, level))),
            SinusoidSpec::HyperPrior { .. } => {
                SinusoidOutcome::HyperPrior(GapDraws { risks: vec![(0.5, 0.3), (0.7, 0.3)] })
            }
        };
        records.append(&spec, Ending::Done(outcome), 0.1).unwrap();
    }
    (folder, records)
}

fn verdict(analysis: &Analysis<'_>, id: &str) -> Verdict {
    let claims = claims(analysis);
    let claim = claims.iter().find(|claim| claim.id == id);
    claim.unwrap_or_else(|| panic!("there is no claim {id}")).verdict
}

#[test]
fn the_paper_s_own_findings_are_recognised() {
    let plan = small_plan();
    let (_folder, records) = record(&plan, as_in_the_paper, |_| true);
    let analysis = Analysis::new(&plan, &records).unwrap();
    for claim in claims(&analysis) {
        // The made-up total of Theorem 3 falls first: 1.3/5 to 1.3/10 weighs more than the gap.
        let expected = if claim.id.starts_with("theorem-3") { claim.verdict } else { Verdict::Supported };
        assert_eq!(claim.verdict, expected, "{claim:?}");
        assert!(claim.effect.is_some() && claim.observations > 0, "{claim:?}");
    }
}

#[test]
fn the_opposite_is_not_supported_and_a_draw_is_undecided() {
    let plan = small_plan();
    let opposite = |spec: &ModelSpec| 2.0 - as_in_the_paper(spec);
    let (_folder, records) = record(&plan, opposite, |_| true);
    let analysis = Analysis::new(&plan, &records).unwrap();
    for id in [
        "pacoh-u-shaped",
        "reptile-u-shaped",
        "maml-falls",
        "pacmaml-falls",
        "pacmaml-lowest",
        "gibbs-below-dirac",
    ] {
        assert_eq!(verdict(&analysis, id), Verdict::NotSupported, "{id}");
    }
    let (_folder, records) = record(&plan, |_| 0.5, |_| true);
    let analysis = Analysis::new(&plan, &records).unwrap();
    for id in ["pacmaml-lowest", "gibbs-below-dirac"] {
        assert_eq!(verdict(&analysis, id), Verdict::Undecided, "{id}");
    }
}

#[test]
fn settings_are_chosen_and_both_readings_and_temperatures_are_kept_apart() {
    let plan = small_plan();
    let (_folder, records) = record(&plan, as_in_the_paper, |_| true);
    let analysis = Analysis::new(&plan, &records).unwrap();
    let point = analysis.method(StudyMethod::Pacmaml, 30, TargetTemperature::PerExample).unwrap();
    assert_eq!(point.chosen, Setting::Pacmaml { beta_per_example: 100.0, alpha_over_beta: 0.2 });
    assert_eq!(point.per_fold, [point.chosen; FOLDS]);
    assert_eq!((point.test.observations, point.by_set_and_task.len()), (8, 4));
    let (test, lowest) = (point.test.mean.unwrap(), point.lowest.mean.unwrap());
    assert!((test - lowest - 0.05).abs() < 1e-9, "{test} {lowest}");
    let pacoh = |rule| analysis.method(StudyMethod::Pacoh, 10, rule).unwrap().test.mean.unwrap();
    let difference = pacoh(TargetTemperature::Fixed) - pacoh(TargetTemperature::PerExample);
    assert!((difference - 0.2).abs() < 1e-9, "{difference}");
    let bound = analysis.bound(StudyMethod::Pacmaml, 30, 30.0).unwrap();
    assert_eq!(bound.setting.beta_per_example(), Some(30.0));
    assert!(bound.gap.is_none() && bound.by_set.len() == 4);
    let total = analysis.bound(StudyMethod::Pacoh, 30, 30.0).unwrap();
    let sum =
        [total.w, total.hyper_prior, total.confidence, total.gap.unwrap()].map(|term| term.mean.unwrap());
    assert!((sum.iter().sum::<f64>() - total.total.mean.unwrap()).abs() < 1e-12);
    for point in analysis.ablations() {
        assert!((point.difference.mean.unwrap() - 0.5).abs() < 0.01, "{point:?}");
        assert_eq!(point.difference.observations, 2);
    }
    let gap = analysis.hyper_prior(30, 30.0, 1.0).unwrap().unwrap();
    let expected = ((0.2_f64.exp() + 0.4_f64.exp()) / 2.0).ln();
    assert!((gap.gap - expected).abs() < 1e-12 && gap.draws == 2);
}

#[test]
fn a_study_that_is_still_going_on_or_partly_failed_is_shown_as_far_as_it_goes() {
    let plan = small_plan();
    let of_set = |spec: &SinusoidSpec, most: u64| match spec {
        SinusoidSpec::Model(model) => model.data_set < most,
        SinusoidSpec::HyperPrior { .. } => true,
    };
    let (_folder, records) = record(&plan, as_in_the_paper, |spec| of_set(spec, 2));
    let analysis = Analysis::new(&plan, &records).unwrap();
    let point = analysis.method(StudyMethod::Pacoh, 30, TargetTemperature::PerExample).unwrap();
    assert_eq!(point.test.observations, 4);
    // The claims rest on the sets that every quantity has.
    let (_folder, uneven) = record(&plan, as_in_the_paper, |spec| match spec {
        SinusoidSpec::Model(model) => model.data_set < if model.examples == 100 { 3 } else { 4 },
        SinusoidSpec::HyperPrior { .. } => true,
    });
    let uneven_analysis = Analysis::new(&plan, &uneven).unwrap();
    for id in ["pacoh-u-shaped", "pacmaml-lowest", "gap-grows-30", "pacmaml-bound-below"] {
        assert_eq!(verdict(&uneven_analysis, id), Verdict::Supported, "{id}");
    }
    let text = report(&analysis, "pacmeta reproduce sinusoid", &[]).unwrap();
    assert!(text.subtitle.contains("the same command continues"), "{}", text.subtitle);

    // The best setting failed once: it cannot be chosen at that m_i, everything else stands.
    let best = Setting::Pacoh { beta_per_example: 30.0 };
    let broken = SinusoidSpec::Model(plan.model(best, 30, 1, 0));
    let (_folder, mut records) = record(&plan, as_in_the_paper, |spec| *spec != broken);
    records.append(&broken, Ending::Failed("iteration 7: not finite".to_owned()), 0.1).unwrap();
    let analysis = Analysis::new(&plan, &records).unwrap();
    let point = analysis.method(StudyMethod::Pacoh, 30, TargetTemperature::PerExample).unwrap();
    assert_eq!((point.chosen, point.failed), (Setting::Pacoh { beta_per_example: 100.0 }, 1));
    let notes = report(&analysis, "pacmeta reproduce sinusoid", &[]).unwrap().notes;
    assert!(notes.iter().any(|note| note.contains("iteration 7: not finite")), "{notes:?}");

    let (_folder, records) = record(&plan, as_in_the_paper, |_| false);
    let analysis = Analysis::new(&plan, &records).unwrap();
    assert!(claims(&analysis).iter().all(|claim| claim.verdict == Verdict::Undecided));
    assert!(report(&analysis, "pacmeta reproduce sinusoid", &[]).is_ok());
}

#[test]
fn numbers_are_written_as_they_are_drawn() {
    let plan = small_plan();
    let (_folder, records) = record(&plan, as_in_the_paper, |_| true);
    let analysis = Analysis::new(&plan, &records).unwrap();
    let files = numbers(&analysis).unwrap();
    let errors = &files.iter().find(|file| file.name == "errors.csv").unwrap().content;
    let mut reader = csv::Reader::from_reader(errors.as_bytes());
    let rows: Vec<csv::StringRecord> = reader.records().map(std::result::Result::unwrap).collect();
    // Seven methods and PACOH's other temperature, at four m_i.
    assert_eq!(rows.len(), 8 * 4);
    let row = rows.iter().find(|row| &row[0] == "PACMAML" && &row[2] == "30").unwrap();
    let point = analysis.method(StudyMethod::Pacmaml, 30, TargetTemperature::PerExample).unwrap();
    assert_eq!(row[6].parse::<f64>().ok(), point.test.mean);
    for link in report(&analysis, "pacmeta", &[]).unwrap().files {
        let made = files.iter().any(|file| file.name == link.href);
        assert!(made || ["records.jsonl", "study.json"].contains(&link.href.as_str()), "{}", link.href);
    }
}

#[test]
fn a_real_model_of_every_method_is_measured() {
    let plan = Plan { iterations: 40, hyper_prior_draws: 4, ..small_plan() };
    for method in StudyMethod::ALL {
        let setting = plan.settings(method)[0];
        let model =
            if method == StudyMethod::PlainGp { plan.plain_gp() } else { plan.model(setting, 10, 0, 0) };
        let model = ModelSpec { illustrated: method.is_gibbs(), ..model };
        let SinusoidOutcome::Model(measured) = SinusoidSpec::Model(model).run(&|| false).unwrap() else {
            panic!("a model gives a model's outcome")
        };
        assert_eq!(measured.per_example.rmse.len(), TARGET_TASKS);
        assert!(measured.per_example.rmse.iter().all(|rmse| rmse.is_finite() && *rmse > 0.0));
        assert_eq!(measured.fixed.is_some(), method == StudyMethod::Pacoh);
        assert_eq!(measured.bound.is_some(), method.is_gibbs());
        // The course ends with the last iterate.
        let last = measured.per_example.course.last().unwrap();
        assert!((last - measured.per_example.mean_rmse()).abs() < 1e-9, "{method:?}");
        assert_eq!(!measured.illustrations.is_empty(), method.is_gibbs());
        for illustration in &measured.illustrations {
            // The truth passes near the examples, whose noise has standard deviation 0.1.
            for &(x, y) in &illustration.support {
                let nearest = illustration.x.iter().position(|grid| *grid >= x).unwrap();
                assert!((illustration.truth[nearest] - y).abs() < 0.8);
            }
        }
        let again = SinusoidSpec::Model(model).run(&|| false).unwrap();
        assert_eq!(again, SinusoidOutcome::Model(measured), "{method:?} is a function of its specification");
    }
    let draws = SinusoidSpec::HyperPrior { examples: 10, beta_per_example: 30.0, draws: 4 };
    let SinusoidOutcome::HyperPrior(draws) = draws.run(&|| false).unwrap() else { panic!("draws") };
    assert_eq!(draws.risks.len(), 4);
    assert!(
        SinusoidSpec::Model(plan.model(plan.settings(StudyMethod::Pacoh)[0], 10, 0, 0))
            .run(&|| true)
            .is_err()
    );
}

#[test]
fn equal_sizes_have_no_gap() {
    let plan = Plan { iterations: 20, ..small_plan() };
    let model = SinusoidSpec::Model(plan.model(Setting::Pacoh { beta_per_example: 30.0 }, SUPPORT, 0, 0));
    let SinusoidOutcome::Model(measured) = model.run(&|| false).unwrap() else { panic!("a model") };
    let bound = measured.bound.unwrap();
    assert_eq!((bound.gap, bound.gap_fixed), (Some(0.0), Some(0.0)));
    let errors = measured.fixed.unwrap();
    for (fixed, per_example) in errors.rmse.iter().zip(&measured.per_example.rmse) {
        assert!((fixed - per_example).abs() < 1e-9);
    }
}

#[test]
fn specifications_are_all_different_and_more_seeds_only_add() {
    let plan = small_plan();
    let hashes =
        |plan: &Plan| -> Vec<String> { plan.specs().iter().map(|spec| spec.hash().unwrap()).collect() };
    let few = hashes(&plan);
    let mut unique = few.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), few.len());
    let many = hashes(&Plan { seeds: 3, data_sets: 5, ..plan });
    assert!(few.iter().all(|hash| many.contains(hash)));
}

#[test]
fn plans_that_nobody_could_run_are_refused() {
    let plan = Plan::new(Preset::Paper);
    plan.check().unwrap();
    let huge = Plan { data_sets: u64::MAX, ..plan.clone() };
    assert!(huge.check().unwrap_err().to_string().contains("pieces"));
    let empty = Plan { inner_steps: Vec::new(), ..plan };
    assert!(empty.check().unwrap_err().to_string().contains("inner_steps"));
}
