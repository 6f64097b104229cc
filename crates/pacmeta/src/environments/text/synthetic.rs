//! Generated tasks of sentences, and a tiny encoder for them, so that every command can be tried without data.
//!
//! A task is drawn from a key. Its kind is one of three: which of 2 to 5 topics a sentence is about (with words of other
//! topics strewn in); whether it praises or blames, where `not` turns a word around (with a neutral class half of the time);
//! whether two sentences share their topic. Sentences are a few words of these kinds among filler words. What can be learnt
//! from other tasks is which words belong together.
//!
//! The [`model`] is a BERT of two layers with random numbers and all the words in its vocabulary.

use std::sync::Arc;

use pacmeta_tensor::encoder::{Activation, EncoderShape, Pooling};
use pacmeta_tensor::{Generator, Key, Parameters};

use super::{LabelledText, LabelledTexts, Sentences, Tokeniser};
use crate::error::{Error, Result};
use crate::priors::pretrained::{Encoder, Pretrained};

const TOPICS: [(&str, &str); 8] = [
    ("animals", "dog cat horse bird fish wolf sheep goat bear mouse"),
    ("food", "bread cheese apple soup rice butter salad cake onion pepper"),
    ("health", "doctor nurse fever pill heart blood clinic cough wound sleep"),
    ("money", "bank loan price tax profit wage debt market coin budget"),
    ("music", "song piano guitar drum choir melody violin concert singer rhythm"),
    ("sport", "match goal team coach runner tennis score league ball swimmer"),
    ("travel", "train ticket hotel border luggage airport ferry map passport road"),
    ("weather", "rain snow wind storm cloud frost thunder sunshine fog heat"),
];
const PRAISE: &str = "good great lovely excellent pleasant wonderful brilliant delightful";
const BLAME: &str = "bad awful dull terrible boring dreadful poor disappointing";
const FILLER: &str = "the a this that of and in with about we they it was is today again many some very new";
const NEGATION: &str = "not";

/// What tasks to generate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyntheticOptions {
    /// The number of tasks.
    pub tasks: usize,
    /// The number of examples to learn from, of each.
    pub train: usize,
    /// The number of examples to score on, of each.
    pub dev: usize,
    /// Draws everything.
    pub key: Key,
}

#[derive(Debug, Clone)]
enum Kind {
    Topic(Vec<usize>),
    Sentiment { neutral: bool },
    SameTopic,
}

/// Generates tasks named `generated-000`, ...; task i is drawn from `key.index(i)`, so more tasks begin with the same.
///
/// # Errors
/// When a task would have fewer than 5 examples to learn from.
///
/// ```
/// use pacmeta::environments::text::synthetic::{SyntheticOptions, tasks};
/// use pacmeta_tensor::Key;
///
/// let generated = tasks(&SyntheticOptions { tasks: 4, train: 40, dev: 10, key: Key::new(1) })?;
/// assert_eq!((generated.len(), generated[3].train.len(), generated[3].dev.len()), (4, 40, 10));
/// # Ok::<(), pacmeta::Error>(())
/// ```
pub fn tasks(options: &SyntheticOptions) -> Result<Vec<LabelledTexts>> {
    if options.train < 5 {
        let message = format!("expected 5 examples to learn from or more, found {}", options.train);
        return Err(Error::input("generated sentences", message));
    }
    Ok((0..options.tasks).map(|index| task(index, options)).collect())
}

fn task(index: usize, options: &SyntheticOptions) -> LabelledTexts {
    let key = options.key.index(index as u64);
    let mut generator = key.named("kind").generator();
    let kind = match generator.below(4) {
        0 => Kind::SameTopic,
        1 => Kind::Sentiment { neutral: generator.uniform() < 0.5 },
        _ => {
            let count = 2 + generator.below(4);
            let mut topics = generator.subset(TOPICS.len(), count);
            topics.sort_unstable();
            Kind::Topic(topics)
        }
    };
    let classes = match &kind {
        Kind::Topic(topics) => topics.iter().map(|&topic| TOPICS[topic].0.to_owned()).collect(),
        Kind::Sentiment { neutral: false } => vec!["blame".to_owned(), "praise".to_owned()],
        Kind::Sentiment { neutral: true } => {
            vec!["blame".to_owned(), "neutral".to_owned(), "praise".to_owned()]
        }
        Kind::SameTopic => vec!["different".to_owned(), "same".to_owned()],
    };
    let examples = |count: usize, name: &str| -> Vec<LabelledText> {
        let mut generator = key.named(name).generator();
        (0..count)
            .map(|example| {
                // Every class in turn, so that a small task has them all.
                let label = example % classes.len();
                LabelledText { sentences: sentences(&kind, label, &mut generator), label }
            })
            .collect()
    };
    let (train, dev) = (examples(options.train, "train"), examples(options.dev, "dev"));
    LabelledTexts { name: format!("generated-{index:03}"), classes, train, dev }
}

