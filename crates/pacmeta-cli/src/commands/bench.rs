//! `pacmeta bench`.

use std::time::Duration;

use pacmeta::Result;
use pacmeta::benchmark::{
    EncoderSizes, TextStepSettings, measure_text_step, time_anil, time_conv4, time_encoder, time_gp,
};

use crate::arguments::ObjectiveName;
use crate::bench_arguments::{Bench, BenchAnil, BenchConv4, BenchEncoder, BenchGp, BenchText, BenchWhat};
use crate::output::{print, print_json};

/// How long a measurement takes.
const BUDGET: Duration = Duration::from_secs(2);

pub(crate) fn run(arguments: &Bench) -> Result<()> {
    match &arguments.what {
        BenchWhat::Gp(arguments) => gp(arguments),
        BenchWhat::Conv4(arguments) => conv4(arguments),
        BenchWhat::Encoder(arguments) => encoder(arguments),
        BenchWhat::Anil(arguments) => anil(arguments),
        BenchWhat::Text(arguments) => text(arguments),
    }
}

fn gp(arguments: &BenchGp) -> Result<()> {
    let pacmaml = arguments.method == ObjectiveName::Pacmaml;
    let timing = time_gp(pacmaml, arguments.examples as usize, BUDGET)?;
    if arguments.json {
        return print_json(&timing);
    }
    print(&format!(
        "{}, {} examples a task, {} tasks a batch: {:.1} µs per meta-iteration (median of {} repeats of {} iterations; \
         fastest {:.1} µs), one thread, {}\n",
        timing.method,
        timing.examples,
        timing.batch,
        timing.microseconds_per_iteration,
        timing.repeats,
        timing.iterations,
        timing.fastest_microseconds,
        timing.instructions
    ))
}

fn conv4(arguments: &BenchConv4) -> Result<()> {
    let timing = time_conv4(arguments.images as usize, BUDGET)?;
    if arguments.json {
        return print_json(&timing);
    }
    print(&format!(
        "Conv4, {} images, {} threads: {:.1} ms forward and backward (median of {} repeats; fastest {:.1} ms, of which {:.1} ms \
         forward), {:.0} GFLOP/s counted as a direct convolution; these threads reach {:.0} GFLOP/s of multiply-adds, {}\n",
        timing.images,
        timing.passes.threads,
        timing.passes.milliseconds,
        timing.passes.repeats,
        timing.passes.fastest_milliseconds,
        timing.passes.fastest_forward_milliseconds,
        timing.passes.gflops,
        timing.passes.peak_gflops,
        timing.passes.instructions
    ))
}

fn encoder(arguments: &BenchEncoder) -> Result<()> {
    let sizes = EncoderSizes {
        layers: arguments.layers as usize,
        hidden: arguments.hidden as usize,
        batch: arguments.batch as usize,
        length: arguments.length as usize,
    };
    let timing = time_encoder(sizes, BUDGET)?;
    if arguments.json {
        return print_json(&timing);
    }
    print(&format!(
        "encoder of {} layers of {}, {} sequences of {} tokens, {} threads: {:.1} ms forward and backward (median of {} repeats; \
         fastest {:.1} ms, of which {:.1} ms forward), {:.0} GFLOP/s; these threads reach {:.0} GFLOP/s of multiply-adds; \
         {:.0} MB besides parameters and gradient{}, {}\n",
        sizes.layers,
        sizes.hidden,
        sizes.batch,
        sizes.length,
        timing.passes.threads,
        timing.passes.milliseconds,
        timing.passes.repeats,
        timing.passes.fastest_milliseconds,
        timing.passes.fastest_forward_milliseconds,
        timing.passes.gflops,
        timing.passes.peak_gflops,
        timing.room_megabytes,
        timing
            .peak_megabytes
            .map_or(String::new(), |peak| format!(", at most {peak:.0} MB of memory in all")),
        timing.passes.instructions
    ))
}

fn anil(arguments: &BenchAnil) -> Result<()> {
    let timing = time_anil(arguments.method, arguments.examples, BUDGET, arguments.gradient.as_deref())?;
    if arguments.json {
        return print_json(&timing);
    }
    print(&format!(
        "{}, {} tasks of {} images, {} threads: {:.1} ms per meta-iteration (median of {} repeats; fastest {:.1} ms){}, {}\n",
        timing.method.title(),
        timing.batch,
        timing.examples,
        timing.threads,
        timing.milliseconds,
        timing.repeats,
        timing.fastest_milliseconds,
        timing.peak_megabytes.map_or(String::new(), |peak| format!(", at most {peak:.0} MB of memory")),
        timing.instructions
    ))
}

fn text(arguments: &BenchText) -> Result<()> {
    let shape = arguments.shape.into();
    let step = measure_text_step(TextStepSettings {
        shape,
        method: arguments.method,
        way_back: arguments.way_back.into(),
        threshold: arguments.threshold.unwrap_or(shape.encoder().layers),
        steps: arguments.steps,
        examples: arguments.examples,
        support: arguments.support,
        length: arguments.length,
    })?;
    if arguments.json {
        return print_json(&step);
    }
    let gigabytes = |bytes: usize| bytes as f64 / 1e9;
    print(&format!(
        "{}, v = {}, {} inner steps, {} examples of {} tokens: {:.0} ms; {:.2} GB (parameters {:.2}, passes {:.2}, inner steps {:.2}, tape {:.2}, \
         states between steps {:.2}){}\n",
        step.settings.method.title(),
        step.settings.threshold,
        step.settings.steps,
        step.settings.examples,
        step.settings.length,
        step.milliseconds,
        gigabytes(step.total_bytes),
        gigabytes(step.parameter_bytes),
        gigabytes(step.pass_bytes),
        gigabytes(step.step_bytes),
        gigabytes(step.tape_bytes),
        gigabytes(step.kept_bytes),
        step.resident_bytes.map_or(String::new(), |peak| format!(", {:.2} GB resident", peak as f64 / 1e9))
    ))
}
