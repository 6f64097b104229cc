//! What a line chart is made of: series with error bars or bands, guides, axes.

use serde::{Deserialize, Serialize};

use super::data::{number as nullable, optional_pair as nullable_pair};
use super::scale::Axis;

/// One point of a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Horizontal value.
    #[serde(deserialize_with = "nullable")]
    pub x: f64,
    /// Vertical value.
    #[serde(deserialize_with = "nullable")]
    pub y: f64,
    /// Lower and upper end of the error bar or band.
    #[serde(default, deserialize_with = "nullable_pair")]
    pub interval: Option<(f64, f64)>,
    /// How many observations are behind the point.
    #[serde(default)]
    pub observations: Option<usize>,
}

impl Point {
    /// A point without uncertainty.
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, interval: None, observations: None }
    }

    /// The same point with an interval of `error` on both sides.
    pub fn error(mut self, error: f64) -> Self {
        self.interval = Some((self.y - error, self.y + error));
        self
    }

    /// The same point with an interval.
    pub fn between(mut self, low: f64, high: f64) -> Self {
        self.interval = Some((low, high));
        self
    }

    /// What the interval reaches to either side, where that is the same.
    pub(crate) fn reach(&self) -> Option<f64> {
        let (low, high) = self.interval.filter(|(low, high)| low.is_finite() && high.is_finite())?;
        let (below, above) = (self.y - low, high - self.y);
        let even = (above - below).abs() <= 1e-9 * (high - low).abs().max(self.y.abs());
        (even && below >= 0.0).then_some(0.5 * (above + below))
    }

    /// The same point with the number of observations behind it.
    pub fn observations(mut self, count: usize) -> Self {
        self.observations = Some(count);
        self
    }
}

/// How the intervals of a series are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interval {
    /// A bar at each point.
    #[default]
    Bars,
    /// A band along the line.
    Band,
}

/// One line of a chart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points in order of x.
    pub points: Vec<Point>,
    /// How intervals are drawn.
    #[serde(default)]
    pub interval: Interval,
    /// What intervals are ("standard error", "95% interval"), for hover texts.
    #[serde(default)]
    pub interval_name: String,
    /// What is counted as observations ("models", "tasks"), for hover texts.
    #[serde(default)]
    pub observations_name: String,
    /// Colour, marker and dashes, counted from 0; without it the place in the chart decides. A method that keeps its
    /// look is recognised in every chart of a page.
    #[serde(default)]
    pub look: Option<usize>,
}

impl Series {
    /// A series whose intervals, if any, are drawn as bars.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = Point>) -> Self {
        Self { name: name.into(), points: points.into_iter().collect(), ..Self::default() }
    }

    /// The same series with its intervals drawn as a band.
    pub fn band(mut self) -> Self {
        self.interval = Interval::Band;
        self
    }

    /// The same series with a name for what its points count.
    pub fn observations_are(mut self, name: impl Into<String>) -> Self {
        self.observations_name = name.into();
        self
    }

    /// The same series with a fixed look.
    pub fn look(mut self, look: usize) -> Self {
        self.look = Some(look);
        self
    }

    /// The same series with a name for its intervals.
    pub fn intervals_are(mut self, name: impl Into<String>) -> Self {
        self.interval_name = name.into();
        self
    }
}

/// Something to compare the data with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guide {
    /// The line y = x, with a name.
    Diagonal(String),
    /// A horizontal line at a value, with a name.
    Horizontal(f64, String),
}

/// Proportions of a chart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proportion {
    /// Wider than high.
    #[default]
    Wide,
    /// As high as wide, for axes in the same unit.
    Square,
}

/// A chart of lines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LineChart {
    /// Title, read by screen readers and shown in stand-alone files.
    pub title: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
    /// What to compare with.
    #[serde(default)]
    pub guides: Vec<Guide>,
    /// Proportions.
    #[serde(default)]
    pub proportion: Proportion,
}

impl LineChart {
    /// A chart without series.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self { title: title.into(), x, y, ..Self::default() }
    }

    /// The same chart with one more series.
    pub fn with(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// The same chart with a guide.
    pub fn guide(mut self, guide: Guide) -> Self {
        self.guides.push(guide);
        self
    }
}
