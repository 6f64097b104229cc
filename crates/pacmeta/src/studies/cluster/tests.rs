//! Plans that survive a file and notice changes, results that are whole or missing, indices as schedulers write them.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::*;
use crate::config::SweepFile;
use crate::error::Error;
use crate::studies::record::line_of;
use crate::studies::runner::{self, Failures, Progress, SilentStudy, StudyObserver};
use crate::studies::spec::Stop;
use crate::studies::sweep::{self, SweepOutcome};
use crate::studies::{Ending, Keep, Records};
use crate::training::checkpoint::TrainingState;

const GRID: &str = "[data]\ntasks = 4\nexamples = 8\ntarget_tasks = 4\nquery = 6\nsupport = 3\n[prior]\nhidden = [4]\n\
                    [method]\nbeta_per_example = 30\nalpha_over_beta = 0.3\n[training]\niterations = 40\nbatch = 2\n\
                    [sweep.grid]\n\"method.name\" = [\"pacoh\", \"pacmaml\"]\n";

fn planned(text: &str) -> (Prepared, PlanFile) {
    let file = SweepFile::parse("test.toml", text, &[]).unwrap();
    let prepared = sweep::prepare(&file, "test.toml", &[]).unwrap();
    let plan = PlanFile::new(&prepared.plan, &prepared.specs(), Path::new("."), None).unwrap();
    (prepared, plan)
}

fn written(plan: &PlanFile) -> (TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.jsonl");
    plan.write(&path).unwrap();
    (folder, path)
}

fn run_all(plan: &PlanFile, results: &Results) {
    results.claim().unwrap();
    let specs = SweepSpec::ready(plan, plan.lines()).unwrap();
    let mut job = Job::<SweepSpec>::new(results, plan.lines()).unwrap();
    runner::run(&specs, &mut job, Failures::Keep, &SilentStudy).unwrap();
}

