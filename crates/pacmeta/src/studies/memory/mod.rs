//! The paper's memory table on texts: MAML, BMAML and PACMAML by the number of layers that adapt, measured on this machine.
//!
//! A measurement is one meta-iteration of one method with K inner steps in a process of its own ([`TextStep`]). K grows as far as the memory
//! allows, up to the paper's 50 steps; where these do not fit, the line through the measurements says what they would need, and is marked as an
//! extrapolation.

mod page;

pub use page::{memory_report, table_csv};

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::benchmark::{ModelShape, TextStep, TextStepSettings, foreseen_bytes};
use crate::classification::free_memory::allowed_memory;
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
/// The most bytes that a measurement may be expected to need.
const LARGEST_LIMIT: f64 = 20e9;
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
    /// No measurement that is expected to need more bytes is made: 20 GB, or nine tenths of the free memory if that is less.
    pub limit: u64,
}

/// How far the measurements of a plan go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// 1 and 2 steps, in a few minutes.
    Short,
    /// The paper's 50 steps where they fit.
    Whole,
}

impl Plan {
    /// The paper's thresholds (as parts of the layers) on an encoder, and the memory that is free now.
    pub fn new(shape: ModelShape, extent: Extent) -> Self {
        let layers = shape.encoder().layers;
        let mut thresholds: Vec<usize> = PAPER_THRESHOLDS.iter().map(|v| (v * layers).div_ceil(12)).collect();
        thresholds.dedup();
        Self {
            shape,
            thresholds,
            steps: match extent {
                Extent::Short => vec![1, 2],
                Extent::Whole => vec![1, 2, 4, 8, 16, PAPER_STEPS],
            },
            examples: 16,
            support: 8,
            length: 64,
            limit: allowed_memory().unwrap_or(LARGEST_LIMIT).min(LARGEST_LIMIT) as u64,
        }
    }

    /// Refuses to go on in the folder of another study: one measures an encoder with tasks of one size. How many steps, and how much
    /// memory is free, may change.
    ///
    /// # Errors
    /// When the earlier plan has another encoder or another size.
    pub fn check_continues(&self, earlier: &Self) -> Result<()> {
        let sizes = |plan: &Self| (plan.shape, plan.examples, plan.support, plan.length);
        if sizes(self) == sizes(earlier) {
            return Ok(());
        }
        let words = |plan: &Self| {
            format!(
                "{}, m = {}, m' = {}, {} tokens",
                plan.shape.name(),
                plan.examples,
                plan.support,
                plan.length
            )
        };
        let message = format!(
            "the folder holds measurements of {}, not of {}; choose another --out",
            words(earlier),
            words(self)
        );
        Err(Error::input("the plan of the study", message))
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

/// What a number of steps needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bytes {
    /// As measured.
    Measured(f64),
    /// By the line through the measurements.
    Extrapolated(f64),
}

impl Bytes {
    /// The number.
    pub fn value(self) -> f64 {
        match self {
            Self::Measured(bytes) | Self::Extrapolated(bytes) => bytes,
        }
    }

    /// In gigabytes with two decimals, four below one; an extrapolation is marked by `~`.
    pub fn in_gigabytes(self) -> String {
        let mark = if matches!(self, Self::Extrapolated(_)) { "~" } else { "" };
        let gigabytes = self.value() / 1e9;
        let decimals = if gigabytes < 1.0 { 4 } else { 2 };
        format!("{mark}{gigabytes:.decimals$}")
    }
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

    /// The measurements of a contender at a threshold, by K; also those of earlier plans with other steps.
    pub fn of(&self, plan: &Plan, contender: Contender, threshold: usize) -> Vec<&TextStep> {
        let is_of =
            |step: &&TextStep| step.settings == plan.settings(contender, threshold, step.settings.steps);
        let mut found: Vec<&TextStep> = self.steps.iter().filter(is_of).collect();
        found.sort_by_key(|step| step.settings.steps);
        found
    }

    /// All K that were measured, growing.
    pub fn measured_steps(&self) -> Vec<usize> {
        let mut steps: Vec<usize> = self.steps.iter().map(|step| step.settings.steps).collect();
        steps.sort_unstable();
        steps.dedup();
        steps
    }

