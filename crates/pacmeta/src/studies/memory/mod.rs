//! The paper's memory table on texts: MAML, BMAML and PACMAML by the number of layers that adapt, measured on this machine.
//!
//! A measurement is one meta-iteration of one method with K inner steps in a process of its own ([`TextStep`]). K grows as far as the memory
//! allows; the line through the measurements says what the paper's 50 steps would need, and is marked as an extrapolation.

mod page;

pub use page::{memory_report, table_csv};

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::benchmark::{ModelShape, TextStep, TextStepSettings};
use crate::config::ClassificationMethodKind;
use crate::error::{Error, Result};
use crate::methods::networks::WayBack;
use crate::training::files::{read_bounded, write_atomically};

/// The name of the study in its folder.
pub const STUDY: &str = "memory";
/// The measurements, in their order.
pub const MEASUREMENTS: &str = "measurements.json";
/// The inner steps of the paper's table.
pub const PAPER_STEPS: usize = 50;
/// The thresholds of the paper's table, for 12 layers.
pub const PAPER_THRESHOLDS: [usize; 4] = [6, 9, 11, 12];

/// A column of the table: a method, and how it goes back through its steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contender {
    /// The method.
    pub method: ClassificationMethodKind,
    /// The way back.
    pub way_back: WayBack,
}

impl Contender {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self { method: ClassificationMethodKind::Maml, way_back: WayBack::Tape },
        Self { method: ClassificationMethodKind::Maml, way_back: WayBack::Recompute },
        Self { method: ClassificationMethodKind::Bmaml, way_back: WayBack::Tape },
        Self { method: ClassificationMethodKind::Pacmaml, way_back: WayBack::Tape },
    ];

    /// The name in tables.
    pub fn title(self) -> String {
        match self.way_back {
            WayBack::Tape => self.method.title().to_owned(),
            WayBack::Recompute => format!("{}, recomputed", self.method.title()),
        }
    }

    /// The paper's gigabytes by v = 6, 9, 11, 12.
    pub fn in_paper(self) -> Option<[f64; 4]> {
        match (self.method, self.way_back) {
            (ClassificationMethodKind::Maml, WayBack::Tape) => Some([120.0, 57.0, 16.0, 4.0]),
            (ClassificationMethodKind::Bmaml, _) => Some([121.0, 59.0, 19.0, 4.0]),
            (ClassificationMethodKind::Pacmaml, _) => Some([33.0, 16.0, 8.0, 4.0]),
            _ => None,
        }
    }
}

/// What is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The encoder.
    pub shape: ModelShape,
    /// v, from many layers that adapt to none.
    pub thresholds: Vec<usize>,
    /// K, growing.
    pub steps: Vec<usize>,
    /// m.
    pub examples: usize,
    /// m'.
    pub support: usize,
    /// Tokens of an example.
    pub length: usize,
    /// No measurement that is expected to need more bytes is made.
    pub limit: u64,
}

impl Plan {
    /// The paper's thresholds (as parts of the layers) on an encoder.
    pub fn new(shape: ModelShape) -> Self {
        let layers = shape.encoder().layers;
        let mut thresholds: Vec<usize> = PAPER_THRESHOLDS.iter().map(|v| (v * layers).div_ceil(12)).collect();
        thresholds.dedup();
        Self {
            shape,
            thresholds,
            steps: vec![1, 2, 4, 8, 16],
            examples: 16,
            support: 8,
            length: 64,
            limit: 20_000_000_000,
        }
    }

    /// The measurement of a contender.
    pub fn settings(&self, contender: Contender, threshold: usize, steps: usize) -> TextStepSettings {
        TextStepSettings {
            shape: self.shape,
            method: contender.method,
            way_back: contender.way_back,
            threshold,
            steps,
            examples: self.examples,
            support: self.support,
            length: self.length,
        }
    }
}

/// The measurements so far.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Measurements {
    /// In the order in which they were made.
    pub steps: Vec<TextStep>,
}

/// A line through measurements: bytes = start + slope K.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Bytes without a step.
    pub start: f64,
    /// Bytes of a step.
    pub slope: f64,
    /// The largest K that was measured.
    pub largest: usize,
}

