//! What a run needs, before it starts: an estimate of its peak against the memory that is free.
//!
//! The estimate counts numbers that are known to be held: parameters with gradient and moments, what the passes keep of each token and
//! layer, what MAML and BMAML keep of each inner step, and what the scoring of held-out tasks or the copy of all that a checkpoint holds takes besides. What it says of an iteration is at most a tenth below and an eighth above what the engine counts (the measurements are in the tests below and in
//! `docs/results.md`). That adds up the most of each phase, so for MAML and BMAML it is up to a fifth above what is ever resident: a run that is let through
//! should fit.

use super::prior::{TextHeads, TextPrior};
use crate::classification::free_memory::{ALLOWED, allowed_memory, free_memory};
use crate::config::{ClassificationMethodKind, TextConfig};
use crate::environments::text::TextTask;
use crate::error::{Error, Result};
use crate::methods::networks::WayBack;

/// Numbers of 4 bytes that a recorded step keeps of each token and adapting layer, in units of the hidden width: forward, derivative, and what
/// the second derivative adds. Like all constants here, fitted to `pacmeta bench text` (the measurements are those of the tests below).
const RECORDED_WIDTHS: f64 = 50.0;
/// The same for each head and other token of the sequence: maps of attention.
const RECORDED_MAPS: f64 = 6.0;
/// Copies of the adapting parameters that a recorded step keeps.
const RECORDED_COPIES: f64 = 7.0;
/// What a step of BMAML, with its chaser's target, keeps more than one of MAML.
const CHASER: f64 = 1.55;
/// Copies of the adapting parameters that a tape needs besides its steps: on the way back, and for the steps themselves. With long sequences
/// what a layer needs on the way back is more.
const TAPE_COPIES: f64 = 10.0;
/// Copies of the adapting parameters of steps that are not recorded.
const STEP_COPIES: f64 = 7.0;
/// Rooms that adapting layers have besides that of a pass through the whole encoder, in its size.
const ADAPTING_ROOMS: f64 = 1.65;
/// Bytes of an adapting parameter while a new task is adapted to: position, rounded position, slope in both precisions and Adam's moments.
const TUNING_BYTES: f64 = 40.0;
/// Sequences that go through the encoder at a time when tasks are scored.
const SCORED_AT_ONCE: f64 = 64.0;
/// An estimate in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Parameters, gradient and moments.
    pub parameters: f64,
    /// Activations.
    pub passes: f64,
    /// Inner steps that are kept.
    pub inner: f64,
    /// Held-out tasks that are scored while all of this is held.
    pub scoring: f64,
    /// A training state while it is written: copies of the parameters and of both moments.
    pub checkpoint: f64,
}

impl Estimate {
    /// Of a configuration, for examples of this many tokens: those of the task with the longest ones, since one task fills a batch.
    pub fn of(config: &TextConfig, prior: &TextPrior, tokens: f64) -> Self {
        Self::of_threads(config, prior, tokens, rayon::current_num_threads())
    }

    fn of_threads(config: &TextConfig, prior: &TextPrior, tokens: f64, threads: usize) -> Self {
        let encoder = &prior.encoder;
        let (hidden, wide) = (encoder.hidden as f64, encoder.intermediate as f64);
        let size = prior.layout().map_or(0, |layout| layout.len()) as f64;
        let (examples, subset) = (config.data.examples as f64, config.data.support as f64);
        let layers = encoder.layers as f64;
        let above = (encoder.layers - prior.threshold) as f64;
        // q, k, v, the mixed values, both norms and their sums; the feed-forward part before its activation
        let of_layer = 4.0 * examples * tokens * (7.0 * hidden + wide);
        let passes = of_layer * (layers + 1.0 + ADAPTING_ROOMS * above);
        let adapting = 4.0 * (size - prior.shared() as f64);
        let kind = config.method.kind;
        let through =
            matches!(kind, ClassificationMethodKind::Maml | ClassificationMethodKind::Bmaml) && above > 0.0;
        let maps = RECORDED_MAPS * encoder.heads as f64 * tokens;
        let recorded_layer = 4.0 * subset * tokens * (RECORDED_WIDTHS * hidden + maps);
        let recorded = above * recorded_layer + RECORDED_COPIES * adapting;
        let recorded = if kind == ClassificationMethodKind::Bmaml { CHASER * recorded } else { recorded };
        let steps = config.method.steps as f64;
        let way_back = recorded_layer.max(TAPE_COPIES * adapting);
        let inner = match (through, config.way_back) {
            (false, _) if above > 0.0 => STEP_COPIES * adapting,
            (false, _) => 0.0,
            (true, WayBack::Tape) => way_back + steps * recorded,
            (true, WayBack::Recompute) => way_back + recorded + steps * 2.0 * adapting,
        };
        let scoring = scoring(config, prior, tokens, threads);
        Self { parameters: 40.0 * size, passes, inner, scoring, checkpoint: 24.0 * size }
    }