#[test]
fn a_plan_comes_back_from_its_file_with_the_pieces_it_was_made_of() {
    let (prepared, plan) = planned(GRID);
    let (_folder, path) = written(&plan);
    let read = PlanFile::read(&path).unwrap();
    assert_eq!((read.digest(), read.lines()), (plan.digest(), plan.lines()));
    let specs = SweepSpec::ready(&read, read.lines()).unwrap();
    assert_eq!(specs.len(), 3);
    for (spec, original) in specs.iter().zip(prepared.specs()) {
        assert_eq!(spec.hash().unwrap(), original.hash().unwrap());
        assert_eq!(spec.label(), original.label());
    }
    plan.write(&path).unwrap(); // the same plan is no obstacle
    let (_, other) = planned(&GRID.replace("iterations = 40", "iterations = 41"));
    assert!(other.write(&path).unwrap_err().to_string().contains("exists and is not this plan"));
    assert_eq!(PlanFile::read(&path).unwrap().digest(), plan.digest());
    // What is damaged is said to be, and is made again to the same plan; what is no plan is left alone.
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 40]).unwrap();
    let damaged = plan.write(&path).unwrap_err().to_string();
    assert!(damaged.contains("the plan is damaged: remove it") && damaged.contains("line 4"), "{damaged}");
    std::fs::remove_file(&path).unwrap();
    plan.write(&path).unwrap();
    assert!(std::fs::read(&path).unwrap() == whole);
    for text in ["a thesis\n", ""] {
        std::fs::write(&path, text).unwrap();
        let error = plan.write(&path).unwrap_err().to_string();
        assert!(error.contains("exists and is no plan of a sweep"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn a_study_of_the_paper_is_planned_too() {
    use crate::studies::sinusoid::{Plan, Preset};
    let study = Plan::new(Preset::Quick);
    let plan = PlanFile::new(&study, &study.specs(), Path::new("."), None).unwrap();
    let (_folder, path) = written(&plan);
    let read = PlanFile::read(&path).unwrap();
    assert_eq!(read.study(), "sinusoid");
    assert_eq!(SinusoidSpec::ready(&read, read.lines()).unwrap().len(), study.specs().len());
    assert_eq!(read.study_plan::<Plan>().unwrap().iterations, study.iterations);
    assert!(read.check_study::<SweepSpec>().unwrap_err().to_string().contains("a plan of `sinusoid`"));
}

#[test]
fn changed_moved_and_missing_lines_are_refused() {
    let (_, plan) = planned(GRID);
    let (folder, path) = written(&plan);
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let refused = |content: String, words: &[&str]| {
        let path = folder.path().join("changed.jsonl");
        std::fs::write(&path, content).unwrap();
        let error = PlanFile::read(&path).unwrap_err();
        assert!(error.is_input());
        for word in words {
            assert!(error.to_string().contains(word), "no `{word}` in: {error}");
        }
    };
    refused(text.replacen("\"rate\":", "\"rate\" :", 1), &["line 1", "was changed or cut off"]);
    refused(text[..text.len() - 40].to_owned(), &["line 4", "was changed or cut off"]);
    refused([lines[0], lines[2], lines[1], lines[3], ""].join("\n"), &["line 2", "has index 1, expected 0"]);
    refused([lines[0], lines[1], lines[2], ""].join("\n"), &["has 2 models, its first line says 3"]);
    refused("a,b\n1,2\n".to_owned(), &["is no plan of a sweep", "pacmeta sweep plan"]);
    refused(String::new(), &["is no plan of a sweep"]);
    refused(line_of(&serde_json::json!({"hash": "x"})).unwrap(), &["is no plan of a sweep"]);

    // Somebody who makes the checksum of a line fit is found out by the digest of all.
    let body = |line: &str| -> serde_json::Value {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["record"].clone()
    };
    let edited_is_refused = |edited: serde_json::Value| {
        let edited = line_of(&edited).unwrap();
        refused(
            [lines[0], lines[1], edited.trim_end(), lines[3], ""].join("\n"),
            &["its digest does not fit", "lines were changed"],
        );
    };
    for (pointer, value) in [
        ("/spec/config/training/iterations", serde_json::json!(39)),
        ("/label", serde_json::json!("another model")),
        ("/hash", serde_json::json!("0123456789abcdef0123456789abcdef")),
    ] {
        let mut edited = body(lines[2]);
        *edited.pointer_mut(pointer).unwrap() = value;
        edited_is_refused(edited);
    }

    let mut header = body(lines[0]);
    header["pacmeta"] = "99.0.0".into();
    refused(line_of(&header).unwrap(), &["was made by pacmeta 99.0.0"]);
    header["plan_format"] = 1.into();
    refused(line_of(&header).unwrap(), &["was made by pacmeta 99.0.0"]);
    header["pacmeta"] = env!("CARGO_PKG_VERSION").into();
    refused(
        line_of(&header).unwrap(),
        &["is a plan in format 1, this program reads format 2", "another name"],
    );
}

/// A piece that does not have the hash of its content, as if the program had changed without its version.
#[derive(Clone, Serialize, Deserialize)]
struct Changeling(u32);

impl Spec for Changeling {
    const STUDY: &'static str = "changelings";
    const VERSION: u32 = 1;
    type Outcome = u32;

    fn label(&self) -> String {
        "a changeling".to_owned()
    }

    fn cost(&self) -> f64 {
        1.0
    }

    fn run(&self, _: Stop<'_>) -> Result<u32> {
        Ok(self.0)
    }

    fn hash(&self) -> Result<String> {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        Ok(ASKED.fetch_add(1, Ordering::SeqCst).to_string())
    }
}

#[test]
fn a_piece_that_is_not_the_planned_one_is_refused() {
    let plan = PlanFile::new(&(), &[Changeling(7)], Path::new("."), None).unwrap();
    let error = plan.specs::<Changeling>(plan.lines()).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("line 2") && error.contains("not the one that was planned"), "{error}");
}

#[test]
fn results_survive_truncation_at_any_byte_as_missing() {
    let (_, plan) = planned(GRID);
    let folder = tempfile::tempdir().unwrap();
    let results = Results::of(&plan, &folder.path().join("results")).unwrap();
    run_all(&plan, &results);
    let survey = Survey::of(&plan, &results).unwrap();
    assert_eq!((survey.done.len(), survey.missing.len()), (3, 0));
    let path = results.folder().join("000001.json");
    let whole = std::fs::read(&path).unwrap();
    for length in (0..whole.len()).step_by(97).chain([whole.len() - 1]) {
        std::fs::write(&path, &whole[..length]).unwrap();
        let survey = Survey::of(&plan, &results).unwrap();
        assert_eq!((survey.missing, survey.damaged), (vec![1], vec![1]), "{length} bytes");
        assert_eq!(Job::<SweepSpec>::new(&results, plan.lines()).unwrap().damaged(), [1]);
    }
    // Trained again, to the same outcome.
    run_all(&plan, &results);
    let outcome = |bytes: &[u8]| -> serde_json::Value {
        serde_json::from_slice::<serde_json::Value>(bytes).unwrap()["record"]["ending"].clone()
    };
    assert_eq!(outcome(&std::fs::read(&path).unwrap()), outcome(&whole));

    // A result of another model is no damage.
    std::fs::copy(results.folder().join("000002.json"), &path).unwrap();
    assert!(Survey::of(&plan, &results).unwrap_err().to_string().contains("another model"));
    // A folder belongs to one plan, or to something else altogether.
    let (_, other) = planned(&GRID.replace("iterations = 40", "iterations = 41"));
    assert!(
        Results::of(&other, results.folder()).unwrap_err().to_string().contains("results of another plan")
    );
}

#[test]
fn a_mark_that_was_lost_is_made_again_where_everything_is_this_plans() {
    let (_, plan) = planned(GRID);
    let folder = tempfile::tempdir().unwrap();
    let results = Results::of(&plan, &folder.path().join("results")).unwrap();
    run_all(&plan, &results);
    let mark = results.folder().join("plan.json");
    let whole = std::fs::read(&mark).unwrap();
    // All that jobs leave besides results.
    let hash = &plan.lines()[1].hash[..12];
    let states = ["state.safetensors", "search.jsonl"].map(|ending| format!("000001-{hash}.{ending}"));
    let others = ["slurm-7_1.log", "parallel.log", ".pacmeta-a.tmp", ".nfs0001"];
    for name in states.iter().map(String::as_str).chain(others) {
        std::fs::write(results.folder().join(name), b"x").unwrap();
    }
    let (_, other) = planned(&GRID.replace("iterations = 40", "iterations = 41"));
    for lost in [None, Some(vec![]), Some(vec![0_u8; whole.len()])] {
        match &lost {
            None => std::fs::remove_file(&mark).unwrap(),
            Some(bytes) => std::fs::write(&mark, bytes).unwrap(),
        }
        let again = Results::of(&plan, results.folder()).unwrap();
        assert_eq!(std::fs::read(&mark).ok(), lost, "looking changes nothing");
        assert_eq!(Survey::of(&plan, &again).unwrap().done.len(), 3);
        let refused = Results::of(&other, results.folder()).unwrap_err().to_string();
        assert!(refused.contains("something else than results of this plan"), "{refused}");
        again.claim().unwrap();
        assert_eq!(std::fs::read(&mark).unwrap(), whole);
    }
    // A mark that says something else is somebody's; so is a name that no job leaves.
    std::fs::write(&mark, &whole[..whole.len() / 2]).unwrap();
    let torn = Results::of(&plan, results.folder()).unwrap_err().to_string();
    assert!(torn.contains("plan.json") && torn.contains("none is lost"), "{torn}");
    std::fs::remove_file(&mark).unwrap();
    for name in ["000003.json", "000001-0123456789ab.state.safetensors", "1.json", "notes.txt"] {
        let path = results.folder().join(name);
        std::fs::write(&path, b"x").unwrap();
        let refused = Results::of(&plan, results.folder()).unwrap_err().to_string();
        assert!(refused.contains(name) && refused.contains("plan.json"), "{refused}");
        std::fs::remove_file(path).unwrap();
    }
    assert_eq!(Survey::of(&plan, &Results::of(&plan, results.folder()).unwrap()).unwrap().done.len(), 3);
}

/// Gives a result another value under a key, with the checksum that belongs to it.
fn edit_result(path: &Path, key: &str, value: Option<&str>) {
    let mut record =
        serde_json::from_slice::<serde_json::Value>(&std::fs::read(path).unwrap()).unwrap()["record"].take();
    match value {
        Some(value) => record[key] = value.into(),
        None => _ = record.as_object_mut().unwrap().remove(key),
    }
    std::fs::write(path, line_of(&record).unwrap()).unwrap();
}

#[test]
fn results_of_several_instruction_sets_are_told() {
    let (_, plan) = planned(GRID);
    let folder = tempfile::tempdir().unwrap();
    let results = Results::of(&plan, &folder.path().join("results")).unwrap();
    run_all(&plan, &results);
    let sets = || {
        let gathered = Gathered::<SweepSpec>::of(&plan, &results).unwrap().instructions;
        assert_eq!(Survey::of(&plan, &results).unwrap().instructions, gathered);
        (serde_json::to_value(&gathered).unwrap(), gathered.warning())
    };
    let own = pacmeta_tensor::simd::instructions();
    assert_eq!(sets(), (serde_json::json!({ own: 3 }), None));
    // One that does not say is a result like any other.
    edit_result(&results.folder().join("000000.json"), "instructions", None);
    assert_eq!(sets(), (serde_json::json!({ own: 2 }), None));
    edit_result(&results.folder().join("000002.json"), "instructions", Some("abacus"));
    let (counted, warning) = sets();
    assert_eq!(counted, serde_json::json!({ own: 1, "abacus": 1 }));
    let warning = warning.unwrap();
    assert!(warning.contains("abacus: 1") && warning.contains(&format!("{own}: 1")), "{warning}");
    // Records say nothing of it.
    let mut records = Records::<SweepSpec>::read(folder.path()).unwrap();
    Gathered::of(&plan, &results).unwrap().append_to(&mut records).unwrap();
    let text = std::fs::read_to_string(folder.path().join("records.jsonl")).unwrap();
    assert!(text.lines().count() == 4 && !text.contains("instructions"), "{text}");
}

#[test]
fn a_state_of_another_instruction_set_is_continued_and_told() {
    let (_, plan) = planned(GRID);
    let specs = SweepSpec::ready(&plan, plan.lines()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let keep = Keep::new(folder.path().join("000001"));
    let questions = AtomicUsize::new(0);
    let stop = || questions.fetch_add(1, Ordering::SeqCst) > 5;
    specs[1].run_keeping(&stop, &keep, &|_| {}).unwrap_err();
    let told_by = |state: &TrainingState| {
        state.write(keep.state()).unwrap();
        let told = Mutex::new(Vec::new());
        let tell = |message: &str| told.lock().unwrap().push(message.to_owned());
        specs[1].run_keeping(&|| false, &keep, &tell).unwrap();
        told.into_inner().unwrap()
    };
    let state = TrainingState::read(keep.state()).unwrap();
    assert_eq!(told_by(&state), [""; 0]);
    assert_eq!(
        told_by(&TrainingState { instructions: None, ..state.clone() }),
        [""; 0],
        "of an older program"
    );
    let told = told_by(&TrainingState { instructions: Some("abacus".to_owned()), ..state.clone() });
    assert_eq!(told.len(), 1);
    assert!(told[0].contains(&format!("from iteration {}", state.iteration)), "{told:?}");
    assert!(told[0].contains("abacus"), "{told:?}");
}

/// What a job leaves that is stopped after another one of its index was done.
#[test]
fn a_state_beside_an_outcome_is_removed() {
    let (_, plan) = planned(GRID);
    let folder = tempfile::tempdir().unwrap();
    let results = Results::of(&plan, &folder.path().join("results")).unwrap();
    run_all(&plan, &results);
    let state = |index: usize| {
        let name = format!("{index:06}-{}.state.safetensors", &plan.lines()[index].hash[..12]);
        results.folder().join(name)
    };
    std::fs::remove_file(results.folder().join("000002.json")).unwrap();
    for index in [1, 2] {
        std::fs::write(state(index), b"x").unwrap();
    }
    Job::<SweepSpec>::new(&results, plan.lines()).unwrap();
    assert_eq!([state(1).exists(), state(2).exists()], [false, true], "index 2 has no outcome");
}

/// A folder that is marked while others look at it is never somebody else's to them.
#[test]
fn first_jobs_of_a_new_folder_do_not_refuse_each_other() {
    let (_, plan) = planned(GRID);
    for _ in 0..60 {
        let folder = tempfile::tempdir().unwrap();
        let marked = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !marked.load(Ordering::SeqCst) {
                        Results::of(&plan, folder.path()).unwrap();
                    }
                });
            }
            let claimed = Results::of(&plan, folder.path()).and_then(|results| results.claim());
            marked.store(true, Ordering::SeqCst); // first, or the others would never end
            claimed.unwrap();
        });
    }
}

