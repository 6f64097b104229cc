//! Drawing of line charts.
//!
//! A series of more points than can be told apart is averaged in runs of neighbours: the line goes through the means,
//! a band spans the smallest and largest value of each run, and hover texts say how many values a point stands for.

use super::chart::{Drawing, Key, Legend, Place, skipped_remark};
use super::frame::{Frame, Plan, Shape, TEXT, line};
use super::line::{Guide, Interval, LineChart, Point, Proportion, Series};
use super::number;
use super::scale::{Axis, AxisKind};
use super::svg::{Element, area, dash, marker, polyline, text_width};

/// More points than this are averaged, so that at most half as many remain.
const MOST_POINTS: usize = 320;
/// Up to so many points carry visible markers.
const MOST_MARKERS: usize = 40;
/// Neighbouring error bars at one place are at most so many pixels apart.
const WIDEST_DODGE: f64 = 6.0;

/// A series ready to draw: only what has a place on the axes.
struct Ready<'a> {
    series: &'a Series,
    slot: usize,
    points: Vec<Point>,
    averaged: bool,
    /// Shift to the right in pixels, so that error bars at the same place stand side by side.
    dodge: f64,
}

/// Draws the chart for a place.
pub(crate) fn draw(chart: &LineChart, place: &Place<'_>) -> Drawing {
    let (mut skipped, mut unplaced) = (0, 0);
    let mut remarks = Vec::new();
    let most = if place.width > 500.0 { MOST_POINTS } else { MOST_POINTS / 2 };
    let mut ready = Vec::new();
    for (place_in_chart, series) in chart.series.iter().enumerate() {
        let slot = series.look.unwrap_or(place_in_chart);
        let mut points: Vec<Point> =
            series.points.iter().filter(|p| chart.x.shows(p.x) && chart.y.shows(p.y)).copied().collect();
        skipped += series.points.len() - points.len();
        let below = |axis: &Axis, value: f64| axis.kind == AxisKind::Log && value <= 0.0;
        let finite = series.points.iter().filter(|p| p.x.is_finite() && p.y.is_finite());
        unplaced += finite.filter(|p| below(&chart.x, p.x) || below(&chart.y, p.y)).count();
        for point in &mut points {
            // On a log axis an interval may reach down to zero or below: it is then drawn to the bottom.
            if point.interval.is_some_and(|(low, high)| !low.is_finite() || !chart.y.shows(high)) {
                point.interval = None;
                skipped += 1;
            }
        }
        if points.is_empty() {
            remarks.push(format!("“{}” has no values to draw.", series.name));
        }
        let averaged = points.len() > most;
        if averaged {
            let run = points.len().div_ceil(most / 2);
            // Said once: series of one chart usually have the same length.
            let remark = format!(
                "Each point averages {} neighbouring values; the pale band spans the smallest and the largest of them.",
                number::count(run)
            );
            if !remarks.contains(&remark) {
                remarks.push(remark);
            }
            points = points.chunks(run).map(average).collect();
        }
        ready.push(Ready { series, slot, points, averaged, dodge: 0.0 });
    }
    remarks.extend(skipped_remark(skipped - unplaced));
    if unplaced > 0 {
        remarks.push(format!(
            "Values with no place on a log axis, being zero or negative: {}.",
            number::count(unplaced)
        ));
    }

    let drawable: Vec<&Ready<'_>> = ready.iter().filter(|r| !r.points.is_empty()).collect();
    // All values, not the averages: the axis ends where the data do.
    let shown = |p: &&Point| chart.x.shows(p.x) && chart.y.shows(p.y);
    let xs: Vec<f64> =
        drawable.iter().flat_map(|r| r.series.points.iter().filter(shown).map(|p| p.x)).collect();
    let mut ys: Vec<f64> = drawable
        .iter()
        .flat_map(|r| r.points.iter())
        .flat_map(|p| [Some(p.y), p.interval.map(|i| i.0), p.interval.map(|i| i.1)])
        .flatten()
        .collect();
    if !xs.is_empty() {
        ys.extend(chart.guides.iter().filter_map(|g| match g {
            Guide::Horizontal(value, _) => Some(*value),
            Guide::Diagonal(_) => None,
        }));
    }

    let direct = place.width > 500.0
        && (2..=6).contains(&drawable.len())
        && chart.proportion == Proportion::Wide
        && drawable.iter().all(|r| text_width(&r.series.name, TEXT) < 150.0);
    let mut keys = if place.legend == Legend::Elsewhere { Vec::new() } else { keys(chart) };
    if direct && !keys.is_empty() {
        // Names stand beside the lines; only guides still need an entry.
        keys.drain(..chart.series.len());
    }
    let right = if direct {
        drawable.iter().map(|r| text_width(&r.series.name, TEXT)).fold(0.0, f64::max) + 20.0
    } else {
        8.0
    };
    let shape = match chart.proportion {
        Proportion::Square => Shape::Square,
        Proportion::Wide => Shape::Height(if place.width > 500.0 { 270.0 } else { 210.0 }),
    };
    let plan = Plan { x: &chart.x, y: &chart.y, xs, ys, keys: &keys, shape, right };
    let Some(mut frame) = Frame::new(plan, place) else {
        return Drawing::empty(place, &chart.title, remarks);
    };
    drop(drawable);
    dodge(&mut ready, &frame);
    let drawable: Vec<&Ready<'_>> = ready.iter().filter(|r| !r.points.is_empty()).collect();

    let mut marks = String::new();
    for guide in &chart.guides {
        write_guide(guide, &frame, &mut marks);
    }
    for series in &drawable {
        write_intervals(series, &frame, &mut marks);
    }
    for series in &drawable {
        write_line(series, chart, &frame, &mut marks);
    }
    frame.clipped(&marks);
    if direct {
        write_direct_labels(&drawable, &mut frame);
    }
    let description = describe(chart, &drawable);
    Drawing {
        height: frame.height,
        body: frame.out,
        width: place.width,
        title: chart.title.clone(),
        description,
        remarks,
        id: place.id.to_owned(),
    }
}