    /// What an iteration needs.
    pub fn iteration(&self) -> f64 {
        self.parameters + self.passes + self.inner
    }

    /// The most that a run holds at a time: no checkpoint is written while tasks are scored.
    pub fn total(&self) -> f64 {
        self.iteration() + self.scoring.max(self.checkpoint)
    }
}

/// What the scoring of a held-out task takes: parameters in single precision, what the shared layers make of all queries and supports, and for
/// every thread what adapts with its optimiser and a pass.
fn scoring(config: &TextConfig, prior: &TextPrior, tokens: f64, threads: usize) -> f64 {
    let (encoder, evaluation) = (&prior.encoder, &config.evaluation);
    let (hidden, wide) = (encoder.hidden as f64, encoder.intermediate as f64);
    let classes = match &prior.heads {
        TextHeads::Learned { tasks } => tasks.iter().map(|(_, classes)| *classes).max().unwrap_or(2),
        TextHeads::Zero | TextHeads::Generated => 2,
    } as f64;
    let draws = evaluation.draws as f64;
    let shots = evaluation.shots.iter().map(|&shots| shots as f64);
    let sentences = evaluation.queries as f64 + classes * draws * shots.clone().sum::<f64>();
    let threads = (threads as f64).min(draws * evaluation.shots.len() as f64);
    let size = prior.layout().map_or(0, |layout| layout.len()) as f64;
    let of_layer = 4.0 * tokens * (7.0 * hidden + wide);
    let shared_pass = 2.0 * SCORED_AT_ONCE * of_layer;
    let common = 4.0 * size + shared_pass;
    if prior.only_head_adapts() {
        return common + 4.0 * sentences * hidden + threads * TUNING_BYTES * classes * (hidden + 1.0);
    }
    let above = (encoder.layers - prior.threshold) as f64;
    let adapting = size - prior.shared() as f64;
    let at_once = (classes * shots.fold(0.0, f64::max)).max(SCORED_AT_ONCE);
    let of_thread = TUNING_BYTES * adapting + at_once * of_layer * above;
    common + 4.0 * sentences * tokens * hidden + threads * of_thread
}

/// The configuration with episodes as large as they get: a task of fewer than m examples gives all that it has, and so do masked words, of
/// which each has no more than `sentences_of_word`.
pub(super) fn as_drawn(config: &TextConfig, tasks: &[TextTask], sentences_of_word: usize) -> TextConfig {
    let of_tasks = tasks.iter().map(|task| task.train.len()).max().unwrap_or(0);
    let of_words = if config.data.smlmt > 0.0 { config.data.smlmt_words * sentences_of_word } else { 0 };
    let mut drawn = config.clone();
    drawn.data.examples = config.data.examples.min(of_tasks.max(of_words).max(config.data.support));
    drawn
}

/// The mean number of tokens of an example in the task with the longest ones: one task fills a batch.
pub(super) fn longest_mean(tasks: &[TextTask]) -> f64 {
    let mean = |task: &TextTask| task.train.token_count() as f64 / task.train.len().max(1) as f64;
    tasks.iter().map(mean).fold(0.0, f64::max)
}

/// Refuses a measurement of one iteration that would not fit.
///
/// # Errors
/// When the estimate is above the free memory.
pub(crate) fn check_iteration(config: &TextConfig, prior: &TextPrior, tokens: f64) -> Result<()> {
    let needed = Estimate::of(config, prior, tokens).iteration();
    match allowed_memory() {
        Some(allowed) if needed > allowed => {
            let message = format!(
                "the iteration would need about {:.1} GB, and {:.1} GB may be taken, nine tenths of what is free; lower --examples, \
                 --support, --length or --steps, or raise --threshold",
                needed / 1e9,
                allowed / 1e9
            );
            Err(Error::input("memory", message))
        }
        _ => Ok(()),
    }
}

