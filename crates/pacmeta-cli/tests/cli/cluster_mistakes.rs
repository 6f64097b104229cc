//! A sweep as the jobs of a scheduler, when something is wrong: what is refused, and what a full disk leaves.

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::clusters::{array, endings, planned};
use crate::helper::{Place, Ran};

#[test]
fn what_does_not_fit_is_refused_and_nothing_is_lost() {
    let place = planned(30);
    let run = ["sweep", "run", "plan.jsonl", "--index", "1"];
    place
        .refused(&["sweep", "run", "plan.jsonl", "--index", "5"], &["index 5", "outside the plan", "0 to 4"]);
    place.refused(
        &["sweep", "run", "plan.jsonl", "--index", "2", "--chunk", "3"],
        &["index 2", "2 jobs of 3 models"],
    );
    place.refused(&["sweep", "run", "plan.jsonl"], &["--index", "SLURM_ARRAY_TASK_ID", "HQ_TASK_ID"]);
    place.refused(&["sweep", "run", "grid.toml", "--index", "0"], &["is no plan", "pacmeta sweep plan"]);
    place.refused(&["sweep", "run", "absent.jsonl", "--index", "0"], &["absent.jsonl"]);
    for (variables, words) in [
        (&[("SLURM_ARRAY_TASK_ID", "many")][..], ["SLURM_ARRAY_TASK_ID", "`many`"]),
        (&[("SLURM_ARRAY_TASK_ID", "1"), ("HQ_TASK_ID", "2")], ["HQ_TASK_ID is 2", "--index"]),
    ] {
        let output = place.command(&["sweep", "run", "plan.jsonl"]).envs(variables.iter().copied()).output();
        let ran = Ran::from(output.unwrap());
        assert_eq!(ran.code, Some(2));
        for word in words {
            assert!(ran.stderr.replace(": is", " is").contains(word), "{word}: {}", ran.stderr);
        }
    }
    place.ok(&run);
    let result = place.read("plan.results/000001.json");

    let plan = place.text("plan.jsonl");
    place.write("edited.jsonl", plan.replacen("\"seed\":0", "\"seed\":7", 1));
    place
        .refused(&["sweep", "status", "edited.jsonl"], &["edited.jsonl", "line", "was changed", "remove it"]);
    place.write("cut.jsonl", &plan[..plan.len() / 2]);
    place.refused(&["sweep", "run", "cut.jsonl", "--index", "0"], &["cut.jsonl", "cut off"]);
    // The advice works: the plan is made again, and has its result.
    place.write("plan.jsonl", plan.replacen("\"seed\":0", "\"seed\":7", 1));
    let again = ["sweep", "plan", "grid.toml", "-o", "plan.jsonl"];
    place.refused(&again, &["plan.jsonl", "the plan is damaged: remove it", "its results stay valid"]);
    std::fs::remove_file(place.path("plan.jsonl")).unwrap();
    place.ok(&again);
    assert_eq!(place.text("plan.jsonl"), plan);
    assert_eq!(array(&place, &[]), "0,2-4");

    // A results folder of another plan, and one of something else.
    place.ok(&["sweep", "plan", "grid.toml", "-o", "other.jsonl", "--set", "sweep.seeds=2"]);
    for command in ["run", "status", "collect", "slurm"] {
        let arguments = ["sweep", command, "other.jsonl", "--results", "plan.results"];
        place.refused(&arguments, &["plan.results", "another plan"]);
    }
    place.write("thesis/chapter.tex", "x");
    place.refused(
        &[&run[..], &["--results", "thesis"]].concat(),
        &["thesis", "something else", "chapter.tex"],
    );
    assert_eq!(std::fs::read_dir(place.path("thesis")).unwrap().count(), 1);
    // A plan is not written over another one.
    place.refused(
        &["sweep", "plan", "grid.toml", "-o", "plan.jsonl", "--set", "sweep.seeds=2"],
        &["plan.results", "another plan"],
    );
    std::fs::rename(place.path("other.results"), place.path("elsewhere.results")).unwrap();
    place.refused(
        &["sweep", "plan", "grid.toml", "-o", "other.jsonl"],
        &["other.jsonl", "exists and is not this plan"],
    );

    // A configuration that changed after planning.
    let config = place.text("grid.toml");
    place.write("grid.toml", format!("{config}\n# another thought\n"));
    for command in [&run[..], &["sweep", "collect", "plan.jsonl"], &["sweep", "slurm", "plan.jsonl"]] {
        place.refused(command, &["grid.toml", "has changed since plan.jsonl was made"]);
    }
    let status = place.run(&["sweep", "status", "plan.jsonl"]);
    assert_eq!(
        (status.code, status.stderr.contains("has changed since")),
        (Some(0), true),
        "{}",
        status.stderr
    );
    std::fs::remove_file(place.path("grid.toml")).unwrap();
    place.ok(&["sweep", "run", "plan.jsonl", "--index", "2", "-q"]); // the plan holds all that is needed
    assert!(place.read("plan.results/000001.json") == result);
    assert_eq!(array(&place, &[]), "0,3-4");
}

