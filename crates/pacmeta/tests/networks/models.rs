//! Image models whose every parameter adapts: configuration, training, checkpoints, new tasks.

use std::sync::Arc;

use pacmeta::classification::{MetaLearner, Quiet};
use pacmeta::config::ImageConfig;
use pacmeta::config::images::Normalisation;
use pacmeta::environments::images::{
    Channels, ImageSet, PictureShape, SplitRecipe, Splits, StrokeOptions, strokes,
};
use pacmeta::images::{ImageExperiment, ImageModel, ImageTrainer, LabelledPictures};
use pacmeta::methods::networks::Adapts;
use pacmeta_tensor::Key;

fn config(method: &str) -> pacmeta::Result<ImageConfig> {
    let text = format!(
        "[data]\nenvironment = \"images\"\npath = \"synthetic\"\nside = 12\nchannels = \"grey\"\nway = 3\nshots = 3\n\
         query = 2\n[prior]\nfilters = 4\nblocks = 2\n[training]\niterations = 3\nbatch = 2\nvalidation_tasks = 0\n\
         [evaluation]\ntasks = 4\n[method]\n{method}\n"
    );
    ImageConfig::parse("test.toml", &text, &[])
}

fn pictures() -> (Arc<ImageSet>, Splits) {
    let shape = PictureShape { side: 12, channels: Channels::Grey };
    let set = strokes(&StrokeOptions { classes: 20, pictures: 8, shape, seed: 3 }).unwrap();
    let splits = Splits::made(&set, &SplitRecipe { way: 3, ..SplitRecipe::standard(Key::new(0)) }).unwrap();
    (Arc::new(set), splits)
}

#[test]
fn the_switch_is_read_written_and_refused_where_it_has_no_meaning() {
    let plain = config("name = \"fomaml\"").unwrap();
    assert_eq!(plain.method.adapts, Adapts::Head);
    assert!(!plain.to_toml().contains("adapts"), "runs from before the key can be continued");
    let whole = config("name = \"fomaml\"\nadapts = \"network\"").unwrap();
    assert_eq!(whole.method.adapts, Adapts::Network);
    assert_eq!(ImageConfig::parse("again.toml", &whole.to_toml(), &[]).unwrap(), whole);
    for (method, key, advice) in [
        (
            "name = \"bmaml\"\nadapts = \"network\"\nsampler = \"svgd\"\nparticles = 2",
            "`method.sampler`",
            "take one here",
        ),
        (
            "name = \"pacoh\"\nestimator = \"prior\"\nadapts = \"network\"",
            "`method.estimator`",
            "choose \"posterior\"",
        ),
        ("adapts = \"body\"", "`method.adapts`", "\"network\""),
    ] {
        let error = config(method).unwrap_err().to_string();
        assert!(error.contains(key) && error.contains(advice), "{error}");
    }
}

#[test]
fn every_method_trains_and_scores_and_is_repeatable() {
    let (set, splits) = pictures();
    for method in [
        "name = \"pacmaml\"",
        "name = \"pacmaml\"\nsampler = \"sgld\"\nparticles = 2\ninner_optimiser = \"gd\"",
        "name = \"pacoh\"\nsampler = \"svgd\"\nparticles = 2",
        "name = \"maml\"\nsteps = 2",
        "name = \"bmaml\"\nsteps = 2",
        "name = \"fomaml\"\nsplit = \"disjoint\"",
        "name = \"reptile\"",
        "name = \"multi-task\"",
    ] {
        let config = config(&format!("{method}\nadapts = \"network\"")).unwrap();
        let run = || {
            let mut trainer = ImageTrainer::new(&config, &set, &splits.train).unwrap();
            let terms: Vec<_> = (0..3).map(|_| trainer.step().unwrap()).collect();
            (terms, trainer.descent().parameters().clone())
        };
        let (terms, parameters) = run();
        assert_eq!((terms.clone(), parameters.clone()), run(), "{method}");
        assert!(terms.iter().all(|terms| terms.gradient_norm > 0.0), "{method}");
        let experiment = ImageExperiment::new(config, Arc::clone(&set), splits.clone()).unwrap();
        let model = experiment.model(parameters);
        assert_eq!(model.adapts(), Adapts::Network);
        let scores = experiment.scores(&model, &|| false).unwrap();
        assert_eq!(scores.tasks, 4);
        assert!(scores.log_likelihood.is_finite(), "{method}");
    }
}

