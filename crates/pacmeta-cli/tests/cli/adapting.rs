//! Somebody has a prior and new data.

use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use crate::helper::{Place, Ran, close, golden, golden_json};

fn prior() -> String {
    golden("gp_prior.safetensors")
}

#[test]
fn a_checkpoint_without_metadata_is_evaluated_at_a_stated_temperature() {
    let place = Place::new();
    for case in ["plain", "standardised"] {
        let case = &golden_json("predictions.json")[case];
        let (prior, tasks) =
            (golden(case["prior"].as_str().unwrap()), golden(case["tasks"].as_str().unwrap()));
        let alpha = case["alpha"].to_string();
        let scores = place.json(&["evaluate", &prior, "--tasks", &tasks, "--temperature", &alpha, "--json"]);
        for key in ["rmse", "log_likelihood", "calibration_error"] {
            close(&scores[key], &case["averages"][key], 1e-8);
            for (found, expected) in
                scores["per_task"].as_array().unwrap().iter().zip(case["metrics"][key].as_array().unwrap())
            {
                close(&found[key], expected, 1e-8);
            }
        }
        assert!(scores["rmse_standard_error"].as_f64().unwrap() > 0.0);
        assert!(scores["coverage95"].as_f64().unwrap() <= 1.0);
        assert!(scores["floors"]["plain_gp"]["rmse"].as_f64().unwrap() > 0.0);
        assert!(scores["floors"]["prior_mean"]["rmse"].as_f64().unwrap() > 0.0);
    }
    let tasks = golden("evaluation_tasks.json");
    place.refused(&["evaluate", &prior(), "--tasks", &tasks], &["--temperature"]);
    place.refused(
        &["evaluate", &prior(), "--tasks", &tasks, "--temperature", "fixed"],
        &["states no temperature"],
    );
    let text = place.ok(&["evaluate", &prior(), "--tasks", &tasks, "--temperature", "60"]);
    assert!(text.contains("0.9984 ± ") && text.contains("plain GP, support only"), "{text}");
}

