//! Predictions on one task: a predictive distribution over one input, or predicted against observed values.
//!
//! Bands are central intervals of a Gaussian: mean ± 0.674 std holds half of the probability, mean ± 1.96 std holds 95%.

use super::chart::{Drawing, Key, Legend, Place, skipped_remark};
use super::data::{GridPoint, ObservedPanel, PredictionPanel};
use super::frame::{Frame, Plan, Shape, line};
use super::number::{self, brief};
use super::scale::Axis;
use super::svg::{Element, area, coordinate, polyline};

const HALF: f64 = 0.674_489_750_196_081_7;
pub(super) const MOST: f64 = 1.959_963_984_540_054;
/// So many places along the mean answer to hovering.
const STOPS: usize = 33;

pub(super) fn usable(axis: &Axis, point: &GridPoint) -> bool {
    // A standard deviation is never negative; one that is would draw a band inside out.
    axis.shows(point.x)
        && axis.shows(point.mean)
        && point.std.is_finite()
        && point.std >= 0.0
        && axis.shows(point.mean - MOST * point.std)
        && axis.shows(point.mean + MOST * point.std)
}

pub(super) fn finite_pairs(points: &[(f64, f64)], skipped: &mut usize) -> Vec<(f64, f64)> {
    let axis = Axis::default();
    let kept: Vec<_> = points.iter().filter(|(x, y)| axis.shows(*x) && axis.shows(*y)).copied().collect();
    *skipped += points.len() - kept.len();
    kept
}

/// Which parts a panel has; several panels share one legend.
pub(crate) fn keys<'a>(panels: impl Iterator<Item = &'a PredictionPanel> + Clone) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut add = |wanted: bool, name: &str, draw: &dyn Fn(&mut String)| {
        if wanted {
            let mut sample = String::new();
            draw(&mut sample);
            keys.push(Key { sample, name: name.to_owned() });
        }
    };
    let band = |class: &'static str| {
        move |out: &mut String| {
            Element::new("rect").class(class).number("width", 26.0).number("height", 12.0).empty(out);
        }
    };
    let any = |test: fn(&PredictionPanel) -> bool| panels.clone().any(test);
    let grid = any(|p| !p.grid.is_empty());
    add(grid, "mean", &|out| line("mean", 0.0, 6.0, 26.0, 6.0, out));
    add(grid, "50% interval", &|out| {
        band("band95")(out);
        band("band50")(out);
    });
    add(grid, "95% interval", &band("band95"));
    add(any(|p| !p.support.is_empty()), "support", &|out| dot("dot", 13.0, 6.0, 4.2, None, out));
    add(any(|p| !p.query.is_empty()), "query", &|out| dot("ring", 13.0, 6.0, 2.6, None, out));
    add(any(|p| p.truth.is_some()), "truth", &|out| line("truth", 0.0, 6.0, 26.0, 6.0, out));
    add(any(|p| p.prior.is_some()), "before adaptation", &|out| {
        band("priorband")(out);
        line("prior", 0.0, 6.0, 26.0, 6.0, out);
    });
    keys
}

pub(super) fn dot(class: &str, x: f64, y: f64, radius: f64, tip: Option<&str>, out: &mut String) {
    let element = Element::new("circle").class(class).number("cx", x).number("cy", y).number("r", radius);
    match tip {
        Some(tip) => element.tip(tip, out),
        None => element.empty(out),
    }
}

/// The vertical axis of a panel: its own, or the one that panels side by side share.
pub(super) fn value_axis(label: &str, place: &Place<'_>) -> Axis {
    let axis = Axis::new(label);
    match place.values {
        Some((low, high)) => axis.range(low, high),
        None => axis,
    }
}

/// The values that a panel must show; a vague prior is cut at the frame.
pub(crate) fn values(panel: &PredictionPanel) -> Vec<f64> {
    let axis = Axis::default();
    let grid = panel.grid.iter().filter(|p| usable(&axis, p)).flat_map(edges);
    let pairs = panel.support.iter().chain(&panel.query).chain(panel.truth.iter().flatten());
    grid.chain(pairs.map(|p| p.1).filter(|y| axis.shows(*y))).collect()
}

