//! Running the binary in a folder of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A small run that takes a fraction of a second.
pub(crate) const SMALL: &str = "[data]\nexamples = 8\ntasks = 5\ntarget_tasks = 4\nquery = 10\n[method]\nbeta_per_example = 30\n\
                         alpha_over_beta = 0.3\n[training]\niterations = 60\nlog_every = 10\ncheckpoint_every = 20\n";

pub(crate) struct Place {
    folder: TempDir,
}

pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A place with `small.toml` in it.
    pub(crate) fn with_small() -> Self {
        let place = Self::new();
        place.write("small.toml", SMALL);
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    /// A file that need not be text.
    pub(crate) fn text_lossy(&self, name: &str) -> String {
        String::from_utf8_lossy(&self.read(name)).into_owned()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pacmeta"));
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    /// The program with a limit on file sizes, which fails like a full disk; a block has 512 bytes.
    #[cfg(target_os = "linux")]
    pub(crate) fn with_full_disk(&self, blocks: usize, arguments: &[&str]) -> Command {
        let mut command = Command::new("sh");
        let script = format!("ulimit -f {blocks}; exec \"$0\" \"$@\"");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_pacmeta")]).args(arguments);
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(arguments).output().unwrap())
    }

    /// Runs, expects success, gives standard output.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.stderr);
        ran.stdout
    }

    /// Runs, expects success, reads standard output as JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let text = self.ok(arguments);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Runs, expects a mistake of the user (exit code 2) that is described with all of these words.
    pub(crate) fn refused(&self, arguments: &[&str], words: &[&str]) -> Ran {
        let ran = self.run(arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.starts_with("error: "), "nothing was begun: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "a refusal has no result");
        for word in words {
            assert!(ran.stderr.contains(word), "{arguments:?}: no `{word}` in: {}", ran.stderr);
        }
        ran
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// A file among the golden values.
pub(crate) fn golden(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pacmeta/tests/golden");
    folder.join(name).to_str().unwrap().to_owned()
}

pub(crate) fn golden_json(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(golden(name)).unwrap()).unwrap()
}

/// Whether two numbers agree to this relative precision.
#[track_caller]
pub(crate) fn close(found: &Value, expected: &Value, tolerance: f64) {
    let (found, expected) = (found.as_f64().unwrap(), expected.as_f64().unwrap());
    let scale = expected.abs().max(1e-300);
    assert!((found - expected).abs() <= tolerance * scale, "found {found}, expected {expected}");
}
