//! The public benchmarks, where they lie in `../shared/data` beside the repository.

use std::path::PathBuf;

use pacmeta_tensor::Key;

use super::*;
use crate::environments::text::leopard::{EvalCap, EvalSource};

/// A folder of the benchmarks, if it is there.
fn benchmark(name: &str) -> Option<PathBuf> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(name);
    let there = path.is_dir();
    if !there {
        eprintln!("skipped: there is no {}", path.display());
    }
    there.then_some(path)
}

#[test]
fn glue_is_as_published() {
    let Some(folder) = benchmark("glue") else { return };
    let tasks = glue::read(&folder, &[]).unwrap();
    let sizes: Vec<_> =
        tasks.iter().map(|task| (task.name.as_str(), task.train.len(), task.dev.len())).collect();
    let expected = [
        ("CoLA", 8551, 1043),
        ("SST-2", 20_000, 872),
        ("MRPC", 3667, 408),
        ("QQP", 10_117, 1000),
        ("STS-B", 5749, 1500),
        ("MNLI", 15_110, 2000),
        ("QNLI", 9833, 2000),
        ("RTE", 2490, 277),
        ("WNLI", 635, 71),
        ("SNLI", 15_203, 2000),
    ];
    assert_eq!(sizes, expected);
    let task = |name: &str| tasks.iter().find(|task| task.name == name).unwrap();
    assert_eq!(task("STS-B").classes, ["0-1", "1-2", "2-3", "3-4", "4-5"]);
    assert_eq!(task("STS-B").train[0].label, 4, "a score of 5");
    assert_eq!(task("MNLI").classes, ["contradiction", "entailment", "neutral"]);
    assert_eq!(task("CoLA").train.iter().filter(|example| example.label == 0).count(), 2528);
}

#[test]
fn leopard_is_as_published() {
    let Some(folder) = benchmark("leopard") else { return };
    let tokeniser = small_tokeniser(32);
    let mut rebuilt = Vec::new();
    for info in leopard::TARGETS.iter().chain(&leopard::EXTRA) {
        let task = leopard::read(&folder, info.display_name).unwrap();
        let draws = task.draws.len();
        assert_eq!(draws, if info.name == "disaster" { 29 } else { 30 }, "{}", info.name);
        assert!(task.draws.iter().all(|((k, _), examples)| examples.len() == k * info.classes));
        if task.eval_source == EvalSource::Rebuilt {
            rebuilt.push(info.name);
        }
        if info.name == "disaster" {
            let cap = EvalCap { rows: 100, key: Key::new(7) };
            let tokens = task.tokenise(&tokeniser, Some(cap)).unwrap();
            assert_eq!((tokens.eval.len(), tokens.eval_total), (100, 5430));
            assert_eq!(tokens, task.tokenise(&tokeniser, Some(cap)).unwrap());
            assert_eq!(tokens.draws_of(16), (1..10).collect::<Vec<_>>());
            assert_eq!(tokens.draw(8, 3).unwrap().len(), 16);
            let error = tokens.draw(16, 0).unwrap_err().to_string();
            assert!(error.contains("there is no draw 0 of k = 16; there are [1, 2,"), "{error}");
            let remarks = tokens.remarks().join("; ");
            assert!(remarks.contains("9 of 10 draws of k = 16: draw 0 is missing in the data"), "{remarks}");
            assert!(remarks.contains("100 of 5430 test examples, drawn at random"), "{remarks}");
        }
        if info.name == "conll" {
            let tokens = task.tokenise(&tokeniser, None).unwrap();
            assert_eq!(tokens.eval.len(), 5648);
            let first = tokens.eval.tokens(0..1);
            assert!(first.segments.contains(&1), "a sentence and a phrase in it");
        }
    }
    assert_eq!(rebuilt, ["emotion", "rating_electronics", "rating_kitchen"]);
}

#[test]
fn a_task_of_glue_that_is_named_twice_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let line =
        |label: u8| format!("{{\"split\": \"train\", \"sentence1\": \"a\", \"label\": \"{label}\"}}\n");
    for name in ["CoLA", "SST-2"] {
        std::fs::write(folder.path().join(format!("{name}.jsonl")), line(0) + &line(1)).unwrap();
    }
    let tasks = glue::read(folder.path(), &["SST-2".into(), "CoLA".into(), "sst-2".into()]).unwrap();
    assert_eq!(tasks.iter().map(|task| task.name.as_str()).collect::<Vec<_>>(), ["SST-2", "CoLA"]);
}

#[test]
fn missing_benchmarks_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let error = glue::read(&folder.path().join("glue"), &[]).unwrap_err();
    assert!(
        error.is_input() && error.to_string().contains("there is no such folder; expected GLUE's tasks"),
        "{error}"
    );
    let error = glue::read(folder.path(), &["rte".into()]).unwrap_err().to_string();
    assert!(error.contains("GLUE's task RTE is missing; expected RTE.jsonl.gz or RTE.jsonl"), "{error}");
    let error = glue::read(folder.path(), &["SST".into()]).unwrap_err().to_string();
    assert!(error.contains("there is no task `SST` (did you mean `SST-2`?)"), "{error}");
    let error = leopard::read(folder.path(), "airlin").unwrap_err().to_string();
    assert!(error.contains("there is no task `airlin` (did you mean `airline`?)"), "{error}");
    let error = leopard::read(folder.path(), "MITR").unwrap_err().to_string();
    assert!(error.contains("LEOPARD's task restaurant is missing") && !error.contains("leave"), "{error}");
    for task in glue::TASKS.iter().filter(|task| !["RTE", "WNLI"].contains(&task.name)) {
        std::fs::write(folder.path().join(format!("{}.jsonl", task.name)), "").unwrap();
    }
    let error = glue::check_complete(folder.path()).unwrap_err().to_string();
    assert!(error.contains("of GLUE's tasks RTE, WNLI are missing"), "{error}");
    assert!(!glue::is_here(folder.path(), &[]) && !glue::is_here(folder.path(), &["rte".into()]));
    assert!(glue::is_here(folder.path(), &["cola".into(), "STS-B".into()]));
    for name in ["RTE.jsonl", "WNLI.jsonl.gz"] {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    glue::check_complete(folder.path()).unwrap();
    assert!(glue::is_here(folder.path(), &[]) && !glue::is_here(folder.path(), &["own".into()]));
}

