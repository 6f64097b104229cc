//! Runs that are killed, interrupted and continued end as if nothing had happened.
#![cfg(unix)]

use std::process::{Child, Command, Stdio};
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

/// Waits until a folder or file of a run has something in it.
fn wait_for(place: &Place, mut ready: impl FnMut(&Place) -> bool) {
    let begun = Instant::now();
    while !ready(place) {
        assert!(begun.elapsed() < Duration::from_secs(120), "the run does not begin");
        sleep(Duration::from_millis(1));
    }
}

fn checkpoints(place: &Place, run: &str) -> usize {
    std::fs::read_dir(place.path(run).join("checkpoints")).map_or(0, Iterator::count)
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

fn spawn(place: &Place, arguments: &[&str]) -> Child {
    place.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn an_interrupted_search_for_temperatures_continues_from_its_finished_trials() {
    let place = Place::new();
    let text = SMALL
        .replace("beta_per_example = 30\nalpha_over_beta = 0.3", "alpha_over_beta = 0.3")
        .replace("examples = 8", "examples = 20");
    place.write(
        "auto.toml",
        format!("{text}[search]\niterations = 1500\nfolds = 5\nbeta_per_example = [3, 10, 30, 100]\n"),
    );
    place.ok(&["train", "auto.toml", "--out", "undisturbed", "-q"]);
    let train = ["train", "auto.toml", "--out", "run", "-q"];
    let child = spawn(&place, &train);
    let trials = |place: &Place| {
        std::fs::read_to_string(place.path("run/search.jsonl")).map_or(0, |text| text.lines().count())
    };
    wait_for(&place, |place| trials(place) > 0);
    signal(&child, "-INT");
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stderr.contains("of 20 trials of temperatures; the same command continues"),
        "{}",
        ran.stderr
    );
    let kept = place.text("run/search.jsonl");
    assert!((1..20).contains(&kept.lines().count()), "{kept}");

    // A stored trial is used, not made again: another number in it changes the choice's record.
    for file in ["config.toml", "data.crc32c", "search.jsonl"] {
        place.write(&format!("changed/{file}"), place.read(&format!("run/{file}")));
    }
    let line = kept.lines().next().unwrap();
    let digits = line.find("[\"").unwrap() + 2;
    let changed = format!("{}4059000000000000{}", &kept[..digits], &kept[digits + 16..]);
    place.write("changed/search.jsonl", changed);
    place.ok(&["train", "auto.toml", "--out", "changed", "-q"]);
    assert_ne!(place.text("changed/temperatures.json"), place.text("undisturbed/temperatures.json"));

    place.ok(&train);
    for file in ["temperatures.json", "prior.safetensors", "metrics.jsonl"] {
        assert!(place.read(&format!("run/{file}")) == place.read(&format!("undisturbed/{file}")), "{file}");
    }
    assert!(!place.path("run/search.jsonl").exists());
}

#[test]
fn an_interrupted_comparison_has_checkpoints_of_all_its_runs() {
    let place = place();
    let longer = place.text("long.toml").replace("iterations = 6000", "iterations = 12000");
    place.write("long.toml", &longer);
    place.write("other.toml", longer.replace("alpha_over_beta = 0.3", "alpha_over_beta = 0.5"));
    let configs = ["compare", "long.toml", "other.toml", "-q", "--threads", "2", "--out"];
    place.ok(&[&configs[..], &["undisturbed"]].concat());
    let interrupted = [&configs[..], &["run"]].concat();
    let child = spawn(&place, &interrupted);
    wait_for(&place, |place| checkpoints(place, "run/long") > 0 && checkpoints(place, "run/other") > 0);
    signal(&child, "-INT");
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.stderr.matches("a checkpoint is in").count(), 2, "both were caught: {}", ran.stderr);
    place.ok(&interrupted);
    for file in
        FILES.map(|file| format!("long/{file}")).iter().chain(&FILES.map(|file| format!("other/{file}")))
    {
        let strip = |name: String| place.text_lossy(&name).replace("--out undisturbed", "--out run");
        assert!(strip(format!("run/{file}")) == strip(format!("undisturbed/{file}")), "{file}");
    }
}

/// Whether this process, and what it starts, ignores SIGHUP (signal 1): under `nohup`, for example.
fn ignores_hangups() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

#[test]
fn a_hangup_stops_a_run_unless_it_is_ignored() {
    let place = place();
    if ignores_hangups() {
        println!(
            "the tests were started with hangups ignored, and so are their children: half of this test is skipped"
        );
    } else {
        let child = spawn(&place, &["train", "long.toml", "--out", "stopped"]);
        wait_for(&place, |place| checkpoints(place, "stopped") > 0);
        signal(&child, "-HUP");
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert_eq!(ran.code, Some(130), "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains("interrupted after iteration"), "{}", ran.stderr);
    }

    // As `nohup` starts it.
    let script = "trap '' HUP; exec \"$0\" train long.toml --out kept";
    let child = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_pacmeta")])
        .current_dir(place.path(""))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for(&place, |place| checkpoints(place, "kept") > 0);
    signal(&child, "-HUP");
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
}
