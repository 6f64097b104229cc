//! Defaults, overrides and the files in `configs/`; `messages` has what is refused, `properties` what always holds, `document` what is
//! written about keys.

#[cfg(all(feature = "images", feature = "text"))]
mod document;
mod messages;
mod properties;

use std::path::{Path, PathBuf};

use pacmeta_bounds::Psi;

use super::*;
use crate::environments::table::TableOptions;
use crate::learners::lbfgs::Lbfgs;
use crate::learners::{InnerSteps, TargetTemperature};
use crate::methods::{Resample, SubsetRule, SubsetSize};
use crate::priors::{GaussianProcessSpec, Kernel, NetworkSpec, PriorSpec};
use crate::training::{HyperPrior, OptimiserKind};

fn parse(text: &str) -> Config {
    Config::parse("test.toml", text, &[]).unwrap()
}

fn set(text: &str, overrides: &[(&str, &str)]) -> Result<Config> {
    let overrides: Vec<_> =
        overrides.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    Config::parse("test.toml", text, &overrides)
}

/// All files in the folder `configs`.
fn config_files() -> Vec<(PathBuf, AnyConfig)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    files.into_iter().map(|file| (file.clone(), AnyConfig::read(&file, &[]).unwrap())).collect()
}

/// Those of regression.
fn configs() -> Vec<(PathBuf, Config)> {
    let regression = |(file, config)| match config {
        AnyConfig::Regression(config) => Some((file, *config)),
        _ => None,
    };
    config_files().into_iter().filter_map(regression).collect()
}

#[cfg(feature = "images")]
#[test]
fn every_configuration_of_pictures_survives_writing() {
    let mut count = 0;
    for (file, config) in config_files() {
        let AnyConfig::Images(config) = config else { continue };
        assert_eq!(
            ImageConfig::parse("again", &config.to_toml(), &[]).unwrap(),
            *config,
            "{}",
            file.display()
        );
        count += 1;
    }
    assert_eq!(count, 3);
}

#[test]
fn an_empty_file_is_the_paper_with_temperatures_to_be_chosen() {
    let config = parse("");
    assert_eq!(config, Config::default());
    assert_eq!(config.seed, 0);
    let data = SyntheticData {
        environment: SyntheticEnvironment::Sinusoid,
        tasks: 20,
        examples: 30,
        target_tasks: 20,
        query: 100,
    };
    assert_eq!(
        config.data,
        DataConfig { source: DataSource::Synthetic(data), support: 5, standardise: true }
    );
    assert_eq!(config.prior.spec(1), PriorSpec::GaussianProcess(GaussianProcessSpec::paper(1)));
    let method = MethodConfig {
        kind: MethodKind::Pacmaml,
        beta: Some(Temperature::Auto),
        alpha: Some(AlphaChoice::Auto),
        hyper_prior: Some(HyperPriorConfig { sigma0_squared: 3.0, lambda: None }),
        subset: Some(SubsetConfig {
            size: SubsetSize::Count(5),
            split: SubsetRule::Nested,
            resample: Some(Resample::EachIteration),
        }),
        target_temperature: Some(TargetTemperature::PerExample),
        inner: None,
        proximal: None,
    };
    assert_eq!(config.method, method);
    let training = TrainingConfig {
        iterations: 8000,
        batch: 5,
        optimiser: OptimiserKind::Adam,
        rate: 3e-3,
        weight_decay: 0.0,
        log_every: 50,
        checkpoint_every: 1000,
    };
    assert_eq!(config.training, training);
    let search = SearchConfig {
        iterations: 1000,
        folds: 3,
        beta_per_example: vec![10.0, 30.0, 100.0],
        alpha_per_example: vec![10.0, 30.0, 100.0, 300.0],
    };
    assert_eq!(config.search, Some(search));
    assert_eq!(
        config.bound,
        BoundConfig { delta: 0.05, hyper_posterior_std: 0.05, assumption: Assumption::Simulated }
    );
}