fn sentences(kind: &Kind, label: usize, generator: &mut Generator) -> Sentences {
    match kind {
        Kind::Topic(topics) => Sentences::single(about(topics[label], generator)),
        Kind::Sentiment { neutral } => {
            let mood = if *neutral { label as i32 - 1 } else { 2 * label as i32 - 1 };
            let topic = generator.below(TOPICS.len());
            let mut words: Vec<String> = vec![any(TOPICS[topic].1, generator)];
            for _ in 0..2 * mood.unsigned_abs() {
                let turned = generator.uniform() < 0.3;
                let praise = (mood > 0) != turned;
                let word = any(if praise { PRAISE } else { BLAME }, generator);
                words.push(if turned { format!("{NEGATION} {word}") } else { word });
            }
            Sentences::single(strewn(words, generator))
        }
        Kind::SameTopic => {
            let first = generator.below(TOPICS.len());
            let other = (first + 1 + generator.below(TOPICS.len() - 1)) % TOPICS.len();
            let second = if label == 1 { first } else { other };
            Sentences::pair(about(first, generator), about(second, generator))
        }
    }
}

/// A sentence about a topic, at times with a word of another one.
fn about(topic: usize, generator: &mut Generator) -> String {
    let count = 2 + generator.below(3);
    let mut words: Vec<String> = (0..count).map(|_| any(TOPICS[topic].1, generator)).collect();
    if generator.uniform() < 0.3 {
        let other = generator.below(TOPICS.len());
        words.push(any(TOPICS[other].1, generator));
    }
    strewn(words, generator)
}

/// Words in random order among filler words.
fn strewn(mut words: Vec<String>, generator: &mut Generator) -> String {
    for _ in 0..3 + generator.below(4) {
        words.push(any(FILLER, generator));
    }
    generator.shuffle(&mut words);
    words.join(" ")
}

fn any(words: &str, generator: &mut Generator) -> String {
    let count = words.split(' ').count();
    words.split(' ').nth(generator.below(count)).unwrap_or_default().to_owned()
}

/// The vocabulary: special tokens, then all words.
pub fn words() -> Vec<String> {
    let special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].map(str::to_owned);
    let lists = TOPICS.iter().map(|(_, words)| *words).chain([PRAISE, BLAME, FILLER, NEGATION]);
    let letters = ('a'..='z').flat_map(|letter| [letter.to_string(), format!("##{letter}")]);
    let mut words: Vec<String> = special.into();
    for word in lists.flat_map(|list| list.split(' ')).map(str::to_owned).chain(letters) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

/// The sizes of the tiny encoder.
pub fn shape() -> EncoderShape {
    EncoderShape {
        vocabulary: words().len(),
        positions: 64,
        segments: 2,
        hidden: 32,
        heads: 4,
        intermediate: 64,
        layers: 2,
        epsilon: 1e-12,
        activation: Activation::Gelu,
        pooling: Pooling::Mean,
    }
}

/// A tiny encoder with random numbers, and its tokeniser.
///
/// # Errors
/// When `limit` is below 5 or above 64 tokens.
pub fn model(key: Key, limit: usize) -> Result<Pretrained> {
    let shape = shape();
    let parameters = random_parameters(&shape, key)?;
    let tokeniser = Tokeniser::from_words(&words(), limit)?;
    crate::priors::pretrained::check_fits(&shape, &tokeniser)?;
    Ok(Pretrained { encoder: Encoder { shape, parameters, unused_layers: 0 }, tokeniser })
}

/// Random numbers for an encoder: norms at one and zero, biases zero, word embeddings of standard deviation 1 and others of
/// 0.1 (so that words count for more than places), other weights of 1/sqrt(inputs).
///
/// # Errors
/// When the shape makes no sense.
pub fn random_parameters(shape: &EncoderShape, key: Key) -> Result<Parameters<f32>> {
    let mut parameters = Parameters::zeros(Arc::new(shape.layout()?));
    let entries: Vec<_> = parameters.layout().entries().to_vec();
    for entry in entries {
        let Some(values) = parameters.tensor_mut(&entry.name) else { continue };
        if entry.name.ends_with("norm.weight") {
            values.fill(1.0);
        }
        let [_, inputs] = entry.shape[..] else { continue };
        let deviation = match entry.name.as_str() {
            "embeddings.word" => 1.0,
            name if name.starts_with("embeddings.") => 0.1,
            _ => 1.0 / (inputs as f64).sqrt(),
        };
        let mut generator = key.named(&entry.name).generator();
        values.iter_mut().for_each(|value| *value = (deviation * generator.normal()) as f32);
    }
    Ok(parameters)
}
