use std::collections::BTreeMap;

use super::*;
use crate::training::checkpoint::{NamedTensor, Precision};
use crate::training::metrics::read_metrics;

const CONFIG_TEXT: &str =
    "[method]\nname = \"pacmaml\"\nbeta = 10.0\n\n[training]\niterations = 40\nrate = 0.003\n";

fn with_iterations(count: u64) -> String {
    CONFIG_TEXT.replace("iterations = 40", &format!("iterations = {count}"))
}

fn open(path: &Path, config: &str) -> (RunDirectory, Resume) {
    RunDirectory::create_or_resume(path, config).unwrap()
}

fn refusal(path: &Path, config: &str) -> String {
    let error = RunDirectory::create_or_resume(path, config).unwrap_err();
    assert!(error.is_input(), "{error}");
    error.to_string()
}

/// Every file of a run that must not depend on interruptions.
fn content(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut content = BTreeMap::new();
    for folder in [path.to_path_buf(), path.join(CHECKPOINTS)] {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_file() && !entry.to_str().unwrap().contains("tfevents") {
                content.insert(
                    entry.strip_prefix(path).unwrap().display().to_string(),
                    fs::read(&entry).unwrap(),
                );
            }
        }
    }
    content
}

fn step(state: &mut TrainingState) {
    state.iteration += 1;
    for value in &mut state.parameters[0].values {
        *value = (*value * 1.7 + state.iteration as f64).sin();
    }
}

/// A little run: a line an iteration, a checkpoint every ten, stopped after `stop` without another word.
fn train(path: &Path, iterations: u64, stop: u64) -> Vec<String> {
    let (run, resume) = open(path, &with_iterations(iterations));
    let mut metrics = run.metrics(&resume.start).unwrap();
    let mut events = run.events(&resume.start).unwrap();
    let mut state = match resume.start {
        Start::Fresh => TrainingState {
            parameters: vec![NamedTensor::new("w", [2], [0.1, 0.2])],
            ..TrainingState::default()
        },
        Start::Continue(state) | Start::Finished(state) => state,
    };
    while state.iteration < iterations {
        if state.iteration == stop {
            return resume.warnings;
        }
        step(&mut state);
        metrics.append(state.iteration, &[("w", state.parameters[0].values[0])]).unwrap();
        events.scalars(state.iteration, &[("w", state.parameters[0].values[0])]).unwrap();
        if state.iteration % 10 == 0 {
            run.save_state(&state, &metrics).unwrap();
        }
    }
    if stop > iterations {
        let prior = Checkpoint { tensors: state.parameters, precision: Precision::F64, metadata: None };
        run.write_prior(&prior, state.iteration).unwrap();
    }
    resume.warnings
}

const TO_THE_END: u64 = u64::MAX;

#[test]
fn interrupted_runs_end_with_the_same_files() {
    let folder = tempfile::tempdir().unwrap();
    let straight = folder.path().join("straight");
    train(&straight, 40, TO_THE_END);
    let expected = content(&straight);
    assert_eq!(
        expected.keys().collect::<Vec<_>>(),
        [
            "checkpoints/iteration-00000040.safetensors",
            "config.toml",
            "metrics.jsonl",
            "prior.safetensors",
            "run.lock"
        ]
    );
    for stops in [vec![3], vec![10], vec![17, 12, 33], vec![40]] {
        let path = folder.path().join(format!("{stops:?}"));
        for &stop in &stops {
            assert!(train(&path, 40, stop).is_empty());
            // What a kill in the middle of a write leaves behind.
            fs::write(path.join(".pacmeta-x.tmp"), b"half").unwrap();
            fs::write(path.join("checkpoints/.pacmeta-y.tmp"), b"half").unwrap();
            let mut torn = fs::read(path.join("metrics.jsonl")).unwrap();
            torn.extend(b"{\"iterat");
            fs::write(path.join("metrics.jsonl"), torn).unwrap();
        }
        train(&path, 40, TO_THE_END);
        assert_eq!(content(&path), expected, "{stops:?}");
    }
}

#[test]
fn an_extended_run_equals_a_long_one_and_is_finished_only_with_its_own_result() {
    let folder = tempfile::tempdir().unwrap();
    let (long, extended) = (folder.path().join("long"), folder.path().join("extended"));
    train(&long, 60, TO_THE_END);
    train(&extended, 40, TO_THE_END);
    assert!(matches!(open(&extended, CONFIG_TEXT).1.start, Start::Finished(state) if state.iteration == 40));
    assert_eq!(
        open(&extended, CONFIG_TEXT).0.stored_iterations().unwrap(),
        [40],
        "one state is enough to go on"
    );
    // All iterations are done, but the result is still the old one.
    train(&extended, 60, 60);
    let (run, resume) = open(&extended, &with_iterations(60));
    assert!(matches!(resume.start, Start::Continue(state) if state.iteration == 60));
    drop(run);
    train(&extended, 60, TO_THE_END);
    assert_eq!(content(&extended), content(&long));
    let lower = refusal(&extended, CONFIG_TEXT);
    assert!(lower.contains("run of 60 iterations") && lower.contains("is 40 here"), "{lower}");
}

