//! The command line of pacmeta: arguments in, library calls, printed results.
//!
//! Results go to standard output, progress, warnings and errors to standard error. Exit codes: 0 fine, 1 the run
//! failed, 2 the input, a setting or the usage is wrong, 130 interrupted.

mod arguments;
mod bench_arguments;
mod classification_progress;
mod cluster_arguments;
mod commands;
mod interrupt;
mod output;
mod progress;
mod study_progress;
mod table;

use std::process::ExitCode;

use clap::Parser;
use pacmeta::{Error, Result};

use arguments::{Arguments, Command};

fn main() -> ExitCode {
    // First of all: a scheduler may stop a job as soon as it is started.
    interrupt::install();
    let arguments = Arguments::parse();
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report(&error),
    }
}

fn run(arguments: Arguments) -> Result<()> {
    if let Some(threads) = arguments.threads {
        // Fails only if a pool exists already, and nothing has run yet.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(threads as usize).build_global();
    }
    match arguments.command {
        Command::Train(train) => commands::train::run(&train),
        Command::Compare(compare) => commands::compare::run(&compare),
        Command::Sweep(sweep) => commands::sweep::run(&sweep),
        Command::Reproduce(reproduce) => commands::reproduce::run(&reproduce),
        Command::Evaluate(evaluate) => commands::evaluate::run(&evaluate),
        Command::Adapt(adapt) => commands::adapt::run(&adapt),
        Command::Bound(bound) => commands::bound::run(&bound),
        Command::Bench(bench) => commands::bench::run(&bench),
        Command::Report(report) => commands::report::run(&report),
        Command::Completions(completions) => commands::completions::run(&completions),
    }
}

/// The one place where errors are shown, and where their exit codes come from.
fn report(error: &Error) -> ExitCode {
    if let Error::Io { source, .. } = error
        && source.kind() == std::io::ErrorKind::BrokenPipe
    {
        return ExitCode::SUCCESS; // whoever read the output has seen enough
    }
    if error.is_interruption() {
        output::remark(&error.to_string());
        return ExitCode::from(interrupt::EXIT_CODE);
    }
    output::remark(&format!("{} {error}", output::emphasised_error("error:")));
    ExitCode::from(if error.is_to_be_mended() { 2 } else { 1 })
}
