//! Indices of pieces and of jobs, and how schedulers write them.

use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::ops::Range;

/// Pieces packed into jobs: job i has the pieces i c to (i + 1) c - 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunks {
    pieces: usize,
    size: NonZeroUsize,
}

impl Chunks {
    /// So many pieces, so many to a job.
    pub fn new(pieces: usize, size: NonZeroUsize) -> Self {
        Self { pieces, size }
    }

    /// The number of jobs.
    pub fn jobs(&self) -> usize {
        self.pieces.div_ceil(self.size.get())
    }

    /// Pieces of a job, the last one may have fewer.
    pub fn size(&self) -> usize {
        self.size.get()
    }

    /// The pieces of a job, if there is one of this index.
    pub fn pieces_of(&self, job: usize) -> Option<Range<usize>> {
        let first = job.checked_mul(self.size.get()).filter(|first| *first < self.pieces)?;
        Some(first..first.saturating_add(self.size.get()).min(self.pieces))
    }

    /// The jobs of ascending pieces, each once.
    pub fn jobs_of(&self, pieces: &[usize]) -> Vec<usize> {
        let mut jobs: Vec<usize> = pieces.iter().map(|piece| *piece / self.size).collect();
        jobs.dedup();
        jobs
    }
}

/// Ascending indices as `sbatch --array` takes them: `3-7,12`. Empty without indices.
///
/// ```
/// use pacmeta::studies::cluster::array_expression;
///
/// assert_eq!(array_expression(&[3, 4, 5, 6, 7, 12]), "3-7,12");
/// assert_eq!(array_expression(&[0, 1]), "0-1");
/// assert_eq!(array_expression(&[]), "");
/// ```
pub fn array_expression(indices: &[usize]) -> String {
    let mut text = String::new();
    for run in indices.chunk_by(|left, right| left + 1 == *right) {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
        let comma = if text.is_empty() { "" } else { "," };
        let _ = if first == last {
            write!(text, "{comma}{first}")
        } else {
            write!(text, "{comma}{first}-{last}")
        };
    }
    text
}

/// Such an expression with the most jobs at the same time: `3-7,12%5`. Nothing stays nothing.
///
/// ```
/// use pacmeta::studies::cluster::limited;
///
/// assert_eq!(limited("3-7,12", Some(5)), "3-7,12%5");
/// assert_eq!(limited("3-7,12", None), "3-7,12");
/// assert_eq!(limited("", Some(5)), "");
/// ```
pub fn limited(expression: &str, max_running: Option<usize>) -> String {
    match max_running {
        Some(most) if !expression.is_empty() => format!("{expression}%{most}"),
        _ => expression.to_owned(),
    }
}