#[test]
fn methods_have_defaults_of_their_own() {
    let pacoh = Config::default_for(MethodKind::Pacoh);
    assert_eq!((pacoh.method.beta, pacoh.method.alpha), (Some(Temperature::Auto), None));
    assert_eq!(pacoh.method.subset, None);
    assert_eq!(pacoh.search.unwrap().alpha_per_example, Vec::<f64>::new());

    let recipe = Config::default_for(MethodKind::PacohMap);
    assert_eq!((recipe.method.beta, recipe.method.hyper_prior, recipe.search), (None, None, None));
    assert_eq!(recipe.prior.gaussian_process, Some(KernelConfig { features: 2, kernel: Kernel::Learned }));
    assert_eq!(recipe.training.optimiser, OptimiserKind::Adamw);
    assert_eq!((recipe.training.rate, recipe.training.weight_decay), (1e-3, 0.2));

    for (kind, steps) in [(MethodKind::Maml, 5), (MethodKind::Fomaml, 5), (MethodKind::MultiTask, 0)] {
        let config = Config::default_for(kind);
        assert_eq!(config.method.inner, Some(InnerSteps { steps, rate: 0.01 }));
        assert_eq!((config.method.beta, config.method.hyper_prior), (None, None));
        assert_eq!(config.method.subset.is_some(), kind != MethodKind::MultiTask);
        assert_eq!(
            config.prior.spec(3),
            PriorSpec::Network(NetworkSpec { dimension: 3, hidden: vec![32, 32] })
        );
    }

    let reptile = Config::default_for(MethodKind::Reptile);
    assert_eq!(reptile.method.beta, Some(Temperature::PerExample(100.0)));
    let proximal = ProximalConfig { sigma_squared: 1.0, optimiser: InnerOptimiser::Paper };
    assert_eq!(reptile.method.proximal, Some(proximal));
    assert_eq!(reptile.search, None);
}

#[test]
fn every_method_can_be_configured_and_built() {
    assert_eq!(MethodKind::ALL.map(MethodKind::name), MethodSettings::NAMES);
    for kind in MethodKind::ALL {
        let config = Config::default_for(kind);
        assert!(config.check().is_ok(), "{kind}");
        let method = config.method_settings(300.0, Some(60.0)).unwrap().build(&config.prior.spec(1)).unwrap();
        assert_eq!(method.name(), kind.name());
        assert_eq!(method.uses_subset(), kind.uses_subset(), "{kind}");
        assert_eq!(toml::Value::try_from(kind).unwrap().as_str(), Some(kind.name()));
    }
}

#[test]
fn environments_have_the_names_of_the_library() {
    for kind in [SyntheticEnvironment::Sinusoid, SyntheticEnvironment::Cauchy, SyntheticEnvironment::GpDraws]
    {
        let config = parse(&format!("data.environment = \"{}\"", kind.name()));
        assert_eq!(config.data.synthetic().map(|data| data.environment), Some(kind));
        assert_eq!(kind.environment().name(), kind.name());
        assert_eq!(
            crate::environments::by_name(kind.name()).unwrap().dimension(),
            kind.environment().dimension()
        );
    }
}

#[test]
fn a_path_makes_it_a_table() {
    let config = parse("[data]\npath = \"shops.csv\"");
    let table = config.data.table().unwrap();
    assert_eq!(table.path, Path::new("shops.csv"));
    assert_eq!(table.options, TableOptions::default());
    assert_eq!(table.held_out, HeldOut::Fraction(0.2));
    assert_eq!(config.data.synthetic(), None);

    let config = parse(
        "[data]\nenvironment = \"table\"\npath = \"a.json\"\ntask = \"shop\"\ntarget = \"sold\"\nfeatures = [\"price\"]\n\
         min_examples = 3\nheld_out = 4\nstandardise = false",
    );
    let table = config.data.table().unwrap();
    let options = TableOptions {
        task: "shop".into(),
        target: "sold".into(),
        features: Some(vec!["price".into()]),
        min_examples: Some(3),
    };
    assert_eq!((&table.options, table.held_out), (&options, HeldOut::Count(4)));
    assert!(!config.data.standardise);
    assert_eq!(parse(&config.to_toml()), config);

    // A table's tasks have sizes of their own, so a large S' cannot be refused yet.
    let subset = parse("data.path = \"a.csv\"\nmethod.subset = 1000").method.subset.unwrap();
    assert_eq!(subset.size, SubsetSize::Count(1000));
}

