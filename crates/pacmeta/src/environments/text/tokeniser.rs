//! From sentences to token numbers: `[CLS] first [SEP]`, or `[CLS] first [SEP] second [SEP]` with segments 0 and 1.
//!
//! The word pieces come from the `tokenizers` crate. The frame and the truncation are put around them here, for settings
//! inside a `tokenizer.json` (padding to a fixed length, another limit) must not leak into what an encoder sees, and
//! the crate's own truncation keeps everything that it cut off.
//!
//! **Truncation** is longest first: tokens are taken from the end of the longer sentence until the two have the same
//! length, then from both, so a short sentence beside a long one stays whole. A sentence beyond the limit counts as long as
//! the limit.

mod definition;

use std::path::Path;

use tokenizers::{Tokenizer, TruncationParams};

use crate::environments::table::{counted, quoted};
use crate::error::{Error, Result};
use definition::TokeniserConfig;

/// The shortest limit that leaves room for a token of each sentence.
const SHORTEST_LIMIT: usize = 5;

/// A sequence of tokens made of one or two sentences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// The token numbers.
    pub ids: Vec<u32>,
    /// The segment of every token.
    pub segments: Vec<u8>,
    /// Whether tokens were left out, since there were more than the limit.
    pub truncated: bool,
}

/// A tokeniser of the BERT family.
#[derive(Debug, Clone)]
pub struct Tokeniser {
    inner: Tokenizer,
    origin: String,
    limit: usize,
    vocabulary: usize,
    first: u32,
    separator: u32,
    second_segment: u8,
    mask: Option<(u32, String)>,
    unknown: Option<u32>,
}

impl Tokeniser {
    /// Opens the tokeniser of a model's folder: `tokenizer.json`, or else `vocab.txt` with the settings of
    /// `tokenizer_config.json` (capitals are ignored unless `do_lower_case` is false). `limit` is the most tokens of a
    /// sequence, frame included.
    ///
    /// # Errors
    /// When neither file is there, a file does not hold what it should, the frame is not BERT's, or `limit` is below 5.
    pub fn open(folder: &Path, limit: usize) -> Result<Self> {
        let config = TokeniserConfig::read(&folder.join("tokenizer_config.json"))?;
        let (whole, words) = (folder.join("tokenizer.json"), folder.join("vocab.txt"));
        if whole.is_file() {
            let bytes = std::fs::read(&whole).map_err(|source| Error::io("read", &whole, source))?;
            return Self::parse_with(&whole.display().to_string(), &bytes, &config, limit);
        }
        if words.is_file() {
            let bytes = std::fs::read(&words).map_err(|source| Error::io("read", &words, source))?;
            let origin = words.display().to_string();
            return Self::of_words(&origin, &definition::parse_vocabulary(&origin, &bytes)?, &config, limit);
        }
        Err(Error::input(
            folder.display(),
            "there is neither tokenizer.json nor vocab.txt; copy one of them from where the model comes from",
        ))
    }