#[test]
fn a_result_is_never_lost_to_more_iterations() {
    let folder = tempfile::tempdir().unwrap();
    train(folder.path(), 40, TO_THE_END);
    let prior = fs::read(folder.path().join(PRIOR)).unwrap();
    // the first iteration after the result diverges: its state is all there is to go on from
    let (run, _) = open(folder.path(), &with_iterations(60));
    let error = run.note_divergence(Error::Diverged { iteration: 41, quantity: "the loss".to_owned() });
    assert!(error.to_string().contains("the checkpoint of iteration 40 is kept"), "{error}");
    drop(run);
    assert!(open(folder.path(), &with_iterations(60)).0.diverged(), "it is not beyond that state yet");
    train(folder.path(), 60, 55);
    let (run, resume) = open(folder.path(), &with_iterations(60));
    assert!(matches!(resume.start, Start::Continue(state) if state.iteration == 50));
    assert!(!run.diverged());
    drop(run);
    // without any state the run would begin anew and replace the result
    fs::remove_dir_all(folder.path().join(CHECKPOINTS)).unwrap();
    let refused = refusal(folder.path(), &with_iterations(60));
    assert!(refused.contains("training state is gone") && refused.contains("another --out"), "{refused}");
    assert_eq!(fs::read(folder.path().join(PRIOR)).unwrap(), prior);
}

#[test]
fn a_damaged_checkpoint_is_passed_over_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let (straight, path) = (folder.path().join("straight"), folder.path().join("damaged"));
    train(&straight, 40, TO_THE_END);
    train(&path, 40, 35);
    let newest = path.join("checkpoints/iteration-00000030.safetensors");
    let mut bytes = fs::read(&newest).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&newest, bytes).unwrap();

    let (run, resume) = open(&path, CONFIG_TEXT);
    assert!(matches!(&resume.start, Start::Continue(state) if state.iteration == 20));
    assert_eq!(
        run.metrics(&resume.start).map(|_| read_metrics(run.metrics_path()).unwrap().len()).unwrap(),
        20
    );
    let [warning] = &resume.warnings[..] else { panic!("{:?}", resume.warnings) };
    assert!(
        warning.contains("iteration-00000030") && warning.contains("the checkpoint before it is used"),
        "{warning}"
    );
    drop(run);
    train(&path, 40, TO_THE_END);
    assert_eq!(content(&path), content(&straight));

    for name in ["iteration-00000030", "iteration-00000040"] {
        fs::write(path.join(format!("checkpoints/{name}.safetensors")), b"").unwrap();
    }
    // The result is there, so nothing is lost with the states.
    let (run, resume) = open(&path, CONFIG_TEXT);
    assert!(matches!(&resume.start, Start::Finished(state) if state.iteration == 40));
    assert!(resume.warnings.is_empty(), "{:?}", resume.warnings);
    drop(run);
    fs::remove_file(path.join(PRIOR)).unwrap();
    let (_run, resume) = open(&path, CONFIG_TEXT);
    assert_eq!(resume.start, Start::Fresh);
    assert!(resume.warnings[1].contains("the run starts anew"), "{:?}", resume.warnings);
}

#[test]
fn a_checkpoint_under_a_wrong_name_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    train(folder.path(), 40, 35);
    let checkpoints = folder.path().join(CHECKPOINTS);
    fs::rename(checkpoints.join(state_name(30)), checkpoints.join(state_name(35))).unwrap();
    let (_run, resume) = open(folder.path(), CONFIG_TEXT);
    assert!(matches!(resume.start, Start::Continue(state) if state.iteration == 20));
    assert!(resume.warnings[0].contains("holds the state of iteration 30"), "{:?}", resume.warnings);
}

#[test]
fn a_checkpoint_of_a_newer_format_is_refused_rather_than_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    train(folder.path(), 40, 35);
    let newest = folder.path().join(CHECKPOINTS).join(state_name(30));
    let mut bytes = fs::read(&newest).unwrap();
    let key = br#"\"format\":1"#;
    let at = bytes.windows(key.len()).position(|window| window == key).unwrap();
    bytes[at + key.len() - 1] = b'2';
    fs::write(&newest, bytes).unwrap();
    assert!(refusal(folder.path(), CONFIG_TEXT).contains("update pacmeta"));
}

