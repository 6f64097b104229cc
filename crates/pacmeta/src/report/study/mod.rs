//! The page of a study: many models, aggregated. [`study_page`] draws a [`StudyReport`] with the charts, styles and
//! number formats of the page of a run.

mod data;
mod gallery;
mod page;
#[cfg(test)]
mod sample;
mod tables;
#[cfg(test)]
mod tests;

pub use data::{
    Block, Cell, CellValue, ClaimRow, ClaimVerdict, Column, ColumnKind, GalleryPicture, GalleryPrediction,
    GalleryTask, StudyFigure, StudyReport, StudySection, StudyTable,
};
pub use page::study_page;
