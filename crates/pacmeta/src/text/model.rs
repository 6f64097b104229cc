//! A text model: a meta-learned encoder with everything that is needed to use it on new sentences, and its files.
//!
//! A run's folder holds `prior.safetensors` and, in `tokeniser/`, the files of the tokeniser that the encoder was trained with.

use std::path::Path;

use pacmeta_tensor::Parameters;
use pacmeta_tensor::encoder::EncoderRoom;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::adaptation::{FewShot, FineTuning};
use super::memory;
use super::prior::TextPrior;
use crate::classification::descent::rounded;
use crate::classification::metadata::{self, Metadata};
use crate::classification::rates;
use crate::environments::text::{Sentences, TokenSet, Tokeniser};
use crate::error::{Error, Result};
use crate::training::checkpoint::Checkpoint;

/// The `kind` of the prior in the metadata.
const KIND: &str = "encoder";
/// Queries that are classified at once.
const AT_ONCE: usize = 1024;
/// A larger part of unknown word pieces says that an encoder is one of another language.
pub const MANY_UNKNOWN: f64 = 0.2;
/// The folder of the tokeniser in that of a run.
pub(super) const TOKENISER: &str = "tokeniser";

/// An encoder, how it adapts to a new task, and the tokeniser that it understands.
#[derive(Debug, Clone)]
pub struct TextModel {
    prior: TextPrior,
    parameters: Parameters<f64>,
    tokeniser: Tokeniser,
    tuning: FineTuning,
    /// What else the metadata say: method, data, seed. Kept as it was.
    pub notes: Map<String, Value>,
}

/// A few labelled sentences of a new task.
#[derive(Debug, Clone, Copy)]
pub struct LabelledSentences<'a> {
    /// The sentences.
    pub sentences: &'a [Sentences],
    /// A class for each, below `classes`.
    pub labels: &'a [usize],
    /// The number of classes.
    pub classes: usize,
}

/// What a model says about sentences.
#[derive(Debug, Clone)]
pub struct Classified {
    /// For each sentence, the probability of each class.
    pub probabilities: Vec<Vec<f32>>,
    /// Sentences of the support and of the queries that were cut.
    pub truncated: [usize; 2],
    /// The parts of the word pieces of the support and of the queries that the encoder does not know.
    pub unknown: [f64; 2],
    /// The loss on the support before and after adapting.
    pub losses: [f64; 2],
}

/// The steps on a new task, as metadata have them.
#[derive(Serialize, Deserialize)]
struct StoredTuning {
    steps: usize,
    rate: f64,
    length: usize,
}

impl TextModel {
    /// A model from its parts.
    pub fn new(
        prior: TextPrior,
        parameters: Parameters<f64>,
        tokeniser: Tokeniser,
        tuning: FineTuning,
    ) -> Self {
        Self { prior, parameters, tokeniser, tuning, notes: Map::new() }
    }

    /// The shape.
    pub fn prior(&self) -> &TextPrior {
        &self.prior
    }

    /// Its numbers.
    pub fn parameters(&self) -> &Parameters<f64> {
        &self.parameters
    }

    /// The most tokens of an example; longer ones are cut.
    pub fn length(&self) -> usize {
        self.tokeniser.limit()
    }

    /// How it adapts to a new task.
    pub fn tuning(&self) -> FineTuning {
        self.tuning
    }

    /// What the user should know of the rate at which it adapts.
    pub fn remark_on_rate(&self) -> Option<String> {
        rates::of_adaptation(self.tuning.rate)
    }

    /// The same with other steps on a new task.
    #[must_use]
    pub fn with_tuning(mut self, tuning: FineTuning) -> Self {
        self.tuning = tuning;
        self
    }

    /// The parameters in the precision of the passes.
    pub fn rounded(&self) -> Vec<f32> {
        rounded(&self.parameters)
    }

