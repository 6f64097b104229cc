//! Tasks from raw sentences, without labels: which word was masked?
//!
//! Subset masked language model tasks (Bansal, Jha, Munkhdalai and McCallum, 2020): draw N words, take sentences that
//! contain exactly one of them, replace every occurrence by `[MASK]`; the word is the class. Words are drawn from a band of
//! frequencies: rare ones have too few sentences, frequent ones (the, of) say nothing about the meaning.
//!
//! A word is a run of letters, whatever its capitals. Masks that lie so late in a sentence that truncation would cut them are
//! not used.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use pacmeta_tensor::Key;

use super::lines::Lines;
use super::{EpisodeSampler, EpisodeSource, LabelledTexts, TextEpisode, TokenSet, Tokeniser};
use crate::environments::table::counted;
use crate::error::{Error, Result};

/// Sentences from which the mean length is taken.
const SAMPLED: usize = 500;

/// How often words are drawn anew when those drawn share too many sentences.
const ATTEMPTS: u64 = 20;

/// What tasks to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmlmtOptions {
    /// The number N of words of a task.
    pub classes: usize,
    /// The fewest sentences of a word.
    pub least: usize,
    /// The most sentences of a word.
    pub most: usize,
}

impl Default for SmlmtOptions {
    fn default() -> Self {
        Self { classes: 3, least: 100, most: 2000 }
    }
}

/// Sentences, indexed by the words in the band.
#[derive(Debug, Clone)]
pub struct Smlmt {
    options: SmlmtOptions,
    tokeniser: Tokeniser,
    mask: (u32, String),
    sentences: Vec<String>,
    /// The words in the band, sorted, each with the numbers of its sentences.
    words: Vec<(String, Vec<u32>)>,
}

impl Smlmt {
    /// Indexes sentences; equal ones count once.
    ///
    /// # Errors
    /// When the tokeniser has no mask, the options make no sense, or fewer words than a task takes are in the band.
    pub fn new(
        sentences: impl IntoIterator<Item = String>,
        tokeniser: &Tokeniser,
        options: SmlmtOptions,
    ) -> Result<Self> {
        let refuse = |message: String| Err(Error::input("masked words", message));
        let Some(mask) = tokeniser.mask_id().zip(tokeniser.mask_word().map(str::to_owned)) else {
            let message = "it has no [MASK] token, which tasks of masked words need; take another model, or labelled tasks";
            return Err(Error::input(tokeniser.origin(), message));
        };
        if options.classes < 2 || options.least == 0 || options.most < options.least {
            return refuse(format!(
                "expected 2 or more words of a task and a band of 1 or more sentences, found {} words and {} to {}",
                options.classes, options.least, options.most
            ));
        }
        let mut seen = HashSet::new();
        let mut kept = Vec::new();
        let mut index: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for sentence in sentences {
            let Ok(number) = u32::try_from(kept.len()) else { break };
            if !seen.insert(sentence.clone()) {
                continue;
            }
            let mut words: Vec<String> = words(&sentence).map(|(_, word)| word).collect();
            words.sort_unstable();
            words.dedup();
            for word in words {
                let numbers = index.entry(word).or_default();
                // Beyond the band a word is known to be too frequent.
                if numbers.len() <= options.most {
                    numbers.push(number);
                }
            }
            kept.push(sentence);
        }
        index.retain(|_, numbers| (options.least..=options.most).contains(&numbers.len()));
        if index.len() < options.classes {
            return refuse(format!(
                "{} in {} to {} of {} sentences, and a task takes {}; add sentences (`data.smlmt_path`), or lower `data.smlmt_words`",
                counted(index.len(), "word"),
                options.least,
                options.most,
                kept.len(),
                options.classes
            ));
        }
        let words = index.into_iter().collect();
        Ok(Self { options, tokeniser: tokeniser.clone(), mask, sentences: kept, words })
    }

    /// The number of different sentences.
    pub fn sentences(&self) -> usize {
        self.sentences.len()
    }

