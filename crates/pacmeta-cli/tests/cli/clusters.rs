//! A sweep as the jobs of a scheduler: planned, run by index, stopped, continued, collected.

use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Instant;

use serde_json::Value;

use crate::helper::{Place, Ran};

/// A place with `grid.toml` (four models and the plain GP) and its plan.
pub(crate) fn planned(iterations: usize) -> Place {
    let place = Place::new();
    place.write(
        "grid.toml",
        format!(
            "[data]\nexamples = 8\ntasks = 6\ntarget_tasks = 4\nquery = 6\nsupport = 3\n[prior]\nhidden = [8]\n[method]\n\
             alpha_over_beta = 0.3\n[training]\niterations = {iterations}\nbatch = 2\n[sweep]\nfolds = 2\n[sweep.grid]\n\
             \"method.name\" = [\"pacoh\", \"pacmaml\"]\n\"method.beta_per_example\" = [10, 30]\n"
        ),
    );
    place.ok(&["sweep", "plan", "grid.toml", "-o", "plan.jsonl"]);
    place
}

/// What is recorded by hash, without the seconds.
pub(crate) fn endings(place: &Place, folder: &str) -> Vec<(String, Value)> {
    let text = place.text(&format!("{folder}/records.jsonl"));
    let mut endings: Vec<(String, Value)> = text
        .lines()
        .skip(1)
        .map(|line| {
            let record = serde_json::from_str::<Value>(line).unwrap()["record"].clone();
            (record["hash"].as_str().unwrap().to_owned(), record["ending"].clone())
        })
        .collect();
    endings.sort_by(|left, right| left.0.cmp(&right.0));
    endings
}

pub(crate) fn array(place: &Place, arguments: &[&str]) -> String {
    place.ok(&[&["sweep", "status", "plan.jsonl", "--array"], arguments].concat()).trim_end().to_owned()
}

#[test]
fn a_plan_run_by_index_and_collected_equals_a_local_sweep() {
    let place = planned(40);
    let planned = place.json(&["sweep", "plan", "grid.toml", "-o", "plan.jsonl", "--json"]);
    assert_eq!(planned["models"].as_u64(), Some(5));
    assert_eq!(place.text("plan.jsonl").lines().count(), 6);
    assert_eq!(array(&place, &[]), "0-4");
    let ran = place.run(&["sweep", "run", "plan.jsonl", "--index", "1"]);
    assert_eq!(ran.stdout, "1 model, 1 trained now, 0 failed\n", "{}", ran.stderr);
    assert!(ran.stderr.contains("1 piece to compute"), "{}", ran.stderr);
    assert_eq!(array(&place, &[]), "0,2-4");
    let result = place.read("plan.results/000001.json");
    let again = place.json(&["sweep", "run", "plan.jsonl", "--index", "1", "--json"]);
    assert_eq!(again["trained"].as_u64(), Some(0));
    assert!(place.read("plan.results/000001.json") == result, "a result that is there is left alone");

    // The index of the array job, by every scheduler; and several models a job.
    for (name, index, rest) in [
        ("SLURM_ARRAY_TASK_ID", "4", "0,2-3"),
        ("HQ_TASK_ID", "0", "2-3"),
        ("JOB_COMPLETION_INDEX", "3", "2"),
    ] {
        let output = place.command(&["sweep", "run", "plan.jsonl", "-q"]).env(name, index).output().unwrap();
        assert_eq!(Ran::from(output).code, Some(0), "{name}");
        assert_eq!(array(&place, &[]), rest, "{name}");
    }
    assert_eq!(array(&place, &["--chunk", "2"]), "1");
    assert_eq!(array(&place, &["--max-running", "5"]), "2%5");
    let status = place.ok(&["sweep", "status", "plan.jsonl", "--max-running", "5"]);
    assert!(status.contains("missing   2\nresubmit  sbatch --array=2%5 SCRIPT\n"), "{status}");
    let partial = place.run(&["sweep", "collect", "plan.jsonl", "--out", "collected"]);
    assert_eq!(partial.code, Some(0));
    assert!(partial.stderr.contains("1 of 5 models is missing: 2"), "{}", partial.stderr);
    place.ok(&["sweep", "run", "plan.jsonl", "--index", "1", "--chunk", "2", "-q"]);
    assert_eq!((array(&place, &[]), array(&place, &["--max-running", "5"])), (String::new(), String::new()));
    let status = place.ok(&["sweep", "status", "plan.jsonl"]);
    assert_eq!(status, "5 models: 5 done, 0 failed, 0 missing\n");

    let collected = place.json(&["sweep", "collect", "plan.jsonl", "--out", "collected", "--json"]);
    let local = place.json(&["sweep", "grid.toml", "--out", "local", "--json", "-q"]);
    assert_eq!((&collected["settings"], &collected["chosen"]), (&local["settings"], &local["chosen"]));
    assert_eq!(endings(&place, "collected"), endings(&place, "local"));
    for file in ["settings.csv", "tasks.csv", "chosen.toml"] {
        assert!(place.read(&format!("collected/{file}")) == place.read(&format!("local/{file}")), "{file}");
    }
    assert_eq!(place.json(&["report", "collected", "--json"])["chosen"], local["chosen"]);
    // A local sweep goes on where the jobs were.
    let ran = place.run(&["sweep", "grid.toml", "--out", "collected"]);
    assert!(ran.stderr.contains("all 5 pieces are recorded"), "{}", ran.stderr);
}

