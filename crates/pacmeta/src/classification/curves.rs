//! How learning went: accuracy on tasks that were not learned from, and the loss in training.

use super::run::{VALIDATION, VALIDATION_ERROR};
use crate::report::{Axis, Guide, LineChart, Point, Series, StudyFigure, StudySection};
use crate::training::metrics::MetricsLine;

/// A run with the name and the look that it has in every figure.
#[derive(Debug, Clone, Copy)]
pub struct Curve<'a> {
    /// The name.
    pub name: &'a str,
    /// Colour and marker, from 0.
    pub look: usize,
    /// The metrics.
    pub metrics: &'a [MetricsLine],
}

/// What pictures and texts call things.
#[derive(Debug, Clone)]
pub struct CurveWords<'a> {
    /// The heading of the figure of accuracies.
    pub accuracy: &'a str,
    /// What to look for in it.
    pub accuracy_caption: &'a str,
    /// What to look for in the figure of losses.
    pub loss_caption: &'a str,
    /// The accuracy of chance, where it is the same for all tasks.
    pub chance: Option<f64>,
}

/// Points that a long run's loss is drawn with.
const POINTS: usize = 60;

/// The section of the curves; none where there is nothing to draw.
pub fn curve_section(curves: &[Curve<'_>], words: &CurveWords<'_>) -> Option<StudySection> {
    let iterations = || Axis::new("iterations").tight();
    let mut accuracy = LineChart::new(words.accuracy, iterations(), Axis::new("accuracy").percent());
    if let Some(chance) = words.chance {
        accuracy = accuracy.guide(Guide::Horizontal(chance, "chance".to_owned()));
    }
    let mut loss = LineChart::new("Loss in training", iterations(), Axis::new("loss after adaptation"));
    for Curve { name, look, metrics } in curves.iter().copied() {
        let validation = points(metrics, VALIDATION, Some(VALIDATION_ERROR));
        accuracy = accuracy
            .with(Series::new(name, validation).band().intervals_are("one standard error").look(look));
        loss = loss.with(Series::new(name, thinned(&points(metrics, "risk", None))).look(look));
    }
    let drawn = |chart: &LineChart| chart.series.iter().any(|series| !series.points.is_empty());
    let mut section = StudySection::new("learning", "Learning");
    if drawn(&accuracy) {
        section =
            section.with(StudyFigure::new("validation", words.accuracy, accuracy, words.accuracy_caption));
    }
    if drawn(&loss) {
        section = section.with(StudyFigure::new("loss", "Loss in training", loss, words.loss_caption));
    }
    (!section.blocks.is_empty()).then_some(section)
}

fn points(lines: &[MetricsLine], name: &str, error: Option<&str>) -> Vec<Point> {
    let point = |line: &MetricsLine| {
        let point = Point::new(line.iteration as f64, line.get(name)?);
        Some(match error.and_then(|error| line.get(error)) {
            Some(error) => point.error(error),
            None => point,
        })
    };
    lines.iter().filter_map(point).collect()
}

/// Means of neighbouring points, so that a long run has a readable curve.
fn thinned(points: &[Point]) -> Vec<Point> {
    let size = points.len().div_ceil(POINTS).max(1);
    let mean =
        |part: &[Point], value: fn(&Point) -> f64| part.iter().map(value).sum::<f64>() / part.len() as f64;
    points.chunks(size).map(|part| Point::new(mean(part, |p| p.x), mean(part, |p| p.y))).collect()
}