/// Shifts series with error bars apart where they share places and there is room.
fn dodge(ready: &mut [Ready<'_>], frame: &Frame) {
    let barred = |r: &Ready<'_>| {
        !r.averaged && r.series.interval == Interval::Bars && r.points.iter().any(|p| p.interval.is_some())
    };
    let count = ready.iter().filter(|r| barred(r)).count();
    let mut places: Vec<f64> =
        ready.iter().filter(|r| barred(r)).flat_map(|r| r.points.iter().map(|p| frame.px(p.x))).collect();
    let all = places.len();
    places.sort_by(f64::total_cmp);
    places.dedup_by(|a, b| (*a - *b).abs() < 0.5);
    let shared = places.len() < all;
    let gap = places.windows(2).map(|w| w[1] - w[0]).fold(frame.right - frame.left, f64::min);
    // All bars of one place take at most half of the way to the next.
    let step = (0.5 * gap / count.max(1) as f64).min(WIDEST_DODGE);
    if count < 2 || !shared || step < 0.75 {
        return;
    }
    for (index, series) in ready.iter_mut().filter(|r| barred(r)).enumerate() {
        series.dodge = step * (index as f64 - 0.5 * (count - 1) as f64);
    }
}

/// Mean of a run of points, with the range of their values.
fn average(run: &[Point]) -> Point {
    let count = run.len() as f64;
    // Dividing before adding keeps sums of huge values finite.
    let x = run.iter().map(|p| p.x / count).sum();
    let y = run.iter().map(|p| p.y / count).sum();
    let low = run.iter().map(|p| p.y).fold(f64::INFINITY, f64::min);
    let high = run.iter().map(|p| p.y).fold(f64::NEG_INFINITY, f64::max);
    Point { x, y, interval: Some((low, high)), observations: Some(run.len()) }
}