#[test]
fn a_stored_model_adapts_as_before_also_to_other_numbers_of_classes() {
    let (set, splits) = pictures();
    let config = config("name = \"fomaml\"\nadapts = \"network\"\nrate = 0.05").unwrap();
    let experiment = ImageExperiment::new(config, Arc::clone(&set), splits.clone()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let outcome = experiment.train_in(folder.path().join("run"), &mut Quiet).unwrap();
    let model = ImageModel::read(folder.path().join("run")).unwrap();
    assert_eq!(model.adapts(), Adapts::Network);

    for classes in [3, 2, 4] {
        let of_class =
            |class: usize, picture: usize| set.pixels(set.classes()[class].pictures[picture]).to_vec();
        let labels: Vec<usize> = (0..classes).collect();
        let pixels: Vec<u8> = labels.iter().flat_map(|&class| of_class(class, 0)).collect();
        let queries: Vec<u8> = labels.iter().flat_map(|&class| of_class(class, 1)).collect();
        let support = LabelledPictures { pixels: &pixels, labels: &labels, classes };
        let classify = |model: &ImageModel| model.classify(support, &queries, Key::new(1)).unwrap();
        let probabilities = classify(&model);
        assert_eq!(probabilities.len(), classes);
        for row in &probabilities {
            assert_eq!(row.len(), classes);
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
        }
        // a head that starts at zero has moved
        assert!(probabilities.iter().flatten().any(|p| (p * classes as f32 - 1.0).abs() > 1e-3));
        let head_only = classify(&model.clone().adapting(Adapts::Head));
        assert_ne!(probabilities, head_only);
        let support_only = classify(&model.clone().with_normalisation(Normalisation::Support));
        let together = classify(&model.clone().with_normalisation(Normalisation::Together));
        assert!(support_only != probabilities && together != probabilities && together != support_only);
    }

    // the same in the stored precision, and a model without the key is one whose head adapts
    let mut checkpoint = outcome.model.to_checkpoint();
    let metadata = checkpoint.metadata.as_mut().unwrap().as_object_mut().unwrap();
    assert_eq!(metadata["adapts"], "network");
    metadata.remove("adapts");
    assert_eq!(ImageModel::from_checkpoint("old", &checkpoint).unwrap().adapts(), Adapts::Head);
    let metadata = checkpoint.metadata.as_mut().unwrap().as_object_mut().unwrap();
    metadata.insert("adapts".into(), "body".into());
    let error = ImageModel::from_checkpoint("odd", &checkpoint).unwrap_err().to_string();
    assert!(error.contains("key `adapts`"), "{error}");
}

/// The whole network learns: its loss after adapting falls.
#[test]
fn training_lowers_the_loss() {
    let (set, splits) = pictures();
    let config = config("name = \"fomaml\"\nadapts = \"network\"\nrate = 0.05\nsteps = 3").unwrap();
    let mut trainer = ImageTrainer::new(&config, &set, &splits.train).unwrap();
    for _ in 0..30 {
        trainer.step().unwrap();
    }
    let early = trainer.descent_mut().take_window();
    for _ in 0..1500 {
        trainer.step().unwrap();
    }
    trainer.descent_mut().take_window();
    for _ in 0..100 {
        trainer.step().unwrap();
    }
    let late = trainer.descent_mut().take_window();
    assert!(late.risk < 0.8 * early.risk, "{} after {}", late.risk, early.risk);
    assert!(late.accuracy > early.accuracy, "{} after {}", late.accuracy, early.accuracy);
}
