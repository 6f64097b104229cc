//! What the user should know before a run: rates that do not fit the encoder, a tokeniser that does not fit it, words that it does not know.

use super::model::MANY_UNKNOWN;
use super::prior::TextPrior;
use crate::classification::rates;
use crate::config::TextConfig;
use crate::config::text::TextDataConfig;
use crate::environments::table::listed;
use crate::environments::text::{TextTask, passed_over};
use crate::error::{Error, Result};
use crate::priors::pretrained::{Encoder, Pretrained};

/// The largest outer rate that leaves a pretrained encoder whole.
const LARGEST_RATE: f64 = 1e-4;
/// Embedding tables are padded to a multiple of one of these.
const PADDING: [usize; 5] = [8, 16, 32, 64, 128];

/// The remarks on rates.
pub(super) fn of_rates(config: &TextConfig, prior: &TextPrior) -> Vec<String> {
    let rate = config.training.rate;
    let of_training = match !config.prior.is_synthetic() && rate > LARGEST_RATE {
        true => Some(format!(
            "`training.rate` is {rate}, which spoils most pretrained encoders; they take 0.00001 (the default) to 0.0001"
        )),
        false => rates::of_training(rate),
    };
    let mut remarks: Vec<String> =
        of_training.into_iter().chain(rates::of_base_learners(config.method.rate)).collect();
    let rate = config.evaluation.rate;
    if config.prior.threshold.is_some() && prior.only_head_adapts() && rate < LARGEST_RATE {
        remarks.push(format!(
            "`prior.threshold` is the number of layers, so that only the head adapts, for which `evaluation.rate` {rate} is slow; leave out \
             `prior.threshold`, or set `evaluation.rate` to 0.001"
        ));
    }
    remarks
}

/// Whether there are files beside the tasks that may have been meant as tasks.
pub(super) fn of_files(data: &TextDataConfig) -> Option<String> {
    if data.is_synthetic() || !data.tasks.is_empty() {
        return None;
    }
    let names = passed_over(&data.path);
    (!names.is_empty()).then(|| {
        format!(
            "{} in `data.path` {}: tasks are .jsonl files",
            listed(names.iter().map(String::as_str)),
            if names.len() == 1 { "is not a task" } else { "are not tasks" }
        )
    })
}

/// The remarks on a tokeniser, and on what it makes of the examples of tasks.
pub(super) fn of_tokens<'a>(
    pretrained: &Pretrained,
    tasks: impl Iterator<Item = &'a TextTask> + Clone,
) -> Vec<String> {
    let tokeniser = &pretrained.tokeniser;
    let Encoder { shape, unused_layers, .. } = &pretrained.encoder;
    let of_encoder = of_vocabulary(tokeniser.vocabulary(), shape.vocabulary);
    let of_layers = of_layers(shape.layers, *unused_layers);
    let of_words = of_unknown_words(pretrained, tasks.clone());
    let cut = tasks.filter(|task| task.truncated > 0).map(|task| {
        format!(
            "task {}: {} of {} examples are longer than {} tokens and were cut (`data.length`)",
            task.name,
            task.truncated,
            task.train.len() + task.dev.len(),
            tokeniser.limit()
        )
    });
    of_encoder.into_iter().chain(of_layers).chain(of_words).chain(cut).collect()
}

/// Whether the file of an encoder has more layers than are taken.
fn of_layers(layers: usize, unused: usize) -> Option<String> {
    (unused > 0).then(|| {
        format!(
            "the number of layers is {layers} in config.json and {} in model.safetensors (`prior.model`); those above are left out",
            layers + unused
        )
    })
}

/// Whether a tokeniser has so many fewer tokens than there are embeddings that it may be another model's.
fn of_vocabulary(tokens: usize, embeddings: usize) -> Option<String> {
    let is_padded = PADDING.iter().any(|&multiple| tokens.next_multiple_of(multiple) == embeddings);
    (tokens != embeddings && !is_padded).then(|| {
        format!(
            "the tokeniser has {tokens} tokens, and the encoder embeddings for {embeddings} (`prior.model`); were their files taken from the \
             same model?"
        )
    })
}

fn of_unknown_words<'a>(
    pretrained: &Pretrained,
    tasks: impl Iterator<Item = &'a TextTask>,
) -> Option<String> {
    let parts: Vec<(f64, &str)> = tasks
        .map(|task| (pretrained.tokeniser.unknown_part(&task.train.ids), task.name.as_str()))
        .filter(|(part, _)| *part > MANY_UNKNOWN)
        .collect();
    let (most, name) = parts.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let others = match parts.len() - 1 {
        0 => String::new(),
        1 => ", and more than a fifth in another task".to_owned(),
        more => format!(", and more than a fifth in {more} other tasks"),
    };
    Some(format!(
        "task {name}: {:.0} % of the word pieces are unknown to the encoder ([UNK]){others}; is it one of this language?",
        100.0 * most
    ))
}

/// Two checks of the same tasks: where both refuse, both reasons are said at once.
pub(super) fn together(first: Result<()>, second: Result<()>) -> Result<()> {
    match (first, second) {
        (Err(first), Err(second)) if first.is_input() && second.is_input() => {
            Err(Error::input("the tasks", format!("{first}; besides, {second}")))
        }
        (first, second) => first.and(second),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokenisers_of_other_models_are_noticed_and_padding_is_not() {
        assert_eq!(of_vocabulary(30_522, 30_522), None);
        assert_eq!(of_vocabulary(30_522, 30_528), None, "a multiple of 8");
        assert_eq!(of_vocabulary(30_522, 30_592), None, "a multiple of 128");
        let remark = of_vocabulary(30, 39).unwrap();
        assert!(remark.contains("30 tokens") && remark.contains("39"), "{remark}");
    }

    #[test]
    fn two_refusals_are_one() {
        let refuse = |word: &str| Err(Error::input("x", word));
        let message = together(refuse("shots"), refuse("support")).unwrap_err().to_string();
        assert!(message.contains("x: shots; besides, x: support"), "{message}");
        assert_eq!(together(Ok(()), refuse("support")).unwrap_err().to_string(), "x: support");
        assert_eq!(together(refuse("shots"), Ok(())).unwrap_err().to_string(), "x: shots");
        assert!(together(Ok(()), Ok(())).is_ok());
    }
}
