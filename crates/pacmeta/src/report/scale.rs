//! Axes: from data to positions, and ticks at round numbers.
//!
//! A tick step is 1, 2, 2.5 or 5 times a power of ten. Neighbouring steps differ by at most a factor of two, so that
//! the finest step with no more than `most` ticks always leaves at least half as many.

use serde::{Deserialize, Serialize};

use super::number;

/// Values beyond this magnitude are treated like infinities: differences of them would overflow.
const LARGEST: f64 = 1e300;

/// Room beside the outermost of the caller's own ticks, as a part of the axis.
const MARGIN: f64 = 0.05;

/// How values become positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AxisKind {
    /// Equal distances for equal differences.
    #[default]
    Linear,
    /// Equal distances for equal ratios. Values that are not positive are left out and counted.
    Log,
}

/// Where an axis ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AxisEnds {
    /// At the ticks around the data.
    #[default]
    Ticks,
    /// At the data, ticks inside.
    Data,
}

/// How tick labels are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TickFormat {
    /// Plain numbers.
    #[default]
    Number,
    /// Fractions as percentages.
    Percent,
}

/// One axis of a chart, before the data are known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Axis {
    /// What is measured.
    pub label: String,
    /// In which unit, shown in brackets after the label.
    pub unit: Option<String>,
    /// Linear or logarithmic.
    pub kind: AxisKind,
    /// Where the axis ends.
    pub ends: AxisEnds,
    /// How ticks are written.
    pub format: TickFormat,
    /// A fixed range instead of the data's; marks outside are clipped.
    pub range: Option<(f64, f64)>,
    /// Exactly these ticks instead of round ones, such as the settings that were run; the axis then ends around them
    /// and the data.
    pub ticks: Vec<f64>,
}

