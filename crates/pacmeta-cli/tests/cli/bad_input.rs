//! Mistakes are told where they are, with exit code 2, and nothing is overwritten.

use serde_json::{Map, Value, json};

use crate::helper::{Place, Ran, SMALL, golden};

#[test]
fn configurations() {
    let place = Place::with_small();
    place.refused(
        &["train", "absent.toml"],
        &["absent.toml: there is no such file; expected a configuration", "configs/"],
    );
    place.refused(
        &["sweep", "absent.toml"],
        &["absent.toml: there is no such file; expected a configuration"],
    );
    for (environment, more, expected) in [
        ("images", "", "a folder of pictures a class"),
        ("text", "[prior]\nmodel = \"synthetic\"\n", "labelled sentences a task"),
    ] {
        let data = format!("[data]\nenvironment = \"{environment}\"\npath = \"gone\"\n{more}");
        place.write("gone.toml", data);
        place.refused(
            &["train", "gone.toml"],
            &["gone: there is no such file; expected", expected, "data.path"],
        );
    }
    place.write("latin.toml", b"seed = 1\n# caf\xe9\n");
    place.refused(&["train", "latin.toml"], &["latin.toml", "line 2", "UTF-8"]);
    for nothing in ["", " \n\t\r\n", "\u{feff}\n"] {
        place.write("empty.toml", nothing);
        place.refused(&["train", "empty.toml"], &["empty.toml", "is empty", "`[data]`"]);
        place.refused(&["compare", "empty.toml", "small.toml"], &["empty.toml", "is empty"]);
    }
    place.write("broken.toml", "seed = \n");
    place.refused(&["train", "broken.toml"], &["broken.toml", "line 1", "TOML"]);
    place.write("unknown.toml", "[training]\niteration = 10\n");
    place.refused(&["train", "unknown.toml"], &["training.iteration", "did you mean `iterations`?"]);
    for (key, meant) in [("learning_rate", "rate"), ("batch_tasks", "batch")] {
        let set = format!("training.{key}=3");
        let meant = format!("did you mean `{meant}`?");
        place.refused(&["train", "small.toml", "--set", &set], &[&meant]);
    }
    place.refused(&["train", "small.toml", "--set", "method.beta=-3"], &["method.beta"]);
    place.refused(&["train", "small.toml", "--set", "method.subset=9"], &["method.subset", "does not fit"]);
    place.refused(&["train", "small.toml", "--set", "nonsense"], &["KEY=VALUE"]);
    place.refused(&["train", "small.toml", "--threads", "0"], &["--threads"]);
    place.refused(&["train", "small.toml", "--threads", "-1"], &["--threads", "1..=1024"]);
    place.refused(&["train", "small.toml", "--seed", "-1"], &["--seed", "whole number from 0"]);
    place.refused(&["train"], &["CONFIG.toml"]);
    assert!(!place.path("runs").exists(), "a refused run leaves nothing");
}

#[test]
fn tables() {
    let place = Place::new();
    let train = |content: &[u8], words: &[&str]| {
        place.write("data.csv", content);
        place.write("table.toml", "[data]\npath = \"data.csv\"\n[training]\niterations = 5\n");
        place.refused(&["train", "table.toml"], words);
    };
    train(b"", &["data.csv"]);
    train(b" \n\n  \r\n", &["data.csv", "the file is empty"]);
    train(b"task,x,y\n", &["data.csv"]);
    train(b"task,x,y\na,1,2\na,1\n", &["data.csv", "line 3"]);
    train(b"task,x,y\na,1,2\na,\xff,1\n", &["data.csv", "line 3", "UTF-8"]);
    train(b"task,x,y\na,1,2\na,big,1\n", &["data.csv", "line 3", "big"]);
    train(b"task,x,y\na,1,2\nb,1,2\nb,1,3\n", &["data.csv", "min_examples"]);
    train(b"task,x,z\na,1,2\na,1,1\n", &["data.csv", "`y`"]);
    // S' of five examples does not fit into tasks of three.
    train(
        b"task,x,y\na,1,2\na,2,1\na,3,3\nb,1,2\nb,2,1\nb,3,0\nc,1,2\nc,2,1\nc,3,0\n",
        &["method.subset", "does not fit"],
    );
    place.write("gone.toml", "[data]\npath = \"gone.csv\"\n");
    place.refused(
        &["train", "gone.toml"],
        &["gone.csv: there is no such file; expected a table in CSV or JSON"],
    );
}

