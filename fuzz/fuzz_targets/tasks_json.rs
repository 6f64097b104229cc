//! Tasks, supports and queries in JSON.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pacmeta::environments::table::{
    Format, Prediction, TableOptions, parse_json, parse_queries, parse_support, tasks_to_json, write_predictions,
};

fuzz_target!(|bytes: &[u8]| {
    let options = TableOptions { min_examples: Some(1), ..TableOptions::default() };
    if let Ok(table) = parse_json("fuzz.json", bytes, &options) {
        let text = tasks_to_json(&table);
        let again = parse_json("again.json", text.as_bytes(), &options).expect("what was written can be read");
        assert_eq!(again, table);
    }
    let features = ["a".to_string(), "b".to_string()];
    let _ = parse_support("fuzz.json", bytes, &features, "y");
    if let Ok(queries) = parse_queries("fuzz.json", bytes, &features) {
        let predictions = vec![Prediction::normal(0.0, 1.0); queries.len()];
        let mut written = Vec::new();
        write_predictions("out.csv", &mut written, Format::Csv, &queries, &predictions).expect("memory is writable");
        let again = parse_queries("out.csv", &written, &features).expect("what was written can be read");
        assert_eq!(again.inputs(), queries.inputs());
    }
});
