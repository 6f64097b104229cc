//! The paper's regression study on the Sinusoid environment.

mod gap;
mod illustration;
mod model;
mod preset;
mod spec;

pub use gap::{GapDraws, SIGMA0_SQUARED};
pub use illustration::Illustration;
pub use model::{BoundTerms, DELTA, EVALUATIONS, Measured, TargetErrors};
pub use preset::{Plan, Preset};
pub use spec::{
    ModelSpec, OBSERVED_TASKS, QUERY, SUPPORT, Setting, SinusoidOutcome, SinusoidSpec, StudyMethod,
    TARGET_TASKS, Variant,
};