#[test]
fn as_many_checkpoints_are_kept_as_wanted_and_later_ones_go() {
    let folder = tempfile::tempdir().unwrap();
    let (run, resume) = open(folder.path(), CONFIG_TEXT);
    let run = run.with_kept_checkpoints(NonZeroUsize::new(3).unwrap());
    let metrics = run.metrics(&resume.start).unwrap();
    fs::write(run.state_path(77), b"damaged").unwrap();
    fs::write(run.checkpoints_path().join("iteration-5.safetensors"), b"not one of ours").unwrap();
    for iteration in 1..=6 {
        run.save_state(&TrainingState { iteration, ..TrainingState::default() }, &metrics).unwrap();
    }
    assert_eq!(run.stored_iterations().unwrap(), [6, 5, 4]);
    #[cfg(any(feature = "images", feature = "text"))]
    assert_eq!((last_iteration(folder.path()).unwrap(), last_iteration(Path::new("none")).unwrap()), (6, 0));
    assert!(run.checkpoints_path().join("iteration-5.safetensors").exists());
    assert_eq!(iteration_of(&state_name(123_456_789_012)), Some(123_456_789_012));
}

#[test]
fn another_run_in_the_folder_is_refused_with_the_keys_that_differ() {
    let folder = tempfile::tempdir().unwrap();
    train(folder.path(), 40, 15);
    let before = content(folder.path());
    let other = CONFIG_TEXT.replace("beta = 10.0", "beta = 30.0\nalpha = 1.0").replace("rate", "speed");
    let message = refusal(folder.path(), &other);
    for part in [
        "holds a run with other settings",
        "`method.alpha` is absent there and 1.0 here",
        "`method.beta` is 10.0 there and 30.0 here",
        "`training.rate` is 0.003 there and absent here",
        "and 1 more keys",
        "choose another --out",
    ] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(content(folder.path()), before);
    let reordered =
        "[training]\nrate = 0.003 # the same\niterations = 40\n[method]\nbeta = 10.0\nname = 'pacmaml'\n";
    assert!(matches!(open(folder.path(), reordered).1.start, Start::Continue(_)));
}

#[test]
fn what_is_no_run_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    for (file, text) in [("thesis.tex", "important"), (CONFIG, CONFIG_TEXT), ("checkpoints", "a file")] {
        let path = folder.path().join(format!("with-{file}"));
        fs::create_dir(&path).unwrap();
        fs::write(path.join(file), text).unwrap();
        let message = refusal(&path, CONFIG_TEXT);
        assert!(message.contains("not empty") && message.contains(file), "{message}");
        assert_eq!(file_names(&path).unwrap(), [file]);
    }
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    assert!(refusal(&file, CONFIG_TEXT).contains("is a file"));
}

#[test]
fn a_crash_before_the_configuration_was_written_leaves_a_usable_folder() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(LOCK), "1234\n").unwrap();
    fs::write(folder.path().join(".pacmeta-z.tmp"), "half a configuration").unwrap();
    let (run, resume) = open(&folder.path().join("."), CONFIG_TEXT);
    assert_eq!(resume.start, Start::Fresh);
    assert!(fs::read_to_string(run.config_path()).unwrap().ends_with(CONFIG_TEXT));
    assert!(!folder.path().join(".pacmeta-z.tmp").exists());
}

#[test]
fn two_writers_are_kept_apart_and_the_second_learns_who_the_first_is() {
    let folder = tempfile::tempdir().unwrap();
    let (first, _) = open(folder.path(), CONFIG_TEXT);
    let message = refusal(folder.path(), CONFIG_TEXT);
    let holder = format!("process {} is writing", std::process::id());
    assert!(message.contains(&holder) && message.contains("choose another --out"), "{message}");
    drop(first);
    assert_eq!(fs::read(folder.path().join(LOCK)).unwrap(), b"");
    open(folder.path(), CONFIG_TEXT);
}

#[test]
fn configurations_that_say_too_little_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    assert!(refusal(&path, "[training]\n").contains("training.iterations"));
    assert!(refusal(&path, "[training]\niterations = -1\n").contains("whole number"));
    assert!(refusal(&path, "= 1").contains("not TOML"));
    assert!(!path.exists());
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_cannot_be_written_is_an_error_that_names_it() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let mut path = folder.path().join("read-only");
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(0o555)).unwrap();
    if fs::write(path.join("probe"), "").is_ok() {
        path = PathBuf::from("/proc/pacmeta-run"); // the superuser is only stopped by a file system like this
    }
    let error = RunDirectory::create_or_resume(&path, CONFIG_TEXT).unwrap_err();
    assert!(
        matches!(&error, Error::Io { .. }) && error.to_string().contains(path.to_str().unwrap()),
        "{error}"
    );
    fs::set_permissions(folder.path().join("read-only"), PermissionsExt::from_mode(0o755)).unwrap();
}