    /// A tokeniser from the bytes of a `tokenizer.json`.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn parse(origin: &str, bytes: &[u8], limit: usize) -> Result<Self> {
        Self::parse_with(origin, bytes, &TokeniserConfig::default(), limit)
    }

    /// A tokeniser from the bytes of a `vocab.txt`: a word piece a line, `##` before pieces inside words.
    ///
    /// # Errors
    /// As for [`open`](Self::open); also when a word piece occurs twice.
    pub fn parse_vocabulary(origin: &str, bytes: &[u8], limit: usize) -> Result<Self> {
        let words = definition::parse_vocabulary(origin, bytes)?;
        Self::of_words(origin, &words, &TokeniserConfig::default(), limit)
    }

    /// A tokeniser of these words and word pieces, numbered in order; capitals are ignored.
    ///
    /// # Errors
    /// When `[UNK]`, `[CLS]` or `[SEP]` is missing.
    pub fn from_words(words: &[String], limit: usize) -> Result<Self> {
        Self::of_words("vocabulary", words, &TokeniserConfig::of_case(true), limit)
    }

    fn of_words(origin: &str, words: &[String], config: &TokeniserConfig, limit: usize) -> Result<Self> {
        let definition = definition::definition(origin, words, config)?;
        Self::parse_with(origin, definition.to_string().as_bytes(), config, limit)
    }

    fn parse_with(origin: &str, bytes: &[u8], config: &TokeniserConfig, limit: usize) -> Result<Self> {
        if limit < SHORTEST_LIMIT {
            let message = format!(
                "a limit of {} leaves no room for two sentences and the {} tokens around them; expected at least \
                 {SHORTEST_LIMIT}",
                counted(limit, "token"),
                3
            );
            return Err(Error::input("tokeniser", message));
        }
        let refuse = |message: String| Error::input(origin, message);
        let mut inner = Tokenizer::from_bytes(bytes)
            .map_err(|error| refuse(format!("is not a usable tokeniser: {error}; copy it again")))?;
        let unusable = |error| refuse(format!("is not a usable tokeniser: {error}"));
        inner.with_padding(None);
        inner.with_truncation(None).map_err(unusable)?;
        let (first, separator) = frame(&inner).map_err(refuse)?;
        // Of a book, no more tokens are made than can matter; this is more than the frame leaves room for.
        let most = TruncationParams { max_length: limit, ..TruncationParams::default() };
        inner.with_truncation(Some(most)).map_err(unusable)?;
        let vocabulary = inner.get_vocab(true).values().max().map_or(0, |&largest| largest as usize + 1);
        let unknown = inner.token_to_id(&config.special("unk_token"));
        let mut tokeniser = Self {
            mask: None,
            unknown,
            origin: origin.to_owned(),
            inner,
            limit,
            vocabulary,
            first,
            separator,
            second_segment: 1,
        };
        // A mask is usable only if its name inside a text is taken as one token.
        let name = config.special("mask_token");
        if let Some(id) = tokeniser.inner.token_to_id(&name)
            && tokeniser.pieces(&name)? == [id]
        {
            tokeniser.mask = Some((id, name));
        }
        Ok(tokeniser)
    }

    /// The tokeniser for an encoder with this many segments: where there is one only, both sentences of a pair are in it.
    #[must_use]
    pub fn with_segments(self, segments: usize) -> Self {
        Self { second_segment: u8::from(segments != 1), ..self }
    }

    /// One more than the largest token number: the rows that an embedding table must have.
    pub fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// The most tokens of a sequence.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The number of the token that hides a word, `[MASK]`, if there is one.
    pub fn mask_id(&self) -> Option<u32> {
        self.mask.as_ref().map(|(id, _)| *id)
    }

    /// How a hidden word is written in a text, if there is such a token.
    pub fn mask_word(&self) -> Option<&str> {
        self.mask.as_ref().map(|(_, word)| word.as_str())
    }

    /// The part of the word pieces among these tokens, frame aside, that stands for unknown words (`[UNK]`).
    pub fn unknown_part(&self, ids: &[u32]) -> f64 {
        let pieces = ids.iter().filter(|&&id| id != self.first && id != self.separator);
        let (mut unknown, mut count) = (0, 0);
        for &id in pieces {
            unknown += usize::from(Some(id) == self.unknown);
            count += 1;
        }
        unknown as f64 / count.max(1) as f64
    }

    /// Where the tokeniser is from, for messages.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The text of a token, if there is such a token.
    pub fn token(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)
    }

    /// Encodes one or two sentences.
    ///
    /// # Errors
    /// When the tokeniser cannot make tokens of a text.
    pub fn encode(&self, first: &str, second: Option<&str>) -> Result<Encoded> {
        let first = self.pieces(first)?;
        let second = second.map(|text| self.pieces(text)).transpose()?;
        let frame = if second.is_some() { 3 } else { 2 };
        let lengths = (first.len(), second.as_ref().map_or(0, Vec::len));
        let (first_kept, second_kept) = longest_first(lengths.0, lengths.1, self.limit - frame);
        let mut ids = Vec::with_capacity(first_kept + second_kept + frame);
        ids.push(self.first);
        ids.extend_from_slice(&first[..first_kept]);
        ids.push(self.separator);
        let mut segments = vec![0; ids.len()];
        if let Some(second) = &second {
            ids.extend_from_slice(&second[..second_kept]);
            ids.push(self.separator);
            segments.resize(ids.len(), self.second_segment);
        }
        Ok(Encoded { ids, segments, truncated: (first_kept, second_kept) != lengths })
    }

    /// The word pieces of a text, without a frame; of a long text, as many as the limit.
    fn pieces(&self, text: &str) -> Result<Vec<u32>> {
        let encoding = self.inner.encode_fast(text, false);
        encoding.map(|encoding| encoding.get_ids().to_vec()).map_err(|error| {
            Error::input(&self.origin, format!("cannot make tokens of {}: {error}", quoted(text)))
        })
    }
}

/// How many tokens stay of two sentences, at most `room` together.
fn longest_first(first: usize, second: usize, room: usize) -> (usize, usize) {
    if first + second <= room {
        return (first, second);
    }
    let half = room / 2;
    match (first > half, second > half) {
        // Where both are cut, the odd token goes to the longer one, and to the second of two equal ones.
        (true, true) if first > second => (room - half, half),
        (true, true) => (half, room - half),
        (true, false) => (room - second, second),
        _ => (first, room - first),
    }
}

/// The tokens before and after sentences, from a pair that the tokeniser framed itself.
fn frame(inner: &Tokenizer) -> std::result::Result<(u32, u32), String> {
    let fails = |error| format!("cannot make tokens of a word: {error}");
    let pieces = inner.encode_fast("a", false).map_err(fails)?.get_ids().to_vec();
    let framed = inner.encode_fast(("a", "a"), true).map_err(fails)?;
    let (ids, kinds) = (framed.get_ids(), framed.get_type_ids());
    let length = pieces.len();
    if ids.len() == 2 * length + 3 {
        let (first, separator) = (ids[0], ids[length + 1]);
        let mut expected = vec![first];
        expected.extend(&pieces);
        expected.push(separator);
        let boundary = expected.len();
        expected.extend(&pieces);
        expected.push(separator);
        let segments = kinds.iter().enumerate().all(|(place, &kind)| (kind == 1) == (place >= boundary));
        if ids == expected && segments {
            return Ok((first, separator));
        }
    }
    Err("the frame around two sentences is not [CLS] first [SEP] second [SEP] with segments 0 and 1; models of the BERT \
         family (BERT, DistilBERT, MiniLM) are understood"
        .into())
}
