//! Time and memory of one meta-iteration on texts, with random weights and random tokens: for the memory table.

use std::time::Instant;

use pacmeta_tensor::Key;
use pacmeta_tensor::encoder::{Activation, EncoderShape, Pooling};
use serde::{Deserialize, Serialize};

use crate::classification::MetaLearner;
use crate::config::{ClassificationMethodKind, TextConfig};
use crate::environments::text::{Encoded, EpisodeSampler, EpisodeSource, TextEpisode, TokenSet, synthetic};
use crate::error::{Error, Result};
use crate::methods::networks::WayBack;
use crate::text::memory::{self, Estimate};
use crate::text::{TextHeads, TextPrior, TextTrainer};

/// Sizes of well-known encoders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelShape {
    /// 24 layers of 1024, 335 million parameters.
    BertLarge,
    /// 12 layers of 768, 110 million parameters.
    BertBase,
    /// 6 layers of 384, 22 million parameters.
    MiniLm,
    /// 4 layers of 32: for trying.
    Tiny,
}

impl ModelShape {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::BertLarge, Self::BertBase, Self::MiniLm, Self::Tiny];

    /// The name in commands.
    pub fn name(self) -> &'static str {
        match self {
            Self::BertLarge => "bert-large",
            Self::BertBase => "bert-base",
            Self::MiniLm => "mini-lm",
            Self::Tiny => "tiny",
        }
    }

    /// The sizes.
    pub fn encoder(self) -> EncoderShape {
        let [layers, hidden, heads, vocabulary] = match self {
            Self::BertLarge => [24, 1024, 16, 30_522],
            Self::BertBase => [12, 768, 12, 30_522],
            Self::MiniLm => [6, 384, 12, 30_522],
            Self::Tiny => [4, 32, 4, 100],
        };
        EncoderShape {
            vocabulary,
            positions: 512,
            segments: 2,
            hidden,
            heads,
            intermediate: 4 * hidden,
            layers,
            epsilon: 1e-12,
            activation: Activation::Gelu,
            pooling: Pooling::First,
        }
    }
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextStepSettings {
    /// The encoder.
    pub shape: ModelShape,
    /// The method.
    pub method: ClassificationMethodKind,
    /// How MAML and BMAML go back through their steps.
    pub way_back: WayBack,
    /// v.
    pub threshold: usize,
    /// K, the inner steps.
    pub steps: usize,
    /// m.
    pub examples: usize,
    /// m'.
    pub support: usize,
    /// Tokens of every example.
    pub length: usize,
}

/// What was measured; bytes are the most that were held.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TextStep {
    /// What was measured.
    #[serde(flatten)]
    pub settings: TextStepSettings,
    /// The time of the iteration, the first one.
    pub milliseconds: f64,
    /// Parameters, gradient and the optimiser's moments.
    pub parameter_bytes: usize,
    /// Activations of hand-written passes.
    pub pass_bytes: usize,
    /// Particles, accumulators and slopes of the inner steps.
    pub step_bytes: usize,
    /// The tape.
    pub tape_bytes: usize,
    /// States that are kept between steps.
    pub kept_bytes: usize,
    /// The sum.
    pub total_bytes: usize,
    /// The most memory that the process had, where the system says so.
    pub resident_bytes: Option<u64>,
}

/// Random tokens, as many in every example.
struct RandomTexts {
    vocabulary: usize,
    length: usize,
}

impl EpisodeSource for RandomTexts {
    fn name(&self) -> &str {
        "random tokens"
    }

    fn check(&self, sampler: &EpisodeSampler) -> Result<()> {
        sampler.check()
    }

    fn draw(&self, sampler: &EpisodeSampler, key: Key) -> Result<TextEpisode> {
        let mut generator = key.generator();
        let mut tokens = TokenSet::new();
        for example in 0..sampler.examples {
            let ids = (0..self.length).map(|_| generator.below(self.vocabulary) as u32).collect();
            let encoded = Encoded { ids, segments: vec![0; self.length], truncated: false };
            tokens.push(&encoded, example % 2);
        }
        let classes = vec!["0".to_owned(), "1".to_owned()];
        Ok(TextEpisode { task: "random".to_owned(), tokens, subset: sampler.subset, classes })
    }
}