/// Refuses to score a task whose states would not fit: where layers adapt, those of all its tokens are held for all draws.
///
/// # Errors
/// When they are above the free memory, with all that scoring takes besides.
pub(super) fn check_states(
    config: &TextConfig,
    prior: &TextPrior,
    tokens: f64,
    task: &str,
    held: usize,
) -> Result<()> {
    let states = 4.0 * held as f64 * prior.encoder.hidden as f64;
    // Training is over: of its 40 bytes a parameter 8 are left.
    let estimate = Estimate::of(config, prior, tokens);
    let needed = estimate.parameters / 5.0 + estimate.scoring + states;
    match allowed_memory() {
        Some(allowed) if !prior.only_head_adapts() && needed > allowed => {
            let message = format!(
                "to score task {task} would take about {:.1} GB, {:.1} of them for states of its {held} tokens, and {:.1} GB may be taken, \
                 nine tenths of what is free; use a machine with more memory",
                needed / 1e9,
                states / 1e9,
                allowed / 1e9
            );
            Err(Error::input("memory", message))
        }
        _ => Ok(()),
    }
}

/// Refuses a support whose sentences do not fit: where layers adapt, each step takes all of them through these at once.
///
/// # Errors
/// When they are above the memory that may be taken.
pub(super) fn check_support(prior: &TextPrior, sentences: usize, tokens: usize) -> Result<()> {
    match allowed_memory() {
        Some(allowed) => check_support_against(prior, sentences, tokens, allowed),
        None => Ok(()),
    }
}

fn check_support_against(prior: &TextPrior, sentences: usize, tokens: usize, allowed: f64) -> Result<()> {
    let encoder = &prior.encoder;
    let above = (encoder.layers - prior.threshold) as f64;
    let size = prior.layout().map_or(0, |layout| layout.len()) as f64;
    // the model as it was read and rounded, and what adapts
    let parameters = 12.0 * size + TUNING_BYTES * (size - prior.shared() as f64);
    let (hidden, wide) = (encoder.hidden as f64, encoder.intermediate as f64);
    let of_layer = 4.0 * (7.0 * hidden + wide);
    let of_token = of_layer * (above + ADAPTING_ROOMS) + 4.0 * hidden;
    let needed = parameters + of_token * tokens as f64;
    if prior.only_head_adapts() || needed <= allowed {
        return Ok(());
    }
    let fitting = (allowed - parameters) / (needed - parameters) * sentences as f64;
    let advice = match fitting {
        fitting if fitting >= 2.0 => format!("about {} such sentences would fit", fitting as u64),
        _ => "use a machine with more memory".to_owned(),
    };
    let message = format!(
        "to adapt to {sentences} sentences of {tokens} tokens in all would take about {:.1} GB, since {above} layers adapt to all of them at \
         once, and {:.1} GB may be taken, nine tenths of what is free; {advice}, or meta-train with `prior.threshold = {}`, where only the \
         head adapts",
        needed / 1e9,
        allowed / 1e9,
        encoder.layers
    );
    Err(Error::input("memory", message))
}

/// Refuses a run that would not fit, with what would.
///
/// # Errors
/// When the estimate is above the free memory.
pub(super) fn check(config: &TextConfig, prior: &TextPrior, tokens: f64) -> Result<()> {
    match free_memory() {
        Some(free) => check_against(config, prior, tokens, rayon::current_num_threads(), free),
        None => Ok(()),
    }
}

fn check_against(
    config: &TextConfig,
    prior: &TextPrior,
    tokens: f64,
    threads: usize,
    free: f64,
) -> Result<()> {
    let fits_with = |config: &TextConfig, threads: usize| {
        Estimate::of_threads(config, prior, tokens, threads).total() < ALLOWED * free
    };
    if fits_with(config, threads) {
        return Ok(());
    }
    let gigabytes = |bytes: f64| bytes / 1e9;
    let estimate = Estimate::of_threads(config, prior, tokens, threads);
    let advice = match what_would_fit(config, prior, threads, fits_with).as_deref() {
        None => "use a machine with more memory, or a smaller model".to_owned(),
        Some([change]) => format!("{change} would fit"),
        Some(changes) => format!("{} together would fit", changes.join(", ")),
    };
    let message = format!(
        "the run would need about {:.1} GB (parameters {:.1}, passes {:.1}, inner steps {:.1}, and scoring {:.1} or a checkpoint {:.1}) and {:.1} GB are free, of which nine tenths may be taken; {advice}",
        gigabytes(estimate.total()),
        gigabytes(estimate.parameters),
        gigabytes(estimate.passes),
        gigabytes(estimate.inner),
        gigabytes(estimate.scoring),
        gigabytes(estimate.checkpoint),
        gigabytes(free)
    );
    Err(Error::input("memory", message))
}