/// Legend of the chart; a single series without guides needs none.
pub(crate) fn keys(chart: &LineChart) -> Vec<Key> {
    if chart.series.len() + chart.guides.len() < 2 { Vec::new() } else { all_keys(chart) }
}

/// Entries for every series and guide.
pub(crate) fn all_keys(chart: &LineChart) -> Vec<Key> {
    let series = chart.series.iter().enumerate().map(|(place, series)| {
        let slot = series.look.unwrap_or(place);
        let mut sample = String::new();
        write_path(&format!("line s{}", slot % 8), "M0 6L26 6", dash(slot), &mut sample);
        Element::new("path")
            .class(&format!("mark s{}", slot % 8))
            .attribute("d", &marker(slot, 13.0, 6.0, 3.6))
            .empty(&mut sample);
        Key { sample, name: series.name.clone() }
    });
    let guides = chart.guides.iter().map(|guide| {
        let (Guide::Diagonal(name) | Guide::Horizontal(_, name)) = guide;
        let mut sample = String::new();
        line("guide", 0.0, 6.0, 26.0, 6.0, &mut sample);
        Key { sample, name: name.clone() }
    });
    series.chain(guides).collect()
}

fn write_path(class: &str, path: &str, dashes: &str, out: &mut String) {
    let element = Element::new("path").class(class).attribute("d", path);
    let element = if dashes == "none" { element } else { element.attribute("stroke-dasharray", dashes) };
    element.empty(out);
}

fn write_guide(guide: &Guide, frame: &Frame, out: &mut String) {
    match guide {
        Guide::Diagonal(_) => {
            let low = frame.x.low.max(frame.y.low);
            let high = frame.x.high.min(frame.y.high);
            if low < high {
                line("guide", frame.px(low), frame.py(low), frame.px(high), frame.py(high), out);
            }
        }
        Guide::Horizontal(value, _) if value.is_finite() => {
            line("guide", frame.left, frame.py(*value), frame.right, frame.py(*value), out);
        }
        Guide::Horizontal(..) => {}
    }
}

fn write_intervals(ready: &Ready<'_>, frame: &Frame, out: &mut String) {
    let slot = ready.slot % 8;
    let below = frame.bottom + 12.0;
    let edges: Vec<(f64, f64, f64)> = ready
        .points
        .iter()
        .filter_map(|p| {
            p.interval.map(|(low, high)| (frame.px(p.x) + ready.dodge, frame.py(low), frame.py(high)))
        })
        .map(|(x, low, high)| (x, if low.is_finite() { low } else { below }, high))
        .collect();
    if ready.averaged || ready.series.interval == Interval::Band {
        if !edges.is_empty() {
            Element::new("path").class(&format!("band s{slot}")).attribute("d", &area(&edges)).empty(out);
        }
        return;
    }
    let class = format!("bar s{slot}");
    for (x, low, high) in edges {
        line(&class, x, low, x, high, out);
        line(&class, x - 3.0, low, x + 3.0, low, out);
        line(&class, x - 3.0, high, x + 3.0, high, out);
    }
}

fn write_line(ready: &Ready<'_>, chart: &LineChart, frame: &Frame, out: &mut String) {
    let slot = ready.slot;
    let positions: Vec<(f64, f64)> =
        ready.points.iter().map(|p| (frame.px(p.x) + ready.dodge, frame.py(p.y))).collect();
    write_path(&format!("line s{}", slot % 8), &polyline(&positions), dash(slot), out);
    let visible = ready.points.len() <= MOST_MARKERS;
    let class = if visible { format!("mark s{}", slot % 8) } else { format!("hit s{}", slot % 8) };
    for (point, (x, y)) in ready.points.iter().zip(positions) {
        let tip = tip(ready, point, chart);
        Element::new("path").class(&class).attribute("d", &marker(slot, x, y, 3.6)).tip(&tip, out);
    }
}

