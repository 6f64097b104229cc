//! What is refused, and in which words.

use super::{parse, set};
use crate::config::{Config, MethodKind};
use crate::error::Error;

/// The message that a text leads to; it must be the user's to mend.
fn refused(text: &str) -> String {
    message(Config::parse("test.toml", text, &[]))
}

fn message(result: crate::Result<Config>) -> String {
    let error = result.expect_err("it should be refused");
    assert!(error.is_input(), "{error}");
    error.to_string()
}

/// Every text is refused with a message about `key` that contains all of the words.
fn all_refused(cases: &[(&str, &str, &[&str])]) {
    for (text, key, words) in cases {
        let message = refused(text);
        let begin = format!("configuration key `{key}`: ");
        assert!(message.starts_with(&begin), "{text}\n{message}\ndoes not begin with {begin}");
        for word in *words {
            assert!(message.contains(word), "{text}\n{message}\ndoes not contain {word}");
        }
    }
}

#[test]
fn broken_toml_is_located() {
    let place = |text: &str| refused(text).split(": ").next().unwrap().to_owned();
    assert_eq!(place("seed = 1\n[data\n"), "test.toml, line 2, column 6");
    assert_eq!(place("seed = 1\nseed = 2"), "test.toml, line 2, column 1");
    assert_eq!(place("[method]\n\"é\" = 1, 2"), "test.toml, line 2, column 8");
    assert_eq!(place("beta ="), "test.toml, line 1, column 7");
    assert!(
        refused("seed = 1\nseed = 2").contains("is not TOML: duplicate key"),
        "{}",
        refused("seed=1\nseed=2")
    );
    assert!(refused(&format!("seed = {}", "[".repeat(100_000))).contains("is not TOML"));
    assert!(refused("seed = 99999999999999999999").contains("line 1, column 8"));
}

#[test]
fn unknown_keys_and_sections_suggest_others() {
    all_refused(&[
        (
            "sede = 1",
            "sede",
            &["did you mean `seed`?", "top level", "seed, data, prior, method, training, search"],
        ),
        ("[metod]", "metod", &["did you mean `method`?"]),
        (
            "[training]\niteration = 3",
            "training.iteration",
            &[
                "did you mean `iterations`?",
                "section [training]",
                "iterations, batch, optimiser, rate, weight_decay, log_every, checkpoint_every",
            ],
        ),
        (
            "[bound]\nloss = 3",
            "bound.loss",
            &["no such key in section [bound], where", "delta, hyper_posterior_std, assumption, a, b"],
        ),
        ("[data]\n\"a\\u001b[31m\" = 1", "data.a\\u{1b}[31m", &["no such key"]),
        ("data = 3", "data", &["expected a section [data], found the whole number 3"]),
        ("method = \"pacoh\"", "method", &["found the text `pacoh`", "`method.name`"]),
        ("[[data]]\ntasks = 3", "data", &["expected a section [data], found a list of 1"]),
    ]);
    let long = "k".repeat(100_000);
    assert!(refused(&format!("{long} = 1")).len() < 300);
}

#[test]
fn wrong_types_say_what_was_expected_and_found() {
    all_refused(&[
        ("seed = \"one\"", "seed", &["expected a whole number from 0 to", "found the text `one`"]),
        ("seed = 1.5", "seed", &["found the number 1.5"]),
        ("seed = -1", "seed", &["found the whole number -1"]),
        ("data.tasks = []", "data.tasks", &["found an empty list"]),
        ("data.standardise = 1", "data.standardise", &["expected true or false, found the whole number 1"]),
        ("data.path = 3", "data.path", &["expected a text in quotes", "found the whole number 3"]),
        ("data.path = \"\"", "data.path", &["found an empty text"]),
        ("data.features = \"a\"\ndata.path = \"x\"", "data.features", &["a list of 1 to", "texts", "`a`"]),
        ("data.features = [1]\ndata.path = \"x\"", "data.features", &["found the whole number 1"]),
        (
            "prior.hidden = 32",
            "prior.hidden",
            &["a list of 1 to", "whole numbers, found the whole number 32"],
        ),
        ("prior.hidden = [32, true]", "prior.hidden", &["found the flag true"]),
        ("method.beta = \"high\"", "method.beta", &["expected \"auto\" or a number above 0", "`high`"]),
        ("method.beta = true", "method.beta", &["found the flag true"]),
        ("method.beta_per_example = \"auto\"", "method.beta_per_example", &["expected a number above 0"]),
        ("method.split = 1", "method.split", &["expected one of \"nested\", \"disjoint\", found the whole"]),
        ("method.name = 3", "method.name", &["found the whole number 3"]),
        ("training.rate = 1979-05-27", "training.rate", &["found a date"]),
        ("training.rate = {}", "training.rate", &["found a section"]),
        ("search.beta_per_example = 3", "search.beta_per_example", &["a list of 1 to", "numbers"]),
    ]);
}

