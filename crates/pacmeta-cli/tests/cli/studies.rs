//! `pacmeta reproduce`: a study that is killed, continued, enlarged and drawn again.

use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use crate::helper::Place;

/// The quick study, as small as it gets: 77 pieces of a few hundredths of a second.
const TINY: [&str; 10] =
    ["reproduce", "sinusoid", "--out", "study", "--sets", "1", "--iterations", "20", "-q", "--json"];

/// The recorded outcomes by hash, without times and order.
fn outcomes(place: &Place, file: &str) -> Vec<(String, serde_json::Value)> {
    let text = place.text(file);
    let mut list: Vec<(String, serde_json::Value)> = text
        .lines()
        .skip(1)
        .map(|line| {
            let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
            let record = value["record"].take();
            (record["hash"].as_str().unwrap().to_owned(), record["ending"].clone())
        })
        .collect();
    list.sort_by(|left, right| left.0.cmp(&right.0));
    list
}

#[test]
fn killed_continued_enlarged_and_drawn_again() {
    let place = Place::new();
    let mut killed = 0;
    for _ in 0..4 {
        let mut child = place.command(&TINY).stdout(Stdio::null()).spawn().unwrap();
        let lines = place
            .path("study/records.jsonl")
            .exists()
            .then(|| place.text_lossy("study/records.jsonl").lines().count());
        // Until a few more pieces are recorded.
        for _ in 0..2000 {
            let now = place
                .path("study/records.jsonl")
                .exists()
                .then(|| place.text_lossy("study/records.jsonl").lines().count());
            if now.unwrap_or(0) > lines.unwrap_or(0) + 4 {
                break;
            }
            sleep(Duration::from_millis(5));
        }
        child.kill().unwrap(); // SIGKILL
        killed += usize::from(child.wait().unwrap().code().is_none());
        assert!(!place.path("study/report.html").exists() || killed == 0);
    }
    assert!(killed > 0, "the study was never caught in the middle");
    // As if it had died inside a line.
    let mut torn = place.read("study/records.jsonl");
    torn.truncate(torn.len() - 7);
    place.write("study/records.jsonl", &torn);
    let ran = place.run(&TINY);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("torn"), "{}", ran.stderr);
    let result: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&result["done"], &result["failed"]), (&result["pieces"], &0.into()), "{result}");

    // The same from scratch on one thread: the same outcomes.
    let mut fresh = TINY.to_vec();
    fresh[3] = "fresh";
    fresh.extend(["--threads", "1"]);
    place.ok(&fresh);
    assert!(outcomes(&place, "study/records.jsonl") == outcomes(&place, "fresh/records.jsonl"));

    // Nothing is left to do; `report` draws the same page without training.
    let page = |name: &str| place.text(&format!("{name}/report.html"));
    let before = (place.read("study/records.jsonl"), page("study"));
    place.ok(&TINY);
    assert_eq!(place.read("study/records.jsonl"), before.0);
    std::fs::remove_file(place.path("study/report.html")).unwrap();
    place.ok(&["report", "study"]);
    assert_eq!(page("study"), before.1);
    for file in ["errors.csv", "settings.csv", "bounds.csv", "gaps.csv", "claims.json", "errors.svg"] {
        assert!(place.path(&format!("study/{file}")).exists(), "{file}");
    }

    // One seed more trains only what is new.
    let lines = place.text("study/records.jsonl").lines().count();
    let mut more = TINY.to_vec();
    more.extend(["--seeds", "2"]);
    let result = place.json(&more);
    let pieces = usize::try_from(result["pieces"].as_u64().unwrap()).unwrap();
    assert_eq!(place.text("study/records.jsonl").lines().count(), 1 + pieces);
    assert!(pieces > lines);
    assert!(place.text("study/records.jsonl").starts_with(std::str::from_utf8(&before.0).unwrap()));
}

#[test]
fn what_cannot_be_a_study_is_refused() {
    let place = Place::new();
    place.write("notes/thesis.tex", "x");
    place.refused(
        &["reproduce", "sinusoid", "--out", "notes"],
        &["notes", "something else than a study", "--out"],
    );
    assert_eq!(std::fs::read_dir(place.path("notes")).unwrap().count(), 1);
    let ran = place.run(&["reproduce", "sinusoyd"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("sinusoid"), "{}", ran.stderr);
    for arguments in [["--sets", "0"], ["--seeds", "-1"], ["--iterations", "many"], ["--preset", "full"]] {
        let mut all = vec!["reproduce", "sinusoid", "--out", "study"];
        all.extend(arguments);
        assert_eq!(place.run(&all).code, Some(2), "{arguments:?}");
        assert!(!place.path("study").exists(), "{arguments:?}");
    }
    // An option of another study would be without effect.
    for (study, option, value, meant) in [
        ("sinusoid", "--methods", "maml", "mini-imagenet, leopard"),
        ("sinusoid", "--data", "synthetic", "mini-imagenet, leopard"),
        ("sinusoid", "--model-shape", "bert-base", "memory"),
        ("memory", "--iterations", "3", "sinusoid, mini-imagenet, leopard"),
        ("leopard", "--tasks", "3", "mini-imagenet"),
        ("leopard", "--set", "prior.head=zero", "mini-imagenet"),
    ] {
        place.refused(&["reproduce", study, option, value], &[option, meant, "remove it"]);
    }
    // A damaged record, and one of another version.
    let plan = "{\"format\":1,\"study\":\"sinusoid\",\"command\":\"c\",\"history\":[],\"plan\":{}}";
    place.write("study/study.json", plan);
    let line = "{\"crc32c\":\"00000000\",\"record\":{}}\n";
    place.write("study/records.jsonl", line);
    place.refused(&TINY, &["records.jsonl", "line 1", "damaged"]);
    assert_eq!(place.text("study/records.jsonl"), line);
    let header = "{\"crc32c\":\"407beba2\",\"record\":{\"format\":1,\"study\":\"sinusoid\",\"version\":2}}\n";
    place.write("study/records.jsonl", header);
    place.refused(&TINY, &["records.jsonl", "version 2"]);
    assert_eq!(place.text("study/records.jsonl"), header);
    assert_eq!(place.text("study/study.json"), plan);
    place.write("other/study.json", plan.replace("sinusoid", "omniglot"));
    place.refused(&["report", "other"], &["omniglot"]);
    place.refused(&["reproduce", "sinusoid", "--out", "other"], &["omniglot", "--out"]);
    place.refused(&["report", "nowhere"], &["nowhere"]);
}