#[test]
fn tables_that_changed_after_planning_are_refused() {
    let place = Place::new();
    let row = |task: usize, example: usize| format!("t{task},{example},{}\n", (task * example) as f64 * 0.1);
    let rows: String = (0..8).flat_map(|task| (0..6).map(move |example| row(task, example))).collect();
    place.write("tasks.csv", format!("task,x,y\n{rows}"));
    place.write(
        "grid.toml",
        "[data]\npath = \"tasks.csv\"\nsupport = 3\nheld_out = 4\n[prior]\nhidden = [4]\n[training]\niterations = 10\n\
         [sweep.grid]\n\"method.name\" = [\"pacoh\"]\n\"method.beta_per_example\" = [10, 30]\n",
    );
    place.ok(&["sweep", "plan", "grid.toml", "-o", "plan.jsonl"]);
    // From any folder: the table is found where it was.
    std::fs::create_dir(place.path("elsewhere")).unwrap();
    let output = place
        .command(&["sweep", "run", "../plan.jsonl", "--index", "1", "-q"])
        .current_dir(place.path("elsewhere"))
        .output()
        .unwrap();
    let ran = Ran::from(output);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let run = ["sweep", "run", "plan.jsonl", "--index", "2"];
    for changed in ["t1,2,", "t1,one,"] {
        place.write("tasks.csv", format!("task,x,y\n{}", rows.replacen("t1,1,", changed, 1)));
        place.refused(&run, &["tasks.csv", "has changed since the plan was made in", "restore it"]);
    }
    std::fs::rename(place.path("tasks.csv"), place.path("elsewhere/tasks.csv")).unwrap();
    place.refused(&run, &["tasks.csv", "the plan was made in", "beside the plan", "plan again here"]);
    // Only jobs need it.
    assert_eq!(array(&place, &[]), "0,2");
    place.ok(&["sweep", "slurm", "plan.jsonl"]);
    place.ok(&["sweep", "collect", "plan.jsonl", "--out", "collected"]);
    assert_eq!(endings(&place, "collected").len(), 1);
}

/// A plan and its table that were brought to another place, where the first one is not.
#[test]
fn options_that_would_be_ignored_and_numbers_that_make_no_sense_are_refused() {
    let place = planned(30);
    for option in [["--preset", "paper"], ["--sets", "3"], ["--seeds", "5"], ["--iterations", "100000"]] {
        let arguments = [&["sweep", "plan", "grid.toml", "-o", "p.jsonl"], &option[..]].concat();
        place.refused(&arguments, &[option[0], "CONFIG.toml"]);
        assert!(!place.path("p.jsonl").exists() && !place.path("p.results").exists());
    }
    let slurm = ["sweep", "slurm", "plan.jsonl"];
    for option in [["--time", "30"], ["--partition", "x"]] {
        let parallel = [&slurm[..], &["--launcher", "parallel"], &option].concat();
        place.refused(&parallel, &[option[0], "is for Slurm"]);
    }
    for (command, option, number) in [
        ("run", "--index", "-1"),
        ("run", "--index", "1.5"),
        ("run", "--chunk", "0"),
        ("status", "--chunk", "-2"),
        ("slurm", "--max-running", "0"),
        ("slurm", "--processors", "none"),
    ] {
        let words = [option, number, "expected a whole number from"];
        place.refused(&["sweep", command, "plan.jsonl", option, number], &words);
    }
    for time in [":", "5:", ":5", "1-", "-5", "+5", "1-2-3", "1:2:3:4", "an hour"] {
        place.refused(&[&slurm[..], &["--time", time]].concat(), &["--time", "as Slurm takes it: MINUTES"]);
    }
    for time in ["1", "4:59", "0:02:00", "0-0:4"] {
        place.refused(&[&slurm[..], &["--time", time]].concat(), &["--time", "at least 5 minutes"]);
    }
    for time in ["0", "5", "5:00", "01:00:00", "1-0", "1-12:30", "2-00:00:00"] {
        let text = place.ok(&[&slurm[..], &["--time", time]].concat());
        assert!(text.contains(&format!("#SBATCH --time={time}\n")), "{text}");
    }
}

#[test]
fn a_folder_of_results_that_is_named_must_be_there_for_those_who_only_look() {
    let place = planned(30);
    for command in ["status", "collect"] {
        let arguments = ["sweep", command, "plan.jsonl", "--results", "nowhere"];
        place.refused(&arguments, &["nowhere", "is not there"]);
    }
    assert!(!place.path("nowhere").exists() && !place.path("runs").exists());
    place.ok(&["sweep", "run", "plan.jsonl", "--index", "1", "-q", "--results", "new"]);
    assert_eq!(array(&place, &["--results", "new"]), "0,2-4");
    let script = place.ok(&["sweep", "slurm", "plan.jsonl", "--results", "new"]);
    let comment = script.lines().find(|line| line.contains("sweep status")).unwrap();
    assert!(comment.starts_with('#') && comment.contains("/new --array"), "{comment}");
}

