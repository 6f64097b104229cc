//! Runs that are killed, interrupted and continued end as if nothing had happened.
#![cfg(unix)]

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::helper::{Place, Ran, SMALL};

const FILES: [&str; 3] = ["prior.safetensors", "metrics.jsonl", "report.html"];

/// Long enough to be caught in the middle, with many checkpoints.
fn place() -> Place {
    let place = Place::new();
    let text = SMALL
        .replace("iterations = 60", "iterations = 6000")
        .replace("checkpoint_every = 20", "checkpoint_every = 300");
    place.write("long.toml", text.replace("examples = 8", "examples = 20"));
    place
}

/// An undisturbed run; its time tells where to strike the others.
fn undisturbed(place: &Place) -> Duration {
    let start = Instant::now();
    place.ok(&["train", "long.toml", "--out", "run", "-q"]);
    let time = start.elapsed();
    std::fs::rename(place.path("run"), place.path("undisturbed")).unwrap();
    time
}

fn assert_same(place: &Place) {
    for file in FILES {
        let (found, expected) =
            (place.read(&format!("run/{file}")), place.read(&format!("undisturbed/{file}")));
        assert!(found == expected, "{file} differs");
    }
}

#[test]
fn killed_at_any_point_and_continued_to_the_same_bits() {
    let place = place();
    let time = undisturbed(&place);
    // Irregular moments without a generator: fractional parts of multiples of the golden ratio.
    let mut kills = 0;
    for round in 1..60 {
        let part = (f64::from(round) * 0.618_033_988_749_895).fract();
        let mut child = place
            .command(&["train", "long.toml", "--out", "run", "-q"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        sleep(time.mul_f64(0.5 * part));
        child.kill().unwrap(); // SIGKILL
        if child.wait().unwrap().code().is_none() {
            kills += 1;
        }
        if place.path("run/report.html").exists() || kills >= 8 {
            break;
        }
    }
    assert!(kills > 0, "no run was caught in the middle");
    place.ok(&["train", "long.toml", "--out", "run", "-q"]);
    assert_same(&place);
}

#[test]
fn interrupted_by_ctrl_c_with_130_and_continued() {
    let place = place();
    let time = undisturbed(&place);
    let child = place
        .command(&["train", "long.toml", "--out", "run"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    // In the loop once the first checkpoint is there.
    while std::fs::read_dir(place.path("run/checkpoints")).map_or(0, Iterator::count) == 0 {
        assert!(begun.elapsed() < 20 * time + Duration::from_secs(10), "the run does not begin");
        sleep(Duration::from_millis(1));
    }
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("interrupted after iteration"), "{}", ran.stderr);
    assert!(ran.stderr.contains("the same command continues"), "{}", ran.stderr);
    assert!(!place.path("run/prior.safetensors").exists());
    place.refused(&["evaluate", "run", "--tasks", "x.json"], &["not a finished run"]);
    let ran = place.run(&["train", "long.toml", "--out", "run"]);
    assert!(ran.stderr.contains("continues after iteration"), "{}", ran.stderr);
    assert_eq!(ran.code, Some(0));
    assert_same_but_for_the_command(&place);
}

/// The first command of the interrupted run had no `-q`, and the report shows it.
fn assert_same_but_for_the_command(place: &Place) {
    for file in &FILES[..2] {
        let (found, expected) =
            (place.read(&format!("run/{file}")), place.read(&format!("undisturbed/{file}")));
        assert!(found == expected, "{file} differs");
    }
    let strip = |name: &str| place.text(name).replace(" -q<", "<");
    assert!(strip("run/report.html") == strip("undisturbed/report.html"));
}