impl Axis {
    /// A linear axis that ends at ticks.
    pub fn new(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    /// The same axis with a unit.
    pub fn unit(mut self, unit: impl Into<String>) -> Self {
        self.unit = Some(unit.into());
        self
    }

    /// The same axis, logarithmic.
    pub fn log(mut self) -> Self {
        self.kind = AxisKind::Log;
        self
    }

    /// The same axis, ending at the data.
    pub fn tight(mut self) -> Self {
        self.ends = AxisEnds::Data;
        self
    }

    /// The same axis with fixed ends.
    pub fn range(mut self, low: f64, high: f64) -> Self {
        self.range = Some((low, high));
        self
    }

    /// The same axis with exactly these ticks.
    pub fn ticks(mut self, ticks: impl IntoIterator<Item = f64>) -> Self {
        self.ticks = ticks.into_iter().collect();
        self
    }

    /// The same axis with ticks in per cent.
    pub fn percent(mut self) -> Self {
        self.format = TickFormat::Percent;
        self
    }

    /// Label and unit.
    pub(crate) fn full_label(&self) -> String {
        match &self.unit {
            Some(unit) => format!("{} ({unit})", self.label),
            None => self.label.clone(),
        }
    }

    /// Whether a value has a place on this axis.
    pub(crate) fn shows(&self, value: f64) -> bool {
        value.is_finite()
            && value.abs() <= LARGEST
            && (self.kind == AxisKind::Linear || value >= 1.0 / LARGEST)
    }

    /// A value as hover texts and tables write it.
    pub(crate) fn write(&self, value: f64) -> String {
        match self.format {
            TickFormat::Number => number::brief(value),
            TickFormat::Percent => format!("{} %", number::brief(100.0 * value)),
        }
    }

    /// The scale for the given data with at most `most` ticks (at least 3 and at most 8 are used). `None` if no
    /// value can be shown.
    pub(crate) fn scale(&self, values: impl Iterator<Item = f64>, most: usize) -> Option<Scale> {
        let most = most.clamp(4, 8);
        let mut ends = self.ends;
        let mut explicit: Vec<f64> = self.ticks.iter().copied().filter(|t| self.shows(*t)).collect();
        explicit.sort_by(f64::total_cmp);
        explicit.dedup();
        let values = values.chain(explicit.iter().copied());
        let (low, high) = match self.range {
            Some((a, b)) if self.shows(a) && self.shows(b) && a != b => {
                ends = AxisEnds::Data;
                (a.min(b), a.max(b))
            }
            _ => values.filter(|v| self.shows(*v)).fold(None, |range: Option<(f64, f64)>, v| {
                Some(range.map_or((v, v), |(low, high)| (low.min(v), high.max(v))))
            })?,
        };
        let (low, high) = widen(self.kind, low, high);
        if !explicit.is_empty() {
            return Some(self.explicit_scale(explicit, low, high));
        }
        let ticks = match (self.kind, ends) {
            (AxisKind::Linear, AxisEnds::Ticks) => linear_ticks_around(low, high, most),
            (AxisKind::Linear, AxisEnds::Data) => linear_ticks_within(low, high, most),
            (AxisKind::Log, AxisEnds::Ticks) => log_ticks_around(low, high, most),
            (AxisKind::Log, AxisEnds::Data) => {
                let mut ticks = log_ticks_around(low, high, most);
                ticks.retain(|t| *t >= low * (1.0 - 1e-9) && *t <= high * (1.0 + 1e-9));
                if ticks.len() < 2 {
                    ticks = linear_ticks_within(low, high, most);
                    // Over many decades the first round number is zero, which has no place on this axis.
                    ticks.retain(|t| *t > 0.0);
                }
                if ticks.len() < 2 {
                    vec![low, (low.ln() * 0.5 + high.ln() * 0.5).exp(), high]
                } else {
                    ticks
                }
            }
        };
        let (low, high) = match ends {
            AxisEnds::Ticks => (ticks[0].min(low), ticks[ticks.len() - 1].max(high)),
            AxisEnds::Data => (low, high),
        };
        let labels = tick_labels(&ticks, self.kind, self.format);
        Some(Scale { kind: self.kind, low, high, ticks, labels })
    }

    /// A scale with the caller's ticks. Without a fixed range there is room beside the outermost ones, since the data
    /// stand on them.
    fn explicit_scale(&self, mut ticks: Vec<f64>, low: f64, high: f64) -> Scale {
        let (low, high) = match (self.range.is_some(), self.kind) {
            (true, _) => {
                ticks.retain(|t| (low..=high).contains(t));
                (low, high)
            }
            (false, AxisKind::Linear) => {
                let margin = MARGIN * (high - low);
                (low - margin, high + margin)
            }
            (false, AxisKind::Log) => {
                let factor = (high / low).powf(MARGIN);
                (low / factor, high * factor)
            }
        };
        // Each label on its own: settings such as 5, 10, 30 need no common decimals.
        let labels = ticks.iter().flat_map(|t| tick_labels(&[*t], AxisKind::Log, self.format)).collect();
        Scale { kind: self.kind, low, high, ticks, labels }
    }
}

/// An axis whose data are known.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scale {
    kind: AxisKind,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) ticks: Vec<f64>,
    pub(crate) labels: Vec<String>,
}

impl Scale {
    /// Position between 0 (low end) and 1 (high end); values outside the axis lie outside that interval.
    pub(crate) fn position(&self, value: f64) -> f64 {
        match self.kind {
            AxisKind::Linear => (value - self.low) / (self.high - self.low),
            AxisKind::Log => (value.ln() - self.low.ln()) / (self.high.ln() - self.low.ln()),
        }
    }
}

/// Makes room around data that are all (nearly) the same, so that ticks can be told apart in floating point.
fn widen(kind: AxisKind, low: f64, high: f64) -> (f64, f64) {
    match kind {
        AxisKind::Linear => {
            let magnitude = low.abs().max(high.abs());
            if high - low > magnitude * 1e-9 && high - low > 1e-290 {
                return (low, high);
            }
            let margin = if magnitude < 1e-280 { 1.0 } else { magnitude * 0.1 };
            (low - margin, high + margin)
        }
        AxisKind::Log if high / low > 1.0 + 1e-9 => (low, high),
        AxisKind::Log => (low / 2.0, high * 2.0),
    }
}

