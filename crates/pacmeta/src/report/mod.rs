//! The report: one HTML file that opens without a network, and charts as stand-alone SVG files.
//!
//! [`page`] draws a [`RunReport`], [`study_page`] a [`StudyReport`]; both are plain data. [`figure_svg`] draws one [`Chart`] for use elsewhere, such as a
//! README. All are functions of their argument alone: the same input gives the same bytes. Values that are not finite
//! are left out of drawings and counted in captions. All text is escaped. One figure serves light and dark screens and
//! paper, since colours are CSS variables.

mod assemble;
mod bars;
mod calibration;
mod chart;
mod data;
mod frame;
mod line;
mod line_drawing;
mod number;
mod page;
mod prediction;
mod prior;
mod results;
#[cfg(test)]
mod sample;
mod scale;
mod study;
mod svg;
mod tables;
#[cfg(test)]
mod tests;

pub use assemble::{assemble, describe_data, mean_risk, symbol, temperatures};
pub use chart::{Chart, figure_svg};
pub use data::{
    BoundBar, BoundPanel, BoundTerm, CalibrationKind, CalibrationSeries, CurveSeries, FileLink, GridPoint,
    ObservedPanel, PredictionPanel, PriorPanel, RunReport, ScoreRow,
};
pub use line::{Guide, Interval, LineChart, Point, Proportion, Series};
pub(crate) use number::brief;
pub use page::page;
pub use results::{RunResults, Verdict};
pub use scale::{Axis, AxisEnds, AxisKind, TickFormat};
pub use study::{
    Block, Cell, CellValue, ClaimRow, ClaimVerdict, Column, ColumnKind, GalleryPicture, GalleryPrediction,
    GalleryTask, StudyFigure, StudyReport, StudySection, StudyTable, study_page,
};
pub use svg::LOOKS;
