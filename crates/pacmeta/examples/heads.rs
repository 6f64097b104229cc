//! Prints how long each method's head part takes for one task on one thread.
//!
//! `cargo run --release -p pacmeta --example heads`

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use pacmeta::learners::head::HeadShape;
use pacmeta::methods::heads::{FeatureTask, HeadGradient, HeadMethodSettings, HeadRoom};
use pacmeta_tensor::Key;

/// Five classes, 1600 features after a rectifier, K = 6: the images of the paper.
const SHAPE: HeadShape = HeadShape { features: 1600, classes: 5 };

/// The median of many repeats, in milliseconds.
fn median(mut call: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..200)
        .map(|_| {
            let start = Instant::now();
            call();
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() -> Result<(), Box<dyn Error>> {
    let gd = r#""inner": {"steps": 6, "rate": 0.01}"#;
    let adagrad = r#""alpha": 10, "inner": {"steps": 6, "rate": 0.01, "optimiser": "adagrad"}"#;
    let methods = [
        ("multi-task", format!(r#"{{"name": "multi-task", {gd}}}"#)),
        ("FOMAML", format!(r#"{{"name": "fomaml", {gd}}}"#)),
        ("MAML", format!(r#"{{"name": "maml", {gd}}}"#)),
        ("Reptile", format!(r#"{{"name": "reptile", "alpha": 10, {gd}}}"#)),
        ("BMAML", format!(r#"{{"name": "bmaml", {adagrad}}}"#)),
        (
            "BMAML, 5 particles",
            format!(r#"{{"name": "bmaml", {adagrad}, "sampler": {{"kind": "svgd", "particles": 5}}}}"#),
        ),
        ("PACOH", format!(r#"{{"name": "pacoh", {adagrad}}}"#)),
        ("PACMAML", format!(r#"{{"name": "pacmaml", {adagrad}}}"#)),
    ];
    let examples = [10, 20, 40, 80];
    println!("milliseconds a task, m' = 5{:>19}{:>9}{:>9}{:>9}", "m = 10", 20, 40, 80);
    for (name, settings) in methods {
        let method = serde_json::from_str::<HeadMethodSettings>(&settings)?.build::<f32>()?;
        print!("{name:38}");
        for count in examples {
            let mut generator = Key::new(3).generator();
            let mut draw = |scale: f64| (scale * generator.normal()) as f32;
            let head: Vec<f32> = (0..SHAPE.parameters()).map(|_| draw(0.03)).collect();
            let features: Vec<f32> = (0..count * SHAPE.features).map(|_| draw(1.0).max(0.0)).collect();
            let labels: Vec<usize> = (0..count).map(|example| example % SHAPE.classes).collect();
            let task = FeatureTask { shape: SHAPE, features: &features, labels: &labels, subset: 5 };
            let (mut room, mut gradient) = (HeadRoom::default(), HeadGradient::default());
            let mut failure = None;
            let time = median(|| {
                let terms = method.task_gradient(&head, &task, Key::new(1), &mut room, &mut gradient);
                failure = black_box(terms).err();
            });
            failure.map_or(Ok(()), Err)?;
            print!("{time:9.3}");
        }
        println!();
    }
    Ok(())
}
