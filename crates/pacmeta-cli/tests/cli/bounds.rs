//! A theorist wants numbers.

use serde_json::Value;

use crate::helper::{Place, close, golden, golden_json};

#[test]
fn golden_objectives_through_the_binary() {
    let place = Place::new();
    for case in golden_json("bounds.json")["cases"].as_array().unwrap() {
        let text = |key: &str| case[key].as_str().unwrap();
        let (prior, tasks, beta) = (golden(text("prior")), golden(text("tasks")), case["beta"].to_string());
        let mut arguments = vec![
            "bound",
            &prior,
            "--tasks",
            &tasks,
            "--objective",
            text("objective"),
            "--beta",
            &beta,
            "--min-examples",
            "1",
            "--json",
        ];
        let alpha = case["alpha"].to_string();
        if !case["alpha"].is_null() {
            arguments.extend(["--alpha", &alpha]);
        }
        arguments.extend(["--gradient", "gradient.safetensors"]);
        let (found, expected) = (place.json(&arguments), golden_json(text("expected")));
        assert_eq!(found["objective"], expected["objective"]);
        for key in ["xi", "hyper_kl", "total"] {
            close(&found[key], &expected[key], 1e-8);
        }
        let (found, expected) = (found["tasks"].as_array().unwrap(), expected["tasks"].as_array().unwrap());
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            for key in ["log_z", "risk", "w"] {
                close(&found[key], &expected[key], 1e-8);
            }
            // The reference has none for PACOH, whose base learner sees all of S.
            let seen = expected.get("risk_adapt").unwrap_or(&expected["risk"]);
            close(&found["risk_adapt"], seen, 1e-8);
            close(&found["kl"], &expected["kl"], 1e-8);
        }
        let (found, expected) = (tensors(&place.read("gradient.safetensors")), {
            tensors(&std::fs::read(golden(text("gradient"))).unwrap())
        });
        assert_eq!(found.len(), expected.len());
        let norm = expected.iter().flat_map(|(_, values)| values).map(|v| v * v).sum::<f64>().sqrt();
        for (name, values) in &expected {
            let own = &found.iter().find(|(own, _)| own == name).unwrap().1;
            let distance: f64 = values.iter().zip(own).map(|(a, b)| (a - b) * (a - b)).sum();
            assert!(distance.sqrt() <= 1e-8 * norm, "{name}: {distance} of {norm}");
        }
    }
}

/// Names and values of an f64 safetensors file, read independently of the library.
fn tensors(bytes: &[u8]) -> Vec<(String, Vec<f64>)> {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: serde_json::Map<String, Value> = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    header
        .into_iter()
        .filter(|(name, _)| name != "__metadata__")
        .map(|(name, entry)| {
            assert_eq!(entry["dtype"], "F64");
            let offset = |index: usize| entry["data_offsets"][index].as_u64().unwrap() as usize;
            let data = &bytes[8 + length + offset(0)..8 + length + offset(1)];
            (name, data.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect())
        })
        .collect()
}

