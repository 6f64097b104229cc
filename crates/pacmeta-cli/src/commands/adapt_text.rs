//! `pacmeta adapt` on texts.

use std::path::Path;

use pacmeta::classification::most_probable;
use pacmeta::environments::text::{Sentences, read_queries, read_texts};
use pacmeta::text::model::{LabelledSentences, MANY_UNKNOWN};
use pacmeta::text::{FineTuning, TextModel};
use pacmeta::training::checkpoint::Checkpoint;
use pacmeta::{Error, Result};

use super::adapt_classes::{ClassTable, write_classes};
use super::inputs::check_output;
use crate::arguments::Adapt;
use crate::output::{remark, warn};

/// The model of a run, if it is one of texts.
pub(super) fn model_of(run: &Path) -> Result<Option<TextModel>> {
    let file = if run.is_dir() { run.join("prior.safetensors") } else { run.to_path_buf() };
    if !file.is_file() || file.extension().is_none_or(|ending| ending != "safetensors") {
        return Ok(None); // the caller knows what to say
    }
    if !TextModel::is_in(&Checkpoint::read(&file)?) {
        return Ok(None);
    }
    TextModel::read(&file).map(Some)
}

/// The model with the steps that the command asks for.
fn tuned(model: TextModel, arguments: &Adapt) -> TextModel {
    let FineTuning { steps, rate } = model.tuning();
    let steps = arguments.steps.map_or(steps, |steps| steps as usize);
    model.with_tuning(FineTuning { steps, rate: arguments.rate.unwrap_or(rate) })
}

pub(super) fn run(model: TextModel, arguments: &Adapt) -> Result<()> {
    let model = tuned(model, arguments);
    let useless = [
        ("--task", arguments.task.is_some()),
        ("--task-column", arguments.task_column.is_some()),
        ("--temperature", arguments.temperature.is_some()),
        ("--normalisation", arguments.normalisation.is_some()),
    ];
    if let Some((option, _)) = useless.into_iter().find(|(_, given)| *given) {
        let message =
            "is not for texts; this run is of texts, which take --support, --query, --steps and --rate";
        return Err(Error::input(format!("option `{option}`"), message));
    }
    let Some(query) = &arguments.query else {
        let message =
            "is missing; expected a .jsonl file of sentences to classify, or `-` for standard input";
        return Err(Error::input("option `--query`", message));
    };
    if query == Path::new("-") && arguments.support == Path::new("-") {
        let message = "only one of them can be standard input; name a file for the other";
        return Err(Error::input("options `--support` and `--query`", message));
    }
    if let Some(output) = &arguments.output {
        check_output(output, [&*arguments.support, query, &*arguments.run])?;
    }
    let texts = read_texts(&arguments.support)?;
    let queries = read_queries(query)?;
    if !texts.dev.is_empty() {
        let lines = match texts.dev.len() {
            1 => "1 line is".to_owned(),
            count => format!("{count} lines are"),
        };
        let file = arguments.support.display();
        warn(&format!("{file}: {lines} for scoring only (`split` is `dev`) and not adapted to"));
    }
    let (sentences, labels): (Vec<Sentences>, Vec<usize>) =
        texts.train.iter().map(|text| (text.sentences.clone(), text.label)).unzip();
    let paired = texts.is_paired();
    if let Some(place) = queries.sentences.iter().position(|other| other.second.is_some() != paired) {
        let message = match paired {
            true => "has no `sentence2`, which the support has",
            false => "has a `sentence2`, which the support does not have",
        };
        return Err(Error::input_at(query.display(), format!("line {}", queries.lines[place]), message));
    }
    let support = LabelledSentences { sentences: &sentences, labels: &labels, classes: texts.classes.len() };
    let unknown: Vec<(usize, &String)> = queries
        .labels
        .iter()
        .zip(&queries.lines)
        .filter_map(|(label, &line)| {
            label.as_ref().filter(|label| !texts.classes.contains(label)).map(|l| (line, l))
        })
        .collect();
    if let Some((line, label)) = unknown.first() {
        let message = format!(
            "has the label `{label}`, which no example of the support has (they have {}); leave labels out where they are unknown",
            texts.classes.join(", ")
        );
        return Err(Error::input_at(query.display(), format!("line {line}"), message));
    }
    if let Some(remark) = model.remark_on_rate() {
        warn(&remark);
    }
    let classified = model.classify(support, &queries.sentences)?;
    let files = [&arguments.support, query].map(|path| path.display());
    let counts = [sentences.len(), queries.sentences.len()];
    let of_files = files.iter().zip(counts).zip(classified.truncated).zip(classified.unknown);
    for (((file, count), cut), unknown) in of_files {
        if cut > 0 {
            warn(&format!(
                "{file}: {cut} of {count} examples were cut to the {} tokens that the encoder was trained for (`data.length`)",
                model.length()
            ));
        }
        if unknown > MANY_UNKNOWN {
            warn(&format!(
                "{file}: {:.0} % of the word pieces are unknown to the encoder ([UNK]); is it one of this language?",
                100.0 * unknown
            ));
        }
    }
    let [before, after] = classified.losses;
    if after > before {
        let FineTuning { steps, rate } = model.tuning();
        warn(&format!(
            "{}: {steps} steps of rate {rate} raised the loss on these examples from {before:.3} to {after:.3}; take a smaller --rate",
            arguments.support.display()
        ));
    }
    tell_accuracy(&texts.classes, &queries.labels, &classified.probabilities);
    let firsts = queries.sentences.iter().map(|sentences| sentences.first.clone()).collect();
    let mut items = vec![("sentence1", firsts)];
    if texts.is_paired() {
        let seconds = queries.sentences.iter().map(|pair| pair.second.clone().unwrap_or_default()).collect();
        items.push(("sentence2", seconds));
    }
    let table = ClassTable { items: &items, names: &texts.classes, probabilities: &classified.probabilities };
    write_classes(arguments, &table)
}

/// Where the queries have labels, how many are right.
fn tell_accuracy(classes: &[String], labels: &[Option<String>], probabilities: &[Vec<f32>]) {
    let known: Vec<(&String, &Vec<f32>)> =
        labels.iter().zip(probabilities).filter_map(|(label, row)| Some((label.as_ref()?, row))).collect();
    if !known.is_empty() {
        let right = known.iter().filter(|(label, row)| classes[most_probable(row)] == **label).count();
        remark(&format!("{right} of {} labelled queries are classified as their labels say", known.len()));
    }
}
