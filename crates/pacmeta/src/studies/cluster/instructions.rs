//! Which instruction sets the results of a plan were computed with. Numbers may differ between them in the last bits.

use std::collections::BTreeMap;

use serde::Serialize;

/// How many results were computed with which instruction set, as far as they say so.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct InstructionSets {
    results: BTreeMap<String, usize>,
}

impl InstructionSets {
    /// Counts one more result.
    pub(super) fn count(&mut self, instructions: Option<String>) {
        if let Some(name) = instructions {
            *self.results.entry(name).or_default() += 1;
        }
    }

    /// What people should know if there are several.
    pub fn warning(&self) -> Option<String> {
        let each: Vec<String> = self.results.iter().map(|(name, count)| format!("{name}: {count}")).collect();
        (each.len() > 1).then(|| {
            format!(
                "results of several instruction sets are mixed ({}); the last bits of their numbers may differ from those of \
                 a run on one machine. For equal bits run all jobs on one kind of processor",
                each.join(", ")
            )
        })
    }
}