#[test]
fn tasks_of_one_example_have_nothing_to_score() {
    let place = Place::new();
    place.write("one.json", r#"{"tasks": [{"x": [1], "y": [2], "adapt": [0]}]}"#);
    place.refused(
        &["evaluate", &prior(), "--tasks", "one.json", "--temperature", "5"],
        &["one.json: 1 of 1 tasks has one example only", "nothing to score", "--min-examples 2"],
    );
    place.write(
        "mixed.json",
        r#"{"tasks": [{"name": "lone", "x": [1], "y": [2]}, {"x": [1, 2], "y": [2, 3], "adapt": [1]}]}"#,
    );
    let prior = prior();
    let mixed = ["evaluate", &prior, "--tasks", "mixed.json", "--temperature", "5", "--json"];
    place.refused(&mixed, &["mixed.json: 1 of 2 tasks has one example only", "`lone`", "--min-examples 2"]);
    place.refused(&[&mixed[..], &["--min-examples", "1"]].concat(), &["--min-examples"]);
    let ran = place.run(&[&mixed[..], &["--min-examples", "2"]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("1 task of fewer than 2 examples left out: lone"), "{}", ran.stderr);
    let scores: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((scores["tasks"].as_u64(), &scores["left_out"][0]), (Some(1), &Value::from("lone")));
    place.write("all.json", r#"{"tasks": [{"x": [1, 2], "y": [2, 3], "adapt": [1, 0]}]}"#);
    place.refused(
        &["evaluate", &prior, "--tasks", "all.json", "--temperature", "5"],
        &["every example is in `adapt`"],
    );
}

#[test]
fn predictions_equal_the_golden_ones_in_csv_and_json() {
    let place = Place::new();
    let case = &golden_json("predictions.json")["plain"];
    let task = &golden_json("evaluation_tasks.json")["tasks"][0];
    let mut support = "x,y\n".to_owned();
    for index in task["adapt"].as_array().unwrap() {
        let index = index.as_u64().unwrap() as usize;
        let x = &task["x"][index];
        let x = x.get(0).unwrap_or(x);
        support.push_str(&format!("{x},{}\n", task["y"][index]));
    }
    place.write("support.csv", support);
    let queries: Vec<&Value> =
        case["queries"].as_array().unwrap().iter().map(|x| x.get(0).unwrap_or(x)).collect();
    let mut query = "id,x\n".to_owned();
    queries.iter().enumerate().for_each(|(index, x)| query.push_str(&format!("q{index},{x}\n")));
    place.write("query.csv", &query);
    place.write("query.json", serde_json::json!({ "x": queries }).to_string());
    let common = ["adapt", &prior(), "--support", "support.csv", "--temperature", "60"];

    let csv = place.ok(&[&common[..], &["--query", "query.csv"]].concat());
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("id,x,mean,std,lower95,upper95"));
    for (index, line) in lines.enumerate() {
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields[0], format!("q{index}"));
        let number = |field: usize| Value::from(fields[field].parse::<f64>().unwrap());
        close(&number(2), &case["mean"][index], 1e-8);
        close(&number(3), &case["std"][index], 1e-8);
        let [mean, std, lower, upper] = [2, 3, 4, 5].map(|field| number(field).as_f64().unwrap());
        let quantile = 1.959963984540054;
        assert!((lower - (mean - quantile * std)).abs() < 1e-12 * (mean.abs() + std), "{line}");
        assert!((upper - (mean + quantile * std)).abs() < 1e-12 * (mean.abs() + std), "{line}");
    }
    let json = place.json(&[&common[..], &["--query", "query.json"]].concat());
    close(&json["predictions"][3]["mean"], &case["mean"][3], 1e-8);
    assert_eq!(
        place.json(&[&common[..], &["--query", "query.csv", "--json"]].concat())["predictions"][0]["columns"]
            ["id"],
        "q0"
    );

    // The ending of the output decides, unless a format is given.
    place.ok(&[&common[..], &["--query", "query.csv", "--output", "out.json"]].concat());
    assert!(place.text("out.json").starts_with('{'));
    place.ok(&[&common[..], &["--query", "query.json", "--output", "out.txt", "--format", "csv"]].concat());
    assert!(place.text("out.txt").starts_with("x,mean,"));

    // Standard input, named or not.
    for extra in [&["--query", "-"][..], &[]] {
        let mut child = place
            .command(&[&common[..], extra].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(query.as_bytes()).unwrap();
        assert_eq!(Ran::from(child.wait_with_output().unwrap()).stdout, csv);
    }
}

#[test]
fn a_prior_that_states_no_names_takes_the_columns_in_order() {
    let place = Place::new();
    let prior = golden("gp_prior_2d_f32.safetensors");
    let rows: String =
        (0..8).map(|row| format!("t{},{row}.5,{},{},{}\n", row / 4, 3 - row, row, row % 2)).collect();
    place.write("plain.csv", format!("task,x0,x1,y,adapt\n{rows}"));
    place.write("own.csv", format!("task,flow,pressure,y,adapt\n{rows}"));
    for command in [
        &["bound", "--objective", "pacmaml", "--beta", "9", "--alpha", "3"][..],
        &["evaluate", "--temperature", "5"],
        &["adapt", "--temperature", "5", "--task", "t1"],
    ] {
        let with = |file: &'static str| {
            let files: &[&str] = match command[0] {
                "adapt" => &["--support", file, "--query", file],
                _ => &["--tasks", file],
            };
            place.json(&[&[command[0], &prior], files, &command[1..], &["--json"]].concat())
        };
        let (plain, mut own) = (with("plain.csv"), with("own.csv"));
        if command[0] == "adapt" {
            assert_eq!(own["features"], serde_json::json!(["flow", "pressure"]));
            own["features"] = plain["features"].clone();
        }
        assert_eq!(own, plain);
    }
    // The query must have the names of the support.
    place.write("query.csv", "pressure,wear\n1,2\n");
    let adapt = ["adapt", &prior, "--support", "own.csv", "--task", "t0", "--temperature", "5"];
    place.refused(
        &[&adapt[..], &["--query", "query.csv"]].concat(),
        &["query.csv", "`flow`", "the support has"],
    );
    place.write("more.csv", format!("task,flow,pressure,y,adapt,wear\n{}", rows.replace('\n', ",7\n")));
    let evaluate = ["evaluate", &prior, "--tasks", "more.csv", "--temperature", "5"];
    let ran =
        place.refused(&evaluate, &["more.csv", "2 features", "`flow`, `pressure`, `wear`", "`x0`, `x1`"]);
    assert!(!ran.stderr.contains("was trained on"), "it states no names: {}", ran.stderr);
}

#[test]
fn inputs_are_never_overwritten() {
    let place = Place::new();
    place.write("s.csv", "x,y\n0,1\n1,2\n");
    place.write("q.csv", "x\n0.5\n");
    let common =
        ["adapt", &prior(), "--support", "s.csv", "--query", "q.csv", "--temperature", "5", "--output"];
    for input in ["q.csv", "./s.csv"] {
        place.refused(&[&common[..], &[input]].concat(), &["is an input of this command"]);
    }
    assert_eq!((place.text("s.csv"), place.text("q.csv")), ("x,y\n0,1\n1,2\n".into(), "x\n0.5\n".into()));
    place.refused(
        &["adapt", &prior(), "--support", "-", "--query", "-", "--temperature", "5"],
        &["only one of them can be standard input"],
    );
}

#[test]
fn the_rule_for_other_support_sizes_can_be_changed() {
    let place = Place::with_small();
    place.ok(&["train", "small.toml"]);
    place.write("tasks.json", r#"{"tasks": [{"x": [1, 2, 3], "y": [5, 6, 5], "adapt": [1]}]}"#);
    let likelihood = |rule: &[&str]| {
        let arguments = [&["evaluate", "runs/small", "--tasks", "tasks.json", "--json"], rule].concat();
        place.json(&arguments)["log_likelihood"].as_f64().unwrap()
    };
    let stored = likelihood(&[]);
    assert_eq!(stored, likelihood(&["--temperature", "per-example"]));
    assert_ne!(stored, likelihood(&["--temperature", "fixed"]));
    // alpha = 72 on one example.
    assert_eq!(likelihood(&["--temperature", "fixed"]), likelihood(&["--temperature", "72"]));
}

#[test]
fn a_support_can_be_drawn_where_a_file_marks_none() {
    let place = Place::new();
    let mut table = "task,x,y\n".to_owned();
    for row in 0..30 {
        table.push_str(&format!("t{},{},{}\n", row % 3, f64::from(row) / 6.0, f64::from(row).sin()));
    }
    place.write("bare.csv", table);
    let prior = prior();
    let common = ["evaluate", &prior, "--tasks", "bare.csv", "--temperature", "5"];
    place.refused(&common, &["bare.csv", "`t0` marks no support", "--support N", "adapt"]);
    let drawn =
        |extra: &[&'static str]| place.json(&[&common[..], &["--support", "4", "--json"], extra].concat());
    let scores = drawn(&[]);
    for task in scores["per_task"].as_array().unwrap() {
        assert_eq!((&task["support"], &task["query"]), (&Value::from(4), &Value::from(6)));
    }
    assert_eq!(scores["drawn"], serde_json::json!({ "support": 4, "seed": 0, "tasks": 3 }));
    assert_eq!(scores, drawn(&["--seed", "0"]));
    assert_ne!(scores["rmse"], drawn(&["--seed", "1"])["rmse"]);
    let text = place.ok(&[&common[..], &["--support", "4", "--seed", "1"]].concat());
    assert!(text.contains("Support drawn by seed 1 in 3 of 3 tasks: 4 examples each"), "{text}");
    place.refused(&[&common[..], &["--support", "0"]].concat(), &["--support"]);
    // Where all tasks mark theirs there is nothing to draw.
    let marked = golden("evaluation_tasks.json");
    place.refused(
        &["evaluate", &prior, "--tasks", &marked, "--temperature", "5", "--support", "99"],
        &["--support", "evaluation_tasks.json", "marks its support"],
    );
}

#[test]
fn a_support_of_several_tasks_is_refused_unless_one_is_chosen() {
    let place = Place::new();
    place.write("several.csv", "task,x,y\nnorth,1,2\nsouth,2,3\nnorth,3,1\n");
    place.write("north.csv", "x,y\n1,2\n3,1\n");
    place.write("query.csv", "x\n0.5\n");
    let prior = prior();
    let adapt = |support: &'static str, extra: &[&'static str]| {
        let common = ["adapt", &prior, "--temperature", "5", "--query", "query.csv", "--support", support];
        [&common[..], extra].concat()
    };
    place.refused(&adapt("several.csv", &[]), &["several.csv", "2 tasks", "`north`, `south`", "--task NAME"]);
    let north = place.ok(&adapt("north.csv", &[]));
    assert_eq!(place.ok(&adapt("several.csv", &["--task", "north"])), north);
    place.refused(&adapt("several.csv", &["--task", "nort"]), &["no task `nort`", "did you mean `north`?"]);
    place.refused(&adapt("north.csv", &["--task", "north"]), &["no column `task`", "--task-column"]);
    place.write("one.csv", "shop,x,y\nnorth,1,2\nnorth,3,1\n");
    assert_eq!(place.ok(&adapt("one.csv", &["--task-column", "shop"])), north);
    place.write(
        "several.json",
        r#"{"tasks": [{"name": "south", "x": [2], "y": [3]}, {"name": "north", "x": [1, 3], "y": [2, 1]}]}"#,
    );
    assert_eq!(place.ok(&adapt("several.json", &["--task", "north"])), north);
    place.refused(&adapt("several.json", &[]), &["`south`, `north`", "--task NAME"]);
}

#[test]
fn a_configuration_is_not_a_run_and_an_output_needs_a_folder() {
    let place = Place::with_small();
    place.write("support.csv", "x,y\n1,2\n");
    let prior = prior();
    let adapt = |run: &str, output: &str| {
        let words = [
            "adapt",
            run,
            "--support",
            "support.csv",
            "--query",
            "support.csv",
            "--temperature",
            "5",
            "-o",
            output,
        ];
        words.map(str::to_owned)
    };
    let refused = |run: &str, output: &str, words: &[&str]| {
        let arguments = adapt(run, output);
        place.refused(&arguments.each_ref().map(String::as_str), words);
    };
    refused("small.toml", "p.csv", &["small.toml", "is a configuration, not a run", "pacmeta train"]);
    refused(&prior, "nodir/p.csv", &["nodir/p.csv", "no folder `nodir`", "create it"]);
    assert!(!place.path("nodir").exists());
}

/// A limit on file sizes fails like a full disk: in the middle of writing the temporary, before the rename.
#[cfg(target_os = "linux")]
#[test]
fn a_write_that_fails_half_way_keeps_the_old_file_and_leaves_nothing_else() {
    let place = Place::new();
    place.write("support.csv", "x,y\n1,2\n");
    let query: String = (0..400).map(|row| format!("{row}\n")).collect();
    place.write("query.csv", format!("x\n{query}"));
    place.write("p.csv", "old");
    let prior = prior();
    let adapt = ["adapt", &prior, "--support", "support.csv", "--query", "query.csv", "--temperature", "5"];
    let mut adapt = place.with_full_disk(4, &[&adapt[..], &["-o", "p.csv"]].concat());
    let ran = Ran::from(adapt.output().unwrap());
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stderr.contains("cannot write p.csv") && ran.stderr.contains("`ulimit -f`"),
        "{}",
        ran.stderr
    );
    assert_eq!(place.text("p.csv"), "old");
    let mut names: Vec<_> =
        std::fs::read_dir(place.path("")).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["p.csv", "query.csv", "support.csv"]);
}
