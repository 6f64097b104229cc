//! Texts: training, adapting to a dozen sentences, the memory table, and what goes wrong.

use crate::helper::Place;

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
    let page = place.text("one/report.html");
    assert!(page.contains("pretrained only") && page.contains("PACMAML on texts"));
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
    place.ok(&["report", "memory"]);
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
    place.write("tasks/b.jsonl", FEW);
    place.refused(&["train", "small.toml", "--set", "data.path=tasks"], &["4", "8", "data.support"]);

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
}
