//! Long computations: they run on a thread of their own, while the caller's thread answers Ctrl-C and tells how far they
//! are.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pacmeta::Result;
use pacmeta::experiment::{Observer, TemperatureChoice};
use pacmeta::training::IterationTerms;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::errors::exception;

/// Signals are answered, and progress is told, this often.
const EVERY: Duration = Duration::from_millis(50);

enum Event<T> {
    Progress(u64, u64, f64),
    Warning(String),
    End(Box<Result<T>>),
}

/// What the computation sees of its caller.
pub(crate) struct Watch<T> {
    stop: Arc<AtomicBool>,
    events: Sender<Event<T>>,
    told: Option<Instant>,
}

impl<T> Watch<T> {
    /// Whether the caller wants it to stop.
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Tells how far it is, now and then, and at the end.
    pub(crate) fn tell(&mut self, done: u64, total: u64, objective: f64) {
        if done == total || self.told.is_none_or(|told| told.elapsed() >= EVERY) {
            self.told = Some(Instant::now());
            let _ = self.events.send(Event::Progress(done, total, objective));
        }
    }
}

impl<T: Send> Observer for Watch<T> {
    fn searching(&mut self, _: usize, _: usize, _: u64) {}
    fn chosen(&mut self, _: &TemperatureChoice) {}
    fn warning(&mut self, message: &str) {
        let _ = self.events.send(Event::Warning(message.to_owned()));
    }
    fn begin(&mut self, _: u64, _: u64) {}
    fn iteration(&mut self, iteration: u64, total: u64, terms: &IterationTerms) {
        self.tell(iteration, total, terms.total);
    }
    fn stop(&self) -> bool {
        self.stopped()
    }
}

/// Runs `work` and gives its result. `progress` is called with iterations done, all iterations and the objective; what it
/// raises stops the work and is raised here, as is Ctrl-C.
pub(crate) fn watched<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&mut Watch<T>) -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let stop = Arc::new(AtomicBool::new(false));
    let (events, receiver) = channel();
    let mut watch = Watch { stop: Arc::clone(&stop), events: events.clone(), told: None };
    let worker = std::thread::Builder::new().name("pacmeta".to_owned()).spawn(move || {
        let result = work(&mut watch);
        let _ = events.send(Event::End(Box::new(result)));
    });
    worker.map_err(|error| PyRuntimeError::new_err(format!("cannot start a thread: {error}")))?;
    let receiver: Mutex<Receiver<Event<T>>> = Mutex::new(receiver);
    let mut raised: Option<PyErr> = None;
    loop {
        let event = py.detach(|| receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(EVERY));
        let answer = match event {
            Ok(Event::End(result)) => {
                return match raised {
                    Some(error) => Err(error),
                    None => result.map_err(exception),
                };
            }
            Ok(Event::Progress(done, total, objective)) => match progress {
                Some(progress) if raised.is_none() => progress.call1((done, total, objective)).map(|_| ()),
                _ => Ok(()),
            },
            Ok(Event::Warning(message)) => warn(py, &message),
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("the computation ended without a result"));
            }
        };
        if let Err(error) = answer.and_then(|()| py.check_signals()) {
            stop.store(true, Ordering::Relaxed);
            raised.get_or_insert(error);
        }
    }
}

fn warn(py: Python<'_>, message: &str) -> PyResult<()> {
    py.import("warnings")?.call_method1("warn", (message,)).map(|_| ())
}
