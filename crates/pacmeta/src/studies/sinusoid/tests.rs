//! The analysis on records that were made up so that every answer is known.

use pacmeta_tensor::Key;
use tempfile::TempDir;

use super::*;
use crate::learners::TargetTemperature;
use crate::report::{Block, Chart, StudyFigure, StudyReport};
use crate::studies::claims::Verdict;
use crate::studies::record::{Ending, Records};
use crate::studies::spec::Spec;

fn small_plan() -> Plan {
    Plan {
        examples: vec![5, 10, 30, 100],
        beta_per_example: vec![10.0, 30.0, 100.0],
        alpha_over_beta: vec![0.1, 0.2, 0.6],
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
    Key::new(1).named(&format!("{spec:?}")).index(task as u64).generator().uniform_in(-1.0, 1.0)
}

/// A world in which every answer is known.
#[derive(Clone, Copy)]
struct World {
    /// The error of a method at m_i with its best setting.
    error: fn(StudyMethod, f64) -> f64,
    /// How much worse other settings are.
    worse: fn(&Setting) -> f64,
    /// W, xi KL and the gap (of PACOH) at m_i.
    terms: fn(StudyMethod, f64) -> (f64, f64, f64),
    /// What PACOH's error gains when it keeps the temperature itself.
    fixed: f64,
}

/// What the paper says it found.
const AS_IN_THE_PAPER: World =
    World { error: error_in_the_paper, worse: worse_in_the_paper, terms: terms_in_the_paper, fixed: 0.2 };

/// The opposite of all of it.
const OPPOSITE: World = World {
    error: |method, size| 2.0 - error_in_the_paper(method, size),
    worse: |setting| -worse_in_the_paper(setting),
    terms: |method, size| {
        let (w, kl, gap) = terms_in_the_paper(method, size);
        (2.0 - w, 1.0 - kl, -gap)
    },
    fixed: -0.2,
};

/// Nothing depends on anything.
const ALL_THE_SAME: World =
    World { error: |_, _| 0.5, worse: |_| 0.0, terms: |_, _| (0.5, 0.1, 0.0), fixed: 0.0 };

fn error_in_the_paper(method: StudyMethod, size: f64) -> f64 {
    let position = size.ln();
    let u = (position - 3.0).powi(2) * 0.05;
    match method {
        StudyMethod::Pacmaml => 0.40 - 0.04 * position,
        StudyMethod::Maml => 0.60 - 0.04 * position,
        StudyMethod::Pacoh => 0.45 + u,
        StudyMethod::Reptile => 0.75 + u,
        _ => 0.9,
    }
}

fn worse_in_the_paper(setting: &Setting) -> f64 {
    let off = |differs: bool| if differs { 0.1 } else { 0.0 };
    match setting {
        Setting::Pacoh { beta_per_example } | Setting::Reptile { beta_per_example } => {
            off(*beta_per_example != 30.0)
        }
        Setting::Pacmaml { beta_per_example, alpha_over_beta } => {
            off(*beta_per_example < 100.0) + off(*beta_per_example < 30.0) + off(*alpha_over_beta != 0.2)
        }
        Setting::Maml { rate, .. } | Setting::Fomaml { rate, .. } => off(*rate != 0.1),
        _ => 0.0,
    }
}

fn terms_in_the_paper(method: StudyMethod, size: f64) -> (f64, f64, f64) {
    let gap = if method == StudyMethod::Pacoh { 0.2 * (size / 5.0).ln() } else { 0.0 };
    (1.0 / size, 0.2 / size, gap)
}

fn made_up(spec: &ModelSpec, world: World) -> Measured {
    let (method, size) = (spec.setting.method(), spec.examples as f64);
    let error = |task: usize| {
        let other_way = if spec.variant == Variant::Paper { 0.0 } else { 0.5 };
        let level = (world.error)(method, size) + (world.worse)(&spec.setting);
        level + other_way + 0.01 * task as f64 + 0.002 * wobble(spec, task)
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
    let fixed =
        TargetErrors { rmse: rmse.iter().map(|error| error + world.fixed).collect(), ..errors.clone() };
    let pacoh = method == StudyMethod::Pacoh;
    let (w, hyper_prior, gap) = (world.terms)(method, size);
    let bound = BoundTerms {
        w: w + 0.001 * wobble(spec, 0),
        risk: 0.5 * w,
        hyper_prior,
        confidence: 0.5 * hyper_prior,
        gap: pacoh.then_some(gap + 0.001 * wobble(spec, 1)),
        gap_fixed: pacoh.then_some(0.5 * gap + 0.001 * wobble(spec, 2)),
        target_risk: 0.1,
    };
    Measured {
        fixed: pacoh.then_some(fixed),
        bound: method.is_gibbs().then_some(bound),
        per_example: errors,
        illustrations: Vec::new(),
    }
}

/// A record of the plan in a folder of its own.
fn record(
    plan: &Plan,
    world: World,
    keep: impl Fn(&SinusoidSpec) -> bool,
) -> (TempDir, Records<SinusoidSpec>) {
    let folder = tempfile::tempdir().unwrap();
    let mut records = Records::read(folder.path()).unwrap();
    for spec in plan.specs().into_iter().filter(keep) {
        let outcome = match &spec {
            SinusoidSpec::Model(model) => SinusoidOutcome::Model(Box::new(made_up(model, world))),
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

/// The verdict of every claim in a world.
fn verdicts(world: World) -> Vec<(String, Verdict)> {
    let plan = small_plan();
    let (_folder, records) = record(&plan, world, |_| true);
    let analysis = Analysis::new(&plan, &records).unwrap();
    let claims = claims(&analysis);
    assert_eq!(claims.len(), 27);
    for claim in &claims {
        assert!(claim.effect.is_some() && claim.observations > 0, "{claim:?}");
    }
    claims.into_iter().map(|claim| (format!("{}: {}", claim.id, claim.detail), claim.verdict)).collect()
}

#[test]
fn every_claim_has_its_verdict_where_it_is_true_false_and_open() {
    for (claim, verdict) in verdicts(AS_IN_THE_PAPER) {
        assert_eq!(verdict, Verdict::Supported, "{claim}");
    }
    for (claim, verdict) in verdicts(OPPOSITE) {
        assert_eq!(verdict, Verdict::NotSupported, "{claim}");
    }
    for (claim, verdict) in verdicts(ALL_THE_SAME) {
        assert_eq!(verdict, Verdict::Undecided, "{claim}");
    }
}

#[test]
fn settings_are_chosen_and_both_readings_and_temperatures_are_kept_apart() {
    let plan = small_plan();
    let (_folder, records) = record(&plan, AS_IN_THE_PAPER, |_| true);
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
    let (_folder, records) = record(&plan, AS_IN_THE_PAPER, |spec| of_set(spec, 2));
    let analysis = Analysis::new(&plan, &records).unwrap();
    let point = analysis.method(StudyMethod::Pacoh, 30, TargetTemperature::PerExample).unwrap();
    assert_eq!(point.test.observations, 4);
    // The claims rest on the sets that every quantity has.
    let (_folder, uneven) = record(&plan, AS_IN_THE_PAPER, |spec| match spec {
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
    let (_folder, mut records) = record(&plan, AS_IN_THE_PAPER, |spec| *spec != broken);
    records.append(&broken, Ending::Failed("iteration 7: not finite".to_owned()), 0.1).unwrap();
    let analysis = Analysis::new(&plan, &records).unwrap();
    let point = analysis.method(StudyMethod::Pacoh, 30, TargetTemperature::PerExample).unwrap();
    assert_eq!((point.chosen, point.failed), (Setting::Pacoh { beta_per_example: 100.0 }, 1));
    // A claim about every m_i is not decided by those that are known.
    let lost = |spec: &SinusoidSpec| matches!(spec, SinusoidSpec::Model(model) if model.setting.method() == StudyMethod::Pacmaml && model.examples == 10);
    let (_folder, gappy) = record(&plan, AS_IN_THE_PAPER, |spec| !lost(spec));
    let gappy = Analysis::new(&plan, &gappy).unwrap();
    for claim in claims(&gappy) {
        let of_pacmaml = claim.statement.contains("PACMAML");
        assert_eq!(claim.verdict == Verdict::Undecided, of_pacmaml, "{claim:?}");
        assert_eq!(claim.detail.contains("nothing is known of"), of_pacmaml, "{claim:?}");
    }
    let notes = report(&analysis, "pacmeta reproduce sinusoid", &[]).unwrap().notes;
    assert!(notes.iter().any(|note| note.contains("iteration 7: not finite")), "{notes:?}");

    let (_folder, records) = record(&plan, AS_IN_THE_PAPER, |_| false);
    let analysis = Analysis::new(&plan, &records).unwrap();
    assert!(claims(&analysis).iter().all(|claim| claim.verdict == Verdict::Undecided));
    assert!(report(&analysis, "pacmeta reproduce sinusoid", &[]).is_ok());
}

fn figures(report: &StudyReport) -> Vec<&StudyFigure> {
    let blocks = report.sections.iter().flat_map(|section| &section.blocks);
    blocks
        .flat_map(|block| match block {
            Block::Figure(figure) => std::slice::from_ref(figure),
            Block::Panels(panels) => panels,
            _ => &[],
        })
        .collect()
}

#[test]
fn the_page_has_every_figure_of_the_paper_and_each_shows_its_own_numbers() {
    let plan = small_plan();
    let (_folder, records) = record(&plan, AS_IN_THE_PAPER, |_| true);
    let analysis = Analysis::new(&plan, &records).unwrap();
    let report = report(&analysis, "pacmeta reproduce sinusoid", &[]).unwrap();
    let figures = figures(&report);
    let ids: Vec<&str> = figures.iter().map(|figure| figure.id.as_str()).collect();
    let expected = "theorems errors errors-close validation-PACOH validation-PACMAML temperature-rule beta-pacoh \
                    beta-pacmaml alpha-pacmaml bound-PACOH-w bound-PACOH-kl bound-PACOH-confidence bound-PACOH-gap \
                    bound-PACOH-gap-fixed bound-PACOH-total bound-PACMAML-w bound-PACMAML-kl bound-PACMAML-confidence \
                    bound-PACMAML-total totals-10 totals-30 totals-100 points-Reptile points-MAML dirac-Reptile dirac-MAML";
    assert_eq!(ids.join(" "), expected);
    let drawn = |id: &str, series: &str, examples: f64| -> f64 {
        let figure = figures.iter().find(|figure| figure.id == id).unwrap();
        let Chart::Line(chart) = &figure.chart else { panic!("{id} is a line chart") };
        let series = chart.series.iter().find(|other| other.name == series);
        let points = &series.unwrap_or_else(|| panic!("{id} has that line")).points;
        points.iter().find(|point| point.x == examples).unwrap().y
    };
    let pacoh = analysis.bound(StudyMethod::Pacoh, 30, 30.0).unwrap();
    let pacmaml = analysis.bound(StudyMethod::Pacmaml, 30, 30.0).unwrap();
    let error = |method| analysis.method(method, 30, TargetTemperature::PerExample).unwrap();
    let summaries = [
        ("theorems", "Theorem 4 (PACMAML)", analysis.bound(StudyMethod::Pacmaml, 30, 100.0).unwrap().total),
        (
            "theorems",
            "Theorem 3 (PACOH, with the gap)",
            analysis.bound(StudyMethod::Pacoh, 30, 100.0).unwrap().total,
        ),
        ("errors", "MAML", error(StudyMethod::Maml).test),
        ("errors-close", "PACMAML", error(StudyMethod::Pacmaml).test),
        ("validation-PACOH", "validation", error(StudyMethod::Pacoh).validation),
        ("validation-PACOH", "test, last iterate", error(StudyMethod::Pacoh).test),
        ("validation-PACOH", "test, lowest during training", error(StudyMethod::Pacoh).lowest),
        ("bound-PACOH-w", "β/mᵢ = 30", pacoh.w),
        ("bound-PACOH-kl", "β/mᵢ = 30", pacoh.hyper_prior),
        ("bound-PACOH-confidence", "β/mᵢ = 30", pacoh.confidence),
        ("bound-PACOH-gap", "β/mᵢ = 30", pacoh.gap.unwrap()),
        ("bound-PACOH-gap-fixed", "β/mᵢ = 30", pacoh.gap_fixed.unwrap()),
        ("bound-PACOH-total", "β/mᵢ = 30", pacoh.total),
        ("bound-PACMAML-w", "β/mᵢ = 30", pacmaml.w),
        ("totals-30", "PACMAML, total", pacmaml.total),
        ("totals-30", "PACOH, total", pacoh.total),
        ("totals-30", "PACOH, true risk", pacoh.target_risk),
        ("dirac-Reptile", "Reptile", error(StudyMethod::Reptile).test),
    ];
    for (id, series, summary) in summaries {
        assert_eq!(Some(drawn(id, series, 30.0)), summary.mean, "{id}, {series}");
    }
    // The numbers above differ from each other, so that no two could be exchanged unnoticed.
    assert!(pacoh.w.mean != pacoh.hyper_prior.mean && pacoh.gap != pacoh.gap_fixed);
}

#[test]
fn the_page_says_what_is_less_and_more_than_the_paper_has() {
    let (_folder, records) = record(&small_plan(), AS_IN_THE_PAPER, |_| false);
    let subtitle = |plan: &Plan| {
        let analysis = Analysis::new(plan, &records).unwrap();
        report(&analysis, "pacmeta reproduce sinusoid", &[]).unwrap().subtitle
    };
    let paper = Plan::new(Preset::Paper);
    assert!(subtitle(&paper).starts_with("The regression study of the paper on its whole grid."));
    let more = subtitle(&Plan { seeds: 6, ..paper.clone() });
    assert!(more.starts_with("The regression study of the paper with more seeds than it has."), "{more}");
    let other = subtitle(&Plan { seeds: 6, iterations: 10, ..paper });
    assert!(
        other.starts_with(
            "A small part of the paper's regression study, with fewer iterations and more seeds than"
        ),
        "{other}"
    );
    let quick = subtitle(&Plan::new(Preset::Quick));
    assert!(
        quick.contains("fewer values of mᵢ, settings, meta-training sets, seeds, iterations than the paper"),
        "{quick}"
    );
}

#[test]
fn differences_from_the_paper_are_named() {
    let plan = small_plan();
    let words = |world: World| {
        let (_folder, records) = record(&plan, world, |_| true);
        let analysis = Analysis::new(&plan, &records).unwrap();
        let report = report(&analysis, "pacmeta reproduce sinusoid", &[]).unwrap();
        let section = report.sections.iter().find(|section| section.id == "ablation").unwrap();
        format!("{section:?}")
    };
    let same = words(AS_IN_THE_PAPER);
    assert!(same.contains("No claim of the paper is contradicted"), "{same}");
    // The made-up PACOH is best at 30 everywhere; the paper's chose 100 at some m_i.
    assert!(same.contains("PACOH at mᵢ = 5: β/mᵢ = 30 (4 of 4 folds), the paper β/mᵢ = 100"), "{same}");
    assert!(!same.contains("PACOH at mᵢ = 30"), "{same}");
    let opposite = words(OPPOSITE);
    assert!(opposite.contains("The generalisation error of MAML keeps falling as mᵢ grows;"), "{opposite}");
}

#[test]
fn numbers_are_written_as_they_are_drawn() {
    let plan = small_plan();
    let (_folder, records) = record(&plan, AS_IN_THE_PAPER, |_| true);
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
        // written by the command
        let others = ["records.jsonl", "study.json", "errors.svg"];
        assert!(made || others.contains(&link.href.as_str()), "{}", link.href);
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

/// Records of other numbers under the same version would be mixed with these without a word: whoever changes what a model
/// is measured to be raises [`SinusoidSpec::VERSION`], and then these values. Forty iterations magnify roundings little.
#[test]
fn outcomes_of_this_version_are_these() {
    let plan = Plan { iterations: 40, ..Plan::new(Preset::Quick) };
    for (setting, rmse) in [
        (Setting::Pacoh { beta_per_example: 30.0 }, 0.801_897_653_071_158),
        (Setting::Pacmaml { beta_per_example: 30.0, alpha_over_beta: 0.2 }, 0.845_727_397_152_558),
        (Setting::Maml { rate: 0.03, steps: 5 }, 0.822_062_498_879_545),
        (Setting::Reptile { beta_per_example: 30.0 }, 0.942_001_618_057_397),
    ] {
        let model = SinusoidSpec::Model(plan.model(setting, 10, 0, 0));
        let SinusoidOutcome::Model(measured) = model.run(&|| false).unwrap() else { panic!("a model") };
        let found = measured.per_example.mean_rmse();
        assert!(
            (found - rmse).abs() < 1e-6,
            "{setting:?}: {found}, in version {} {rmse}",
            SinusoidSpec::VERSION
        );
    }
    assert_eq!(SinusoidSpec::VERSION, 1);
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