    /// Adapts to a few labelled sentences and classifies others.
    ///
    /// # Errors
    /// When there are fewer than two classes or no queries, sentences cannot be encoded, or a number is not finite.
    pub fn classify(&self, support: LabelledSentences<'_>, queries: &[Sentences]) -> Result<Classified> {
        if support.classes < 2 || support.sentences.is_empty() {
            return Err(Error::input("the support", "expected sentences of at least two classes"));
        }
        if queries.is_empty() {
            return Err(Error::input("the queries", "expected at least one sentence"));
        }
        let (tokens, cut) = self.tokens(support.sentences, support.labels)?;
        let (query_tokens, query_cut) = self.tokens(queries, &vec![0; queries.len()])?;
        memory::check_support(&self.prior, tokens.len(), tokens.ids.len())?;
        let single = self.rounded();
        let model = FewShot::new(&self.prior, &single)?;
        let mut room = EncoderRoom::new();
        let encoded = model.encode(&tokens, &mut room)?;
        let adapted = model.adapt(&encoded, support.labels, support.classes, self.tuning)?;
        // Where layers adapt, the states of all tokens are held: not of all queries at once.
        let mut probabilities = Vec::with_capacity(queries.len());
        for first in (0..queries.len()).step_by(AT_ONCE) {
            let places: Vec<usize> = (first..queries.len().min(first + AT_ONCE)).collect();
            let part = model.encode(&query_tokens.select(&places), &mut room)?;
            let rows = model.predict(&adapted, &part)?;
            probabilities.extend(rows.chunks_exact(support.classes).map(<[f32]>::to_vec));
        }
        Ok(Classified {
            probabilities,
            truncated: [cut, query_cut],
            unknown: [&tokens, &query_tokens].map(|set| self.tokeniser.unknown_part(&set.ids)),
            losses: adapted.losses,
        })
    }

    fn tokens(&self, sentences: &[Sentences], labels: &[usize]) -> Result<(TokenSet, usize)> {
        let mut tokens = TokenSet::new();
        let mut truncated = 0;
        for (sentences, &label) in sentences.iter().zip(labels) {
            let encoded = sentences.encode(&self.tokeniser)?;
            truncated += usize::from(encoded.truncated);
            tokens.push(&encoded, label);
        }
        Ok((tokens, truncated))
    }

    /// Whether a checkpoint holds such a model.
    pub fn is_in(checkpoint: &Checkpoint) -> bool {
        metadata::kind_of(checkpoint) == Some(KIND)
    }

    /// Reads the model of a run's folder, or that of a file in it: any one that stands beside its tokeniser.
    ///
    /// # Errors
    /// When a file is missing or does not hold such a model.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = if path.is_dir() { path.join("prior.safetensors") } else { path.to_path_buf() };
        let folder = file.parent().unwrap_or(Path::new(""));
        let checkpoint = Checkpoint::read(&file)?;
        let origin = file.display().to_string();
        let metadata = Metadata::of(&origin, &checkpoint)?;
        let prior: TextPrior = metadata.part("prior")?;
        prior.check().map_err(|error| Error::input(&origin, error.to_string()))?;
        let layout = prior.layout().map_err(|error| Error::input(&origin, error.to_string()))?;
        let parameters = checkpoint.parameters(&origin, layout)?;
        let tuning: StoredTuning = metadata.part("adaptation")?;
        let tokeniser = Tokeniser::open(&folder.join(TOKENISER), tuning.length)?;
        let tokeniser = tokeniser.with_segments(prior.encoder.segments);
        let tuning = FineTuning { steps: tuning.steps, rate: tuning.rate };
        let mut model = Self::new(prior, parameters, tokeniser, tuning);
        model.notes = metadata.notes(&["adaptation"]);
        Ok(model)
    }

    /// The model as a checkpoint. Parameters are stored in the precision in which they are used.
    pub fn to_checkpoint(&self) -> Checkpoint {
        let FineTuning { steps, rate } = self.tuning;
        let tuning = StoredTuning { steps, rate, length: self.tokeniser.limit() };
        let parts = [("adaptation", json!(tuning))];
        metadata::checkpoint(&self.parameters, KIND, json!(self.prior), &self.notes, parts)
    }
}
