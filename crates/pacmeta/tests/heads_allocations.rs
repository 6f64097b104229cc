//! Methods on heads allocate nothing once their buffers have grown.

#![allow(clippy::unwrap_used, reason = "a failing test may panic")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use pacmeta::learners::head::HeadShape;
use pacmeta::methods::heads::{FeatureTask, HeadGradient, HeadMethodSettings, HeadRoom};
use pacmeta_tensor::Key;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, with a count for each thread.
struct Counting;

// SAFETY: every call is passed on to the system's allocator unchanged; the count is a plain number without a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn nothing_is_allocated_after_the_first_task() {
    let shape = HeadShape { features: 50, classes: 5 };
    let features: Vec<f32> = (0..20 * 50).map(|index| (index as f32).sin()).collect();
    let labels: Vec<usize> = (0..20).map(|index| index % 5).collect();
    let head = vec![0.01; shape.parameters()];
    let adagrad = r#""alpha": 5, "inner": {"steps": 6, "rate": 0.01, "optimiser": "adagrad"}"#;
    let svgd = r#""sampler": {"kind": "svgd", "particles": 4}"#;
    for json in [
        r#"{"name": "multi-task", "inner": {"steps": 6, "rate": 0.01}}"#.to_owned(),
        r#"{"name": "fomaml", "inner": {"steps": 6, "rate": 0.01}}"#.to_owned(),
        r#"{"name": "maml", "inner": {"steps": 6, "rate": 0.01}}"#.to_owned(),
        r#"{"name": "reptile", "alpha": 5, "inner": {"steps": 6, "rate": 0.01}}"#.to_owned(),
        format!(r#"{{"name": "bmaml", {adagrad}, {svgd}}}"#),
        format!(r#"{{"name": "pacoh", {adagrad}, {svgd}}}"#),
        format!(r#"{{"name": "pacoh", {adagrad}, "estimator": {{"kind": "prior", "samples": 3}}}}"#),
        format!(r#"{{"name": "pacmaml", {adagrad}}}"#),
    ] {
        let method = serde_json::from_str::<HeadMethodSettings>(&json).unwrap().build::<f32>().unwrap();
        let (mut room, mut gradient) = (HeadRoom::default(), HeadGradient::default());
        let mut run = |examples: usize| {
            let features = &features[..examples * shape.features];
            let task = FeatureTask { shape, features, labels: &labels[..examples], subset: 5 };
            method.task_gradient(&head, &task, Key::new(1), &mut room, &mut gradient).unwrap();
            ALLOCATIONS.get()
        };
        let before = ALLOCATIONS.get();
        let first = run(20);
        assert!(first > before, "{json}: the count works");
        assert_eq!([run(20), run(10)], [first; 2], "{json}");
    }
}
