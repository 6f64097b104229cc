//! Plans, claims and pages of the study on pictures.

use super::*;
use crate::config::ClassificationMethodKind;
use crate::config::ClassificationMethodKind::{Fomaml, Maml, Pacmaml, Pacoh};
use crate::images::ImageScores;
use crate::report::ClaimVerdict;

fn plan() -> ImagePlan {
    ImagePlan::new(ImagePreset::Paper, "pictures".into())
}

#[test]
fn the_papers_plan_has_its_twenty_models_and_their_hyper_parameters() {
    let plan = plan();
    assert_eq!(plan.models().len(), 20);
    for model in plan.models() {
        let config = plan.config(model).unwrap();
        assert_eq!(config.data.way * config.data.shots, model.examples);
        assert_eq!((config.training.batch, config.method.steps, config.evaluation.tasks), (4, 6, 600));
    }
    let config = plan.config(Model { method: Pacmaml, examples: 40 }).unwrap();
    assert_eq!((config.method.rate, config.method.alpha, config.training.rate), (0.01, 10.0, 1e-3));
    let config = plan.config(Model { method: Pacoh, examples: 10 }).unwrap();
    assert_eq!((config.method.rate, config.method.alpha, config.training.rate), (0.01, 10.0, 1e-4));
    assert_eq!(Model { method: Maml, examples: 80 }.accuracy_in_paper(), Some(48.1));
    assert_eq!(Model { method: Maml, examples: 15 }.accuracy_in_paper(), None);
}

/// A scored run whose accuracies are a wave around `mean`.
fn scored(plan: &ImagePlan, method: ClassificationMethodKind, mean: f64, shift: f64) -> ModelRun {
    let per_task: Vec<f64> = (0..100).map(|task| mean + 0.05 * (f64::from(task) + shift).sin()).collect();
    let model = Model { method, examples: 10 };
    let scores = ImageScores { per_task, ..ImageScores::of(&[]) };
    let run = ImageRunFiles {
        folder: "run".into(),
        config: plan.config(model).unwrap(),
        metrics: Vec::new(),
        scores: Some(ImageScores { accuracy: mean, tasks: 100, ..scores }),
        gallery: Vec::new(),
    };
    ModelRun { model, run: Some(run) }
}

#[test]
fn claims_follow_the_numbers() {
    let plan = plan();
    let runs =
        [scored(&plan, Pacmaml, 0.45, 0.0), scored(&plan, Maml, 0.48, 1.0), scored(&plan, Fomaml, 0.40, 2.0)];
    let rows = claims(&runs, 10);
    let verdicts: Vec<_> = rows.iter().map(|row| row.verdict).collect();
    // three points behind MAML; five ahead of FOMAML; MAML eight ahead; the others have no model
    assert_eq!(verdicts, [ClaimVerdict::NotSupported, ClaimVerdict::Supported, ClaimVerdict::Supported]);
    assert!((rows[0].effect + 3.0).abs() < 0.2, "{:?}", rows[0]);
    // the same accuracies task by task: equal for certain, which is within one point
    let twins = [scored(&plan, Pacmaml, 0.45, 0.0), scored(&plan, Maml, 0.45, 0.0)];
    assert_eq!(claims(&twins, 10)[0].verdict, ClaimVerdict::Supported);
    // a difference of about the margin is not decided by tasks this noisy
    let close = [scored(&plan, Pacmaml, 0.45, 0.0), scored(&plan, Maml, 0.46, 1.5)];
    assert_eq!(claims(&close, 10)[0].verdict, ClaimVerdict::Undecided);
    assert!(claims(&runs, 20).is_empty());
}

