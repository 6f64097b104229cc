//! Example tasks for a report: the pictures, their labels, and what was predicted.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use image::codecs::jpeg::JpegEncoder;
use image::{ExtendedColorType, ImageEncoder};

use super::evaluation::Query;
use super::experiment::ImageExperiment;
use super::model::ImageModel;
use crate::classification::Stop;
use crate::environments::images::{ClassId, ImageSet, Picture};
use crate::error::{Error, Result};
use crate::report::{GalleryPicture, GalleryPrediction, GalleryTask};

/// Queries of a task that are shown: two rows beside five labelled pictures.
const SHOWN_QUERIES: usize = 10;
const JPEG_QUALITY: u8 = 88;

/// The first `count` test tasks as a model sees them.
///
/// # Errors
/// When a number is not finite.
pub(super) fn gallery(
    experiment: &ImageExperiment,
    model: &ImageModel,
    count: usize,
    stop: &Stop<'_>,
) -> Result<Vec<GalleryTask>> {
    let set = experiment.set();
    let predictions = experiment.predictions(model, count, stop)?;
    let tasks = predictions.iter().enumerate().map(|(task, prediction)| {
        let episode = experiment.test_episode(task);
        let name = |label: usize| class_name(set, episode.classes[label]);
        let support = episode.len() - prediction.queries.len();
        let labelled = episode.pictures[..support].iter().zip(&episode.labels);
        let classified = episode.pictures[support..].iter().zip(&prediction.queries).take(SHOWN_QUERIES);
        Ok(GalleryTask {
            heading: format!("Test task {}", task + 1),
            support: labelled
                .map(|(picture, &label)| shown(set, picture, name(label), None))
                .collect::<Result<_>>()?,
            queries: classified
                .map(|(picture, query)| {
                    let predicted = name(query.predicted());
                    shown(set, picture, name(query.label), Some(prediction_of(predicted, query)))
                })
                .collect::<Result<_>>()?,
            caption: format!(
                "{} of {} queries are right; the first {} are shown.",
                prediction.queries.iter().filter(|query| query.is_right()).count(),
                prediction.queries.len(),
                SHOWN_QUERIES.min(prediction.queries.len())
            ),
        })
    });
    tasks.collect()
}

fn prediction_of(class: String, query: &Query) -> GalleryPrediction {
    GalleryPrediction { class, probability: f64::from(query.probabilities[query.predicted()]) }
}

/// The name for people, with the turn where there is one.
fn class_name(set: &ImageSet, id: ClassId) -> String {
    let name = &set.classes()[id.class as usize].display_name;
    // Of a path the last two parts say enough: an alphabet and a character.
    let from = name.rmatch_indices('/').nth(1).map_or(0, |(place, _)| place + 1);
    let name = name[from..].replace('_', " ").replace('/', ", ");
    match id.quarter_turns {
        0 => name,
        turns => format!("{name}, turned by {}°", 90 * u32::from(turns)),
    }
}

fn shown(
    set: &ImageSet,
    picture: &Picture,
    class: String,
    prediction: Option<GalleryPrediction>,
) -> Result<GalleryPicture> {
    let mut pixels = Vec::new();
    set.append_turned(picture.index, picture.quarter_turns, &mut pixels);
    Ok(GalleryPicture { source: data_address(set, &pixels)?, class, prediction })
}

/// A picture as a `data:` address, so that a page needs no files beside it.
fn data_address(set: &ImageSet, pixels: &[u8]) -> Result<String> {
    let colour = if set.channels() == 1 { ExtendedColorType::L8 } else { ExtendedColorType::Rgb8 };
    let side = u32::try_from(set.side()).unwrap_or(u32::MAX);
    let mut bytes = Vec::new();
    JpegEncoder::new_with_quality(&mut bytes, JPEG_QUALITY)
        .write_image(pixels, side, side, colour)
        .map_err(|error| Error::input("a picture of the report", error.to_string()))?;
    Ok(format!("data:image/jpeg;base64,{}", STANDARD.encode(bytes)))
}
