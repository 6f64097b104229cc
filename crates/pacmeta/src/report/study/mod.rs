//! The page of a study: many models, aggregated. [`study_page`] draws a [`StudyReport`] with the charts, styles and
//! number formats of the page of a run.

mod data;

pub use data::{
    Block, Cell, CellValue, ClaimRow, ClaimVerdict, Column, ColumnKind, StudyFigure, StudyReport,
    StudySection, StudyTable,
};