#[test]
fn unknown_names_suggest_others() {
    all_refused(&[
        (
            "method.name = \"pacmamel\"",
            "method.name",
            &[
                "there is none called `pacmamel` (did you mean `pacmaml`?)",
                "pacmaml, pacoh, pacoh-map, maml, fomaml, reptile, multi-task",
            ],
        ),
        (
            "data.environment = \"sinus\"",
            "data.environment",
            &["did you mean `sinusoid`?", "\"gp-draws\", \"table\""],
        ),
        ("prior.kernel = \"learnt\"", "prior.kernel", &["did you mean `learned`?"]),
        ("method.split = \"nest\"", "method.split", &["did you mean `nested`?"]),
        ("method.resample = \"never\"", "method.resample", &["\"each_iteration\", \"fixed\""]),
        ("method.target_temperature = \"fix\"", "method.target_temperature", &["did you mean `fixed`?"]),
        ("training.optimiser = \"sgd\"", "training.optimiser", &["\"adam\", \"adamw\""]),
        ("bound.assumption = \"subgaussian\"", "bound.assumption", &["did you mean `sub-gaussian`?"]),
        (
            "[method]\nname = \"reptile\"\ninner_optimiser = \"lbfgs\"",
            "method.inner_optimiser",
            &["\"converged\""],
        ),
    ]);
    assert!("fomalm".parse::<MethodKind>().unwrap_err().to_string().contains("did you mean `fomaml`?"));
}

#[test]
fn numbers_outside_their_range_are_refused() {
    for (key, values) in [
        ("method.beta", &["0", "-1", "0.0", "nan", "inf", "-inf"][..]),
        ("method.beta_per_example", &["0", "-3.0", "inf"]),
        ("method.alpha", &["0", "-1", "nan"]),
        ("method.alpha_over_beta", &["0.0", "inf"]),
        ("method.lambda", &["0", "-1", "inf"]),
        ("method.sigma0_squared", &["0", "-1", "nan"]),
        ("method.subset", &["0", "-1", "0.0", "1.0", "1.5", "-0.5", "nan"]),
        ("training.iterations", &["0", "-1", "1.0", "1000000000001"]),
        ("training.batch", &["0", "1000001"]),
        ("training.rate", &["0", "-1e-3", "nan"]),
        ("training.log_every", &["0"]),
        ("training.checkpoint_every", &["0"]),
        ("search.iterations", &["0"]),
        ("search.folds", &["0", "1"]),
        ("search.beta_per_example", &["[]", "[0]", "[10, inf]"]),
        ("search.alpha_per_example", &["[]", "[-1]"]),
        ("prior.hidden", &["[]", "[0]", "[32, 65537]", "[-1]"]),
        ("prior.features", &["0", "65537"]),
        ("data.tasks", &["0", "1000001"]),
        ("data.examples", &["0", "1"]),
        ("data.target_tasks", &["0"]),
        ("data.support", &["0"]),
        ("data.query", &["0"]),
        ("bound.delta", &["0", "1", "0.0", "1.0", "-0.1", "nan"]),
    ] {
        for value in values {
            let message = message(set("", &[(key, value)]));
            assert!(
                message.starts_with(&format!("configuration key `{key}`: expected ")),
                "{value}: {message}"
            );
        }
    }
    let table = "[data]\npath = \"a.csv\"\n";
    for (key, values) in
        [("held_out", &["1.0", "-1", "-0.1", "nan", "1.5"][..]), ("min_examples", &["0", "1", "2.0"])]
    {
        for value in values {
            let message = refused(&format!("{table}{key} = {value}"));
            assert!(message.starts_with(&format!("configuration key `data.{key}`: expected ")), "{message}");
        }
    }
    for (name, key, value) in [
        ("maml", "steps", "-1"),
        ("maml", "rate", "0"),
        ("reptile", "sigma_squared", "0"),
        ("reptile", "beta", "0"),
    ] {
        let message = refused(&format!("[method]\nname = \"{name}\"\n{key} = {value}"));
        assert!(message.starts_with(&format!("configuration key `method.{key}`: expected ")), "{message}");
    }
    let message = message(set("", &[("prior.hidden", &format!("{:?}", [8; 65]))]));
    assert!(message.contains("at most 64 hidden layers, found 65"), "{message}");
    let decay = refused("[training]\noptimiser = \"adamw\"\nweight_decay = -0.1");
    assert!(decay.contains("`training.weight_decay`: expected a number of at least 0"), "{decay}");
}

