//! Pictures that cannot be used, told together: whoever mends a set wants to know all of them.

use std::path::Path;

use crate::error::{Error, Result};

/// As many are told in full.
const TOLD: usize = 10;

/// What went wrong with pictures, in their order.
#[derive(Debug, Default)]
pub(super) struct Failures {
    first: Vec<Error>,
    count: usize,
}

impl Failures {
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Remembers a failure of one picture.
    ///
    /// # Errors
    /// When it says something about the machine rather than about the picture.
    pub(super) fn add(&mut self, error: Error) -> Result<()> {
        if !error.is_input() {
            return Err(error);
        }
        self.count += 1;
        if self.first.len() < TOLD {
            self.first.push(error);
        }
        Ok(())
    }

    /// Refuses the set in `root` of `total` pictures if some of them failed.
    pub(super) fn check(mut self, root: &Path, total: usize) -> Result<()> {
        if self.count <= 1 {
            return self.first.pop().map_or(Ok(()), Err);
        }
        let told: String = self.first.iter().map(|error| format!("\n  {error}")).collect();
        let more = match self.count - self.first.len() {
            0 => String::new(),
            more => format!("\n  and {more} more"),
        };
        let message = format!("{} of {total} pictures cannot be used:{told}{more}", self.count);
        Err(Error::input(root.display(), message))
    }
}