#[test]
fn a_trained_checkpoint_knows_its_objective() {
    let place = Place::with_small();
    place.ok(&["train", "small.toml"]);
    let tasks = golden("tasks.json");
    let value = place.json(&["bound", "runs/small", "--tasks", &tasks, "--min-examples", "1", "--json"]);
    assert_eq!((&value["objective"], &value["beta"]), (&Value::from("pacmaml"), &Value::from(240.0)));
    close(&value["xi"], &Value::from(1.0 / (6.0 * 240.0)), 1e-14);
    let value = place.json(&[
        "bound",
        "runs/small",
        "--tasks",
        &tasks,
        "--min-examples",
        "1",
        "--observed-tasks",
        "20",
        "--lambda",
        "8",
        "--json",
    ]);
    close(&value["xi"], &Value::from(1.0 / 8.0 + 1.0 / (20.0 * 240.0)), 1e-14);
    let text = place.ok(&["bound", "runs/small", "--tasks", &tasks, "--min-examples", "1"]);
    for words in ["log Z", "task 0", "empirical risk", "not a bound"] {
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn objectives_are_refused_with_the_reason() {
    let place = Place::new();
    let (prior, tasks) = (golden("gp_prior.safetensors"), golden("tasks.json"));
    let common = ["bound", &prior, "--tasks", &tasks, "--min-examples", "1"];
    let refused = |extra: &[&str], words: &[&str]| {
        place.refused(&[&common[..], extra].concat(), words);
    };
    refused(&[], &["--objective"]);
    refused(&["--objective", "pacoh"], &["--beta"]);
    refused(&["--objective", "pacoh", "--beta", "-3"], &["--beta", "above 0"]);
    refused(&["--objective", "pacoh", "--beta", "3", "--alpha", "1"], &["--alpha", "pacmaml"]);
    refused(&["--objective", "pacmaml", "--beta", "3"], &["--alpha"]);
    refused(&["--objective", "pacoh", "--beta", "3", "--delta", "2"], &["--delta"]);
    place.write("plain.json", r#"{"tasks": [{"x": [1, 2], "y": [2, 3]}]}"#);
    place.refused(
        &["bound", &prior, "--tasks", "plain.json", "--objective", "pacmaml", "--beta", "3", "--alpha", "1"],
        &["states no `adapt`"],
    );
}

const ASSUME: [&str; 4] = ["--assume", "non-negative:20", "--hyper-posterior-std", "0.05"];

#[test]
fn theorems_give_a_number_with_all_of_their_terms() {
    let place = Place::new();
    let (prior, tasks) = (golden("gp_prior.safetensors"), golden("tasks.json"));
    let mut common = vec!["bound", &prior, "--tasks", &tasks, "--min-examples", "1"];
    common.extend(["--beta", "10", "--draws", "8", "--json"]);
    let theorem = |extra: &[&str]| place.json(&[&common[..], &ASSUME, extra].concat());
    let sum = |value: &Value| {
        value["terms"].as_object().unwrap().values().map(|term| term["value"].as_f64().unwrap()).sum::<f64>()
    };
    let two = theorem(&["--theorem", "2"]);
    close(&two["total"]["value"], &Value::from(sum(&two)), 1e-12);
    assert!(two["total"]["standard_error"].as_f64().unwrap() > 0.0);
    assert_eq!(
        (two["terms"]["gap"]["value"].as_f64(), &two["settings"]["lambda"]),
        (Some(0.0), &Value::from(6.0))
    );
    let four = theorem(&["--theorem", "4", "--alpha", "4"]);
    assert_eq!(four["tasks"][3]["adapt_examples"], 5);
    let three = theorem(&["--theorem", "3", "--target-examples", "2", "--gap", "0.25"]);
    close(&three["terms"]["gap"]["value"], &Value::from(0.25), 1e-12);
    close(&three["total"]["value"], &Value::from(two["total"]["value"].as_f64().unwrap() + 0.25), 1e-9);
    let estimated = [
        "--theorem",
        "corollary",
        "--environment",
        "sinusoid",
        "--target-examples",
        "5",
        "--tasks-per-draw",
        "2",
        "--fresh-examples",
        "4",
    ];
    // The golden tasks differ in size, for which a gap cannot be simulated; tasks of one size can.
    place.refused(&[&common[..], &ASSUME, &estimated].concat(), &["--environment", "one size", "--gap"]);
    let mut simulated = common.clone();
    let same_size = place.write(
        "same-size.json",
        r#"{"tasks": [{"x": [0, 1, 2, 3, 4, 5], "y": [5, 6, 5, 7, 6, 7]}, {"x": [1, 2, 3, -1, -2, -3], "y": [6, 5, 6, 4, 4, 3]}]}"#,
    );
    let same_size = same_size.display().to_string();
    simulated[3] = &same_size;
    let corollary = place.json(&[&simulated[..], &ASSUME, &estimated].concat());
    assert!(corollary["terms"]["gap"]["standard_error"].as_f64().unwrap() > 0.0);
    assert!(corollary["gap_effective_draws"].as_f64().unwrap() >= 1.0);
    assert!(corollary["assumed"].to_string().contains("carry its weight"));
    let text = place.ok(&[&common[..common.len() - 1], &ASSUME, &["--theorem", "2"]].concat());
    for words in ["Theorem 2", "empirical risk", "= bound", "Psi1", "rests on"] {
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn a_bound_without_its_assumptions_is_refused() {
    let place = Place::new();
    let (prior, tasks) = (golden("gp_prior.safetensors"), golden("tasks.json"));
    let refused = |extra: &[&str], words: &[&str]| {
        let common = ["bound", &prior, "--tasks", &tasks, "--min-examples", "1", "--beta", "10"];
        place.refused(&[&common[..], extra].concat(), words);
    };
    refused(&["--theorem", "2"], &["--hyper-posterior-std"]);
    refused(&["--theorem", "2", "--hyper-posterior-std", "0.1"], &["--assume", "needs an assumption"]);
    refused(&["--theorem", "2", "--hyper-posterior-std", "0", "--assume", "bounded:0,1"], &["infinite"]);
    refused(&["--theorem", "2", "--hyper-posterior-std", "0.1", "--assume", "bounded:1,0"], &["bounded:A,B"]);
    let with = |extra: &[&'static str]| [&ASSUME[..], extra].concat();
    refused(&with(&["--theorem", "3", "--target-examples", "5"]), &["--gap", "--environment"]);
    refused(&with(&["--theorem", "3", "--gap", "1"]), &["--target-examples"]);
    refused(&with(&["--theorem", "2", "--gap", "1"]), &["have no gap"]);
    refused(&with(&["--theorem", "4"]), &["--alpha"]);
    refused(&with(&["--theorem", "2", "--objective", "pacmaml"]), &["--theorem 4"]);
    refused(
        &with(&["--theorem", "3", "--target-examples", "5", "--environment", "sinusoids"]),
        &["did you mean", "sinusoid"],
    );
}

#[test]
fn simulated_cumulants_state_their_error_and_that_they_are_no_guarantee() {
    let place = Place::new();
    let prior = golden("gp_prior.safetensors");
    place.write(
        "tasks.json",
        r#"{"tasks": [{"x": [0, 1, 2, 3], "y": [5, 6, 5, 7], "adapt": [0, 1]}, {"x": [1, 2, 3, -1], "y": [6, 5, 6, 4], "adapt": [2, 3]}]}"#,
    );
    let common = ["bound", &prior, "--tasks", "tasks.json", "--beta", "0.5", "--hyper-posterior-std", "0.05"];
    let small = ["--draws", "30", "--tasks-per-draw", "4", "--fresh-examples", "6", "--psi", "simulate"];
    let with = |extra: &[&'static str]| [&common[..], &small[..], extra].concat();
    let sinusoid = ["--environment", "sinusoid"];
    let two = place.json(&[&with(&["--theorem", "2", "--json"])[..], &sinusoid].concat());
    for term in ["psi1", "psi2"] {
        assert!(two["terms"][term]["standard_error"].as_f64().unwrap() > 0.0, "{two}");
    }
    assert_eq!(two["certainty"], "estimated");
    assert!(two["psi_effective_draws"].as_f64().unwrap() >= 1.0);
    assert!(two["assumed"].to_string().contains("no guarantee"), "{two}");
    let other = place.json(&[&with(&["--theorem", "2", "--json", "--seed", "5"])[..], &sinusoid].concat());
    assert_ne!(two["terms"]["psi1"], other["terms"]["psi1"]);
    let four = place.json(&[&with(&["--theorem", "4", "--alpha", "0.3", "--json"])[..], &sinusoid].concat());
    assert_eq!(four["terms"]["psi1"], two["terms"]["psi1"], "Psi1 does not depend on the base learner");
    assert_ne!(four["terms"]["psi2"], two["terms"]["psi2"], "Psi2 does");
    let corollary = ["--theorem", "corollary", "--target-examples", "2", "--json"];
    let corollary = place.json(&[&with(&corollary)[..], &sinusoid].concat());
    assert!(corollary["terms"]["gap"]["standard_error"].as_f64().unwrap() > 0.0);

    place.refused(&with(&["--theorem", "2"]), &["--environment", "--psi simulate"]);
    let three = with(&["--theorem", "3", "--target-examples", "2", "--environment", "sinusoid"]);
    place.refused(&three, &["every prior", "corollary"]);
    let both = with(&["--theorem", "2", "--environment", "sinusoid", "--assume", "bounded:0,1"]);
    place.refused(&both, &["--assume", "remove one"]);
}

#[test]
fn options_of_bounds_are_refused_where_they_do_nothing_or_make_no_sense() {
    let place = Place::new();
    let (prior, tasks) = (golden("gp_prior.safetensors"), golden("tasks.json"));
    let common =
        ["bound", &prior, "--tasks", &tasks, "--min-examples", "1", "--beta", "10", "--objective", "pacoh"];
    for option in ["--draws", "--seed", "--tasks-per-draw", "--fresh-examples"] {
        place.refused(&[&common[..], &[option, "7"]].concat(), &["--theorem"]);
    }
    place.refused(&[&common[..], &["--psi", "simulate"]].concat(), &["--theorem"]);
    let three = ["--theorem", "3", "--target-examples", "2", "--gap", "-0.5"];
    place.refused(&[&common[..], &ASSUME, &three].concat(), &["--gap", "at least 0"]);
    place.refused(&[&common[..], &["--gradient", "nodir/g.safetensors"]].concat(), &["no folder `nodir`"]);
}

#[test]
fn a_matrix_that_cannot_be_factorised_is_told_with_task_size_and_temperature() {
    let place = Place::new();
    let prior = golden("gp_prior.safetensors");
    place.write(
        "twins.json",
        r#"{"tasks": [{"name": "twins", "x": [0, 0, 0.3, 0.3, 0.6], "y": [0, 1, 2, 3, 4], "adapt": [0, 1, 2, 3, 4]}]}"#,
    );
    let common = ["bound", &prior, "--tasks", "twins.json"];
    for temperatures in [
        &["--objective", "pacoh", "--beta", "1e17"][..],
        &["--objective", "pacmaml", "--beta", "1", "--alpha", "1e17"],
    ] {
        let ran = place.run(&[&common[..], temperatures].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{}", ran.stderr);
        for words in ["`twins`", "5 x 5", "temperature 1", "not positive definite"] {
            assert!(ran.stderr.contains(words), "no `{words}` in: {}", ran.stderr);
        }
    }
    place.ok(&[&common[..], &["--objective", "pacoh", "--beta", "50000"]].concat());
}

#[test]
fn an_assumption_that_cannot_hold_is_refused() {
    let place = Place::new();
    let (prior, tasks) = (golden("gp_prior.safetensors"), golden("tasks.json"));
    let common = [
        "bound",
        &prior,
        "--tasks",
        &tasks,
        "--min-examples",
        "1",
        "--beta",
        "10",
        "--theorem",
        "2",
        "--hyper-posterior-std",
        "0.05",
    ];
    let assume = |what: &'static str| [&common[..], &["--draws", "4", "--assume", what]].concat();
    place.refused(&assume("bounded:0,0.001"), &["--assume", "between 0 and 0.001", "the mean loss on task"]);
    place.refused(&assume("bounded:1e6,2e6"), &["--assume", "the mean loss on task"]);
    place.refused(&assume("non-negative:0"), &["--assume", "second moment", "above 0"]);
    let text = place.ok(&assume("bounded:0,1e6"));
    assert!(text.contains("clipped"), "what the number is about: {text}");
}

#[test]
fn a_second_moment_below_the_squared_mean_loss_is_warned_of() {
    let place = Place::new();
    let prior = golden("gp_prior.safetensors");
    place.write(
        "tasks.json",
        r#"{"tasks": [{"name": "far", "x": [0, 1, 2], "y": [5, 6, 5]}, {"name": "near", "x": [1, 2], "y": [0, 0]}]}"#,
    );
    let bound = |extra: &[&'static str]| {
        let common = ["bound", &prior, "--tasks", "tasks.json", "--beta", "1", "--theorem", "2", "--json"];
        let ran =
            place.run(&[&common[..], &["--hyper-posterior-std", "0.05", "--draws", "4"], extra].concat());
        assert_eq!(ran.code, Some(0), "it cannot be refuted: {}", ran.stderr);
        (serde_json::from_str::<Value>(&ran.stdout).unwrap()["warnings"].clone(), ran.stderr)
    };
    let (warnings, stderr) = bound(&["--assume", "non-negative:1e-9"]);
    assert_eq!(warnings.as_array().unwrap().len(), 1);
    for words in ["at most 0.000000001", "the mean loss on task `far`", "2 of 2 tasks"] {
        assert!(warnings[0].as_str().unwrap().contains(words), "no `{words}` in: {warnings}");
        assert!(stderr.starts_with("warning: ") && stderr.contains(words), "no `{words}` in: {stderr}");
    }
    let (warnings, _) = bound(&["--assume", "non-negative:1e6", "--assume-tasks", "non-negative:1e-9"]);
    assert!(warnings[0].as_str().unwrap().contains("about tasks"), "{warnings}");
    for fine in ["non-negative:1e6", "sub-gaussian:1e-9"] {
        let (warnings, stderr) = bound(&["--assume", fine]);
        assert_eq!((warnings, stderr.as_str()), (Value::Array(Vec::new()), ""));
    }
}

#[test]
fn refusals_name_the_file_of_the_task_or_of_the_prior() {
    let place = Place::new();
    let prior = golden("gp_prior.safetensors");
    place.write("plain.json", r#"{"tasks": [{"name": "bare", "x": [1, 2], "y": [2, 3]}]}"#);
    place.write("large.json", r#"{"tasks": [{"name": "large", "x": [1, 2], "y": [2e200, 3]}]}"#);
    place.write("column.csv", "shop,x,y\na,1,2\na,2,3\n");
    let bound = |tasks: &'static str, extra: &[&'static str], words: &[&str]| {
        place.refused(&[&["bound", &prior, "--tasks", tasks, "--beta", "3"], extra].concat(), words);
    };
    bound(
        "plain.json",
        &["--objective", "pacmaml", "--alpha", "1"],
        &["plain.json, task `bare`", "states no `adapt`"],
    );
    bound("large.json", &["--objective", "pacoh"], &["large.json, task `large`", "too large"]);
    let ran = place.run(&["bound", &prior, "--tasks", "column.csv", "--objective", "pacoh", "--beta", "3"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("--task-column") && !ran.stderr.contains("data.task"), "{}", ran.stderr);
}

#[test]
fn tasks_of_one_example_need_consent() {
    let place = Place::new();
    let prior = golden("gp_prior.safetensors");
    place.write("t.csv", "task,x,y\nlone,1,2\npair,1,2\npair,2,3\n");
    let bound = ["bound", &prior, "--tasks", "t.csv", "--objective", "pacoh", "--beta", "3"];
    place.refused(&bound, &["t.csv: 1 of 2 tasks has one example only", "`lone`", "--min-examples 1"]);
    let tasks = |minimum: &'static str| {
        let ran = place.run(&[&bound[..], &["--json", "--min-examples", minimum]].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let value: Value = serde_json::from_str(&ran.stdout).unwrap();
        (value["tasks"].as_array().unwrap().len(), ran.stderr)
    };
    assert_eq!(tasks("1"), (2, String::new()));
    let (count, stderr) = tasks("2");
    assert!(
        count == 1 && stderr.contains("t.csv: 1 task of fewer than 2 examples left out: lone"),
        "{stderr}"
    );
    place.refused(
        &[&bound[..], &["--min-examples", "3"]].concat(),
        &["t.csv: none of the 2 tasks", "largest has 2"],
    );
    place.refused(&[&bound[..], &["--min-examples", "0"]].concat(), &["--min-examples"]);
}