#[test]
fn keys_without_effect_are_refused() {
    all_refused(&[
        (
            "[method]\nname = \"maml\"\nbeta = 3",
            "method.beta",
            &["the method maml does not use it; it belongs to pacmaml, pacoh, reptile"],
        ),
        ("[method]\nname = \"pacoh\"\nalpha = 3", "method.alpha", &["belongs to pacmaml"]),
        ("[method]\nname = \"pacoh\"\nsubset = 3", "method.subset", &["belongs to pacmaml, maml, fomaml"]),
        ("[method]\nname = \"pacoh-map\"\nlambda = 3", "method.lambda", &["pacoh-map does not use it"]),
        ("method.steps = 3", "method.steps", &["pacmaml does not use it", "maml, fomaml, multi-task"]),
        ("method.inner_optimiser = \"paper\"", "method.inner_optimiser", &["belongs to reptile"]),
        (
            "[method]\nname = \"maml\"\ntarget_temperature = \"fixed\"",
            "method.target_temperature",
            &["pacoh"],
        ),
        (
            "[method]\nname = \"maml\"\nsigma0_squared = 1",
            "method.sigma0_squared",
            &["together with `method.lambda`"],
        ),
        (
            "method.name = \"maml\"\nprior.kernel = \"paper\"",
            "prior.kernel",
            &["learns a network", "pacoh-map"],
        ),
        ("method.name = \"maml\"\nprior.features = 2", "prior.features", &["learns a network"]),
        (
            "method.name = \"pacoh-map\"\nprior.kernel = \"paper\"",
            "prior.kernel",
            &["needs the kernel \"learned\""],
        ),
        ("training.weight_decay = 0.1", "training.weight_decay", &["only the optimiser adamw", "adamw\""]),
        ("data.path = \"a.csv\"\ndata.tasks = 3", "data.tasks", &["only tasks that are drawn have it"]),
        (
            "data.environment = \"sinusoid\"\ndata.path = \"a.csv\"",
            "data.path",
            &["only the environment \"table\" reads it, and `data.environment` is \"sinusoid\""],
        ),
        ("data.task = \"shop\"", "data.task", &["name the table with `data.path`"]),
        (
            "bound.a = 0",
            "bound.a",
            &["belongs to the assumption bounded; `bound.assumption` is \"simulated\""],
        ),
        ("[bound]\nassumption = \"sub-gaussian\"\nvariance = 1\nscale = 1", "bound.scale", &["sub-gamma"]),
    ]);
}

