//! `pacmeta bench`.

use std::time::Duration;

use pacmeta::Result;
use pacmeta::benchmark::time_gp;

use crate::arguments::{Bench, BenchGp, BenchWhat, ObjectiveName};
use crate::output::{print, print_json};

/// How long a measurement takes.
const BUDGET: Duration = Duration::from_secs(2);

pub(crate) fn run(arguments: &Bench) -> Result<()> {
    match &arguments.what {
        BenchWhat::Gp(arguments) => gp(arguments),
    }
}

fn gp(arguments: &BenchGp) -> Result<()> {
    let pacmaml = arguments.method == ObjectiveName::Pacmaml;
    let timing = time_gp(pacmaml, arguments.examples as usize, BUDGET)?;
    if arguments.json {
        return print_json(&timing);
    }
    print(&format!(
        "{}, {} examples a task, {} tasks a batch: {:.1} µs per meta-iteration (median of {} repeats of {} iterations; \
         fastest {:.1} µs), one thread, {}\n",
        timing.method,
        timing.examples,
        timing.batch,
        timing.microseconds_per_iteration,
        timing.repeats,
        timing.iterations,
        timing.fastest_microseconds,
        timing.instructions
    ))
}
