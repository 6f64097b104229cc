//! A chart drawn: its markup, what it says in words, and the stand-alone file.

use serde::{Deserialize, Serialize};

use super::bars;
use super::calibration;
use super::data::{
    BoundPanel, CalibrationKind, CalibrationSeries, ObservedPanel, PredictionPanel, PriorPanel,
};
use super::line::LineChart;
use super::line_drawing;
use super::number;
use super::prediction;
use super::prior;
use super::svg::{Element, coordinate, escape};

/// Styles that a figure needs, in both colour schemes; the page includes them once, a stand-alone file carries them.
pub(crate) const FIGURE_STYLE: &str = include_str!("figure.css");

/// Width of a chart across the page.
pub(crate) const WIDE: f64 = 736.0;
/// Width of a chart on a phone, and of one panel among several.
pub(crate) const NARROW: f64 = 352.0;

/// Any chart this module can draw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Chart {
    /// Lines with markers, error bars or bands.
    Line(LineChart),
    /// A predictive distribution over one input.
    Prediction(PredictionPanel),
    /// Functions drawn from a prior.
    Prior(PriorPanel),
    /// Predicted against observed values.
    Observed(ObservedPanel),
    /// A bound, term by term.
    Bound(BoundPanel),
    /// Nominal against observed levels.
    Calibration(CalibrationKind, Vec<CalibrationSeries>),
}

impl From<LineChart> for Chart {
    fn from(chart: LineChart) -> Self {
        Self::Line(chart)
    }
}

impl From<PredictionPanel> for Chart {
    fn from(panel: PredictionPanel) -> Self {
        Self::Prediction(panel)
    }
}

impl From<PriorPanel> for Chart {
    fn from(panel: PriorPanel) -> Self {
        Self::Prior(panel)
    }
}

impl From<ObservedPanel> for Chart {
    fn from(panel: ObservedPanel) -> Self {
        Self::Observed(panel)
    }
}

impl From<BoundPanel> for Chart {
    fn from(panel: BoundPanel) -> Self {
        Self::Bound(panel)
    }
}

/// A stand-alone SVG file of the chart, with its styles inside: follows the reader's light or dark colour scheme.
///
/// ```
/// use pacmeta::report::{Axis, LineChart, Point, Series, figure_svg};
///
/// let points = [(5.0, 0.42), (10.0, 0.37), (50.0, 0.31)].map(|(x, y)| Point::new(x, y).error(0.02).observations(40));
/// let chart = LineChart::new("Error against examples", Axis::new("examples per task").log(), Axis::new("RMSE"))
///     .with(Series::new("PACMAML", points));
/// assert!(figure_svg(&chart.into()).starts_with("<svg"));
/// ```
pub fn figure_svg(chart: &Chart) -> String {
    let width = match chart {
        Chart::Line(_) | Chart::Bound(_) => WIDE,
        Chart::Prediction(_) | Chart::Prior(_) => 520.0,
        Chart::Observed(_) | Chart::Calibration(..) => 420.0,
    };
    draw(chart, &Place { width, id: "figure", legend: Legend::Shown, values: None }).standalone()
}

/// Where the names of series are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Legend {
    /// In the drawing.
    Shown,
    /// Once for several drawings, by the page.
    Elsewhere,
}

/// What a drawing must know about its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    /// Width in pixels at natural size.
    pub(crate) width: f64,
    /// Prefix of the identifiers inside; unique in its document.
    pub(crate) id: &'a str,
    /// Who shows the legend.
    pub(crate) legend: Legend,
    /// The vertical range that panels of predictions side by side share.
    pub(crate) values: Option<(f64, f64)>,
}

/// One entry of a legend: a sample drawn in a box of 26 by 12, and a name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Key {
    pub(crate) sample: String,
    pub(crate) name: String,
}

/// Markup of a chart and what is known about it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drawing {
    pub(crate) body: String,
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) title: String,
    pub(crate) description: String,
    /// Facts that belong in the caption: values left out, empty series, averaging.
    pub(crate) remarks: Vec<String>,
    pub(crate) id: String,
}

/// Draws any chart.
pub(crate) fn draw(chart: &Chart, place: &Place<'_>) -> Drawing {
    match chart {
        Chart::Line(chart) => line_drawing::draw(chart, place),
        Chart::Prediction(panel) => prediction::draw(panel, place),
        Chart::Prior(panel) => prior::draw(panel, place),
        Chart::Observed(panel) => prediction::draw_observed(panel, place),
        Chart::Bound(panel) => bars::draw(panel, place),
        Chart::Calibration(kind, series) => line_drawing::draw(&calibration::chart(*kind, series), place),
    }
}

impl Drawing {
    /// A drawing that says that there is nothing to draw.
    pub(crate) fn empty(place: &Place<'_>, title: &str, remarks: Vec<String>) -> Self {
        let (width, height) = (place.width, 96.0);
        let mut body = String::new();
        Element::new("rect")
            .class("void")
            .at(0.5, 0.5)
            .number("width", width - 1.0)
            .number("height", height - 1.0)
            .empty(&mut body);
        Element::new("text")
            .class("label middle")
            .at(width / 2.0, height / 2.0 + 4.0)
            .text("There are no finite values to draw.", &mut body);
        let description = "The chart is empty: there are no finite values to draw.".to_owned();
        Self { body, width, height, title: title.to_owned(), description, remarks, id: place.id.to_owned() }
    }

    fn opening(&self, class: &str, width: f64, height: f64) -> String {
        let id = escape(&self.id);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart{class}\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" \
             role=\"img\" aria-labelledby=\"{id}-title\" aria-describedby=\"{id}-text\"><title id=\"{id}-title\">{}</title>\
             <desc id=\"{id}-text\">{}</desc>",
            escape(&self.title),
            escape(&self.description),
            w = coordinate(width),
            h = coordinate(height),
        )
    }

    /// For use inside a page that has the styles; `class` chooses the variant by screen width.
    pub(crate) fn inline(&self, class: &str) -> String {
        format!("{}{}</svg>", self.opening(&format!(" {class}"), self.width, self.height), self.body)
    }

    /// A complete file: background, visible title, styles, and remarks under the drawing.
    pub(crate) fn standalone(&self) -> String {
        let margin = 16.0;
        let heading = if self.title.is_empty() { 0.0 } else { 26.0 };
        let width = self.width + 2.0 * margin;
        let height = self.height + 2.0 * margin + heading + 16.0 * self.remarks.len() as f64;
        let mut out = self.opening("", width, height);
        out.push_str(&format!("<style>{FIGURE_STYLE}</style>"));
        Element::new("rect").class("paper").number("width", width).number("height", height).empty(&mut out);
        if heading > 0.0 {
            Element::new("text").class("heading").at(margin, margin + 14.0).text(&self.title, &mut out);
        }
        let shift = format!("translate({} {})", coordinate(margin), coordinate(margin + heading));
        Element::new("g").attribute("transform", &shift).raw(&self.body, &mut out);
        for (index, remark) in self.remarks.iter().enumerate() {
            let y = margin + heading + self.height + 14.0 + 16.0 * index as f64;
            Element::new("text").class("label").at(margin, y).text(remark, &mut out);
        }
        out + "</svg>\n"
    }
}

/// The remark about values that could not be drawn, if there were any.
pub(crate) fn skipped_remark(skipped: usize) -> Option<String> {
    match skipped {
        0 => None,
        1 => Some("1 value that is not finite is not drawn.".to_owned()),
        n => Some(format!("{} values that are not finite are not drawn.", number::count(n))),
    }
}