#[test]
fn contradictions_and_gaps_are_refused() {
    all_refused(&[
        (
            "[method]\nbeta = \"auto\"\nbeta_per_example = 3",
            "method.beta_per_example",
            &["`method.beta` is given too"],
        ),
        (
            "[method]\nalpha = 3\nalpha_over_beta = 0.2",
            "method.alpha_over_beta",
            &["`method.alpha` is given too"],
        ),
        (
            "[method]\nname = \"reptile\"\nbeta = \"auto\"",
            "method.beta",
            &["only pacmaml and pacoh", "a number"],
        ),
        ("data.environment = \"table\"", "data.path", &["expected the CSV or JSON file"]),
        ("[data]\npath = \"a.csv\"\ntask = \"y\"", "data.target", &["`y` cannot be both task and target"]),
        (
            "[data]\npath = \"a.csv\"\nfeatures = [\"a\", \"b\", \"a\"]",
            "data.features",
            &["`a` is listed twice"],
        ),
        (
            "method.subset = 31",
            "method.subset",
            &["S' of 31 examples does not fit into tasks of 30", "data.examples"],
        ),
        (
            "data.examples = 4",
            "method.subset",
            &["S' of 5 examples (the default, `data.support`)", "tasks of 4"],
        ),
        ("data.examples = 5\nmethod.split = \"disjoint\"", "method.subset", &["one must remain outside S'"]),
        (
            "data.path = \"t.csv\"\nbound.assumption = \"simulated\"",
            "bound.assumption",
            &["a table cannot be simulated"],
        ),
        ("bound.assumption = \"bounded\"", "bound.a", &["`bound.assumption` needs it"]),
        ("[bound]\nassumption = \"bounded\"\na = 0", "bound.b", &["needs it"]),
        (
            "[bound]\nassumption = \"bounded\"\na = 2\nb = 2",
            "bound.b",
            &["expected a number above `bound.a` = 2"],
        ),
        ("bound.assumption = \"sub-gamma\"", "bound.variance", &["needs it"]),
        ("bound.assumption = \"non-negative\"", "bound.second_moment", &["needs it"]),
    ]);
    assert!(parse("data.examples = 5\nmethod.subset = 5").check().is_ok());
}

#[test]
fn unresolved_temperatures_are_refused() {
    let config = Config::default();
    let alpha = config.method_settings(3.0, None).unwrap_err().to_string();
    assert!(alpha.contains("`method.alpha`: is \"auto\""), "{alpha}");
    for beta in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let message = config.method_settings(beta, Some(1.0)).unwrap_err().to_string();
        assert!(message.contains("`method.beta`: the temperature becomes"), "{message}");
    }
    assert!(config.method_settings(1.0, Some(f64::NAN)).is_err());
}

#[test]
fn malformed_overrides_are_refused() {
    for (key, words) in [
        ("", "expected a key before the equals sign"),
        (".beta", "a section, a point and a key"),
        ("method.", "a section, a point and a key"),
        ("method.beta.x", "expected one point"),
        ("metod.beta", "did you mean `method`?"),
        ("method.betta", "did you mean `beta`?"),
    ] {
        let message = message(set("", &[(key, "1")]));
        assert!(message.contains(words), "{key}: {message}");
    }
    let blocked = message(set("data = 1", &[("data.tasks", "3")]));
    assert!(blocked.contains("`data.tasks`: the file has a value in place of this section"), "{blocked}");
    let injected = message(set("", &[("seed", "1\n[data]\ntasks = 3")]));
    assert!(injected.contains("`seed`: expected a whole number"), "{injected}");
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none.toml");
    let error = Config::read(&missing, &[]).unwrap_err();
    assert!(error.is_input() && error.to_string().contains("none.toml"), "{error}");
    assert!(error.to_string().contains("there is no such file; expected a configuration in TOML"), "{error}");
    assert!(matches!(error, Error::Io { .. }));
    assert!(message(Config::read(folder.path(), &[])).contains("is a folder; expected a configuration"));

    let file = folder.path().join("a.toml");
    let read = |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        Config::read(&file, &[])
    };
    let binary = message(read(b"seed = 1\n# caf\xe9\n"));
    assert!(binary.contains("a.toml, line 2: the text is not UTF-8"), "{binary}");
    assert!(message(read(b"\xff\xfes\0e\0")).contains("not UTF-8"));
    assert!(message(read(b"seed = [\n")).contains("a.toml, line "));
    assert!(message(read(&vec![b'#'; (1 << 20) + 1])).contains("bytes"));
    for nothing in [&b""[..], b"\n \t\r\n", b"\xef\xbb\xbf\n"] {
        let empty = message(read(nothing));
        assert!(empty.contains("a.toml: the file is empty") && empty.contains("`[data]`"), "{empty}");
    }
    assert_eq!(read(b"[data]\n").unwrap(), Config::default());
    assert_eq!(parse(""), Config::default());
    assert_eq!(read(b"\xef\xbb\xbfseed = 4\r\n\r\n[data]\r\n").unwrap().seed, 4);
}