/// The configuration and the prior of a measurement.
fn prepared(settings: &TextStepSettings) -> Result<(TextConfig, TextPrior)> {
    let &TextStepSettings { shape, method, way_back, threshold, steps, examples, support, length } = settings;
    let encoder = shape.encoder();
    if length == 0 || length > encoder.positions {
        let message = format!("it is {length}, expected 1 to {}", encoder.positions);
        return Err(Error::input("option `--length`", message));
    }
    if support > examples {
        let message = format!("it is {support}, expected at most the {examples} of `--examples`");
        return Err(Error::input("option `--support`", message));
    }
    let way_back = match way_back {
        WayBack::Tape => "tape",
        WayBack::Recompute => "recompute",
    };
    let text = format!(
        "[data]\nenvironment = \"text\"\npath = \"-\"\nexamples = {examples}\nsupport = {support}\n[prior]\nmodel = \"-\"\n[method]\nname = \
         \"{}\"\nsteps = {steps}\nway_back = \"{way_back}\"\n",
        method.name()
    );
    let config = TextConfig::parse("the measurement", &text, &[]).map_err(about_option)?;
    let heads = TextHeads::Learned { tasks: vec![("random".to_owned(), 2)] };
    Ok((config, TextPrior::new(encoder, threshold, heads).map_err(about_option)?))
}

/// An error about a key as one about the option that set it.
fn about_option(error: Error) -> Error {
    match error {
        Error::Config { key, message } => {
            let option = key.rsplit('.').next().unwrap_or(&key).replace('_', "-");
            Error::input(format!("option `--{option}`"), message)
        }
        other => other,
    }
}

/// The bytes that an iteration is expected to need.
///
/// # Errors
/// When sizes do not fit.
pub fn foreseen_bytes(settings: &TextStepSettings) -> Result<f64> {
    let (config, prior) = prepared(settings)?;
    Ok(Estimate::of(&config, &prior, settings.length as f64).iteration())
}

/// Makes one meta-iteration. Memory is that of this process from its start, so that each measurement wants a process of its own.
///
/// # Errors
/// When sizes do not fit, the iteration would not fit into the free memory, or it fails.
pub fn measure_text_step(settings: TextStepSettings) -> Result<TextStep> {
    let (config, prior) = prepared(&settings)?;
    memory::check_iteration(&config, &prior, settings.length as f64)?;
    let encoder = prior.encoder;
    let start = prior.start(&synthetic::random_parameters(&encoder, Key::new(0))?, Key::new(0))?;
    let source = RandomTexts { vocabulary: encoder.vocabulary, length: settings.length };
    let mut trainer = TextTrainer::new(&config, &source, &prior, start)?;
    let begin = Instant::now();
    trainer.step()?;
    let milliseconds = begin.elapsed().as_secs_f64() * 1e3;
    let bytes = trainer.bytes();
    Ok(TextStep {
        settings,
        milliseconds,
        parameter_bytes: bytes.parameters,
        pass_bytes: bytes.passes,
        step_bytes: bytes.inner.steps,
        tape_bytes: bytes.inner.tape,
        kept_bytes: bytes.inner.kept,
        total_bytes: bytes.total(),
        resident_bytes: super::peak_bytes(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_have_as_many_parameters_as_published() {
        let count = |shape: ModelShape, pooling: Pooling| {
            EncoderShape { pooling, ..shape.encoder() }.layout().unwrap().len()
        };
        // Embeddings (30522 + 512 + 2 + 2) 1024; a layer 4 (1024^2 + 1024) + 2 1024 4096 + 4096 + 1024 + 4 1024, 24 times; a pooler
        // 1024^2 + 1024. With it, what `transformers` counts in bert-large-uncased.
        let (embeddings, layer) = (31_038 * 1024, 12_596_224);
        assert_eq!(count(ModelShape::BertLarge, Pooling::First), embeddings + 24 * layer);
        assert_eq!(count(ModelShape::BertLarge, Pooling::Pooler), 335_141_888);
        assert_eq!(count(ModelShape::BertBase, Pooling::Pooler), 109_482_240);
    }

    #[test]
    fn what_cannot_fit_is_refused_before_it_is_tried() {
        let settings = TextStepSettings {
            shape: ModelShape::BertBase,
            method: ClassificationMethodKind::Maml,
            way_back: WayBack::Tape,
            threshold: 0,
            steps: 50,
            examples: 100_000,
            support: 64,
            length: 512,
        };
        // passes alone: 4 100000 512 (7 768 + 3072) numbers a layer, of 13 + 1.65 12 layers: 57 terabytes
        assert!(foreseen_bytes(&settings).unwrap() > 1e13);
        if crate::classification::free_memory::free_memory().is_some() {
            let error = measure_text_step(settings).unwrap_err();
            assert!(error.is_input() && error.to_string().contains("--examples"), "{error}");
        }
    }
}