impl Line {
    /// Bytes at K steps.
    pub fn at(&self, steps: usize) -> f64 {
        self.start + self.slope * steps as f64
    }
}

impl Measurements {
    /// Reads those of a folder; none if there is no such file.
    ///
    /// # Errors
    /// When the file is damaged.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(MEASUREMENTS);
        if !path.exists() {
            return Ok(Self::default());
        }
        serde_json::from_slice(&read_bounded(&path, 1 << 24)?).map_err(|error| {
            Error::input(path.display(), format!("{error}; delete the file to measure again"))
        })
    }

    /// Writes them into a folder.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let path = folder.join(MEASUREMENTS);
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| Error::input(path.display(), error.to_string()))?;
        write_atomically(path, text.as_bytes())
    }

    /// A measurement.
    pub fn find(&self, settings: TextStepSettings) -> Option<&TextStep> {
        self.steps.iter().find(|step| step.settings == settings)
    }

    /// The measurements of a contender at a threshold, by K.
    pub fn of(&self, plan: &Plan, contender: Contender, threshold: usize) -> Vec<&TextStep> {
        plan.steps.iter().filter_map(|&steps| self.find(plan.settings(contender, threshold, steps))).collect()
    }

    /// The line of least squares through the engine's bytes; flat through a single measurement.
    pub fn line(&self, plan: &Plan, contender: Contender, threshold: usize) -> Option<Line> {
        let found = self.of(plan, contender, threshold);
        let largest = found.last()?.settings.steps;
        let points: Vec<(f64, f64)> =
            found.iter().map(|step| (step.settings.steps as f64, step.total_bytes as f64)).collect();
        let count = points.len() as f64;
        let mean_x = points.iter().map(|point| point.0).sum::<f64>() / count;
        let mean_y = points.iter().map(|point| point.1).sum::<f64>() / count;
        let spread: f64 = points.iter().map(|point| (point.0 - mean_x).powi(2)).sum();
        let together: f64 = points.iter().map(|point| (point.0 - mean_x) * (point.1 - mean_y)).sum();
        let slope = if spread > 0.0 { together / spread } else { 0.0 };
        Some(Line { start: mean_y - slope * mean_x, slope, largest })
    }

    /// Whether K steps can be tried: they are expected to stay below the limit.
    pub fn allows(&self, plan: &Plan, contender: Contender, threshold: usize, steps: usize) -> bool {
        let found = self.of(plan, contender, threshold);
        // one measurement says nothing about the slope: the second is at most twice the first
        let expected = match (found.len(), self.line(plan, contender, threshold)) {
            (0, _) | (_, None) => 0.0,
            (1, Some(line)) => 2.0 * line.at(line.largest),
            (_, Some(line)) => line.at(steps),
        };
        expected <= plan.limit as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(plan: &Plan, contender: Contender, steps: usize, total_bytes: usize) -> TextStep {
        TextStep {
            settings: plan.settings(contender, 6, steps),
            milliseconds: 1.0,
            parameter_bytes: 0,
            pass_bytes: 0,
            step_bytes: 0,
            tape_bytes: 0,
            kept_bytes: 0,
            total_bytes,
            resident_bytes: None,
        }
    }

    #[test]
    fn a_line_goes_through_measurements_and_stops_before_the_limit() {
        let plan = Plan { limit: 1000, ..Plan::new(ModelShape::BertBase) };
        assert_eq!(plan.thresholds, PAPER_THRESHOLDS);
        let [maml, _, _, pacmaml] = Contender::ALL;
        let mut found = Measurements::default();
        assert!(found.allows(&plan, maml, 6, 1) && found.line(&plan, maml, 6).is_none());
        found.steps = vec![
            step(&plan, maml, 1, 150),
            step(&plan, maml, 2, 250),
            step(&plan, maml, 4, 450),
            step(&plan, pacmaml, 1, 90),
        ];
        let line = found.line(&plan, maml, 6).unwrap();
        assert!((line.at(50) - 5050.0).abs() < 1e-9 && line.largest == 4);
        assert!(found.allows(&plan, maml, 6, 9) && !found.allows(&plan, maml, 6, 16));
        assert_eq!(found.line(&plan, pacmaml, 6).unwrap().at(50), 90.0);
        assert!(found.find(plan.settings(maml, 9, 1)).is_none());
    }
}
