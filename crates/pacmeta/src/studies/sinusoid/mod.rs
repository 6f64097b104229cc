//! The paper's regression study on the Sinusoid environment.
//!
//! [`Plan`] says which models there are, [`SinusoidSpec`] trains and measures one of them, [`Analysis`] asks the record,
//! [`claims`] tests what the paper says, [`report`] draws it all.

mod analysis;
mod claims;
mod figures;
mod files;
mod gap;
mod illustration;
mod model;
mod page;
mod preset;
mod spec;
mod tables;
#[cfg(test)]
mod tests;

pub use analysis::{
    AblationPoint, Analysis, BoundPoint, Drawn, FOLDS, HyperPriorPoint, MethodPoint, SettingPoint,
};
pub use claims::claims;
pub use figures::main_chart;
pub use files::numbers;
pub use gap::{GapDraws, SIGMA0_SQUARED};
pub use illustration::Illustration;
pub use model::{BoundTerms, DELTA, EVALUATIONS, Measured, TargetErrors};
pub use page::report;
pub use preset::{Plan, Preset};
pub use spec::{
    ModelSpec, OBSERVED_TASKS, QUERY, SUPPORT, Setting, SinusoidOutcome, SinusoidSpec, StudyMethod,
    TARGET_TASKS, Variant,
};