#[test]
fn a_plan_that_was_moved_finds_its_table_beside_it() {
    for table in ["tasks.csv", "data/tasks.csv"] {
        let place = Place::new();
        let rows = (0..48).map(|row| format!("t{},{},{}\n", row / 6, row % 6, f64::from(row) * 0.1));
        let rows: String = std::iter::once("task,x,y\n".to_owned()).chain(rows).collect();
        place.write(&format!("first/{table}"), &rows);
        place.write(
            "first/grid.toml",
            format!(
                "[data]\npath = \"{table}\"\nsupport = 3\nheld_out = 4\n[prior]\nhidden = [4]\n[training]\niterations = 10\n\
                 [sweep.grid]\n\"method.name\" = [\"pacoh\"]\n\"method.beta_per_example\" = [10, 30]\n"
            ),
        );
        let plan = ["sweep", "plan", "grid.toml", "-o", "plan.jsonl"];
        let output = place.command(&plan).current_dir(place.path("first")).output().unwrap();
        assert_eq!(Ran::from(output).code, Some(0));
        std::fs::rename(place.path("first"), place.path("second")).unwrap();
        let run = ["sweep", "run", "second/plan.jsonl", "--index", "1", "-q"];
        place.ok(&run);
        // Another table of that name is not taken for it.
        place.write(&format!("second/{table}"), rows.replacen("t1,1,", "t1,2,", 1));
        place.refused(&["sweep", "run", "second/plan.jsonl", "--index", "2"], &["tasks.csv", "has changed"]);
        // Without its folders.
        place.write("third/tasks.csv", &rows);
        std::fs::copy(place.path("second/plan.jsonl"), place.path("third/plan.jsonl")).unwrap();
        place.ok(&["sweep", "run", "third/plan.jsonl", "--index", "1", "-q"]);
        let ending = |folder: &str| -> Value {
            let bytes = place.read(&format!("{folder}/plan.results/000001.json"));
            serde_json::from_slice::<Value>(&bytes).unwrap()["record"]["ending"].clone()
        };
        assert_eq!(ending("second"), ending("third"));
    }
}

#[test]
fn a_mark_that_was_lost_is_made_again() {
    let place = planned(30);
    place.ok(&["sweep", "run", "plan.jsonl", "--index", "1", "-q"]);
    let mark = place.text("plan.results/plan.json");
    std::fs::remove_file(place.path("plan.results/plan.json")).unwrap();
    assert_eq!(array(&place, &[]), "0,2-4");
    place.ok(&["sweep", "run", "plan.jsonl", "--index", "2", "-q"]);
    assert_eq!(place.text("plan.results/plan.json"), mark);
    place.write("plan.results/plan.json", "");
    place.ok(&["sweep", "plan", "grid.toml", "-o", "plan.jsonl"]);
    assert_eq!(place.text("plan.results/plan.json"), mark);
    assert_eq!(array(&place, &[]), "0,3-4");
}

#[test]
fn damaged_results_are_counted_and_trained_again() {
    let place = planned(30);
    place.ok(&["sweep", "run", "plan.jsonl", "--index", "0", "--chunk", "5", "-q"]);
    place.ok(&["sweep", "collect", "plan.jsonl", "--out", "before"]);
    let result = place.read("plan.results/000003.json");
    place.write("plan.results/000003.json", &result[..result.len() / 2]);
    let status = place.ok(&["sweep", "status", "plan.jsonl"]);
    assert!(status.contains("4 done, 0 failed, 1 missing, 1 of them damaged\n"), "{status}");
    assert!(status.contains("resubmit  sbatch --array=3 SCRIPT"), "{status}");
    let ran = place.run(&["sweep", "collect", "plan.jsonl", "--out", "partly"]);
    assert!(ran.stderr.contains("damaged, and count as missing: 3"), "{}", ran.stderr);
    let ran = place.run(&["sweep", "run", "plan.jsonl", "--index", "3"]);
    assert!(ran.stderr.contains("the result of index 3 is damaged"), "{}", ran.stderr);
    place.ok(&["sweep", "collect", "plan.jsonl", "--out", "after"]);
    assert_eq!(endings(&place, "after"), endings(&place, "before"));
}