/// Settings with which a run would fit: one alone, in the order of what they cost, or else all of them as far as needed.
fn what_would_fit(
    config: &TextConfig,
    prior: &TextPrior,
    threads: usize,
    fits: impl Fn(&TextConfig, usize) -> bool,
) -> Option<Vec<String>> {
    let goes_back =
        matches!(config.method.kind, ClassificationMethodKind::Maml | ClassificationMethodKind::Bmaml)
            && !prior.only_head_adapts();
    let can_recompute = goes_back && config.way_back == WayBack::Tape;
    let recompute = TextConfig { way_back: WayBack::Recompute, ..config.clone() };
    let words = || "method.way_back = \"recompute\"".to_owned();
    if can_recompute && fits(&recompute, threads) {
        return Some(vec![words()]);
    }
    if fits(config, 1) {
        return Some(vec!["`--threads 1`".to_owned()]);
    }
    if let Some(words) = smaller_tasks(config, |smaller| fits(smaller, threads)) {
        return Some(words);
    }
    let mut all = config.clone();
    let mut changes = Vec::new();
    if can_recompute {
        all = recompute;
        changes.push(words());
    }
    if threads > 1 {
        changes.push("`--threads 1`".to_owned());
    }
    if let Some(words) = smaller_tasks(&all, |smaller| fits(smaller, 1)) {
        changes.extend(words);
        return Some(changes);
    }
    // Even the smallest tasks need too much: fewer inner steps, where these are kept.
    while goes_back && all.method.steps > 1 {
        all.method.steps /= 2;
        if let Some(words) = smaller_tasks(&all, |smaller| fits(smaller, 1)) {
            changes.push(format!("method.steps = {}", all.method.steps));
            changes.extend(words);
            return Some(changes);
        }
    }
    None
}