#[test]
fn collected_records_are_those_of_a_local_run() {
    let (prepared, plan) = planned(GRID);
    let folder = tempfile::tempdir().unwrap();
    let results = Results::of(&plan, &folder.path().join("results")).unwrap();
    run_all(&plan, &results);
    let local = tempfile::tempdir().unwrap();
    let mut expected = Records::read(local.path()).unwrap();
    runner::run(&prepared.specs(), &mut expected, Failures::Keep, &SilentStudy).unwrap();
    let out = tempfile::tempdir().unwrap();
    let mut records = Records::<SweepSpec>::read(out.path()).unwrap();
    std::fs::rename(results.folder().join("000002.json"), folder.path().join("away")).unwrap();
    let gathered = Gathered::of(&plan, &results).unwrap();
    assert_eq!((gathered.append_to(&mut records).unwrap(), gathered.missing), (2, vec![2]));
    std::fs::rename(folder.path().join("away"), results.folder().join("000002.json")).unwrap();
    let gathered = Gathered::of(&plan, &results).unwrap();
    assert_eq!(gathered.append_to(&mut records).unwrap(), 1, "only what is new");
    let read = Records::<SweepSpec>::read(out.path()).unwrap();
    for line in plan.lines() {
        let done = |records: &Records<SweepSpec>| match records.ending(&line.hash) {
            Some(Ending::Done(outcome)) => outcome.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(bits(&done(&read)), bits(&done(&expected)), "{}", line.label);
    }
}

fn bits(outcome: &SweepOutcome) -> Vec<u64> {
    let lists = [&outcome.scores.rmse, &outcome.scores.log_likelihood, &outcome.scores.calibration_error];
    lists.into_iter().flatten().map(|value| value.to_bits()).collect()
}

/// Stops after so many questions.
struct Impatient {
    questions: AtomicUsize,
    patience: usize,
}

impl StudyObserver for Impatient {
    fn begin(&self, _: &Progress) {}
    fn finished(&self, _: &str, _: Option<&str>, _: &Progress) {}
    fn stop(&self) -> bool {
        self.questions.fetch_add(1, Ordering::SeqCst) >= self.patience
    }
}

/// Two models, each with a search of four trials.
fn searching(trial_iterations: usize) -> (Prepared, PlanFile) {
    let text = GRID.replace("beta_per_example = 30\nalpha_over_beta = 0.3\n", "");
    planned(&format!(
        "{text}[search]\niterations = {trial_iterations}\nfolds = 2\nbeta_per_example = [10, 30]\nalpha_per_example = [3]\n"
    ))
}

/// What it took to finish a plan whose jobs are stopped again and again.
struct Stopped {
    /// Rounds that left a state.
    with_state: usize,
    /// Rounds that were stopped.
    stops: usize,
    /// Questions of all rounds.
    questions: usize,
}

/// Runs a plan on so many threads with that much patience a round, to the bits of an undisturbed run.
fn stopped_over_and_over(
    (prepared, plan): &(Prepared, PlanFile),
    threads: usize,
    patience: impl Fn(usize) -> usize,
) -> Stopped {
    let undisturbed: Vec<SweepOutcome> =
        prepared.specs().iter().map(|spec| spec.run(&|| false).unwrap()).collect();
    let folder = tempfile::tempdir().unwrap();
    let results = Results::of(plan, &folder.path().join("results")).unwrap();
    results.claim().unwrap();
    let specs = SweepSpec::ready(plan, plan.lines()).unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let mut stopped = Stopped { with_state: 0, stops: 0, questions: 0 };
    for round in 0..200 {
        let mut job = Job::<SweepSpec>::new(&results, plan.lines()).unwrap();
        let observer = Impatient { questions: AtomicUsize::new(0), patience: patience(round) };
        let ran = pool.install(|| runner::run(&specs, &mut job, Failures::Keep, &observer));
        stopped.questions += observer.questions.into_inner();
        match ran {
            Ok(_) => break,
            Err(error) => assert!(error.is_interruption(), "{error}"),
        }
        stopped.stops += 1;
        stopped.with_state += usize::from(!Survey::of(plan, &results).unwrap().begun.is_empty());
    }
    let mut records = Records::<SweepSpec>::read(folder.path()).unwrap();
    Gathered::of(plan, &results).unwrap().append_to(&mut records).unwrap();
    for (line, expected) in plan.lines().iter().zip(&undisturbed) {
        let Some(Ending::Done(outcome)) = records.ending(&line.hash) else { panic!("{}", line.label) };
        assert_eq!(bits(outcome), bits(expected), "{}", line.label);
    }
    let left: Vec<_> = std::fs::read_dir(results.folder()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 4, "three results and the mark: {left:?}");
    stopped
}

/// A piece that is stopped over and over, in its search for temperatures and in its training, ends as if never stopped.
#[test]
fn stopped_pieces_continue_from_their_states_to_the_same_bits() {
    // One thread and little patience: too little for a search or a training in one go, so what is kept must be used. A stop
    // costs an unfinished trial (4 of 5 questions), one question of the runner and one of each of 4 trials that it ends.
    let (trial_iterations, price) = (5, 4 + 1 + 4);
    let searched = searching(trial_iterations);
    let whole = stopped_over_and_over(&searched, 1, |_| usize::MAX);
    assert_eq!((whole.stops, whole.questions), (0, 3 + 2 * (4 * trial_iterations + 40)));
    let stopped = stopped_over_and_over(&searched, 1, |_| 13);
    assert!(stopped.with_state > 5, "pieces were caught with a state {} times", stopped.with_state);
    let most = whole.questions + price * stopped.stops;
    assert!(stopped.questions <= most, "{} questions, at most {most} are needed", stopped.questions);

    // Several at once: any of them may be in the middle of anything, so patience has to grow.
    let stopped = stopped_over_and_over(&searching(20), 3, |round| 60 + 7 * round);
    assert!(stopped.with_state > 1, "no piece was caught with a state");
}

#[test]
fn a_state_that_cannot_be_written_stops_the_job_and_fails_no_model() {
    let (_, plan) = planned(GRID);
    let specs = SweepSpec::ready(&plan, plan.lines()).unwrap();
    let nowhere = Keep::new("/nonexistent/folder/000001");
    let questions = AtomicUsize::new(0);
    let stop = || questions.fetch_add(1, Ordering::SeqCst) > 5;
    let error = specs[1].run_keeping(&stop, &nowhere, &|_| {}).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    // One for the case of a sudden end is tried again later.
    let told = Mutex::new(Vec::new());
    let tell = |message: &str| told.lock().unwrap().push(message.to_owned());
    let outcome = specs[1].run_keeping(&|| false, &nowhere.with_interval(Duration::ZERO), &tell).unwrap();
    assert_eq!(bits(&outcome), bits(&specs[1].run(&|| false).unwrap()));
    let told = told.into_inner().unwrap();
    assert_eq!(told.len(), 39, "after every iteration but the last");
    assert!(told[0].contains("cannot") && told[0].ends_with("; the training goes on"), "{told:?}");
    // A damaged state costs its work only.
    let folder = tempfile::tempdir().unwrap();
    let keep = Keep::new(folder.path().join("000001"));
    std::fs::write(keep.state(), b"torn").unwrap();
    let outcome = specs[1].run_keeping(&|| false, &keep, &|_| {}).unwrap();
    assert_eq!(bits(&outcome), bits(&specs[1].run(&|| false).unwrap()));
}

#[test]
fn scripts_name_everything_they_need() {
    let options = ScriptOptions {
        launcher: Launcher::Slurm,
        program: "/opt/it's here/pacmeta".into(),
        plan: "/data/plan.jsonl".into(),
        results: "/data/plan.results".into(),
        name: "pacmeta-plan".into(),
        time: Some("01:00:00".into()),
        partition: Some("short".into()),
        max_running: Some(8),
        processors: 2,
    };
    let chunks = Chunks::new(45, NonZeroUsize::new(10).unwrap());
    let text = script(&options, &chunks);
    for line in [
        "#SBATCH --array=0-4%8",
        "#SBATCH --time=01:00:00",
        "#SBATCH --partition=short",
        "#SBATCH --cpus-per-task=2",
        "#SBATCH --signal=B:USR1@120",
        "pacmeta=${PACMETA:-'/opt/it'\\''s here/pacmeta'}",
    ] {
        assert!(text.lines().any(|found| found == line), "no `{line}` in {text}");
    }
    assert!(text.contains("sweep run /data/plan.jsonl --results /data/plan.results --chunk 10"));
    let comment = "#   missing=$(pacmeta sweep status /data/plan.jsonl --results /data/plan.results --chunk 10 --max-running 8 --array)";
    assert!(text.lines().any(|found| found == comment), "{text}");
    let elsewhere = ScriptOptions { results: "/data/of it/$all".into(), ..options.clone() };
    let text = script(&elsewhere, &chunks);
    assert_eq!(text.matches("--results '/data/of it/$all' --chunk 10").count(), 2, "{text}");
    let percent = script(&ScriptOptions { results: "/data/50%A".into(), ..options.clone() }, &chunks);
    assert!(percent.contains("#SBATCH --output=/data/50%%A/slurm-%A_%a.log\n"), "{percent}");
    assert!(percent.contains("--results /data/50%A --chunk 10 --threads"), "{percent}");
    assert!(text.contains("[ -z \"$missing\" ] || sbatch --array=\"$missing\""), "{text}");
    assert!(!text.contains("MaxArraySize"));
    let many = Chunks::new(2000, NonZeroUsize::MIN);
    assert!(script(&options, &many).contains("MaxArraySize"));
    let by_parallel =
        ScriptOptions { launcher: Launcher::Parallel, results: "/data/of {} it".into(), ..options };
    let parallel = script(&by_parallel, &chunks);
    assert!(parallel.contains("seq 0 4 | parallel --jobs 8"), "{parallel}");
    assert!(parallel.lines().any(|line| line == "results='/data/of {} it'"), "{parallel}");
    let (_, command) = parallel.split_once("| parallel").unwrap();
    assert_eq!(command.matches("{}").count(), 1, "only the index is for GNU parallel: {command}");
}

/// The indices that an expression stands for, as Slurm reads it.
fn expanded(expression: &str) -> Vec<usize> {
    let parts = expression.split(',').filter(|part| !part.is_empty());
    let range = |part: &str| match part.split_once('-') {
        Some((first, last)) => first.parse().unwrap()..=last.parse().unwrap(),
        None => part.parse().unwrap()..=part.parse().unwrap(),
    };
    parts.flat_map(range).collect()
}

proptest! {
    #[test]
    fn expressions_stand_for_their_indices(indices in prop::collection::btree_set(0_usize..60, 0..60)) {
        let indices: Vec<usize> = indices.into_iter().collect();
        prop_assert_eq!(expanded(&array_expression(&indices)), indices);
    }

    #[test]
    fn chunks_cover_every_piece_once(pieces in 0_usize..200, size in 1_usize..50) {
        let chunks = Chunks::new(pieces, NonZeroUsize::new(size).unwrap());
        let covered: Vec<usize> = (0..chunks.jobs()).flat_map(|job| chunks.pieces_of(job).unwrap()).collect();
        prop_assert_eq!(covered, (0..pieces).collect::<Vec<_>>());
        prop_assert_eq!(chunks.pieces_of(chunks.jobs()), None);
        prop_assert_eq!(chunks.jobs_of(&(0..pieces).collect::<Vec<_>>()), (0..chunks.jobs()).collect::<Vec<_>>());
        prop_assert_eq!(chunks.pieces_of(usize::MAX), None);
    }

    #[test]
    fn plans_of_any_bytes_are_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.jsonl");
        std::fs::write(&path, bytes).unwrap();
        prop_assert!(PlanFile::read(&path).unwrap_err().is_input());
    }
}