/// Steps 1, 2, 2.5, 5 times powers of ten, from fine to coarse, starting well below `span / most`.
fn steps(span: f64, most: usize) -> impl Iterator<Item = f64> {
    let start = (span / (most as f64 * 10.0)).log10().floor() as i32;
    // Dividing by a positive power keeps 0.1, 0.2 ... the doubles that people write.
    (start..start + 6)
        .flat_map(|power| {
            [1.0, 2.0, 2.5, 5.0].map(
                |m| {
                    if power < 0 { m / 10f64.powi(-power) } else { m * 10f64.powi(power) }
                },
            )
        })
        .filter(|step| *step > 0.0 && step.is_finite())
}

fn multiples(step: f64, first: f64, last: f64) -> Vec<f64> {
    let count = (last - first).round() as usize;
    (0..=count)
        .map(|i| {
            let index = first + i as f64;
            // index / (1 / step) is exact for steps such as 0.1, where index * step is not.
            let inverse = (1.0 / step).round();
            if step < 1.0 && ((1.0 / step) - inverse).abs() < 1e-9 * inverse {
                index / inverse
            } else {
                index * step
            }
        })
        .map(|t| if t == 0.0 { 0.0 } else { t })
        .collect()
}

/// Round ticks of which the first is at or below `low` and the last at or above `high`; `low < high`.
pub(crate) fn linear_ticks_around(low: f64, high: f64, most: usize) -> Vec<f64> {
    // A hair of tolerance: 0.3 must not need a tick at 0.4 because 0.3 / 0.1 rounds above 3.
    let slack = 1e-9;
    for step in steps(high - low, most) {
        let (first, last) = ((low / step + slack).floor(), (high / step - slack).ceil());
        if last - first < most as f64 && last > first {
            return multiples(step, first, last);
        }
    }
    vec![low, 0.5 * low + 0.5 * high, high]
}

/// Round ticks between `low` and `high`, ends included; `low < high`.
pub(crate) fn linear_ticks_within(low: f64, high: f64, most: usize) -> Vec<f64> {
    let slack = 1e-9;
    for step in steps(high - low, most) {
        let (first, last) = ((low / step - slack).ceil(), (high / step + slack).floor());
        if last - first < most as f64 && last > first {
            return multiples(step, first, last);
        }
    }
    vec![low, 0.5 * low + 0.5 * high, high]
}

/// Round ticks around positive data: 1-2-5, 1-3, decades, then several decades apart; within one octave or so, linear.
pub(crate) fn log_ticks_around(low: f64, high: f64, most: usize) -> Vec<f64> {
    let (first, last) = (number::exponent(low), number::exponent(high) + 1);
    let mantissas: [&[f64]; 3] = [&[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]];
    let strides = [1, 2, 3, 5, 10, 20, 50, 100, 200];
    let candidates =
        mantissas.iter().map(|m| (*m, 1)).chain(strides[1..].iter().map(|stride| (mantissas[2], *stride)));
    for (mantissas, stride) in candidates {
        let start = first.div_euclid(stride) * stride;
        let all: Vec<f64> = (start..=last + stride)
            .step_by(stride as usize)
            .flat_map(|power| mantissas.iter().map(move |m| decimal(*m, power)))
            .filter(|tick| *tick > 0.0 && tick.is_finite())
            .collect();
        let from = all.iter().rposition(|t| *t <= low * (1.0 + 1e-9)).unwrap_or(0);
        let to = all.iter().position(|t| *t >= high * (1.0 - 1e-9)).unwrap_or(all.len().saturating_sub(1));
        let count = (to + 1).saturating_sub(from);
        if count < 3 {
            return linear_ticks_around(low, high, most);
        }
        if count <= most {
            return all[from..=to].to_vec();
        }
    }
    vec![low, (low.ln() * 0.5 + high.ln() * 0.5).exp(), high]
}

