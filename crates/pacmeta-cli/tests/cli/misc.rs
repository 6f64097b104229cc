//! Habits of the command line.

use std::io::Read;
use std::process::Stdio;

use crate::helper::{Place, golden};

#[test]
fn every_command_has_help_with_an_example() {
    let place = Place::new();
    assert!(place.ok(&["--help"]).contains("Example"));
    for command in ["train", "compare", "evaluate", "adapt", "bound", "report", "completions"] {
        let help = place.ok(&[command, "--help"]);
        assert!(
            help.contains("Example") && help.contains(&format!("pacmeta {command}")),
            "{command}: {help}"
        );
    }
    assert!(place.ok(&["bench", "gp", "--help"]).contains("Example"));
    assert!(place.ok(&["--version"]).starts_with("pacmeta "));
    place.refused(&["trian"], &["train"]);
}

#[test]
fn bench_measures() {
    let place = Place::new();
    for method in ["pacoh", "pacmaml"] {
        let value = place.json(&["bench", "gp", "--method", method, "--examples", "10", "--json"]);
        assert!(value["microseconds_per_iteration"].as_f64().unwrap() > 0.0);
        assert_eq!(value["method"], method);
    }
}

#[test]
fn completions_name_the_commands() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let text = place.ok(&["completions", shell]);
        assert!(text.contains("compare") && text.contains("completions"), "{shell}");
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let place = Place::new();
    let mut child =
        place.command(&["completions", "zsh"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(errors, "");
    // The same with a result that is computed.
    let (prior, tasks) = (golden("gp_prior.safetensors"), golden("tasks.json"));
    let mut child = place
        .command(&[
            "bound",
            &prior,
            "--tasks",
            &tasks,
            "--min-examples",
            "1",
            "--objective",
            "pacoh",
            "--beta",
            "3",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
