//! Functions drawn from a prior: what a predictor thinks likely before it has seen an example of the task.
//!
//! The functions are thin lines, so that their spread is seen at a glance; where the prior's mean and standard deviation
//! are known, its central 95% lie in a pale band behind them.

use super::chart::{Drawing, Key, Legend, Place, skipped_remark};
use super::data::PriorPanel;
use super::frame::{Frame, Plan, Shape, line};
use super::number::{self, brief};
use super::prediction::{
    MOST, dot, edges, extent, finish, finite_pairs, mean, usable, value_axis, write_band, write_path,
};
use super::scale::Axis;
use super::svg::Element;

/// So many places along each function answer to hovering.
const STOPS: usize = 9;

/// Legend of priors; several panels share one.
pub(crate) fn keys<'a>(panels: impl Iterator<Item = &'a PriorPanel> + Clone) -> Vec<Key> {
    let any = |test: fn(&PriorPanel) -> bool| panels.clone().any(test);
    let mut keys = Vec::new();
    let mut add = |name: &str, classes: &[&str]| {
        let mut sample = String::new();
        for class in classes {
            match *class {
                "priorband" => Element::new("rect")
                    .class(class)
                    .number("width", 26.0)
                    .number("height", 12.0)
                    .empty(&mut sample),
                class => line(class, 0.0, 6.0, 26.0, 6.0, &mut sample),
            }
        }
        keys.push(Key { sample, name: name.to_owned() });
    };
    if any(|p| !p.samples.is_empty()) {
        add("function drawn from the prior", &["sample"]);
    }
    if any(|p| !p.grid.is_empty()) {
        add("mean and 95% before adaptation", &["priorband", "prior"]);
    }
    if any(|p| p.truth.is_some()) {
        add("truth", &["truth"]);
    }
    keys
}

/// The lowest and highest values that a panel shows.
pub(crate) fn values(panel: &PriorPanel) -> Vec<f64> {
    let axis = Axis::default();
    let grid = panel.grid.iter().filter(|p| usable(&axis, p)).flat_map(edges);
    let samples = panel.samples.iter().flatten().map(|p| p.1).filter(|y| axis.shows(*y));
    grid.chain(samples).collect()
}

/// Draws the panel for a place.
pub(crate) fn draw(panel: &PriorPanel, place: &Place<'_>) -> Drawing {
    let x_axis = Axis::new(panel.x_label.as_str()).tight();
    let y_axis = value_axis(&panel.y_label, place);
    let mut skipped = 0;
    let samples: Vec<Vec<(f64, f64)>> =
        panel.samples.iter().map(|sample| finite_pairs(sample, &mut skipped)).collect();
    let grid: Vec<_> = panel.grid.iter().filter(|p| usable(&y_axis, p)).copied().collect();
    skipped += panel.grid.len() - grid.len();
    let truth = finite_pairs(panel.truth.as_deref().unwrap_or_default(), &mut skipped);
    let remarks: Vec<String> = skipped_remark(skipped).into_iter().collect();

    let pairs = || samples.iter().flatten().chain(&truth);
    let xs = grid.iter().map(|p| p.x).chain(pairs().map(|p| p.0)).collect();
    let ys: Vec<f64> = grid.iter().flat_map(edges).chain(pairs().map(|p| p.1)).collect();
    let legend = if place.legend == Legend::Shown { keys(std::iter::once(panel)) } else { Vec::new() };
    let shape = Shape::Height(if place.width > 500.0 { 270.0 } else { 200.0 });
    let plan = Plan { x: &x_axis, y: &y_axis, xs, ys, keys: &legend, shape, right: 8.0 };
    let Some(mut frame) = Frame::new(plan, place) else {
        return Drawing::empty(place, &panel.title, remarks);
    };

    let mut marks = String::new();
    write_band("priorband", &grid, MOST, &frame, &mut marks);
    for sample in &samples {
        write_path("sample", sample, &frame, &mut marks);
    }
    write_path("prior", &mean(&grid), &frame, &mut marks);
    write_path("truth", &truth, &frame, &mut marks);
    for (index, sample) in samples.iter().enumerate() {
        let stride = sample.len().div_ceil(STOPS).max(1);
        for (x, y) in sample.iter().skip(stride / 2).step_by(stride) {
            let tip = format!(
                "function {} of {}\n{}: {}\n{}: {}",
                index + 1,
                samples.len(),
                panel.x_label,
                brief(*x),
                panel.y_label,
                brief(*y)
            );
            dot("hit s0", frame.px(*x), frame.py(*y), 3.6, Some(&tip), &mut marks);
        }
    }
    frame.clipped(&marks);

    let heights: Vec<f64> = samples.iter().flatten().map(|p| p.1).collect();
    let mut description = format!(
        "{} functions of {} drawn from the prior, before adaptation.",
        number::count(samples.len()),
        panel.x_label
    );
    if !heights.is_empty() {
        let low = heights.iter().copied().fold(f64::INFINITY, f64::min);
        description.push_str(&format!(
            " Their values reach from {} to {}.",
            brief(low),
            brief(low + extent(&heights))
        ));
    }
    finish(frame, place, &panel.title, description, remarks)
}