/// `mantissa` times ten to the `power`, as the nearest double.
fn decimal(mantissa: f64, power: i32) -> f64 {
    format!("{mantissa}e{power}").parse().unwrap_or(f64::NAN)
}

fn tick_labels(ticks: &[f64], kind: AxisKind, format: TickFormat) -> Vec<String> {
    let factor = if format == TickFormat::Percent { 100.0 } else { 1.0 };
    let suffix = if format == TickFormat::Percent { "%" } else { "" };
    let ticks: Vec<f64> = ticks.iter().map(|t| t * factor).collect();
    let largest = ticks.iter().fold(0.0, |m: f64, t| m.max(t.abs()));
    let smallest = ticks.iter().filter(|t| **t != 0.0).fold(f64::INFINITY, |m, t| m.min(t.abs()));
    let gap = ticks.windows(2).map(|w| w[1] - w[0]).fold(f64::INFINITY, f64::min);
    let far = largest >= 1e6 || (kind == AxisKind::Log && smallest < 1e-3) || gap < 1e-4;
    if !far {
        return ticks
            .iter()
            .map(|t| {
                // On a log axis each tick has its own decimals, on a linear one all have the same.
                let precision = if kind == AxisKind::Log { t.abs() } else { gap };
                let decimals = (0..8).find(|d| {
                    let unit = 10f64.powi(*d);
                    let set: &[f64] = if kind == AxisKind::Log { std::slice::from_ref(t) } else { &ticks };
                    set.iter().all(|v| ((v * unit).round() / unit - v).abs() < precision * 1e-6)
                });
                number::fixed(*t, decimals.unwrap_or(8) as usize) + suffix
            })
            .collect();
    }
    ticks.iter().map(|t| scientific(*t, gap) + suffix).collect()
}