    /// The mean number of tokens of a sentence, frame included, from a sample of them.
    ///
    /// # Errors
    /// When the tokeniser cannot make tokens of a text.
    pub fn mean_length(&self) -> Result<f64> {
        let every = self.sentences.len().div_ceil(SAMPLED).max(1);
        let (mut tokens, mut count) = (0, 0);
        for sentence in self.sentences.iter().step_by(every) {
            tokens += self.tokeniser.encode(sentence, None)?.ids.len();
            count += 1;
        }
        Ok(tokens as f64 / count.max(1) as f64)
    }

    /// The words in the band, sorted.
    pub fn words(&self) -> impl ExactSizeIterator<Item = &str> {
        self.words.iter().map(|(word, _)| word.as_str())
    }

    /// The sentences of these words that hold no other of them, each with the place of its word.
    fn candidates(&self, chosen: &[usize]) -> (Vec<u32>, Vec<usize>) {
        let names: Vec<&str> = chosen.iter().map(|&word| self.words[word].0.as_str()).collect();
        // Two tokens of the frame, and words of up to two pieces on the average, leave the mask inside.
        let window = self.tokeniser.limit().saturating_sub(2) / 2;
        let (mut sentences, mut labels) = (Vec::new(), Vec::new());
        for (label, &word) in chosen.iter().enumerate() {
            for &sentence in &self.words[word].1 {
                let (mut alone, mut early) = (true, false);
                for (place, (_, found)) in words(&self.sentences[sentence as usize]).enumerate() {
                    early |= place < window && found == names[label];
                    alone &= found == names[label] || !names.contains(&found.as_str());
                }
                if alone && early {
                    sentences.push(sentence);
                    labels.push(label);
                }
            }
        }
        (sentences, labels)
    }

    fn attempt(&self, sampler: &EpisodeSampler, key: Key) -> Result<Option<TextEpisode>> {
        let chosen = key.named("words").generator().subset(self.words.len(), self.options.classes);
        let (sentences, labels) = self.candidates(&chosen);
        if (0..chosen.len()).any(|label| !labels.contains(&label)) {
            return Ok(None);
        }
        let classes: Vec<String> = chosen.iter().map(|&word| self.words[word].0.clone()).collect();
        let mut tokens = TokenSet::new();
        for place in sampler.choose(&labels, classes.len(), key) {
            let label = labels[place];
            let masked = mask(&self.sentences[sentences[place] as usize], &classes[label], &self.mask.1);
            let encoded = self.tokeniser.encode(&masked, None)?;
            if encoded.ids.contains(&self.mask.0) {
                tokens.push(&encoded, label);
            }
        }
        let task = format!("masked words {}", classes.join(", "));
        Ok((tokens.len() >= sampler.least()).then_some(TextEpisode {
            task,
            tokens,
            subset: sampler.subset,
            classes,
        }))
    }

    fn check_sizes(&self, sampler: &EpisodeSampler) -> Result<()> {
        sampler.check()?;
        if self.options.least * self.options.classes < sampler.least() {
            let message = format!(
                "{} words with {} or more sentences each may have fewer than the {} examples that an episode needs; raise \
                 `data.smlmt_words`, or lower `data.support`",
                self.options.classes,
                self.options.least,
                sampler.least()
            );
            return Err(Error::input("masked words", message));
        }
        Ok(())
    }
}

impl EpisodeSource for Smlmt {
    fn name(&self) -> &str {
        "masked words"
    }

    /// Also draws an episode: whether words share too many sentences shows only then, and should show before a run.
    fn check(&self, sampler: &EpisodeSampler) -> Result<()> {
        self.draw(sampler, Key::new(0).named("check")).map(drop)
    }

