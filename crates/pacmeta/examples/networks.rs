//! Times the gradient of one task where every parameter of the paper's network adapts, for each method: K = 6, m' = 5, m = 10. The
//! body takes as many threads as there are. MAML comes last, since the peak of memory (where the system tells it) never falls.
//!
//! `cargo run --release -p pacmeta --example networks`

use std::time::Instant;

use pacmeta::learners::network::{Derivative, Network, NetworkRoom};
use pacmeta::methods::heads::HeadMethodSettings;
use pacmeta::methods::networks::{NetworkMethod, NetworkTask};
use pacmeta::priors::ConvolutionSpec;
use pacmeta_tensor::Key;

const LABELS: [usize; 10] = [0, 1, 2, 3, 4, 0, 1, 2, 3, 4];
const REPEATS: usize = 9;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let spec = ConvolutionSpec::mini_imagenet(5);
    let body = spec.body()?;
    let parameters: Vec<f32> = spec.initialise(Key::new(1))?.values().iter().map(|&p| p as f32).collect();
    let mut generator = Key::new(2).generator();
    let count = LABELS.len() * body.shape().image_len();
    let pixels: Vec<u8> = (0..count).map(|_| (256.0 * generator.uniform()) as u8).collect();
    let task = NetworkTask { inputs: &pixels[..], labels: &LABELS, subset: 5 };
    let network = Network { body: &body, classes: spec.classes };
    println!("{:<12} {:>10} {:>14}", "method", "ms a task", "peak memory");
    for (name, rest) in [
        ("multi-task", ""),
        ("fomaml", ""),
        ("reptile", r#", "alpha": 1.0"#),
        ("pacoh", r#", "alpha": 1.0"#),
        ("pacmaml", r#", "alpha": 1.0"#),
        ("maml", ""),
    ] {
        let json = format!(r#"{{"name": "{name}", "inner": {{"steps": 6, "rate": 0.01}}{rest}}}"#);
        let method = NetworkMethod::new(&serde_json::from_str::<HeadMethodSettings>(&json)?)?;
        let mut room = NetworkRoom::new(&body);
        let mut gradient = vec![0.0; parameters.len()];
        let mut times = Vec::new();
        for _ in 0..REPEATS {
            let start = Instant::now();
            method.task_gradient(
                network,
                &parameters,
                &task,
                Key::new(3),
                &mut room,
                Derivative { parameters: &mut gradient, inputs: &mut [] },
            )?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        println!("{name:<12} {:>10.1} {:>14}", times[REPEATS / 2], peak_memory());
    }
    Ok(())
}

/// The most memory that the process has had, where the system says so.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    match peak.and_then(|kilobytes| kilobytes.parse::<f64>().ok()) {
        Some(kilobytes) => format!("{:.0} MB", kilobytes / 1024.0),
        None => "unknown".to_owned(),
    }
}
