//! Calibration curves: nominal levels against what was observed, beside the diagonal of perfect calibration.

use super::data::{CalibrationKind, CalibrationSeries};
use super::line::{Guide, LineChart, Point, Proportion, Series};
use super::scale::Axis;

/// The curves as a square line chart on [0, 1] x [0, 1].
pub(crate) fn chart(kind: CalibrationKind, series: &[CalibrationSeries]) -> LineChart {
    let (x, y) = match kind {
        CalibrationKind::Quantile => ("predicted level", "observations at or below it"),
        CalibrationKind::Interval => ("probability of the interval", "observations inside it"),
    };
    let axis = |label: &str| Axis::new(label).range(0.0, 1.0).percent();
    let mut chart =
        LineChart::new("Calibration", axis(x), axis(y)).guide(Guide::Diagonal("perfect".to_owned()));
    chart.proportion = Proportion::Square;
    chart.series = series
        .iter()
        .map(|s| Series::new(s.name.clone(), s.points.iter().map(|(x, y)| Point::new(*x, *y))))
        .collect();
    chart
}

/// How to read the curves.
pub(crate) fn reading(kind: CalibrationKind) -> &'static str {
    match kind {
        CalibrationKind::Quantile => {
            "For each level, the fraction of query values at or below the predicted quantile of that level. Honest \
             uncertainty lies on the diagonal. A curve flatter than the diagonal (above it at low levels, below it at high \
             ones) claims more certainty than it has; a steeper one claims less."
        }
        CalibrationKind::Interval => {
            "For each probability, the fraction of query values inside the central predicted interval. Honest uncertainty \
             lies on the diagonal. Below it, intervals are too narrow (more certainty claimed than there is); above it, too wide."
        }
    }
}