/// CRC-32C, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
}

#[test]
fn results_of_several_instruction_sets_are_warned_of() {
    let place = planned(30);
    place.ok(&["sweep", "run", "plan.jsonl", "--index", "0", "--chunk", "5", "-q"]);
    let result: Value = serde_json::from_slice(&place.read("plan.results/000001.json")).unwrap();
    let own = result["record"]["instructions"].as_str().unwrap();
    let status = ["sweep", "status", "plan.jsonl", "--json"];
    let collect = ["sweep", "collect", "plan.jsonl", "--out", "out", "--json"];
    let said = |command: &[&str]| {
        let ran = place.run(command);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let value: Value = serde_json::from_str(&ran.stdout).unwrap();
        (value["instructions"].clone(), ran.stderr)
    };
    for command in [&status[..], &collect] {
        let (sets, stderr) = said(command);
        assert_eq!(sets, serde_json::json!({ own: 5 }));
        assert!(!stderr.contains("instruction"), "{stderr}");
    }
    // As if a job had run on another machine.
    let line = place.text("plan.results/000002.json");
    let mut record = serde_json::from_str::<Value>(&line).unwrap()["record"].take();
    record["instructions"] = "abacus".into();
    let body = record.to_string();
    let line = format!("{{\"crc32c\":\"{:08x}\",\"record\":{body}}}\n", crc32c(body.as_bytes()));
    place.write("plan.results/000002.json", line);
    for command in [&status[..], &collect] {
        let (sets, stderr) = said(command);
        assert_eq!(sets, serde_json::json!({ own: 4, "abacus": 1 }));
        assert!(
            stderr.contains("several instruction sets are mixed") && stderr.contains("abacus: 1"),
            "{stderr}"
        );
    }
}

#[test]
fn failed_models_are_results_too() {
    let place = planned(5);
    std::fs::remove_dir_all(place.path("plan.results")).unwrap();
    std::fs::remove_file(place.path("plan.jsonl")).unwrap();
    place.ok(&["sweep", "plan", "grid.toml", "-o", "plan.jsonl", "--set", "training.rate=1e300"]);
    let run = ["sweep", "run", "plan.jsonl", "--index", "1", "-q"];
    for trained in ["1 trained now, 1 failed", "0 trained now, 1 failed"] {
        let ran = place.run(&run);
        assert_eq!(ran.code, Some(1));
        assert!(ran.stdout.contains(trained), "{}", ran.stdout);
        assert!(ran.stderr.contains("the model of index 1 (method.name="), "{}", ran.stderr);
    }
    assert!(place.run(&[&run[..], &["--retry-failed"]].concat()).stdout.contains("1 trained now"));
    assert_eq!(array(&place, &[]), "0,2-4");
    assert_eq!(array(&place, &["--retry-failed"]), "0-4");
    assert!(place.ok(&["sweep", "status", "plan.jsonl"]).contains("failed    1\n"));
}