fn scientific(tick: f64, gap: f64) -> String {
    if tick == 0.0 || !tick.is_finite() {
        return "0".to_owned();
    }
    // Enough digits to tell neighbours apart, and no more than needed.
    let digits = (number::exponent(tick) - number::exponent(gap) + 1).clamp(0, 15) as usize;
    let text = format!("{:.*e}", digits, tick.abs());
    let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa =
        if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
    let sign = if tick < 0.0 { "−" } else { "" };
    let power = number::power_of_ten(power.parse().unwrap_or(0));
    if mantissa == "1" { format!("{sign}{power}") } else { format!("{sign}{mantissa}×{power}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn assert_nice(ticks: &[f64], low: f64, high: f64) {
        assert!((3..=8).contains(&ticks.len()), "{} ticks for {low}..{high}: {ticks:?}", ticks.len());
        assert!(ticks.windows(2).all(|w| w[0] < w[1]), "not increasing: {ticks:?}");
        let slack = 1e-8 * (ticks[1] - ticks[0]);
        assert!(
            ticks[0] <= low + slack && ticks[ticks.len() - 1] >= high - slack,
            "{low}..{high}: {ticks:?}"
        );
    }

    proptest! {
        #[test]
        fn linear_ticks_cover_any_data(a in -1e6..1e6f64, b in -1e6..1e6f64, power in -200..200i32, most in 4..=8usize) {
            let unit = 10f64.powi(power);
            let scale = Axis::new("y").scale([a * unit, b * unit].into_iter(), most).unwrap();
            assert_nice(&scale.ticks, a.min(b) * unit, a.max(b) * unit);
            prop_assert_eq!(scale.labels.len(), scale.ticks.len());
            let mut labels = scale.labels.clone();
            labels.dedup();
            prop_assert_eq!(labels.len(), scale.ticks.len(), "labels repeat: {:?}", scale.labels);
        }

        #[test]
        fn log_ticks_cover_any_positive_data(a in -280.0..280f64, width in 0.0..20f64, most in 4..=8usize) {
            let (low, high) = (10f64.powf(a), 10f64.powf((a + width).min(290.0)));
            let scale = Axis::new("y").log().scale([low, high].into_iter(), most).unwrap();
            assert_nice(&scale.ticks, low, high);
            prop_assert!(scale.ticks[0] > 0.0);
            // a product would lose its digits at the ends of the range
            let middle = (low.sqrt() * high.sqrt()).clamp(low, high);
            prop_assert!((0.0..=1.0).contains(&scale.position(middle)), "{} in {}..{}", middle, low, high);
        }

        #[test]
        fn tight_axes_keep_their_ends(a in -1e3..1e3f64, width in 1e-3..1e3f64, most in 4..=8usize) {
            let scale = Axis::new("x").tight().scale([a, a + width].into_iter(), most).unwrap();
            prop_assert_eq!((scale.low, scale.high), (a, a + width));
            prop_assert!((2..=8).contains(&scale.ticks.len()));
            prop_assert!(scale.ticks.iter().all(|t| *t >= a - 1e-6 * width && *t <= a + width + 1e-6 * width));
        }

        #[test]
        fn any_bits_are_survived(bits in proptest::collection::vec(any::<u64>(), 0..5)) {
            for axis in [Axis::new("y"), Axis::new("y").log(), Axis::new("y").tight(), Axis::new("y").log().tight()] {
                if let Some(scale) = axis.scale(bits.iter().map(|b| f64::from_bits(*b)), 6) {
                    prop_assert!(scale.low < scale.high);
                    prop_assert!(scale.ticks.len() >= 2 && scale.ticks.len() <= 8);
                    prop_assert!(scale.ticks.iter().all(|t| scale.position(*t).is_finite()));
                }
            }
        }
    }

    #[test]
    fn known_ticks() {
        assert_eq!(linear_ticks_around(0.0, 8000.0, 6), [0.0, 2000.0, 4000.0, 6000.0, 8000.0]);
        assert_eq!(linear_ticks_around(0.1, 0.3, 6), [0.1, 0.15, 0.2, 0.25, 0.3]);
        assert_eq!(log_ticks_around(0.3, 40.0, 8), [0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0]);
        assert_eq!(log_ticks_around(1.0, 1e6, 8), [1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6]);
    }

    #[test]
    fn labels_share_decimals_on_linear_axes_only() {
        let linear = Axis::new("y").scale([0.0, 1.0].into_iter(), 6).unwrap();
        assert_eq!(linear.labels, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        let log = Axis::new("y").log().scale([0.1, 100.0].into_iter(), 6).unwrap();
        assert_eq!(log.labels, ["0.1", "1", "10", "100"]);
        let percent = Axis::new("y").percent().scale([0.0, 1.0].into_iter(), 6).unwrap();
        assert_eq!(percent.labels[2], "40%");
        let large = Axis::new("y").scale([0.0, 4e9].into_iter(), 6).unwrap();
        assert_eq!(large.labels[1], "10⁹");
    }

    #[test]
    fn constant_and_missing_data() {
        let scale = Axis::new("y").scale([3.0].into_iter(), 6).unwrap();
        assert!(scale.low < 3.0 && 3.0 < scale.high);
        assert!(Axis::new("y").scale([f64::NAN, f64::INFINITY].into_iter(), 6).is_none());
        assert!(Axis::new("y").log().scale([0.0, -1.0].into_iter(), 6).is_none());
        // Ninety decades: no two multiples of the chosen step lie inside, and zero may not take their place.
        let values = [2213095475695586175, 866636436684990809].map(f64::from_bits);
        let wide = Axis::new("y").log().tight().scale(values.into_iter(), 6).unwrap();
        assert!(wide.ticks.len() >= 2 && wide.ticks.iter().all(|t| wide.position(*t).is_finite()));
    }
}
