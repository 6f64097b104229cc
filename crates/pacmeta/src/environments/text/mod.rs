//! Sentences: people's own, or the benchmarks', as few-shot episodes.
//!
//! A task is a file of JSON lines, one object an example: `{"sentence1": "...", "sentence2": "...", "label": "..."}`, with
//! `sentence2` in tasks of pairs only. A label is a text, a number, true or false. `split` (`train` or `dev`) is
//! optional; other fields are passed over. Files may be packed by gzip. A [`Tokeniser`] of the BERT family makes packed
//! sequences of tokens of them ([`TokenSet`]), and an [`EpisodeSampler`] draws m examples with a subset S' of m'.
//!
//! [`glue`] and [`leopard`] are the benchmarks, [`smlmt`] makes tasks of raw sentences, and [`synthetic`] generates tasks and a
//! tiny encoder for trying things out. A [`Mixture`] draws from several sources.
//!
//! ```
//! use pacmeta::environments::text::{Balance, EpisodeSampler, Tokeniser, parse_texts};
//! use pacmeta_tensor::Key;
//!
//! let words = ["[UNK]", "[CLS]", "[SEP]", "good", "bad", "very"].map(str::to_owned);
//! let tokeniser = Tokeniser::from_words(&words, 16)?;
//! let lines = br#"{"sentence1": "Very good", "label": 1}
//! {"sentence1": "very, very bad", "label": 0}
//! {"sentence1": "good", "label": 1}"#;
//! let task = parse_texts("reviews.jsonl", lines)?.tokenise(&tokeniser)?;
//! assert_eq!(task.train.tokens(0..1).ids, [1, 5, 3, 2]);
//!
//! let sampler = EpisodeSampler { examples: 3, subset: 2, outside: 0, balance: Balance::Balanced };
//! let episode = sampler.draw(&task, Key::new(1))?;
//! assert_ne!(episode.tokens.labels[0], episode.tokens.labels[1], "both classes are in S'");
//! # Ok::<(), pacmeta::Error>(())
//! ```

mod episodes;
pub mod glue;
pub mod leopard;
mod lines;
mod mixture;
mod read;
mod records;
pub mod smlmt;
pub mod synthetic;
mod task;
mod tokeniser;
mod tokens;

pub use episodes::{Balance, EpisodeSampler, TaskSampling, TextEpisode};
pub use mixture::{EpisodeSource, Mixture, TaskPool};
pub use read::{
    TextQueries, open_folder, parse_queries, parse_texts, passed_over, read_folder, read_queries, read_task,
    read_texts,
};
pub use task::{LabelledText, LabelledTexts, Part, Sentences, TextTask};
pub use tokeniser::{Encoded, Tokeniser};
pub use tokens::TokenSet;

pub use pacmeta_tensor::encoder::Tokens;

#[cfg(test)]
mod tests;