#[test]
fn scores_become_five_classes_and_other_files_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let scores = [0.0, 0.999, 1.0, 2.5, 3.75, 4.0, 5.0];
    let line = |score: f64| {
        format!("{{\"sentence1\": \"a\", \"sentence2\": \"b\", \"label\": {score}, \"split\": \"train\"}}\n")
    };
    let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).unwrap();
    write("STS-B.jsonl", scores.map(line).concat());
    let read = |name: &str| glue::read(folder.path(), &[name.into()]);
    let labels: Vec<usize> = read("STS-B").unwrap()[0].train.iter().map(|example| example.label).collect();
    assert_eq!(labels, [0, 0, 1, 2, 3, 4, 4]);
    // also beside other tasks than GLUE's
    write("own.jsonl", [0.0, 2.5].map(line).concat());
    let tasks = read_folder(folder.path()).unwrap();
    let classes: Vec<usize> = tasks.iter().map(|task| task.classes.len()).collect();
    assert_eq!(classes, [5, 2], "STS-B, then own");
    assert_eq!(tasks[1].classes, ["0", "2.5"], "other files keep their labels");
    write("STS-B.jsonl", [1.0, 5.5].map(line).concat());
    let error = read("STS-B").unwrap_err().to_string();
    assert!(error.contains("line 2: `label` is `5.5`; expected a score from 0 to 5"), "{error}");
    write("RTE.jsonl", [1.0, 2.0, 3.0].map(line).concat());
    let error = read("RTE").unwrap_err().to_string();
    assert!(error.contains("RTE has pairs of 2 classes, this file pairs of 3"), "{error}");
}

#[test]
fn leopard_files_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let read = |text: &str| {
        std::fs::write(folder.path().join("disaster.jsonl"), text).unwrap();
        leopard::read(folder.path(), "disaster")
    };
    let train = |k: usize, label: &str| {
        format!(
            "{{\"split\": \"train\", \"k\": {k}, \"draw\": 2, \"sentence1\": \"s\", \"label\": \"{label}\"}}\n"
        )
    };
    let eval = "{\"split\": \"eval\", \"k\": null, \"draw\": null, \"eval_source\": \"json\", \"sentence1\": \"s\", \"label\": \"b\"}\n";
    let whole = format!("{}{}{eval}", train(1, "a"), train(1, "b"));
    assert_eq!(read(&whole).unwrap().draws.keys().collect::<Vec<_>>(), [&(1, 2)]);
    for (text, expected) in [
        (
            format!("{}{}{eval}", train(2, "a"), train(2, "b")),
            "draw 2 of k = 2 has 1 example of class `a`; expected 2",
        ),
        (format!("{}{}", train(1, "a"), train(1, "b")), "no line has the split `eval`"),
        (whole.replace("\"k\": 1, ", ""), "line 1: a training line needs `k` and `draw`"),
        (whole.replace("\"k\": 1", "\"k\": -1"), "line 1: `k` is -1; expected a whole number"),
        (whole.replace("json", "jsn"), "line 3: `eval_source` is `jsn`"),
        (whole.replace("\"a\"", "\"b\""), "disaster has 2 classes, this file 1"),
    ] {
        let error = read(&text).unwrap_err();
        assert!(error.is_input() && error.to_string().contains(expected), "{error}");
    }
}

/// `PACMETA_MINILM=folder cargo test -p pacmeta --release time_of_tokenising -- --ignored --nocapture` tells how long a start takes.
#[test]
#[ignore = "reads both benchmarks with a real tokeniser and prints times and lengths"]
fn time_of_tokenising() {
    let (Some(glue), Some(leopard)) = (benchmark("glue"), benchmark("leopard")) else { return };
    let Some(model) = std::env::var_os("PACMETA_MINILM") else { return };
    let tokeniser = Tokeniser::open(std::path::Path::new(&model), 128).unwrap();
    let report = |name: &str, count: usize, tokens: usize, longest: usize, truncated: usize| {
        println!("{name:<22} {count:>6} examples, {tokens:>8} tokens, longest {longest:>3}, {truncated} cut");
    };
    let start = std::time::Instant::now();
    let tasks = glue::open(&glue, &[], &tokeniser).unwrap();
    println!("GLUE in {:.2?}", start.elapsed());
    for task in &tasks {
        report(&task.name, task.train.len(), task.train.token_count(), task.train.longest(), task.truncated);
    }
    let start = std::time::Instant::now();
    for info in leopard::TARGETS.iter().chain(&leopard::EXTRA) {
        let task = leopard::open(&leopard, info.name, &tokeniser, None).unwrap();
        report(info.name, task.eval.len(), task.eval.token_count(), task.eval.longest(), task.truncated);
        assert_eq!(task.eval.len(), task.eval_total);
    }
    println!("LEOPARD in {:.2?}", start.elapsed());
}