    /// What K steps need, measured or by the line; nothing if one number of steps was measured at most.
    pub fn bytes_at(
        &self,
        plan: &Plan,
        contender: Contender,
        threshold: usize,
        steps: usize,
    ) -> Option<Bytes> {
        match self.find(plan.settings(contender, threshold, steps)) {
            Some(step) => Some(Bytes::Measured(step.total_bytes as f64)),
            None => Some(Bytes::Extrapolated(self.line(plan, contender, threshold)?.at(steps))),
        }
    }

    /// The line of least squares through the engine's bytes; none through a single measurement, which says nothing about the slope.
    pub fn line(&self, plan: &Plan, contender: Contender, threshold: usize) -> Option<Line> {
        let found = self.of(plan, contender, threshold);
        if found.len() < 2 {
            return None;
        }
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

    /// Whether K steps can be tried: they are expected to stay below the limit, by the line, or by the estimate before there is one.
    ///
    /// # Errors
    /// When sizes of the plan do not fit.
    pub fn allows(&self, plan: &Plan, contender: Contender, threshold: usize, steps: usize) -> Result<bool> {
        let expected = match self.line(plan, contender, threshold) {
            Some(line) => line.at(steps),
            None => foreseen_bytes(&plan.settings(contender, threshold, steps))?,
        };
        Ok(expected <= plan.limit as f64)
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
        let plan = Plan { limit: 20_000_000_000, ..Plan::new(ModelShape::BertBase, Extent::Short) };
        assert_eq!(plan.thresholds, PAPER_THRESHOLDS);
        let [maml, _, _, pacmaml] = Contender::ALL;
        let mut found = Measurements::default();
        let at_50 = |found: &Measurements, contender| found.bytes_at(&plan, contender, 6, PAPER_STEPS);
        // before the first measurement by the estimate: about 8.6 GB for one step, 94 for fifty
        assert!(found.allows(&plan, maml, 6, 1).unwrap() && !found.allows(&plan, maml, 6, 50).unwrap());
        assert_eq!(at_50(&found, maml), None);
        found.steps = vec![
            step(&plan, maml, 4, 12_000_000_000),
            step(&plan, maml, 1, 6_000_000_000),
            step(&plan, maml, 2, 8_000_000_000),
            step(&plan, pacmaml, 1, 5_000_000_000),
        ];
        let line = found.line(&plan, maml, 6).unwrap();
        assert!((line.at(50) - 104e9).abs() < 1.0 && line.largest == 4);
        assert!(found.allows(&plan, maml, 6, 7).unwrap() && !found.allows(&plan, maml, 6, 9).unwrap());
        let Some(Bytes::Extrapolated(bytes)) = at_50(&found, maml) else { panic!("it was not measured") };
        assert_eq!(Bytes::Extrapolated(bytes).in_gigabytes(), "~104.00");
        assert!(found.find(plan.settings(maml, 9, 1)).is_none());
        // one measurement is no line, a measured number is none either
        assert_eq!((at_50(&found, pacmaml), found.line(&plan, pacmaml, 6)), (None, None));
        found.steps.push(step(&plan, pacmaml, 50, 5_000_000_000));
        assert_eq!(at_50(&found, pacmaml), Some(Bytes::Measured(5e9)));
        assert_eq!(Bytes::Measured(5e9).in_gigabytes(), "5.00");
        // steps of another plan count too
        assert_eq!(found.measured_steps(), [1, 2, 4, 50]);
        let of =
            |plan: &Plan| found.of(plan, maml, 6).iter().map(|step| step.settings.steps).collect::<Vec<_>>();
        assert_eq!(of(&Plan { steps: vec![1], ..plan.clone() }), [1, 2, 4]);
        assert!(found.of(&Plan { length: 32, ..plan.clone() }, maml, 6).is_empty());
    }

    #[test]
    fn no_plan_takes_more_than_twenty_gigabytes_or_than_is_free() {
        for extent in [Extent::Short, Extent::Whole] {
            let plan = Plan::new(ModelShape::Tiny, extent);
            assert!(plan.limit <= 20_000_000_000);
            assert_eq!(plan.steps.contains(&PAPER_STEPS), extent == Extent::Whole);
        }
    }
}
