//! Small parts of scoring that pictures and texts share.

/// Asked now and then whether to stop.
pub type Stop<'a> = dyn Fn() -> bool + Sync + 'a;

/// Who watches scoring.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    /// Asked now and then whether to stop.
    pub stop: &'a Stop<'a>,
    /// Told after each task how many are finished.
    pub finished: &'a dyn Fn(usize),
}

impl<'a> Watch<'a> {
    /// Someone who may stop it, and does not want to know how far it is.
    pub fn stopping(stop: &'a Stop<'a>) -> Self {
        Self { stop, finished: &|_| {} }
    }
}

/// The smallest probability that counts in a log-likelihood: f32's distance from certainty.
pub(crate) const LEAST_PROBABILITY: f64 = f32::EPSILON as f64 / 2.0;

/// The class of the largest probability; the first one of several.
pub fn most_probable(probabilities: &[f32]) -> usize {
    (0..probabilities.len())
        .fold(0, |best, class| if probabilities[class] > probabilities[best] { class } else { best })
}

/// The mean, and its standard error where there are at least two values.
pub(crate) fn mean_and_error(values: &[f64]) -> (f64, Option<f64>) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (values.len() > 1).then(|| (squares / (count - 1.0) / count).sqrt()))
}