#[test]
fn held_out_tasks_leave_some_to_learn_from() {
    let held_out = |value: &str| {
        parse(&format!("data.path = \"a.csv\"\ndata.held_out = {value}")).data.table().unwrap().held_out
    };
    assert_eq!(held_out("0"), HeldOut::Count(0));
    assert_eq!(held_out("0.0"), HeldOut::Count(0));
    assert_eq!(held_out("0.25").of(10), 3);
    assert_eq!(held_out("0.01").of(10), 1);
    assert_eq!(held_out("0.99").of(10), 9);
    assert_eq!((held_out("0.5").of(1), held_out("0.5").of(0)), (0, 0));
    assert_eq!(held_out("7").of(3), 7);
}

#[test]
fn temperatures_become_numbers_when_tasks_are_known() {
    assert_eq!(harmonic_mean([2, 6]), 3.0);
    assert_eq!(harmonic_mean([]), 0.0);
    assert_eq!(Temperature::Auto.resolve([5, 5]), None);
    assert_eq!(Temperature::Value(7.0).resolve([5, 5]), Some(7.0));
    assert_eq!(Temperature::PerExample(10.0).resolve([2, 6]), Some(30.0));
    assert_eq!(AlphaChoice::Auto.resolve(10.0), None);
    assert_eq!(AlphaChoice::Value(3.0).resolve(10.0), Some(3.0));
    assert_eq!(AlphaChoice::OverBeta(0.25).resolve(10.0), Some(2.5));

    let config = parse("[method]\nbeta_per_example = 100\nalpha_over_beta = 0.5");
    let beta = config.method.beta.unwrap().resolve([30; 20]).unwrap();
    assert!((beta - 3000.0).abs() < 1e-9, "{beta}");
    let expected = MethodSettings::Pacmaml { alpha: 1500.0, beta: 3000.0 };
    assert_eq!(config.method_settings(3000.0, None).unwrap(), expected);
    let expected = MethodSettings::Pacmaml { alpha: 4.0, beta: 3000.0 };
    assert_eq!(config.method_settings(3000.0, Some(4.0)).unwrap(), expected);

    let text = "[method]\nname = \"reptile\"\nbeta = 8\nsigma_squared = 0.5\ninner_optimiser = \"converged\"";
    let expected = MethodSettings::Reptile { beta_sigma_squared: 4.0, optimiser: Lbfgs::CONVERGED };
    assert_eq!(parse(text).method_settings(8.0, None).unwrap(), expected);
}

#[test]
fn xi_is_the_papers() {
    let term = |text: &str, beta| parse(text).method.hyper_prior.map(|term| term.resolve(beta, 20));
    let expected = HyperPrior { xi: 1.0 / 2000.0, sigma0_squared: 3.0 };
    assert_eq!(term("", Some(100.0)), Some(expected));
    let expected = HyperPrior { xi: 0.25 + 1.0 / 2000.0, sigma0_squared: 2.0 };
    assert_eq!(term("[method]\nlambda = 4\nsigma0_squared = 2", Some(100.0)), Some(expected));
    let expected = HyperPrior { xi: 0.25, sigma0_squared: 3.0 };
    assert_eq!(term("[method]\nname = \"maml\"\nlambda = 4", None), Some(expected));
    assert_eq!(term("[method]\nname = \"maml\"", None), None);
}

