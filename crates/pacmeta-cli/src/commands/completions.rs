//! `pacmeta completions`.

use clap::CommandFactory;
use pacmeta::Result;

use crate::arguments::{Arguments, Completions};
use crate::output::print_bytes;

pub(crate) fn run(arguments: &Completions) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "pacmeta", &mut text);
    print_bytes(&text)
}