/// Draws a predictive distribution over one input.
pub(crate) fn draw(panel: &PredictionPanel, place: &Place<'_>) -> Drawing {
    let x_axis = Axis::new(panel.x_label.as_str()).tight();
    let y_axis = value_axis(&panel.y_label, place);
    let mut skipped = 0;
    let mut clean = |grid: &[GridPoint]| -> Vec<GridPoint> {
        let kept: Vec<_> = grid.iter().filter(|p| usable(&y_axis, p)).copied().collect();
        skipped += grid.len() - kept.len();
        kept
    };
    let grid = clean(&panel.grid);
    let prior = clean(panel.prior.as_deref().unwrap_or_default());
    let support = finite_pairs(&panel.support, &mut skipped);
    let query = finite_pairs(&panel.query, &mut skipped);
    let truth = finite_pairs(panel.truth.as_deref().unwrap_or_default(), &mut skipped);
    let mut remarks: Vec<String> = skipped_remark(skipped).into_iter().collect();
    if grid.is_empty() {
        remarks.push("There is no prediction to draw.".to_owned());
    }

    let pairs = || support.iter().chain(&query).chain(&truth);
    let xs = grid.iter().chain(&prior).map(|p| p.x).chain(pairs().map(|p| p.0)).collect();
    let mut ys: Vec<f64> = grid.iter().flat_map(edges).chain(pairs().map(|p| p.1)).collect();
    let before: Vec<f64> = prior.iter().flat_map(edges).collect();
    // A vague prior may not squeeze the posterior: then it is cut at the frame.
    if ys.is_empty() || extent(&before) <= 2.5 * extent(&ys) {
        ys.extend(before);
    }
    let legend = if place.legend == Legend::Shown { keys(std::iter::once(panel)) } else { Vec::new() };
    let shape = Shape::Height(if place.width > 500.0 { 270.0 } else { 200.0 });
    let plan = Plan { x: &x_axis, y: &y_axis, xs, ys, keys: &legend, shape, right: 8.0 };
    let Some(mut frame) = Frame::new(plan, place) else {
        return Drawing::empty(place, &panel.title, remarks);
    };

    let mut marks = String::new();
    write_band("priorband", &prior, MOST, &frame, &mut marks);
    write_path("prior", &mean(&prior), &frame, &mut marks);
    write_band("band95", &grid, MOST, &frame, &mut marks);
    write_band("band50", &grid, HALF, &frame, &mut marks);
    write_path("truth", &truth, &frame, &mut marks);
    write_path("mean", &mean(&grid), &frame, &mut marks);
    for (x, y) in &query {
        let tip = tip("query", panel, *x, *y);
        dot("ring", frame.px(*x), frame.py(*y), 2.6, Some(&tip), &mut marks);
    }
    let stride = grid.len().div_ceil(STOPS).max(1);
    for point in grid.iter().skip(stride / 2).step_by(stride) {
        let tip = format!(
            "prediction\n{}: {}\nmean: {}\n95%: {} to {}",
            panel.x_label,
            brief(point.x),
            brief(point.mean),
            brief(point.mean - MOST * point.std),
            brief(point.mean + MOST * point.std),
        );
        dot("hit s0", frame.px(point.x), frame.py(point.mean), 3.6, Some(&tip), &mut marks);
    }
    for (x, y) in &support {
        let tip = tip("support", panel, *x, *y);
        dot("dot", frame.px(*x), frame.py(*y), 4.2, Some(&tip), &mut marks);
    }
    frame.clipped(&marks);

    let mut description = format!(
        "Predicted {} against {}, with {} support and {} query points.",
        panel.y_label,
        panel.x_label,
        number::count(support.len()),
        number::count(query.len())
    );
    if let (Some(least), Some(most)) = (
        grid.iter().min_by(|a, b| a.std.total_cmp(&b.std)),
        grid.iter().max_by(|a, b| a.std.total_cmp(&b.std)),
    ) {
        description.push_str(&format!(
            " The predictive standard deviation is smallest, {}, at {} and largest, {}, at {}.",
            brief(least.std),
            brief(least.x),
            brief(most.std),
            brief(most.x)
        ));
    }
    finish(frame, place, &panel.title, description, remarks)
}

