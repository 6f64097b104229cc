//! Ctrl-C, SIGTERM, SIGUSR1 and SIGHUP: training and searching are asked to stop after saving, everything else ends at
//! once. SIGTERM and SIGUSR1 are what schedulers send ahead of an end, sometimes twice; only a person who presses Ctrl-C
//! again is in a hurry.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The exit code of an interrupted command.
pub(crate) const EXIT_CODE: u8 = 130;

/// Runs that are training or searching now.
static LOOPS: AtomicUsize = AtomicUsize::new(0);
static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Takes over the signals. Without handlers they end the process, which is safe too: the last checkpoint stays.
pub(crate) fn install() {
    #[cfg(unix)]
    {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
        survive_limits_on_files();
        let wanted: &[i32] = if hangup_is_ignored() {
            &[SIGINT, SIGTERM, SIGUSR1]
        } else {
            &[SIGINT, SIGTERM, SIGUSR1, SIGHUP]
        };
        if let Ok(mut signals) = signal_hook::iterator::Signals::new(wanted) {
            let handle = move || {
                for signal in signals.forever() {
                    interrupted(if signal == SIGINT { Sender::Person } else { Sender::System });
                }
            };
            std::thread::spawn(handle);
        }
    }
    #[cfg(not(unix))]
    let _ = ctrlc::set_handler(|| interrupted(Sender::Person));
}

/// Takes SIGXFSZ, which would end the process: a file that may grow no more is then an error of writing, which says so.
#[cfg(unix)]
fn survive_limits_on_files() {
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default());
}

/// Whether this process was started with SIGHUP ignored, as `nohup` does: then it is to survive its terminal. Where that
/// cannot be told, the signal is left as it is.
#[cfg(unix)]
fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_none_or(|mask| mask & (1 << (signal_hook::consts::SIGHUP - 1)) != 0)
}

/// Who asks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sender {
    Person,
    System,
}

/// A second Ctrl-C ends the process whatever it does; files are written atomically.
fn interrupted(sender: Sender) {
    let first = !REQUESTED.swap(true, Ordering::SeqCst);
    let in_loop = LOOPS.load(Ordering::SeqCst) > 0;
    if !(in_loop && (first || sender == Sender::System)) {
        crate::output::remark("interrupted");
        std::process::exit(i32::from(EXIT_CODE));
    }
}

/// While one of these lives, a signal is a request that its owner asks for.
#[derive(Debug)]
pub(crate) struct InLoop(());

impl InLoop {
    /// Enters a loop.
    pub(crate) fn enter() -> Self {
        LOOPS.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for InLoop {
    fn drop(&mut self) {
        LOOPS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether somebody pressed Ctrl-C, or the system asked for an end.
pub(crate) fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}