/// The largest tasks, halved again and again with S' in proportion, that fit.
fn smaller_tasks(config: &TextConfig, fits: impl Fn(&TextConfig) -> bool) -> Option<Vec<String>> {
    let mut smaller = config.clone();
    while smaller.data.examples >= 4 && smaller.data.support >= 2 {
        smaller.data.examples /= 2;
        smaller.data.support /= 2;
        if fits(&smaller) {
            let words = vec![
                format!("data.examples = {}", smaller.data.examples),
                format!("data.support = {}", smaller.data.support),
            ];
            return Some(words);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use pacmeta_tensor::encoder::EncoderShape;

    use super::*;
    use crate::benchmark::ModelShape;
    use crate::environments::text::{Encoded, TokenSet};

    fn bert(method: &str, threshold: usize, steps: usize, more: &str) -> (TextConfig, TextPrior) {
        let text = format!(
            "[data]\nenvironment = \"text\"\npath = \"-\"\nexamples = 16\nsupport = 8\n[prior]\nmodel = \"-\"\n[method]\nname = \
             \"{method}\"\nsteps = {steps}\n{more}"
        );
        let heads = TextHeads::Learned { tasks: vec![("random".to_owned(), 2)] };
        let prior = TextPrior::new(EncoderShape::BERT_BASE, threshold, heads).unwrap();
        (TextConfig::parse("memory.toml", &text, &[]).unwrap(), prior)
    }

    /// Method, v, inner steps, other keys, and gigabytes by `pacmeta bench text --shape bert-base --examples 16 --support 8 --length 64`.
    const MEASURED: [(&str, usize, usize, &str, f64); 14] = [
        ("maml", 6, 1, "", 8.57),
        ("maml", 6, 4, "", 13.88),
        ("maml", 9, 2, "", 7.63),
        ("maml", 9, 16, "", 19.56),
        ("maml", 11, 1, "", 5.44),
        ("maml", 11, 16, "", 9.65),
        ("maml", 12, 16, "", 4.77),
        ("maml", 6, 1, RECOMPUTE, 9.42),
        ("maml", 6, 2, RECOMPUTE, 10.10),
        ("bmaml", 6, 1, "", 9.57),
        ("bmaml", 6, 2, "", 12.30),
        ("bmaml", 9, 2, "", 8.54),
        ("pacmaml", 6, 4, "", 6.31),
        ("pacmaml", 11, 2, "", 5.02),
    ];
    const RECOMPUTE: &str = "way_back = \"recompute\"\n";

    /// Method, v, inner steps, tokens, and gigabytes by `pacmeta bench text --shape mini-lm --examples 4 --support 2`.
    const MEASURED_ON_MINI_LM: [(&str, usize, usize, f64, f64); 6] = [
        ("maml", 3, 1, 128.0, 1.459),
        ("maml", 3, 4, 128.0, 2.162),
        ("maml", 3, 2, 512.0, 3.126),
        ("maml", 5, 2, 512.0, 1.925),
        ("bmaml", 3, 2, 256.0, 2.299),
        ("pacmaml", 3, 2, 512.0, 1.318),
    ];

    #[test]
    fn estimates_are_near_measurements() {
        for (method, threshold, steps, more, measured) in MEASURED {
            let (config, prior) = bert(method, threshold, steps, more);
            let estimate = Estimate::of(&config, &prior, 64.0).iteration() / 1e9;
            let part = estimate / measured;
            assert!(
                (0.9..1.1).contains(&part),
                "{method} {threshold} {steps} {more}: {estimate} for {measured}"
            );
        }
    }

    #[test]
    fn estimates_hold_for_long_sequences() {
        for (method, threshold, steps, tokens, measured) in MEASURED_ON_MINI_LM {
            let (mut config, prior) = bert(method, 12, steps, "");
            let prior = TextPrior::new(ModelShape::MiniLm.encoder(), threshold, prior.heads).unwrap();
            (config.data.examples, config.data.support) = (4, 2);
            let estimate = Estimate::of(&config, &prior, tokens).iteration() / 1e9;
            let part = estimate / measured;
            assert!(
                (0.95..1.125).contains(&part),
                "{method} {threshold} {steps} {tokens}: {estimate} for {measured}"
            );
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_what_would() {
        let check = |(config, prior): (TextConfig, TextPrior), threads: usize, free: f64| {
            check_against(&config, &prior, 64.0, threads, free).map_err(|error| error.to_string())
        };
        assert_eq!(check(bert("pacmaml", 6, 50, ""), 2, 20e9), Ok(()));
        let message = check(bert("maml", 6, 50, ""), 2, 40e9).unwrap_err();
        for part in [
            "would need about 99.7 GB",
            "scoring 6.0",
            "40.0 GB are free",
            "method.way_back = \"recompute\" would fit",
        ] {
            assert!(message.contains(part), "{message}");
        }
        let message = check(bert("pacmaml", 6, 50, ""), 2, 11.5e9).unwrap_err();
        assert!(message.contains("`--threads 1` would fit"), "{message}");
        let message = check(bert("pacmaml", 6, 50, ""), 1, 10.7e9).unwrap_err();
        assert!(message.contains("; data.examples = 8, data.support = 4 together would fit"), "{message}");
        // One setting alone is not enough: the advice, followed, fits.
        for free in [13e9, 16e9, 20e9] {
            let message = check(bert("maml", 6, 50, ""), 2, free).unwrap_err();
            let (_, advice) = message.rsplit_once("; ").unwrap();
            assert!(advice.starts_with("method.way_back = \"recompute\", `--threads 1`, "), "{advice}");
            let number = |key: &str| {
                let (_, rest) = advice.split_once(&format!("{key} = "))?;
                rest.split([',', ' ']).next()?.parse::<usize>().ok()
            };
            let steps = number("method.steps").unwrap_or(50);
            let (mut config, prior) = bert("maml", 6, steps, RECOMPUTE);
            let (examples, support) = (number("data.examples").unwrap(), number("data.support").unwrap());
            assert_eq!(examples, 2 * support, "S' stays half of S: {advice}");
            (config.data.examples, config.data.support) = (examples, support);
            assert_eq!(check((config, prior), 1, free), Ok(()), "{advice}");
        }
        let message = check(bert("pacmaml", 6, 50, ""), 1, 1e9).unwrap_err();
        assert!(message.contains("a smaller model"), "{message}");
    }

    #[test]
    fn supports_that_do_not_fit_are_refused_where_layers_adapt() {
        let check = |threshold: usize, sentences: usize| {
            let (_, prior) = bert("pacmaml", threshold, 1, "");
            check_support_against(&prior, sentences, 64 * sentences, 20e9).map_err(|error| error.to_string())
        };
        assert_eq!(check(12, 1_000_000), Ok(()));
        assert_eq!(check(0, 16), Ok(()));
        let message = check(0, 5000).unwrap_err();
        assert!(message.contains("5000 sentences of 320000 tokens"), "{message}");
        let (_, advice) = message.split_once("about ").unwrap();
        let (_, advice) = advice.split_once("; about ").unwrap();
        let fitting: usize = advice.split(' ').next().unwrap().parse().unwrap();
        assert_eq!(check(0, fitting), Ok(()), "the advice, followed, fits: {message}");
        assert!(check(0, fitting + fitting / 10).is_err());
    }

    #[test]
    fn scoring_grows_with_threads_and_queries_where_layers_adapt() {
        let of = |threshold: usize, threads: usize, queries: usize| {
            let (mut config, prior) = bert("pacmaml", threshold, 1, "");
            config.evaluation.queries = queries;
            Estimate::of_threads(&config, &prior, 64.0, threads).scoring
        };
        // 43.1 million parameters adapt at v = 6, each with 40 bytes
        let thread = of(6, 3, 500) - of(6, 2, 500);
        assert!((1.72e9..3e9).contains(&thread), "{thread}");
        assert_eq!(of(6, 30, 500), of(6, 99, 500), "there are 30 supports to adapt to");
        assert_eq!(
            of(6, 1, 1500) - of(6, 1, 500),
            1000.0 * 64.0 * 768.0 * 4.0,
            "states of a thousand queries"
        );
        // without layers that adapt there is little but the parameters, 4 bytes each
        assert!((of(12, 8, 500) - 4.0 * 109e6) < 0.4e9, "{}", of(12, 8, 500));
    }

    #[test]
    fn states_of_a_large_task_are_foreseen_where_layers_adapt() {
        let check = |threshold: usize, held: usize| {
            let (config, prior) = bert("pacmaml", threshold, 1, "");
            check_states(&config, &prior, 64.0, "large", held).map_err(|error| error.to_string())
        };
        assert_eq!(check(12, 1 << 40), Ok(()));
        if free_memory().is_some() {
            let message = check(11, 1 << 40).unwrap_err();
            assert!(message.contains("task large") && message.contains("more memory"), "{message}");
        }
    }

    fn task(name: &str, lengths: &[usize]) -> TextTask {
        let mut train = TokenSet::new();
        for &length in lengths {
            let encoded = Encoded { ids: vec![0; length], segments: vec![0; length], truncated: false };
            train.push(&encoded, 0);
        }
        TextTask { name: name.to_owned(), classes: Vec::new(), train, dev: TokenSet::new(), truncated: 0 }
    }

    #[test]
    fn episodes_are_no_larger_than_their_tasks() {
        let tasks = [task("small", &[3; 9]), task("large", &[3; 12])];
        let examples = |examples: usize, support: usize, smlmt: f64| {
            let (mut config, _) = bert("pacmaml", 12, 1, "");
            (config.data.examples, config.data.support, config.data.smlmt) = (examples, support, smlmt);
            as_drawn(&config, &tasks, 500).data.examples
        };
        assert_eq!([examples(100_000, 4, 0.0), examples(10, 4, 0.0)], [12, 10]);
        assert_eq!(examples(100_000, 30, 0.0), 30, "which the tasks will be refused for");
        assert_eq!([examples(100_000, 4, 0.5), examples(64, 4, 0.5)], [1500, 64], "three masked words");
    }

    #[test]
    fn the_task_with_the_longest_examples_counts() {
        // all examples together have a mean of 17.1 tokens
        let tasks = [task("short", &[8; 9]), task("long", &[40, 76])];
        assert_eq!(longest_mean(&tasks), 58.0);
        assert_eq!(longest_mean(&[]), 0.0);
    }
}
