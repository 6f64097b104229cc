//! Mistakes are told where they are, with exit code 2, and nothing is overwritten.

use crate::helper::{Place, SMALL, golden};

#[test]
fn configurations() {
    let place = Place::with_small();
    place.refused(&["train", "absent.toml"], &["absent.toml"]);
    place.write("latin.toml", b"seed = 1\n# caf\xe9\n");
    place.refused(&["train", "latin.toml"], &["latin.toml", "line 2", "UTF-8"]);
    place.write("broken.toml", "seed = \n");
    place.refused(&["train", "broken.toml"], &["broken.toml", "line 1", "TOML"]);
    place.write("unknown.toml", "[training]\niteration = 10\n");
    place.refused(&["train", "unknown.toml"], &["training.iteration", "did you mean `iterations`?"]);
    place.refused(&["train", "small.toml", "--set", "method.beta=-3"], &["method.beta"]);
    place.refused(&["train", "small.toml", "--set", "method.subset=9"], &["method.subset", "does not fit"]);
    place.refused(&["train", "small.toml", "--set", "nonsense"], &["KEY=VALUE"]);
    place.refused(&["train", "small.toml", "--threads", "0"], &["--threads"]);
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
    place.refused(&["train", "gone.toml"], &["gone.csv"]);
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
    evaluate("absent.safetensors", &["absent.safetensors"]);
    place.write("text.safetensors", "hello, this is no checkpoint at all");
    evaluate("text.safetensors", &["text.safetensors"]);
    std::fs::create_dir(place.path("empty")).unwrap();
    evaluate("empty", &["prior.safetensors", "not a finished run"]);
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
    adapt("absent.csv", "q.csv", &["absent.csv"]);
    adapt("s.csv", "absent.csv", &["absent.csv"]);
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
fn a_run_that_fails_by_itself_has_exit_code_1() {
    let place = Place::new();
    place.write("wild.toml", SMALL.replace("[training]", "[training]\nrate = 1e300"));
    let ran = place.run(&["train", "wild.toml"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
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
