//! Where results and remarks go: standard output for the former, standard error for the latter; colours on terminals.

use std::io::{IsTerminal, Write};

use pacmeta::studies::folder::shell_word;
use pacmeta::{Error, Result};
use serde::Serialize;
use serde_json::Value;

/// Writes a result to standard output.
pub(crate) fn print(text: &str) -> Result<()> {
    print_bytes(text.as_bytes())
}

/// Writes a result to standard output, as it is.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
    written.map_err(|source| Error::io("write to", "standard output", source))
}

/// Writes a result to standard output as JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Error::io("write", "standard output", std::io::Error::other(error)))?;
    print(&(text + "\n"))
}

/// An object with the keys of another.
pub(crate) fn joined(mut value: Value, more: Value) -> Value {
    if let (Value::Object(keys), Value::Object(more)) = (&mut value, more) {
        keys.extend(more);
    }
    value
}

/// A remark for the user on standard error. A closed standard error is no reason to stop.
pub(crate) fn remark(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// A warning on standard error.
pub(crate) fn warn(text: &str) {
    let label = if colours(&std::io::stderr()) { "\x1b[33mwarning:\x1b[0m" } else { "warning:" };
    remark(&format!("{label} {text}"));
}

/// A number of things: `1 model`, `5 models`.
pub(crate) fn plural(count: usize, thing: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{ending}")
}

/// `is` or `are`, for so many things.
pub(crate) fn are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// Text in bold where standard output is a terminal.
pub(crate) fn bold(text: &str) -> String {
    if colours(&std::io::stdout()) { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
}

/// The word in front of an error.
pub(crate) fn emphasised_error(text: &str) -> String {
    if colours(&std::io::stderr()) { format!("\x1b[1;31m{text}\x1b[0m") } else { text.to_owned() }
}

/// Colours are for terminals whose user did not refuse them.
fn colours(stream: &impl IsTerminal) -> bool {
    stream.is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// The command as it was typed, for reports; arguments that a shell would take apart are quoted.
pub(crate) fn command_line() -> String {
    let words = std::env::args_os().skip(1).map(|word| shell_word(&word.to_string_lossy()));
    std::iter::once("pacmeta".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}