#[test]
fn checkpoints() {
    let place = Place::new();
    let tasks = golden("evaluation_tasks.json");
    let evaluate = |name: &str, words: &[&str]| {
        place.refused(&["evaluate", name, "--tasks", &tasks, "--temperature", "5"], words);
    };
    let whole = std::fs::read(golden("gp_prior.safetensors")).unwrap();
    for length in [0, 5, 100, whole.len() - 1] {
        place.write("cut.safetensors", &whole[..length]);
        evaluate("cut.safetensors", &["cut.safetensors"]);
    }
    evaluate("absent.safetensors", &["absent.safetensors: there is no such file", "`pacmeta train`"]);
    place.write("text.safetensors", "hello, this is no checkpoint at all");
    evaluate("text.safetensors", &["text.safetensors"]);
    std::fs::create_dir(place.path("empty")).unwrap();
    evaluate("empty", &["prior.safetensors", "it is not that of a run", "`pacmeta train`"]);
    // A 2-D prior on 1-D tasks.
    let other = golden("gp_prior_2d_f32.safetensors");
    place.refused(&["evaluate", &other, "--tasks", &tasks, "--temperature", "5"], &["feature"]);
    // A tensor of another shape: one bias renamed in the header.
    let text = String::from_utf8_lossy(&whole).into_owned();
    assert!(text.contains("mean.hidden.1.bias"));
    let position = whole.windows(18).position(|window| window == b"mean.hidden.1.bias").unwrap();
    let mut renamed = whole.clone();
    renamed[position + 12] = b'7';
    place.write("renamed.safetensors", renamed);
    evaluate("renamed.safetensors", &["tensor `mean.hidden.1.bias`", "missing"]);
    let prior = golden("gp_prior.safetensors");
    for temperature in ["-5", "0", "nan", "warm"] {
        place.refused(
            &["evaluate", &prior, "--tasks", &tasks, "--temperature", temperature],
            &["--temperature", "number above 0"],
        );
    }
}

#[test]
fn supports_and_queries() {
    let place = Place::new();
    let prior = golden("gp_prior.safetensors");
    place.write("s.csv", "x,y\n0,1\n1,2\n");
    place.write("q.csv", "x\n0.5\n");
    let adapt = |support: &str, query: &str, words: &[&str]| {
        let arguments = ["adapt", &prior, "--support", support, "--query", query, "--temperature", "5"];
        place.refused(&arguments, words);
    };
    adapt("absent.csv", "q.csv", &["absent.csv: there is no such file; expected a table in CSV or JSON"]);
    adapt("s.csv", "absent.csv", &["absent.csv: there is no such file; expected a table in CSV or JSON"]);
    std::fs::create_dir(place.path("folder")).unwrap();
    adapt("s.csv", "folder", &["folder: is a folder; expected a table in CSV or JSON"]);
    place.write("ragged.csv", "x,y\n0,1\n1\n");
    adapt("ragged.csv", "q.csv", &["ragged.csv", "line 3"]);
    place.write("other.csv", "z\n0.5\n");
    adapt("s.csv", "other.csv", &["other.csv", "`x`"]);
    place.write("empty.csv", "");
    adapt("s.csv", "empty.csv", &["empty.csv"]);
    place.write("bad.json", "{\"x\": [1, }");
    adapt("s.csv", "bad.json", &["bad.json"]);
}