#[test]
fn the_page_shows_what_is_there_and_what_is_missing() {
    let plan = ImagePlan { examples: vec![10], ..plan() };
    let mut runs = vec![scored(&plan, Pacmaml, 0.45, 0.0), scored(&plan, Maml, 0.48, 1.0)];
    runs.push(ModelRun { model: Model { method: Pacoh, examples: 10 }, run: None });
    let html = crate::report::study_page(&report(&plan, &runs, "pacmeta reproduce mini-imagenet", &[]));
    assert!(html.contains("2 of 3 models are finished"), "no count");
    assert!(html.contains("45") && html.contains("47.8"), "ours or the paper's number is missing");
    assert!(html.contains("not supported"));
    // generated pictures say nothing about the paper
    let generated = ImagePlan { data: "synthetic".into(), ..plan.clone() };
    let other = crate::report::study_page(&report(&generated, &runs, "", &[]));
    assert!(!other.contains("47.8") && !other.contains("miniImageNet") && !other.contains("not supported"));
    assert!(!numbers(&generated, &runs).unwrap()[0].content.contains("0.478"));
    // nor do other pictures
    let own = ImagePlan { is_mini_imagenet: false, ..plan.clone() };
    let page = crate::report::study_page(&report(&own, &runs, "", &[]));
    assert!(!page.contains("47.8") && !page.contains("not supported") && !page.contains("generated"));
    assert!(page.contains("are not miniImageNet"));
    let files = numbers(&plan, &runs).unwrap();
    assert_eq!(files[0].content.lines().count(), 4);
    assert!(
        files[0].content.lines().nth(2).unwrap().starts_with("maml,10,0,60000,0.48"),
        "{}",
        files[0].content
    );
}

