//! Configurations in TOML, with an override behind each zero byte.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pacmeta::config::Config;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut parts = text.split('\0');
    let text = parts.next().unwrap_or_default();
    let overrides: Vec<(String, String)> =
        parts.filter_map(|part| part.split_once('=')).map(|(key, value)| (key.into(), value.into())).collect();
    match Config::parse("fuzz.toml", text, &overrides) {
        Ok(config) => {
            let written = config.to_toml();
            let again = Config::parse("again.toml", &written, &[]).expect("what was written can be read");
            assert_eq!(again, config);
            assert_eq!(again.to_toml(), written);
            let _ = config.method_settings(1.0, Some(1.0));
        }
        Err(problem) => assert!(problem.is_input() && problem.to_string().len() < 2000, "{problem}"),
    }
});
