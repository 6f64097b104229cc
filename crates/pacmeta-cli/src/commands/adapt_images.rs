//! `pacmeta adapt` on pictures.

use std::path::Path;

use pacmeta::classification::most_probable;
use pacmeta::config::images::Normalisation;
use pacmeta::environments::images::{
    Channels, FoundImages, ImageOptions, ImageSet, PictureShape, RootPictures, find_images,
};
use pacmeta::images::{ImageModel, LabelledPictures};
use pacmeta::training::checkpoint::Checkpoint;
use pacmeta::{Error, Result};
use pacmeta_tensor::Key;

use super::adapt::refuse_steps;
use super::adapt_classes::{ClassTable, write_classes};
use super::inputs::check_output;
use crate::arguments::Adapt;
use crate::output::remark;

/// The model of a run or checkpoint file, if it is one of pictures.
pub(super) fn model_of(run: &Path) -> Result<Option<ImageModel>> {
    let file = if run.is_dir() { run.join("prior.safetensors") } else { run.to_path_buf() };
    if !file.is_file() || file.extension().is_none_or(|ending| ending != "safetensors") {
        return Ok(None); // the caller knows what to say
    }
    let checkpoint = Checkpoint::read(&file)?;
    if !ImageModel::is_in(&checkpoint) {
        return Ok(None);
    }
    ImageModel::from_checkpoint(file.display(), &checkpoint).map(Some)
}

pub(super) fn run(model: ImageModel, arguments: &Adapt) -> Result<()> {
    let model = match arguments.normalisation {
        Some(choice) => model.with_normalisation(choice.into()),
        None => model,
    };
    let useless = [
        ("--task", arguments.task.is_some()),
        ("--task-column", arguments.task_column.is_some()),
        ("--temperature", arguments.temperature.is_some()),
    ];
    if let Some((option, _)) = useless.into_iter().find(|(_, given)| *given) {
        let message = "is for tables; this run is of pictures, which need --support and --query only";
        return Err(Error::input(format!("option `{option}`"), message));
    }
    refuse_steps(arguments, "pictures")?;
    let Some(query) = &arguments.query else {
        return Err(Error::input(
            "option `--query`",
            "expected a picture, or a folder or zip file of pictures to classify",
        ));
    };
    if let Some(output) = &arguments.output {
        check_output(output, [&*arguments.support, query, &*arguments.run])?;
    }
    let spec = model.spec();
    let Some(channels) = Channels::from_count(spec.channels) else {
        return Err(Error::input(arguments.run.display(), "has a number of channels that no picture has"));
    };
    let shape = PictureShape { side: spec.side, channels };
    // Both are looked for before either is decoded.
    let support = find(&arguments.support, shape, RootPictures::Refused)?;
    let queries = find(query, shape, RootPictures::OneClass)?;
    let (support, queries) = (open(&arguments.support, support)?, open(query, queries)?);
    let names: Vec<&str> = support.classes().iter().map(|class| class.name.as_str()).collect();
    if names.len() < 2 {
        let message =
            format!("has pictures of {} class only; expected a folder for each of at least two", names.len());
        return Err(Error::input(arguments.support.display(), message));
    }
    let learned =
        model.parameters().tensor("head.weight").is_some_and(|head| head.iter().any(|&value| value != 0.0));
    if learned {
        remark(
            "the head starts at zero instead of its learned weights, which belong to places of classes in training tasks and would \
             make predictions depend on the order of the folders; a run with prior.head = \"zero\" learns none",
        );
    }
    let (pixels, labels) = gathered(&support);
    let labelled = LabelledPictures { pixels: &pixels, labels: &labels, classes: names.len() };
    let (pixels, folders) = gathered(&queries);
    let probabilities = model.classify(labelled, &pixels, Key::new(0).named("adapt"))?;
    if model.normalisation() != Normalisation::Support {
        remark(
            "batch norm normalises the new pictures together, so that a prediction depends on the others among them; \
             --normalisation support makes each stand alone",
        );
    }
    tell_accuracy(&names, &queries, &folders, &probabilities);

    let pictures: Vec<String> = queries
        .classes()
        .iter()
        .flat_map(|class| &class.pictures)
        .map(|&picture| queries.picture_name(picture).to_owned())
        .collect();
    let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    write_classes(
        arguments,
        &ClassTable { items: &[("picture", pictures)], names: &names, probabilities: &probabilities },
    )
}

fn find(path: &Path, shape: PictureShape, root_pictures: RootPictures) -> Result<FoundImages> {
    find_images(&ImageOptions { root_pictures, ..ImageOptions::small(path, shape) })
}

fn open(path: &Path, found: FoundImages) -> Result<ImageSet> {
    let opened = found.open(&mut ())?;
    opened.notes.iter().for_each(|note| remark(&format!("{}: {note}", path.display())));
    Ok(opened.set)
}

/// All pixels, and the class of each picture.
fn gathered(set: &ImageSet) -> (Vec<u8>, Vec<usize>) {
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for (label, class) in set.classes().iter().enumerate() {
        for &picture in &class.pictures {
            pixels.extend_from_slice(set.pixels(picture));
            labels.push(label);
        }
    }
    (pixels, labels)
}

/// Where the queries lie in folders of the same classes, how many are right.
fn tell_accuracy(names: &[&str], queries: &ImageSet, folders: &[usize], probabilities: &[Vec<f32>]) {
    let truth: Option<Vec<usize>> =
        queries.classes().iter().map(|class| names.iter().position(|name| *name == class.name)).collect();
    if let Some(truth) = truth {
        let rows = folders.iter().zip(probabilities);
        let right = rows.filter(|(folder, row)| most_probable(row) == truth[**folder]).count();
        remark(&format!("{right} of {} pictures are classified as their folders say", folders.len()));
    }
}