/// The files of a folder, with their bytes.
fn content(place: &Place, folder: &str) -> Vec<(std::ffi::OsString, Vec<u8>)> {
    let entries = std::fs::read_dir(place.path(folder)).unwrap().map(|entry| entry.unwrap());
    let mut files: Vec<_> = entries.map(|e| (e.file_name(), std::fs::read(e.path()).unwrap())).collect();
    files.sort();
    files
}

#[test]
fn a_plan_without_results_does_not_replace_a_finished_study() {
    let place = planned(30);
    place.ok(&["sweep", "run", "plan.jsonl", "--index", "0", "--chunk", "5", "-q"]);
    place.ok(&["sweep", "collect", "plan.jsonl", "--out", "out"]);
    let before = content(&place, "out");
    place.ok(&["sweep", "plan", "grid.toml", "-o", "other.jsonl", "--set", "training.iterations=31"]);
    let collect = ["sweep", "collect", "other.jsonl", "--out", "out"];
    place.refused(&collect, &["out", "a study of another plan", "no result yet", "choose another --out"]);
    assert!(content(&place, "out") == before, "nothing is changed");
    // With a result the folder is that of the other plan, in which nothing is chosen yet.
    place.ok(&["sweep", "run", "other.jsonl", "--index", "1", "-q"]);
    place.ok(&collect);
    assert_eq!(endings(&place, "out").len(), 6, "records stay");
    for file in ["chosen.toml", "tasks.csv"] {
        assert!(!place.path(&format!("out/{file}")).exists(), "{file} is of the first plan");
    }
    // And back.
    place.ok(&["sweep", "collect", "plan.jsonl", "--out", "out"]);
    assert!(place.path("out/chosen.toml").exists());
}

#[test]
fn nothing_is_written_before_all_results_are_checked() {
    let place = planned(30);
    place.ok(&["sweep", "run", "plan.jsonl", "--index", "0", "--chunk", "5", "-q"]);
    let result = place.read("plan.results/000003.json");
    place.write("plan.results/000004.json", result);
    let collect = ["sweep", "collect", "plan.jsonl", "--out", "out"];
    place.refused(&collect, &["000004.json", "another model"]);
    assert!(!place.path("out").exists());
}

/// The end of a command that could not write a file.
#[cfg(target_os = "linux")]
#[track_caller]
fn assert_not_written(ran: &Ran, file: &str) {
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("cannot write") && ran.stderr.contains(file), "{}", ran.stderr);
    assert!(!ran.stderr.contains(".tmp"), "a temporary is nobody's business: {}", ran.stderr);
}

#[cfg(target_os = "linux")]
fn names(place: &Place, folder: &str) -> Vec<std::ffi::OsString> {
    std::fs::read_dir(place.path(folder)).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_ends_a_job_without_a_trace() {
    let place = planned(30);
    let run = ["sweep", "run", "plan.jsonl", "--index", "1"];
    let ran = Ran::from(place.with_full_disk(0, &run).output().unwrap());
    assert_not_written(&ran, "000001.json");
    assert_eq!(names(&place, "plan.results"), ["plan.json"]);
    assert_eq!(array(&place, &[]), "0-4", "no failure of a model");
    place.ok(&["sweep", "run", "plan.jsonl", "--index", "1", "-q"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_no_half_plan_and_no_half_study() {
    let place = planned(30);
    let plan = ["sweep", "plan", "grid.toml", "-o", "new.jsonl"];
    let ran = Ran::from(place.with_full_disk(0, &plan).output().unwrap());
    assert_not_written(&ran, "new.jsonl");
    assert!(!place.path("new.jsonl").exists() && !place.path("new.results").exists());
    assert!(names(&place, "").iter().all(|name| !name.to_string_lossy().ends_with(".tmp")));
    place.ok(&plan);

    place.ok(&["sweep", "run", "plan.jsonl", "--index", "0", "--chunk", "5", "-q"]);
    let collect = ["sweep", "collect", "plan.jsonl", "--out", "collected"];
    let ran = Ran::from(place.with_full_disk(0, &collect).output().unwrap());
    assert_not_written(&ran, "collected");
    assert_eq!(array(&place, &[]), "", "results are not touched");
    place.ok(&collect);
    place.ok(&["sweep", "grid.toml", "--out", "local", "-q"]);
    assert_eq!(endings(&place, "collected"), endings(&place, "local"));
}

/// The checkpoint that a signal asks for cannot be written: an error of this job, not of the model.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_at_a_checkpoint_is_an_error_and_no_result() {
    let place = planned(100_000_000);
    let stopped = (1..=40).find_map(|attempt| {
        let run = ["sweep", "run", "plan.jsonl", "--index", "3", "-q"];
        let child =
            place.with_full_disk(0, &run).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        sleep(Duration::from_millis(50 * attempt));
        let _ = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert_ne!(ran.code, Some(0));
        // Else the signal came before the training.
        (ran.code == Some(1)).then_some(ran)
    });
    assert_not_written(&stopped.expect("the training does not begin"), "state.safetensors");
    assert_eq!(names(&place, "plan.results"), ["plan.json"]);
    assert_eq!(array(&place, &["--retry-failed"]), "0-4", "no failure of a model");
}
