//! Ctrl-C: a training loop is asked to stop after a checkpoint, everything else ends at once.

use std::sync::atomic::{AtomicBool, Ordering};

/// The exit code of an interrupted command.
pub(crate) const EXIT_CODE: u8 = 130;

static IN_LOOP: AtomicBool = AtomicBool::new(false);
static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Takes over the signal. A second one ends the process whatever it does; files are written atomically.
pub(crate) fn install() {
    let handler = || {
        let first = !REQUESTED.swap(true, Ordering::SeqCst);
        if !(first && IN_LOOP.load(Ordering::SeqCst)) {
            crate::output::remark("interrupted");
            std::process::exit(i32::from(EXIT_CODE));
        }
    };
    // Without a handler the signal ends the process, which is safe too: the last checkpoint stays.
    let _ = ctrlc::set_handler(handler);
}

/// From now on a signal is a request that the loop asks for.
pub(crate) fn enter_loop() {
    IN_LOOP.store(true, Ordering::SeqCst);
}

/// From now on a signal ends the process.
pub(crate) fn leave_loop() {
    IN_LOOP.store(false, Ordering::SeqCst);
}

/// Whether somebody pressed Ctrl-C.
pub(crate) fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}
