//! `docs/configuration.md` has every key, and only keys that there are.

use std::collections::BTreeSet;
use std::path::Path;

use super::super::classification_training::Kind;
use super::super::{TOP, bound, classification, data, images, method, prior, sweep, text, training};

const REGRESSION: &str = "Regression";
const PICTURES: &str = "Pictures";
const TEXTS: &str = "Texts";
const BOTH: &str = "Pictures and texts";

/// The sources whose documentation has tables of keys.
const SOURCES: [&str; 10] = [
    include_str!("../bound.rs"),
    include_str!("../classification.rs"),
    include_str!("../classification_training.rs"),
    include_str!("../data.rs"),
    include_str!("../images.rs"),
    include_str!("../method.rs"),
    include_str!("../prior.rs"),
    include_str!("../sweep.rs"),
    include_str!("../text.rs"),
    include_str!("../training.rs"),
];

fn document() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    std::fs::read_to_string(path).unwrap()
}

/// The keys in the tables of a section of a configuration, below a heading of the document.
fn documented(document: &str, heading: &str, section: &str) -> BTreeSet<String> {
    let wanted = format!("## {heading}");
    let lines = document.lines().skip_while(|line| *line != wanted).skip(1);
    let (mut inside, mut keys) = (false, BTreeSet::new());
    for line in lines.take_while(|line| !line.starts_with("## ")) {
        if line.starts_with("| key of") {
            inside = line.starts_with(&format!("| key of `[{section}]` |"));
        } else if inside && let Some(row) = line.strip_prefix("| `") {
            let cell = row.split(" |").next().unwrap_or_default();
            keys.extend(cell.trim_end_matches('`').split("`, `").map(str::to_owned));
        }
    }
    keys
}

#[test]
fn every_key_is_documented_and_no_other() {
    let document = document();
    let methods = [classification::KEYS, &["adapts", "way_back"]].concat();
    let training = [Kind::Images.keys(), Kind::Text.keys()].concat();
    let sections: [(&str, &str, &[&str]); 15] = [
        (REGRESSION, "data", data::KEYS),
        (REGRESSION, "prior", prior::KEYS),
        (REGRESSION, "method", method::KEYS),
        (REGRESSION, "training", training::TRAINING_KEYS),
        (REGRESSION, "search", training::SEARCH_KEYS),
        (REGRESSION, "bound", bound::KEYS),
        (REGRESSION, "sweep", sweep::KEYS),
        (PICTURES, "data", images::DATA_KEYS),
        (PICTURES, "prior", images::PRIOR_KEYS),
        (PICTURES, "evaluation", images::EVALUATION_KEYS),
        (TEXTS, "data", text::DATA_KEYS),
        (TEXTS, "prior", text::PRIOR_KEYS),
        (TEXTS, "evaluation", text::EVALUATION_KEYS),
        (BOTH, "method", &methods),
        (BOTH, "training", &training),
    ];
    for (heading, section, keys) in sections {
        let keys: BTreeSet<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        assert_eq!(documented(&document, heading, section), keys, "{heading}, [{section}]");
    }
    // No section of a configuration is left out above.
    for top in [TOP, images::TOP, text::TOP].concat() {
        assert!(top == "seed" || sections.iter().any(|(_, section, _)| *section == top), "{top}");
    }
    assert!(document.contains("`seed`"));
}

#[test]
fn tables_of_the_documentation_of_types_are_those_of_the_document() {
    let document = document();
    let mut rows = 0;
    for row in
        SOURCES.iter().flat_map(|source| source.lines()).filter_map(|line| line.strip_prefix("/// | `"))
    {
        // `seed` is told in words, and links to types are words too.
        if !row.starts_with("seed`") && !row.contains("[`") {
            assert!(document.contains(&format!("| `{row}\n")), "not in docs/configuration.md: {row}");
            rows += 1;
        }
    }
    assert!(rows > 90, "{rows} rows");
}

#[test]
fn missing_keys_are_found() {
    let text = "## Pictures\n\n| key of `[data]` | x |\n|---|---|\n| `a`, `b` | 1 |\n\n| key of `[prior]` | x |\n|---|---|\n| `c` | 2 |\n\n## Texts\n\n\
                | key of `[data]` | x |\n|---|---|\n| `d` | 3 |\n";
    let keys = |heading, section| documented(text, heading, section).into_iter().collect::<Vec<_>>();
    assert_eq!(
        (keys("Pictures", "data"), keys("Pictures", "prior")),
        (vec!["a".into(), "b".into()], vec!["c".into()])
    );
    assert_eq!((keys("Texts", "data"), keys("Texts", "prior")), (vec!["d".to_owned()], Vec::<String>::new()));
}
