//! One file a subject: lines and their errors, tokenisers, episodes, sources of episodes, the real benchmarks.

mod benchmarks;
mod episodes;
mod lines;
mod sources;
mod tokenising;

use super::*;

/// A tokeniser of a few words.
fn small_tokeniser(limit: usize) -> Tokeniser {
    let words = "[PAD] [UNK] [CLS] [SEP] [MASK] a b c d e f good bad not very rain sun ##y ##s , . !";
    let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
    Tokeniser::from_words(&words, limit).unwrap()
}
