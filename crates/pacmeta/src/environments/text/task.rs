//! Tasks: labelled sentences, and the same as tokens.

use rayon::prelude::*;

use super::{Encoded, TokenSet, Tokeniser};
use crate::error::Result;

/// A sentence, or a pair of them (a question and its answer, a sentence and a phrase in it).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentences {
    /// The first sentence.
    pub first: String,
    /// The second sentence, in tasks of pairs.
    pub second: Option<String>,
}

impl Sentences {
    /// One sentence.
    pub fn single(first: impl Into<String>) -> Self {
        Self { first: first.into(), second: None }
    }

    /// Two sentences.
    pub fn pair(first: impl Into<String>, second: impl Into<String>) -> Self {
        Self { first: first.into(), second: Some(second.into()) }
    }

    /// The tokens.
    ///
    /// # Errors
    /// When the tokeniser cannot make tokens of a text.
    pub fn encode(&self, tokeniser: &Tokeniser) -> Result<Encoded> {
        tokeniser.encode(&self.first, self.second.as_deref())
    }
}

/// Sentences with their class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledText {
    /// The sentences.
    pub sentences: Sentences,
    /// The place of their class in the task's classes.
    pub label: usize,
}

/// What examples are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// To learn from.
    Train,
    /// To score on.
    Dev,
}

/// A task as people write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledTexts {
    /// The name: that of its file, without the ending.
    pub name: String,
    /// The classes, sorted.
    pub classes: Vec<String>,
    /// The examples to learn from.
    pub train: Vec<LabelledText>,
    /// The examples to score on; often none.
    pub dev: Vec<LabelledText>,
}

impl LabelledTexts {
    /// Whether examples are pairs of sentences.
    pub fn is_paired(&self) -> bool {
        self.train.iter().chain(&self.dev).any(|example| example.sentences.second.is_some())
    }

    /// The task as JSON lines, which read the same again.
    pub fn to_json_lines(&self) -> String {
        let parts = [("train", &self.train), ("dev", &self.dev)];
        let mut lines = String::new();
        for (part, examples) in parts {
            for example in examples {
                let mut object = serde_json::json!({"sentence1": example.sentences.first, "label": self.classes[example.label]});
                if let Some(second) = &example.sentences.second {
                    object["sentence2"] = second.as_str().into();
                }
                if !self.dev.is_empty() {
                    object["split"] = part.into();
                }
                lines.push_str(&object.to_string());
                lines.push('\n');
            }
        }
        lines
    }

    /// The same as tokens.
    ///
    /// # Errors
    /// When the tokeniser cannot make tokens of a text.
    pub fn tokenise(&self, tokeniser: &Tokeniser) -> Result<TextTask> {
        let (train, train_cut) = tokenise(&self.train, tokeniser)?;
        let (dev, dev_cut) = tokenise(&self.dev, tokeniser)?;
        let truncated = train_cut + dev_cut;
        Ok(TextTask { name: self.name.clone(), classes: self.classes.clone(), train, dev, truncated })
    }
}

/// A task as an encoder sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextTask {
    /// The name.
    pub name: String,
    /// The classes, sorted.
    pub classes: Vec<String>,
    /// The examples to learn from.
    pub train: TokenSet,
    /// The examples to score on; often none.
    pub dev: TokenSet,
    /// How many examples, of both parts, were longer than the tokeniser's limit and lost their end.
    pub truncated: usize,
}

/// Tokens of examples in their order, and how many were cut.
pub(super) fn tokenise(examples: &[LabelledText], tokeniser: &Tokeniser) -> Result<(TokenSet, usize)> {
    let encoded: Vec<Encoded> =
        examples.par_iter().map(|example| example.sentences.encode(tokeniser)).collect::<Result<_>>()?;
    let mut tokens = TokenSet::new();
    for (encoded, example) in encoded.iter().zip(examples) {
        tokens.push(encoded, example.label);
    }
    let truncated = encoded.iter().filter(|encoded| encoded.truncated).count();
    Ok((tokens, truncated))
}