#[cfg(unix)]
fn spawn(place: &Place, arguments: &[&str]) -> Child {
    place.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// SIGTERM and SIGUSR1, each twice as schedulers send them, write a checkpoint; the requeued job ends with the same bits.
#[cfg(unix)]
#[test]
fn preempted_jobs_continue_to_the_same_bits() {
    let place = planned(120_000);
    let run = ["sweep", "run", "plan.jsonl", "--index", "3", "--results"];
    let undisturbed = [&run[..], &["undisturbed", "-q"]].concat();
    let start = Instant::now();
    place.ok(&undisturbed);
    let time = start.elapsed();
    let (mut stops, mut finished) = (0, false);
    // A quarter of the time a round: whoever did not continue from the checkpoint would never end.
    for round in 0..40 {
        let child = spawn(&place, &[&run[..], &["plan.results"]].concat());
        sleep(time.mul_f64(0.25));
        let name = if round % 2 == 0 { "-TERM" } else { "-USR1" };
        for _ in 0..2 {
            // The second may come too late.
            let _ = Command::new("kill").args([name, &child.id().to_string()]).stderr(Stdio::null()).status();
        }
        let ran = Ran::from(child.wait_with_output().unwrap());
        finished = ran.code == Some(0);
        if finished {
            break;
        }
        assert_eq!(ran.code, Some(130), "{name}: {}{}", ran.stdout, ran.stderr);
        let begun = place.json(&["sweep", "status", "plan.jsonl", "--json"])["begun"].clone();
        stops += usize::from(begun == serde_json::json!([3]));
        assert!(!place.path("plan.results/000003.json").exists());
    }
    assert!(stops > 0, "no job was caught in the middle");
    assert!(finished, "40 rounds of a quarter of the time did not get to the end");
    let ending = |folder: &str| -> Value {
        serde_json::from_slice::<Value>(&place.read(&format!("{folder}/000003.json"))).unwrap()["record"]["ending"].clone()
    };
    assert_eq!(ending("plan.results"), ending("undisturbed"));
    let left = std::fs::read_dir(place.path("plan.results")).unwrap().count();
    assert_eq!(left, 2, "a result and the mark; no checkpoint");
}

/// Jobs of the same index at the same time, some of them killed: at every moment a result is whole or absent.
#[cfg(unix)]
#[test]
fn jobs_of_the_same_index_do_not_disturb_each_other() {
    let place = planned(3000);
    let run = ["sweep", "run", "plan.jsonl", "--index", "0", "--chunk", "5", "-q", "--threads", "1"];
    let mut children: Vec<Child> = (0..4).map(|_| spawn(&place, &run)).collect();
    let mut killed = spawn(&place, &run);
    let looks = (0..).take_while(|_| {
        let value = place.json(&["sweep", "status", "plan.jsonl", "--json"]);
        assert_eq!(value["damaged"], serde_json::json!([]));
        if value["done"].as_u64() >= Some(1) {
            let _ = killed.kill();
        }
        children.iter_mut().any(|child| child.try_wait().unwrap().is_none())
    });
    assert!(looks.count() > 0);
    killed.wait().unwrap();
    for child in children {
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    place.ok(&["sweep", "collect", "plan.jsonl", "--out", "collected"]);
    place.ok(&["sweep", "grid.toml", "--out", "local", "-q"]);
    assert_eq!(endings(&place, "collected"), endings(&place, "local"));
}

#[cfg(unix)]
#[test]
fn first_jobs_at_once_in_a_new_folder_all_succeed() {
    let place = planned(10);
    for folder in ["first", "second", "third", "fourth"] {
        let jobs: Vec<Child> = ["0", "1", "2", "3", "4"]
            .iter()
            .map(|index| {
                spawn(&place, &["sweep", "run", "plan.jsonl", "--index", index, "--results", folder])
            })
            .collect();
        for job in jobs {
            let ran = Ran::from(job.wait_with_output().unwrap());
            assert_eq!(ran.code, Some(0), "{folder}: {}", ran.stderr);
        }
        assert_eq!(array(&place, &["--results", folder]), "");
    }
}

#[test]
fn a_study_of_the_paper_is_planned_run_and_collected() {
    let place = Place::new();
    let small = ["--sets", "1", "--seeds", "1", "--iterations", "20"];
    let plan = [&["sweep", "plan", "--study", "sinusoid", "-o", "s.jsonl", "--json"], &small[..]].concat();
    let models = place.json(&plan)["models"].as_u64().unwrap();
    let chunk = models.to_string();
    // The script goes to a file, so what is said about its array is not only in there.
    place.ok(&["sweep", "plan", "--study", "sinusoid", "--preset", "paper", "-o", "large.jsonl"]);
    for (more, warned) in [(&[][..], true), (&["--chunk", "20"], false), (&["--launcher", "parallel"], false)]
    {
        let ran = place.run(&[&["sweep", "slurm", "large.jsonl"], more].concat());
        assert_eq!((ran.code, ran.stderr.contains("MaxArraySize")), (Some(0), warned), "{}", ran.stderr);
    }
    place.ok(&["sweep", "run", "s.jsonl", "--index", "0", "--chunk", &chunk, "-q"]);
    let collected = place.json(&["sweep", "collect", "s.jsonl", "--out", "collected", "--json"]);
    let local =
        place.json(&[&["reproduce", "sinusoid", "--out", "local", "--json", "-q"], &small[..]].concat());
    assert_eq!((&collected["errors"], &collected["done"]), (&local["errors"], &local["done"]));
    assert_eq!(endings(&place, "collected"), endings(&place, "local"));
    place.refused(&["sweep", "plan", "-o", "x.jsonl"], &["CONFIG.toml"]);
}