pub(super) fn finish(
    frame: Frame,
    place: &Place<'_>,
    title: &str,
    description: String,
    remarks: Vec<String>,
) -> Drawing {
    Drawing {
        height: frame.height,
        body: frame.out,
        width: place.width,
        title: title.to_owned(),
        description,
        remarks,
        id: place.id.to_owned(),
    }
}

pub(super) fn edges(point: &GridPoint) -> [f64; 2] {
    [point.mean - MOST * point.std, point.mean + MOST * point.std]
}

pub(super) fn extent(values: &[f64]) -> f64 {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if values.is_empty() { 0.0 } else { high - low }
}

pub(super) fn mean(grid: &[GridPoint]) -> Vec<(f64, f64)> {
    grid.iter().map(|p| (p.x, p.mean)).collect()
}

fn tip(what: &str, panel: &PredictionPanel, x: f64, y: f64) -> String {
    format!("{what} point\n{}: {}\n{}: {}", panel.x_label, brief(x), panel.y_label, brief(y))
}

pub(super) fn write_band(class: &str, grid: &[GridPoint], factor: f64, frame: &Frame, out: &mut String) {
    if grid.len() < 2 {
        return;
    }
    let edges: Vec<_> = grid
        .iter()
        .map(|p| (frame.px(p.x), frame.py(p.mean - factor * p.std), frame.py(p.mean + factor * p.std)))
        .collect();
    Element::new("path").class(class).attribute("d", &area(&edges)).empty(out);
}

pub(super) fn write_path(class: &str, points: &[(f64, f64)], frame: &Frame, out: &mut String) {
    if points.len() < 2 {
        return;
    }
    let positions: Vec<_> = points.iter().map(|(x, y)| (frame.px(*x), frame.py(*y))).collect();
    Element::new("path").class(class).attribute("d", &polyline(&positions)).empty(out);
}

/// Draws predicted against observed values, with 95% intervals.
pub(crate) fn draw_observed(panel: &ObservedPanel, place: &Place<'_>) -> Drawing {
    let axis = Axis::default();
    let points: Vec<GridPoint> = panel
        .points
        .iter()
        .map(|(observed, predicted, std)| GridPoint { x: *observed, mean: *predicted, std: *std })
        .filter(|p| usable(&axis, p))
        .collect();
    let remarks: Vec<String> = skipped_remark(panel.points.len() - points.len()).into_iter().collect();
    // Both axes get the same range, so that the diagonal means equality.
    let all: Vec<f64> = points.iter().flat_map(edges).chain(points.iter().map(|p| p.x)).collect();
    let (x, y) = (Axis::new("observed"), Axis::new("predicted, with 95% interval"));
    let Some(shared) = x.scale(all.iter().copied(), 6) else {
        return Drawing::empty(place, &panel.title, remarks);
    };
    let (x, y) = (x.range(shared.low, shared.high), y.range(shared.low, shared.high));
    let plan = Plan { x: &x, y: &y, xs: all.clone(), ys: all, keys: &[], shape: Shape::Square, right: 8.0 };
    let Some(mut frame) = Frame::new(plan, place) else {
        return Drawing::empty(place, &panel.title, remarks);
    };
    let mut marks = String::new();
    line(
        "guide",
        frame.px(shared.low),
        frame.py(shared.low),
        frame.px(shared.high),
        frame.py(shared.high),
        &mut marks,
    );
    let mut inside = 0;
    for point in &points {
        let [low, high] = edges(point);
        inside += usize::from(low <= point.x && point.x <= high);
        let x = frame.px(point.x);
        let path = format!("M{} {}V{}", coordinate(x), coordinate(frame.py(low)), coordinate(frame.py(high)));
        Element::new("path")
            .class("bar s0")
            .attribute("opacity", "0.45")
            .attribute("d", &path)
            .empty(&mut marks);
    }
    for point in &points {
        let [low, high] = edges(point);
        let tip = format!(
            "observed: {}\npredicted: {}\n95%: {} to {}",
            brief(point.x),
            brief(point.mean),
            brief(low),
            brief(high)
        );
        dot("mark s0", frame.px(point.x), frame.py(point.mean), 3.2, Some(&tip), &mut marks);
    }
    frame.clipped(&marks);
    let description = format!(
        "Predicted against observed values; {} of {} observations lie in their 95% interval.",
        number::count(inside),
        number::count(points.len())
    );
    finish(frame, place, &panel.title, description, remarks)
}