    fn draw(&self, sampler: &EpisodeSampler, key: Key) -> Result<TextEpisode> {
        self.check_sizes(sampler)?;
        for attempt in 0..ATTEMPTS {
            if let Some(episode) = self.attempt(sampler, key.index(attempt))? {
                return Ok(episode);
            }
        }
        let message = format!(
            "{ATTEMPTS} draws of {} words gave fewer than {} with one of them only; lower `data.support`, change `data.smlmt_words`, \
             or add sentences (`data.smlmt_path`)",
            self.options.classes,
            counted(sampler.least(), "sentence")
        );
        Err(Error::input("masked words", message))
    }
}

/// All sentences of tasks, for tasks of masked words.
pub fn sentences_of(tasks: &[LabelledTexts]) -> Vec<String> {
    let examples = tasks.iter().flat_map(|task| &task.train);
    examples
        .flat_map(|example| [Some(&example.sentences.first), example.sentences.second.as_ref()])
        .flatten()
        .cloned()
        .collect()
}

/// The sentences of a plain text file, one a line, packed by gzip or not; of a `.jsonl` file, its sentence fields; of a folder,
/// those of all its `.txt`, `.txt.gz`, `.jsonl` and `.jsonl.gz` files in the order of their names.
///
/// # Errors
/// When a file cannot be read or holds no sentence, or a folder holds no such file.
pub fn read_sentences(path: &Path) -> Result<Vec<String>> {
    let expected = "sentences for tasks of masked words: a text file with one a line, a .jsonl file, or a folder of such files; \
                    check the path (`data.smlmt_path`)";
    let list_error = |source| Error::reading(path, source, expected);
    if !std::fs::metadata(path).map_err(list_error)?.is_dir() {
        return sentences_of_file(path);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(list_error)? {
        let file = entry.map_err(list_error)?.path();
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let lower = name.to_ascii_lowercase();
        let matters = ENDINGS.iter().any(|ending| lower.ends_with(ending)) && !name.starts_with('.');
        if matters && file.is_file() {
            files.push(file);
        }
    }
    if files.is_empty() {
        let message = format!("there is no file in this folder that ends in {}", ENDINGS.join(", "));
        return Err(Error::input(path.display(), message));
    }
    files.sort();
    let mut sentences = Vec::new();
    for file in &files {
        sentences.extend(sentences_of_file(file)?);
    }
    Ok(sentences)
}

/// The files of a folder that hold sentences.
const ENDINGS: [&str; 4] = [".txt", ".txt.gz", ".jsonl", ".jsonl.gz"];

fn sentences_of_file(path: &Path) -> Result<Vec<String>> {
    let name = path.to_string_lossy().to_ascii_lowercase();
    if name.ends_with(".jsonl") || name.ends_with(".jsonl.gz") {
        let queries = super::read_queries(path)?;
        return Ok(queries
            .sentences
            .into_iter()
            .flat_map(|pair| [Some(pair.first), pair.second])
            .flatten()
            .collect());
    }
    let mut lines = Lines::open(path)?;
    let mut sentences = Vec::new();
    while let Some((_, line)) = lines.next()? {
        sentences.push(line.to_owned());
    }
    if sentences.is_empty() {
        return Err(Error::input(path.display(), "there is no line; expected one sentence a line"));
    }
    Ok(sentences)
}

/// The words of a sentence in small letters, each with its place in bytes.
fn words(sentence: &str) -> impl Iterator<Item = (std::ops::Range<usize>, String)> {
    let mut rest = 0;
    std::iter::from_fn(move || {
        let start = rest + sentence[rest..].find(char::is_alphabetic)?;
        let end =
            sentence[start..].find(|c: char| !c.is_alphabetic()).map_or(sentence.len(), |at| start + at);
        rest = end;
        Some((start..end, sentence[start..end].to_lowercase()))
    })
}

/// The sentence with every occurrence of a word replaced.
fn mask(sentence: &str, word: &str, mask: &str) -> String {
    let mut masked = String::with_capacity(sentence.len());
    let mut done = 0;
    for (range, found) in words(sentence) {
        if found == word {
            masked.push_str(&sentence[done..range.start]);
            masked.push_str(mask);
            done = range.end;
        }
    }
    masked.push_str(&sentence[done..]);
    masked
}