fn tip(ready: &Ready<'_>, point: &Point, chart: &LineChart) -> String {
    let named = |label: String, otherwise: &str| {
        if label.is_empty() { otherwise.to_owned() } else { label }
    };
    let mut lines = vec![ready.series.name.clone()];
    let about = if ready.averaged { "about " } else { "" };
    lines.push(format!("{}: {about}{}", named(chart.x.full_label(), "x"), chart.x.write(point.x)));
    let mean = if ready.averaged { ", mean" } else { "" };
    lines.push(format!("{}{mean}: {}", named(chart.y.full_label(), "value"), chart.y.write(point.y)));
    if let Some((low, high)) = point.interval {
        let name = if ready.averaged { "range" } else { ready.series.interval_name.as_str() };
        let name = if name.is_empty() { "interval" } else { name };
        lines.push(match point.reach().filter(|_| !ready.averaged) {
            Some(reach) => format!("{name}: ± {}", chart.y.write(reach)),
            None => format!("{name}: {} to {}", chart.y.write(low), chart.y.write(high)),
        });
    }
    if let Some(count) = point.observations {
        let name = match ready.series.observations_name.as_str() {
            _ if ready.averaged => "observations",
            "" => "observations",
            name => name,
        };
        lines.push(format!("{name}: {}", number::count(count)));
    }
    lines.join("\n")
}

/// Names at the right ends of lines, pushed apart where they would overlap.
fn write_direct_labels(drawable: &[&Ready<'_>], frame: &mut Frame) {
    let mut labels: Vec<(f64, &Ready<'_>)> = drawable
        .iter()
        .filter_map(|r| r.points.last().map(|p| (frame.py(p.y).clamp(frame.top, frame.bottom), *r)))
        .collect();
    labels.sort_by(|a, b| a.0.total_cmp(&b.0));
    let gap = 15.0;
    for index in 1..labels.len() {
        labels[index].0 = labels[index].0.max(labels[index - 1].0 + gap);
    }
    // Names pushed below the axis move back up, and push their neighbours.
    let mut limit = frame.bottom;
    for label in labels.iter_mut().rev() {
        label.0 = label.0.min(limit);
        limit = label.0 - gap;
    }
    for (y, ready) in labels {
        let slot = ready.slot;
        let end = ready.points.last().map_or(y, |p| frame.py(p.y));
        // Beside its own last marker a name needs no second one.
        let clear = ready.points.len() <= MOST_MARKERS && (end - y).abs() < 3.0;
        if !clear {
            Element::new("path")
                .class(&format!("mark s{}", slot % 8))
                .attribute("d", &marker(slot, frame.right + 9.0, y, 3.2))
                .empty(&mut frame.out);
        }
        let x = frame.right + if clear { 10.0 } else { 17.0 };
        Element::new("text")
            .class(&format!("name ink{}", slot % 8))
            .at(x, y + 4.0)
            .text(&ready.series.name, &mut frame.out);
    }
}

/// The chart in words.
fn describe(chart: &LineChart, drawable: &[&Ready<'_>]) -> String {
    let mut out = format!("{} against {}.", chart.y.full_label(), chart.x.full_label());
    for ready in drawable {
        let (Some(first), Some(last)) = (ready.points.first(), ready.points.last()) else {
            continue;
        };
        let lowest = ready.points.iter().fold(first, |best, p| if p.y < best.y { p } else { best });
        out.push_str(&format!(
            " {}: {} at {}, {} at {}, lowest {} at {}.",
            ready.series.name,
            chart.y.write(first.y),
            chart.x.write(first.x),
            chart.y.write(last.y),
            chart.x.write(last.x),
            chart.y.write(lowest.y),
            chart.x.write(lowest.x),
        ));
    }
    out
}
