//! Labelled sentences and queries in JSON lines, plain or gzip.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pacmeta::environments::text::{parse_queries, parse_texts};

fuzz_target!(|bytes: &[u8]| {
    let queries = parse_queries("fuzz.jsonl", bytes);
    if let Ok(queries) = &queries {
        let pairs = queries.sentences.iter().filter(|sentences| sentences.second.is_some()).count();
        assert!(pairs == 0 || pairs == queries.sentences.len(), "pairs throughout or not at all");
        assert!(queries.lines.is_sorted());
    }
    if let Ok(task) = parse_texts("fuzz.jsonl", bytes) {
        let queries = queries.expect("what is a task is also a list of queries");
        assert_eq!(queries.sentences.len(), task.train.len() + task.dev.len());
        assert!(task.classes.len() >= 2);
        let again = parse_texts("fuzz.jsonl", task.to_json_lines().as_bytes()).expect("what was written can be read");
        assert_eq!(again, task);
        assert!(task.train.iter().chain(&task.dev).all(|example| example.label < task.classes.len()));
    }
});