#[test]
fn whole_numbers_are_counts_and_others_fractions() {
    let size = |value: &str| parse(&format!("method.subset = {value}")).method.subset.unwrap().size;
    assert_eq!(size("30"), SubsetSize::Count(30));
    assert_eq!(size("1"), SubsetSize::Count(1));
    assert_eq!(size("0.5"), SubsetSize::Fraction(0.5));
}

#[test]
fn assumptions_become_cumulant_bounds() {
    let psi = |text: &str| parse(&format!("[bound]\n{text}")).bound.assumption.psi();
    assert_eq!(psi("assumption = \"none\""), None);
    assert_eq!(psi("assumption = \"bounded\"\na = -1\nb = 2.5"), Some(Psi::Bounded { low: -1.0, high: 2.5 }));
    assert_eq!(psi("assumption = \"sub-gaussian\"\nvariance = 2"), Some(Psi::SubGaussian { variance: 2.0 }));
    assert_eq!(
        psi("assumption = \"sub-gamma\"\nvariance = 2\nscale = 0.5"),
        Some(Psi::SubGamma { variance: 2.0, scale: 0.5 })
    );
    assert_eq!(
        psi("assumption = \"non-negative\"\nsecond_moment = 9"),
        Some(Psi::NonNegative { second_moment: 9.0 })
    );
}

#[test]
fn the_resolved_text_is_complete_and_stable() {
    let text = Config::default_for(MethodKind::Reptile).to_toml();
    let expected = "\
seed = 0

[data]
environment = \"sinusoid\"
tasks = 20
examples = 30
target_tasks = 20
query = 100
support = 5
standardise = true

[prior]
hidden = [32, 32]

[method]
name = \"reptile\"
beta_per_example = 100.0
sigma0_squared = 3.0
sigma_squared = 1.0
inner_optimiser = \"paper\"

[training]
iterations = 8000
batch = 5
optimiser = \"adam\"
rate = 0.003
log_every = 50
checkpoint_every = 1000

[bound]
delta = 0.05
hyper_posterior_std = 0.05
assumption = \"simulated\"
";
    assert_eq!(text, expected);
}

#[test]
fn the_search_is_kept_only_where_something_is_chosen() {
    let search =
        "[search]\niterations = 7\nfolds = 2\nbeta_per_example = [1]\nalpha_per_example = [2, 3.5]\n";
    let both = parse(search).search.unwrap();
    assert_eq!((both.iterations, both.folds), (7, 2));
    assert_eq!((both.beta_per_example, both.alpha_per_example), (vec![1.0], vec![2.0, 3.5]));
    let one = parse(&format!("{search}[method]\nalpha_over_beta = 0.2")).search.unwrap();
    assert_eq!((one.beta_per_example, one.alpha_per_example), (vec![1.0], vec![]));
    assert_eq!(parse(&format!("{search}[method]\nalpha = 1\nbeta = 2")).search, None);
}

#[test]
fn overrides_are_toml_values_or_bare_texts() {
    let overrides = [
        ("seed", "7"),
        ("method.name", "pacoh"),
        ("prior.hidden", "[8, 4]"),
        ("data.environment", "\"cauchy\""),
        ("method.beta", "auto"),
        ("training.rate", " 1e-4 "),
        ("seed", "8"),
    ];
    let config = set("seed = 3\n[method]\nbeta = 4.0", &overrides).unwrap();
    assert_eq!(config.seed, 8);
    assert_eq!((config.method.kind, config.method.beta), (MethodKind::Pacoh, Some(Temperature::Auto)));
    assert_eq!(config.prior.hidden, [8, 4]);
    assert_eq!(config.data.synthetic().unwrap().environment, SyntheticEnvironment::Cauchy);
    assert_eq!(config.training.rate, 1e-4);

    let path = "C:\\data\\my tasks, 2.csv"; // not TOML, and not to be quoted by hand
    let config = set("", &[("data.path", path)]).unwrap();
    assert_eq!(config.data.table().unwrap().path, Path::new(path));
    assert_eq!(parse(&config.to_toml()), config);
}

