//! Plans that survive a file and notice changes, results that are whole or missing, indices as schedulers write them.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::config::SweepFile;
use crate::error::Error;
use crate::studies::record::line_of;
use crate::studies::runner::{self, Failures, Progress, SilentStudy, StudyObserver};
use crate::studies::sweep::{self, SweepOutcome};
use crate::studies::{Ending, Keep, Records};

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

    // Somebody who makes the checksums fit is found out by the hashes.
    let body = |line: &str| -> serde_json::Value {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["record"].clone()
    };
    let mut edited = body(lines[2]);
    edited["spec"]["config"]["training"]["iterations"] = 39.into();
    let text = [lines[0], lines[1], line_of(&edited).unwrap().trim_end(), lines[3], ""].join("\n");
    let path = folder.path().join("edited.jsonl");
    std::fs::write(&path, text).unwrap();
    let plan = PlanFile::read(&path).unwrap();
    let error = SweepSpec::ready(&plan, plan.lines()).unwrap_err().to_string();
    assert!(error.contains("line 3") && error.contains("not the one that was planned"), "{error}");
    edited["hash"] = "0123456789abcdef0123456789abcdef".into();
    refused(
        [lines[0], lines[1], line_of(&edited).unwrap().trim_end(), lines[3], ""].join("\n"),
        &["its digest does not fit"],
    );

    let mut header = body(lines[0]);
    header["pacmeta"] = "99.0.0".into();
    refused(line_of(&header).unwrap(), &["was made by pacmeta 99.0.0"]);
    header["plan_format"] = 2.into();
    refused(line_of(&header).unwrap(), &["was made by pacmeta 99.0.0"]);
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
    std::fs::remove_file(results.folder().join("plan.json")).unwrap();
    assert!(Results::of(&plan, results.folder()).unwrap_err().to_string().contains("something else"));
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
    let counted = collect(&plan, &results, &mut records).unwrap();
    assert_eq!((counted.new, counted.missing), (2, vec![2]));
    std::fs::rename(folder.path().join("away"), results.folder().join("000002.json")).unwrap();
    assert_eq!(collect(&plan, &results, &mut records).unwrap().new, 1, "only what is new");
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

/// A piece that is stopped over and over, in its search for temperatures and in its training, ends as if never stopped.
#[test]
fn stopped_pieces_continue_from_their_states_to_the_same_bits() {
    let searching = GRID.replace("beta_per_example = 30\nalpha_over_beta = 0.3\n", "")
        + "[search]\niterations = 20\nfolds = 2\nbeta_per_example = [10, 30]\nalpha_per_example = [3]\n";
    let (prepared, plan) = planned(&searching);
    let undisturbed: Vec<SweepOutcome> =
        prepared.specs().iter().map(|spec| spec.run(&|| false).unwrap()).collect();
    let folder = tempfile::tempdir().unwrap();
    let results = Results::of(&plan, &folder.path().join("results")).unwrap();
    results.claim().unwrap();
    let specs = SweepSpec::ready(&plan, plan.lines()).unwrap();
    let mut stops = 0;
    for round in 0..500 {
        let mut job = Job::<SweepSpec>::new(&results, plan.lines()).unwrap();
        let observer = Impatient { questions: AtomicUsize::new(0), patience: 60 + 7 * round };
        match runner::run(&specs, &mut job, Failures::Keep, &observer) {
            Ok(_) => break,
            Err(error) => assert!(error.is_interruption(), "{error}"),
        }
        stops += usize::from(!Survey::of(&plan, &results).unwrap().begun.is_empty());
    }
    assert!(stops > 1, "no piece was caught with a state");
    let mut records = Records::<SweepSpec>::read(folder.path()).unwrap();
    collect(&plan, &results, &mut records).unwrap();
    for (line, expected) in plan.lines().iter().zip(&undisturbed) {
        let Some(Ending::Done(outcome)) = records.ending(&line.hash) else { panic!("{}", line.label) };
        assert_eq!(bits(outcome), bits(expected), "{}", line.label);
    }
    let left: Vec<_> = std::fs::read_dir(results.folder()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 4, "three results and the mark: {left:?}");
}

#[test]
fn a_state_that_cannot_be_written_stops_the_job_and_fails_no_model() {
    let (_, plan) = planned(GRID);
    let specs = SweepSpec::ready(&plan, plan.lines()).unwrap();
    let nowhere = Keep::new("/nonexistent/folder/000001");
    let questions = AtomicUsize::new(0);
    let stop = || questions.fetch_add(1, Ordering::SeqCst) > 5;
    let error = specs[1].run_keeping(&stop, &nowhere).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    // A damaged state costs its work only.
    let folder = tempfile::tempdir().unwrap();
    let keep = Keep::new(folder.path().join("000001"));
    std::fs::write(keep.state(), b"torn").unwrap();
    let outcome = specs[1].run_keeping(&|| false, &keep).unwrap();
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
    assert!(!text.contains("MaxArraySize"));
    let many = Chunks::new(2000, NonZeroUsize::MIN);
    assert!(script(&options, &many).contains("MaxArraySize"));
    let parallel = script(&ScriptOptions { launcher: Launcher::Parallel, ..options }, &chunks);
    assert!(parallel.contains("seq 0 4 | parallel --jobs 8"), "{parallel}");
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