#[test]
fn settings_reach_every_model_and_the_page_says_so() {
    let setting = |key: &str, value: &str| [(key.to_owned(), value.to_owned())].into();
    let zero = ImagePlan { settings: setting("prior.head", "zero"), ..plan() };
    for model in zero.models() {
        assert_eq!(zero.config(model).unwrap().prior.head, crate::config::images::HeadStart::Zero);
    }
    let html = crate::report::study_page(&report(&zero, &[], "", &[]));
    assert!(html.contains("other settings than the paper&#39;s: prior.head = zero"));
    let error = plan().including(&zero).unwrap_err().to_string();
    assert!(error.contains("the settings prior.head = zero, not of the paper"), "{error}");
    // a run of one study is not shown in the other
    let folder = tempfile::tempdir().unwrap();
    let model = zero.models()[0];
    std::fs::create_dir(folder.path().join(model.folder())).unwrap();
    let config = folder.path().join(model.folder()).join("config.toml");
    std::fs::write(config, zero.config(model).unwrap().to_toml()).unwrap();
    assert!(super::runs(&zero, folder.path()).is_ok());
    let refused = super::runs(&plan(), folder.path()).unwrap_err().to_string();
    assert!(refused.contains(&model.folder()) && refused.contains("other settings"), "{refused}");
    for (key, value, words) in [
        ("training.iterations", "7", "--iterations"),
        ("data.way", "3", "`pacmeta train`"),
        ("method", "{name = \"maml\"}", "a section, a point and a key"),
        ("seed", "3", "--seed"),
        ("prior.heads", "zero", "prior.head"),
        ("method.rate", "fast", "method.rate"),
    ] {
        let plan = ImagePlan { settings: setting(key, value), ..plan() };
        let error = plan.config(plan.models()[0]).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    // not how a setting is written counts, but what it does
    let rate = |value: &str| ImagePlan {
        methods: vec![Pacmaml],
        examples: vec![10],
        settings: setting("method.rate", value),
        ..plan()
    };
    assert!(rate("0.010").including(&rate("0.01")).is_ok());
    assert!(rate("0.02").including(&rate("0.01")).is_err());
    assert_eq!(rate("0.03").without_idle_settings().settings, [].into(), "the paper's own");
    assert_eq!(rate("0.02").without_idle_settings(), rate("0.02"));
    // alpha = 1 is the paper's at m_i = 10 and not at 40: a study of both goes on in either order
    let size = |examples: usize| {
        let settings = setting("method.alpha", "1");
        ImagePlan { methods: vec![Pacmaml], examples: vec![examples], settings, ..plan() }
            .without_idle_settings()
    };
    assert_eq!((size(10).settings.len(), size(40).settings.len()), (0, 1));
    for (now, before) in [(size(10), size(40)), (size(40), size(10))] {
        assert_eq!(now.including(&before).unwrap().settings, setting("method.alpha", "1"));
    }
    // one that does not fit the models of the other call is another setting, not a mistake
    let alpha = ImagePlan { settings: setting("method.alpha", "3"), ..rate("0.01") };
    let maml = ImagePlan { methods: vec![Maml], settings: [].into(), ..alpha.clone() };
    for (now, before) in [(&maml, &alpha), (&alpha, &maml)] {
        let error = now.including(before).unwrap_err().to_string();
        assert!(error.contains("a study with the settings"), "{error}");
    }
    // what was written before there were settings
    let mut stored = serde_json::to_value(plan()).unwrap();
    stored.as_object_mut().unwrap().remove("settings");
    assert_eq!(serde_json::from_value::<ImagePlan>(stored).unwrap(), plan());
}

#[test]
fn a_smaller_call_keeps_what_was_trained_before() {
    let earlier = ImagePlan { methods: vec![Maml, Pacmaml], examples: vec![10], ..plan() };
    let later = ImagePlan { methods: vec![Fomaml], examples: vec![20], ..plan() };
    let both = later.including(&earlier).unwrap();
    assert_eq!((both.methods, both.examples), (vec![Fomaml, Maml, Pacmaml], vec![10, 20]));
    // other iterations for some of the models, other pictures, other test tasks: another study
    for (other, words) in [
        (ImagePlan { iterations: 70_000, ..later.clone() }, "leave --methods out"),
        (ImagePlan { iterations: 7, ..earlier.clone() }, "raised, not lowered"),
        (ImagePlan { data: "elsewhere".into(), ..later.clone() }, "the pictures"),
        (ImagePlan { tasks: 7, ..later }, "test tasks"),
    ] {
        let error = other.including(&earlier).unwrap_err().to_string();
        assert!(error.contains("choose another --out") && error.contains(words), "{error}");
    }
    let longer = ImagePlan { iterations: 70_000, ..earlier.clone() };
    assert_eq!(longer.including(&earlier).unwrap().iterations, 70_000);
}

#[test]
fn scores_of_a_shorter_study_are_not_those_of_a_longer_one_in_the_same_folder() {
    let folder = tempfile::tempdir().unwrap();
    let short = ImagePlan { methods: vec![Pacmaml], examples: vec![10], iterations: 100, tasks: 7, ..plan() };
    let model = short.models()[0];
    let path = folder.path().join(model.folder());
    std::fs::create_dir_all(&path).unwrap();
    std::fs::write(path.join("config.toml"), short.config(model).unwrap().to_toml()).unwrap();
    let scores = serde_json::json!({
        "iterations": 100, "normalisation": "batch", "scores": {
            "tasks": 7, "queries": 75, "accuracy": 0.5, "log_likelihood": -1.0, "calibration_error": 0.1,
            "reliability": [], "per_task": [0.5],
        }
    });
    std::fs::write(path.join("scores.json"), scores.to_string()).unwrap();
    let accuracy = |plan: &ImagePlan| {
        let runs = runs(plan, folder.path()).unwrap();
        (runs[0].scores().map(|scores| scores.accuracy), runs[0].progress(plan))
    };
    assert_eq!(accuracy(&short), (Some(0.5), None));
    let longer = ImagePlan { iterations: 1000, ..short.clone() };
    assert_eq!(accuracy(&longer), (None, Some("0 of 1000".to_owned())));
    let other_tasks = ImagePlan { tasks: 8, ..short };
    assert_eq!(accuracy(&other_tasks).0, None);
}