#[test]
fn an_override_takes_the_place_of_its_alternative() {
    let text = "[method]\nbeta_per_example = 100\nalpha_over_beta = 0.2";
    let config = set(text, &[("method.beta", "5"), ("method.alpha", "auto")]).unwrap();
    assert_eq!(config.method.beta, Some(Temperature::Value(5.0)));
    assert_eq!(config.method.alpha, Some(AlphaChoice::Auto));
    let config = set("method.beta = 3", &[("method.beta_per_example", "5")]).unwrap();
    assert_eq!(config.method.beta, Some(Temperature::PerExample(5.0)));
    assert!(set(text, &[("method.beta", "5"), ("method.beta_per_example", "1")]).is_err());
}

#[test]
fn every_file_in_configs_is_read_and_survives_writing() {
    let configs = configs();
    let names: Vec<_> = configs.iter().map(|(file, _)| file.file_stem().unwrap().to_str().unwrap()).collect();
    for name in
        ["own-table", "pacoh-recipe", "sinusoid", "sinusoid-maml", "sinusoid-pacoh", "sinusoid-reptile"]
    {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
    for (file, config) in &configs {
        assert_eq!(parse(&config.to_toml()), *config, "{}", file.display());
        let first = std::fs::read_to_string(file).unwrap();
        for word in ["# When:", "# How long:"] {
            assert!(first.contains(word), "{} does not say {word:?}", file.display());
        }
    }
    let of = |name: &str| &configs[names.iter().position(|other| *other == name).unwrap()].1;
    let paper = &of("sinusoid").method;
    assert_eq!(paper.beta, Some(Temperature::PerExample(100.0)));
    assert_eq!(paper.alpha, Some(AlphaChoice::OverBeta(0.2)));
    assert_eq!(of("sinusoid-pacoh").method.beta, Some(Temperature::PerExample(30.0)));
    assert_eq!(of("pacoh-recipe").training.iterations, 12_000);
    assert_eq!(of("pacoh-recipe").data.synthetic().unwrap().examples, 5);
    assert_eq!(of("own-table").method.beta, Some(Temperature::Auto));
    assert_eq!(of("own-table").training.iterations, 3000);
    for (name, method) in [("sinusoid-maml", "maml"), ("sinusoid-reptile", "reptile")] {
        assert_eq!(of(name).method.kind.name(), method);
    }
}

#[test]
fn serde_speaks_the_same_keys() {
    for kind in MethodKind::ALL {
        let config = Config { seed: i64::MAX as u64, ..Config::default_for(kind) };
        let json = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<Config>(&json).unwrap(), config);
        assert_eq!(toml::from_str::<Config>(&config.to_toml()).unwrap(), config);
        assert_eq!(toml::Table::try_from(&config).unwrap(), config.to_toml().parse::<toml::Table>().unwrap());
    }
    let mistake = serde_json::from_str::<Config>("{\"training\": {\"batch\": 0}}").unwrap_err();
    assert!(mistake.to_string().contains("training.batch"), "{mistake}");
}

#[test]
fn fields_changed_by_hand_are_checked_again() {
    let mut config = Config::default();
    config.training.batch = 0;
    assert!(config.check().unwrap_err().to_string().contains("training.batch"));
    let mut config = Config::default_for(MethodKind::Pacoh);
    config.method.alpha = Some(AlphaChoice::Value(1.0));
    assert!(config.check().unwrap_err().to_string().contains("method.alpha"));
    let mut config = Config::default();
    config.training.weight_decay = 0.5; // with Adam, it would be lost
    assert!(config.check().is_err());
}