#[test]
fn a_folder_with_another_run_or_with_anything_else_is_left_alone() {
    let place = Place::with_small();
    place.ok(&["train", "small.toml", "--out", "run"]);
    let before =
        (place.read("run/prior.safetensors"), place.read("run/config.toml"), place.read("run/report.html"));
    place.refused(
        &["train", "small.toml", "--out", "run", "--seed", "9"],
        &["other settings", "`seed` is 0 there and 9 here"],
    );
    place.refused(
        &["train", "small.toml", "--out", "run", "--set", "training.iterations=10"],
        &["not lowered"],
    );
    let after =
        (place.read("run/prior.safetensors"), place.read("run/config.toml"), place.read("run/report.html"));
    assert_eq!(before, after);
    place.write("mine/thesis.tex", "precious");
    place.refused(&["train", "small.toml", "--out", "mine"], &["thesis.tex", "not empty"]);
    assert_eq!(std::fs::read_dir(place.path("mine")).unwrap().count(), 1);
    place.write("file", "x");
    place.refused(&["train", "small.toml", "--out", "file"], &["is a file"]);
}

#[test]
fn a_rate_at_which_training_diverges_has_exit_code_2() {
    let place = Place::new();
    place.write("wild.toml", SMALL.replace("[training]", "[training]\nrate = 1e300"));
    let ran = place.run(&["train", "wild.toml"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("error: ") && ran.stderr.contains("iteration"), "{}", ran.stderr);
}

#[test]
fn mistakes_in_a_configuration_come_with_file_and_line() {
    let place = Place::new();
    place.write("bad.toml", "seed = 1\n\n[training]\nrate = 0.01\niteration = 10\n");
    place.refused(&["train", "bad.toml"], &["bad.toml, line 5, key `training.iteration`", "did you mean"]);
    place.write("range.toml", "training.rate = -1\n");
    place.refused(&["train", "range.toml"], &["range.toml, line 1, key `training.rate`"]);
    place.write("fine.toml", "seed = 1\n");
    let set = ["train", "fine.toml", "--set", "training.rate=-1"];
    let ran = place.refused(&set, &["`training.rate`"]);
    assert!(!ran.stderr.contains("fine.toml"), "the file is not to blame: {}", ran.stderr);
    let ran = place.refused(&["train", "fine.toml", "--set", "metod.beta=3"], &["`metod`", "`method`?"]);
    assert!(!ran.stderr.contains("fine.toml"), "the file is not to blame: {}", ran.stderr);
    place.write("half.toml", "[metod]\nname = \"pacoh\"\n");
    place.refused(&["train", "half.toml", "--set", "method.beta=3"], &["half.toml, line 1, key `metod`"]);
}

#[test]
fn columns_are_named_where_numbers_are_too_large_and_adapt_is_reserved() {
    let place = Place::new();
    let table = |load: &str| {
        let mut text = "task,load,adapt,y\n".to_owned();
        for row in 0..12 {
            text.push_str(&format!("t{},{load}{},{},{row}\n", row % 3, row % 9, row % 2));
        }
        text
    };
    let config = "[data]\npath = \"t.csv\"\nsupport = 2\nheld_out = 0\n[method]\nbeta = 9\nalpha = 3\nsubset = 2\n\
                  [training]\niterations = 2\n";
    place.write("c.toml", config);
    place.write("t.csv", table("1e30"));
    place.refused(&["train", "c.toml"], &["feature `load`", "too large", "other units"]);
    place.write("t.csv", table("1.").replace(",1,", ",0.7,"));
    place.refused(&["train", "c.toml"], &["column `adapt`", "reserved", "data.features"]);
}

#[test]
fn a_comparison_writes_into_no_folder_of_something_else() {
    let place = Place::with_small();
    place.write("second.toml", SMALL.replace("alpha_over_beta = 0.3", "alpha_over_beta = 0.6"));
    place.write("third.toml", SMALL.replace("alpha_over_beta = 0.3", "alpha_over_beta = 0.9"));
    let names = |folder: &str| {
        let mut names: Vec<_> =
            std::fs::read_dir(place.path(folder)).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let compare = |configs: [&'static str; 2], out: &'static str| {
        ["compare", configs[0], configs[1], "--out", out, "-q"]
    };
    let pair = ["small.toml", "second.toml"];
    place.write("unfinished/config.toml", "seed = 0\n");
    place.write("unfinished/checkpoints/iteration-00000020.safetensors", "");
    place.refused(&compare(pair, "unfinished"), &["unfinished", "folder of a run", "--out"]);
    assert_eq!(names("unfinished"), ["checkpoints", "config.toml"]);
    place.write("mine/thesis.tex", "precious");
    place.refused(&compare(pair, "mine"), &["thesis.tex", "not empty", "--out"]);
    assert_eq!(names("mine"), ["thesis.tex"]);
    place.refused(&compare(pair, "small.toml"), &["is a file"]);
    std::fs::create_dir(place.path("ours")).unwrap();
    place.ok(&compare(pair, "ours"));
    place.ok(&compare(["small.toml", "third.toml"], "ours"));
    let before = names("ours");
    place.write("other.toml", SMALL);
    place.write("another.toml", SMALL);
    place.refused(&compare(["other.toml", "another.toml"], "ours"), &["not empty", "none of these runs"]);
    assert_eq!(names("ours"), before);
}

#[test]
fn sizes_that_no_machine_holds_are_refused_by_their_key() {
    let place = Place::with_small();
    let refused = |sets: &[&'static str], words: &[&str]| {
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        place.refused(&[&["train", "small.toml"][..], &sets].concat(), words);
    };
    refused(&["prior.hidden=[65536, 65536]"], &["`prior.hidden`", "parameters are more than"]);
    refused(&["prior.hidden=[4096, 4096]"], &["`prior.hidden`", "parameters are more than"]);
    refused(&["data.tasks=1000000", "data.examples=1000000"], &["`data.examples`", "`data.tasks`", "in all"]);
    refused(&["data.target_tasks=1000000", "data.query=1000000"], &["`data.query`", "`data.target_tasks`"]);
    assert!(!place.path("runs").exists());
}

#[test]
fn keys_that_do_not_fit_a_table_come_with_file_and_line() {
    let place = Place::new();
    let rows: String = (0..24).map(|row| format!("t{},{},{}\n", row % 4, row, row * row % 7)).collect();
    place.write("t.csv", format!("task,x,y\n{rows}"));
    for (settings, words) in [
        ("[method]\nsubset = 7\n", ["c.toml, line 4, key `method.subset`", "does not fit"]),
        ("held_out = 99\n", ["c.toml, line 3, key `data.held_out`", "cannot be held out"]),
        ("features = [\"y\"]\n", ["c.toml, line 3, key `data.features`", "not a feature"]),
    ] {
        place.write("c.toml", format!("[data]\npath = \"t.csv\"\n{settings}"));
        place.refused(&["train", "c.toml"], &words);
        place.refused(&["compare", "c.toml"], &words);
    }
    place.write("c.toml", "[data]\npath = \"t.csv\"\n");
    let ran = place.refused(&["train", "c.toml", "--set", "data.held_out=99"], &["`data.held_out`"]);
    assert!(!ran.stderr.contains("c.toml"), "the file is not to blame: {}", ran.stderr);
}

/// A safetensors file of f64 tensors, with metadata `pacmeta` or none.
fn safetensors(tensors: &[(&str, &[usize])], metadata: Option<Value>) -> Vec<u8> {
    let (mut header, mut data) = (Map::new(), Vec::new());
    for (name, shape) in tensors {
        let begin = data.len();
        data.extend((0..shape.iter().product::<usize>()).flat_map(|_| 0.5_f64.to_le_bytes()));
        let entry = json!({"dtype": "F64", "shape": shape, "data_offsets": [begin, data.len()]});
        header.insert((*name).to_owned(), entry);
    }
    if let Some(metadata) = metadata {
        header.insert("__metadata__".to_owned(), json!({"pacmeta": metadata.to_string()}));
    }
    let header = Value::Object(header).to_string();
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat()
}

#[test]
fn metadata_are_refused_by_their_key_and_what_is_missing_is_said() {
    let place = Place::new();
    place.write("t.json", r#"{"tasks": [{"x": [1, 2], "y": [2, 3], "adapt": [0]}]}"#);
    let network: [(&str, &[usize]); 2] = [("mean.output.bias", &[1]), ("mean.output.weight", &[1, 1])];
    let process: [(&str, &[usize]); 4] =
        [network[0], network[1], ("features.output.bias", &[2]), ("features.output.weight", &[2, 1])];
    let state: [(&str, &[usize]); 1] = [("parameters.mean.output.bias", &[1])];
    let evaluate = ["evaluate", "p.safetensors", "--tasks", "t.json"];
    let bound = ["bound", "p.safetensors", "--tasks", "t.json"];
    let with = |metadata: Value| drop(place.write("p.safetensors", safetensors(&process, Some(metadata))));

    with(json!({"format": 1, "method": {"name": "pacoh", "beta": 50}}));
    place.ok(&evaluate);
    place.ok(&bound);
    for wrong in [json!(-3), json!(0), json!("warm")] {
        with(json!({"format": 1, "method": {"name": "pacoh", "beta": wrong}}));
        for command in [evaluate, bound] {
            let words = ["p.safetensors, metadata `pacmeta`, key `method.beta`", "expected a number above 0"];
            place.refused(&command, &words);
        }
    }
    for (key, words) in [("standardisation", "x_mean"), ("learner", "`kind`"), ("columns", "`features`")] {
        with(json!({"format": 1, key: 3}));
        let ran = place.refused(&evaluate, &[&format!("key `{key}`"), "expected an object with", words]);
        assert!(!ran.stderr.contains("Unchecked") && !ran.stderr.contains("enum"), "{}", ran.stderr);
    }
    let standard = |x_mean: Value, y_std: Value| json!({"format": 1, "standardisation": {"x_mean": x_mean, "x_std": [1], "y_mean": 0, "y_std": y_std}});
    let steps = json!({"format": 1, "learner": {"kind": "steps", "inner": {"steps": -1, "rate": 1}, "noise_variance": 1}});
    for (metadata, key, words) in [
        (
            standard(json!(["a"]), json!(1)),
            "standardisation.x_mean",
            "expected a list of numbers, found `[\"a\"]`",
        ),
        (standard(json!([0]), json!("a")), "standardisation.y_std", "expected a number, found `\"a\"`"),
        (steps, "learner.inner.steps", "expected a whole number from 0 on, found `-1`"),
        (
            json!({"format": 1, "columns": {"features": "x", "target": "y"}}),
            "columns.features",
            "a list of texts",
        ),
        (
            json!({"format": 1, "standardisation": {"x_mean": [0]}}),
            "standardisation",
            "missing field `x_std`",
        ),
    ] {
        with(metadata);
        place.refused(&evaluate, &[&format!("p.safetensors, metadata `pacmeta`, key `{key}`: "), words]);
    }
    with(json!({"format": "1"}));
    let ran = place.refused(&evaluate, &["key `format`", "expected the number 1"]);
    assert!(!ran.stderr.contains("update"), "{}", ran.stderr);

    place.write("p.safetensors", safetensors(&process, None));
    place.refused(&evaluate, &["p.safetensors: does not say how to adapt", "--temperature"]);
    place.write("p.safetensors", safetensors(&network, None));
    let ran =
        place.refused(&evaluate, &["p.safetensors: does not say how to adapt", "`steps`", "docs/formats.md"]);
    assert!(!ran.stderr.contains("--temperature"), "it has none: {}", ran.stderr);
    place.write("p.safetensors", safetensors(&state, None));
    place.refused(&bound, &["p.safetensors", "state of a training run", "prior.safetensors"]);
}

#[test]
fn a_tensor_of_the_wrong_shape_is_named_with_the_one_it_contradicts() {
    let place = Place::new();
    place.write("t.json", r#"{"tasks": [{"x": [1, 2], "y": [2, 3], "adapt": [0]}]}"#);
    let network = |prefix: &str, outputs: usize| -> Vec<(String, Vec<usize>)> {
        let shapes = [
            ("hidden.0.weight", vec![4, 1]),
            ("hidden.0.bias", vec![4]),
            ("hidden.1.weight", vec![3, 4]),
            ("hidden.1.bias", vec![3]),
            ("output.weight", vec![outputs, 3]),
            ("output.bias", vec![outputs]),
        ];
        shapes.into_iter().map(|(name, shape)| (format!("{prefix}.{name}"), shape)).collect()
    };
    let prior = [network("mean", 1), network("features", 2)].concat();
    let bound = ["bound", "p.safetensors", "--tasks", "t.json", "--objective", "pacoh", "--beta", "5"];
    let write = |tensors: &[(String, Vec<usize>)]| {
        let tensors: Vec<_> = tensors.iter().map(|(name, shape)| (name.as_str(), &shape[..])).collect();
        place.write("p.safetensors", safetensors(&tensors, None));
    };
    write(&prior);
    place.ok(&bound);
    let with = |changes: &[(&str, &[usize])], words: &[&str]| {
        let mut tensors = prior.clone();
        for (name, shape) in changes {
            tensors.iter_mut().filter(|(own, _)| own == name).for_each(|(_, own)| *own = shape.to_vec());
        }
        write(&tensors);
        place.refused(&bound, words);
    };
    with(
        &[("mean.hidden.0.weight", &[1, 4])],
        &["tensor `mean.hidden.0.weight`: has shape [1, 4]", "`mean.hidden.0.bias` has [4]"],
    );
    with(
        &[("mean.hidden.1.weight", &[3, 5])],
        &[
            "tensor `mean.hidden.1.weight`: has shape [3, 5]",
            "`mean.hidden.0.weight` before it has shape [4, 1]",
        ],
    );
    with(
        &[("mean.hidden.0.weight", &[4, 2])],
        &["tensor `features.hidden.0.weight`: has shape [4, 1]", "`mean.hidden.0.weight` has [4, 2]"],
    );
    with(
        &[("mean.output.bias", &[1]), ("mean.output.weight", &[3])],
        &["`mean.output.weight`: has shape [3]"],
    );
    let first = |name: &str| name.starts_with("mean.hidden.0.");
    write(&prior.iter().filter(|(name, _)| !first(name)).cloned().collect::<Vec<_>>());
    place.refused(&bound, &["tensor `mean.hidden.0.weight`: is missing"]);
}

#[test]
fn whole_numbers_below_0_are_told_what_was_expected() {
    let place = Place::new();
    let (prior, tasks) = (golden("gp_prior.safetensors"), golden("tasks.json"));
    let bound = ["bound", &prior, "--tasks", &tasks];
    for option in ["--observed-tasks", "--target-examples", "--draws", "--tasks-per-draw", "--fresh-examples"]
    {
        place.refused(&[&bound[..], &[option, "-1"]].concat(), &[option, "-1", "expected a whole number"]);
    }
    place.refused(&[&bound[..], &["--seed", "-1"]].concat(), &["--seed", "expected a whole number"]);
    let evaluate = ["evaluate", &prior, "--tasks", &tasks];
    place.refused(&[&evaluate[..], &["--support", "-1"]].concat(), &["--support", "-1 is not in 1"]);
}

/// Within a gigabyte: the networks' activations at a million examples would take more.
#[cfg(target_os = "linux")]
#[test]
fn a_task_that_no_memory_holds_is_an_error_before_anything_runs() {
    let place = Place::new();
    let rows: String = (0..1_000_000).map(|row| format!("t,{},{}\n", row % 97, row % 89)).collect();
    place.write("huge.csv", format!("task,x,y\n{rows}"));
    let prior = golden("gp_prior.safetensors");
    for command in [
        "evaluate \"$1\" --tasks huge.csv --support 3 --temperature 5",
        "bound \"$1\" --tasks huge.csv --objective pacoh --beta 5",
        "adapt \"$1\" --support huge.csv --query huge.csv --temperature 5",
    ] {
        let script = format!("ulimit -v 1000000; exec \"$0\" --threads 2 {command}");
        let output = std::process::Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_pacmeta"), &prior])
            .current_dir(place.path(""))
            .output()
            .unwrap();
        let ran = Ran::from(output);
        assert_eq!(ran.code, Some(2), "{command}: {}{}", ran.stdout, ran.stderr);
        assert!(
            ran.stderr.contains("huge.csv, task `") && ran.stderr.contains("examples are too many"),
            "{}",
            ran.stderr
        );
    }
    let tasks = ["bound", &prior, "--tasks", "/dev/zero", "--objective", "pacoh", "--beta", "5"];
    place.refused(&tasks, &["/dev/zero: is a device"]);
}
