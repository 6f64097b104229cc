//! What holds for every text: it is read whole or refused, and what is read survives writing.

use proptest::prelude::*;

use super::parse;
use crate::config::{Config, DataSource, Temperature};

/// Lines that are right, that are wrong, and that contradict each other.
const LINES: &[&str] = &[
    "seed = 3",
    "[data]",
    "[method]",
    "[training]",
    "[search]",
    "[bound]",
    "[prior]",
    "name = \"maml\"",
    "name = \"pacoh\"",
    "beta = \"auto\"",
    "beta = 1e-300",
    "beta_per_example = 3",
    "alpha = 7",
    "subset = 0.25",
    "subset = 9",
    "path = \"\u{7f}\\\"a'b\\n.csv\"",
    "support = 3",
    "examples = 9223372036854775807",
    "features = [\"a\", \"é\"]",
    "features = 3",
    "hidden = [1, 65536]",
    "hidden = [[]]",
    "iterations = -1",
    "iterations = 12",
    "rate = nan",
    "rate = 0.1",
    "optimiser = \"adamw\"",
    "weight_decay = -0.0",
    "held_out = 0.3",
    "kernel = 1979-05-27",
    "delta = 0.1",
    "assumption = \"bounded\"",
    "a = -0.0",
    "b = 5e-324",
    "x.y.z = {}",
    "\"\" = 1",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn mutated_texts_are_read_whole_or_refused(
        chosen in proptest::collection::vec(0..LINES.len(), 0..8),
        cut in 0..200_usize,
        noise in "[\\[\\]=.\"'a-z0-9\\n{}#é\u{0}-]{0,4}",
        overrides in proptest::collection::vec(("[a-z._]{0,12}", "[^é]{0,6}"), 0..2),
    ) {
        let mut text: String = chosen.iter().map(|&line| format!("{}\n", LINES[line])).collect();
        if let Some(place) = (0..=cut.min(text.len())).rev().find(|&place| text.is_char_boundary(place)) {
            text.insert_str(place, &noise);
        }
        match Config::parse("mutated.toml", &text, &overrides) {
            Ok(config) => {
                let written = config.to_toml();
                prop_assert_eq!(&parse(&written), &config);
                prop_assert_eq!(parse(&written).to_toml(), written);
            }
            Err(problem) => {
                prop_assert!(problem.is_input());
                prop_assert!(problem.to_string().len() < 1000, "{}", problem);
            }
        }
    }

    #[test]
    fn numbers_survive_writing(
        seed in 0..=i64::MAX as u64,
        bits in proptest::collection::vec(any::<u64>(), 4),
        hidden in proptest::collection::vec(1..=1500_usize, 1..5),
        path in "\\PC{0,12}[a\\\\\"']",
    ) {
        let positive = |bits: u64| Some(f64::from_bits(bits).abs()).filter(|x| x.is_finite() && *x > 0.0).unwrap_or(1.0);
        let mut config = parse("data.path = \"x\"");
        config.seed = seed;
        config.prior.hidden = hidden;
        config.method.beta = Some(Temperature::Value(positive(bits[0])));
        config.training.rate = positive(bits[1]);
        let search = config.search.as_mut().unwrap();
        search.beta_per_example.clear();
        search.alpha_per_example = vec![positive(bits[2]), positive(bits[3])];
        if let DataSource::Table(table) = &mut config.data.source {
            table.path = path.into();
        }
        prop_assert_eq!(&parse(&config.to_toml()), &config);
        let json = serde_json::to_string(&config).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Config>(&json).unwrap(), &config);
    }
}
