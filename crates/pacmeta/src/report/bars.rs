//! Bounds taken apart: one stacked horizontal bar each. Positive terms grow to the right of zero, negative ones to the
//! left; where a bar has negative terms, an upright stroke marks the total.

use super::chart::{Drawing, Key, Legend, Place, skipped_remark};
use super::data::BoundPanel;
use super::frame::{TEXT, line, write_legend};
use super::number;
use super::scale::Axis;
use super::svg::{Element, coordinate, shorten, text_width};

const BAR: f64 = 26.0;

/// Names of all terms in order of first appearance; the index chooses colour and hatching.
pub(crate) fn term_names(panel: &BoundPanel) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for term in panel.bars.iter().flat_map(|bar| &bar.terms) {
        if !names.contains(&term.name.as_str()) {
            names.push(&term.name);
        }
    }
    names
}

/// Says which bars' terms do not add up to their total.
fn mismatches(panel: &BoundPanel) -> Vec<String> {
    panel
        .bars
        .iter()
        .filter_map(|bar| {
            let sum: f64 = bar.terms.iter().map(|t| t.value).sum();
            let size: f64 = bar.terms.iter().map(|t| t.value.abs()).sum();
            let far =
                sum.is_finite() && bar.total.is_finite() && (sum - bar.total).abs() > 1e-6 * size.max(1e-12);
            far.then(|| {
                let (sum, total) = (number::brief(sum), number::brief(bar.total));
                format!("The terms of “{}” add up to {sum}, its stated total is {total}.", bar.name)
            })
        })
        .collect()
}

/// Decimals that all values of the panel share.
pub(crate) fn decimals(panel: &BoundPanel) -> usize {
    let largest = panel.bars.iter().map(|b| b.total.abs()).filter(|v| v.is_finite()).fold(0.0, f64::max);
    if largest >= 100.0 {
        1
    } else if largest >= 10.0 {
        2
    } else {
        3
    }
}

/// Draws the panel for a place.
pub(crate) fn draw(panel: &BoundPanel, place: &Place<'_>) -> Drawing {
    let axis = Axis::new("");
    let names = term_names(panel);
    let mut skipped = 0;
    let mut reach = vec![0.0];
    for bar in &panel.bars {
        let (mut below, mut above) = (0.0, 0.0);
        for term in &bar.terms {
            match axis.shows(term.value) {
                true if term.value < 0.0 => below += term.value,
                true => above += term.value,
                false => skipped += 1,
            }
        }
        reach.extend([below, above]);
        if axis.shows(bar.total) {
            reach.push(bar.total);
        } else {
            skipped += 1;
        }
    }
    let mut remarks = mismatches(panel);
    remarks.extend(skipped_remark(skipped));
    if reach.iter().all(|v| *v == 0.0) {
        return Drawing::empty(place, &panel.title, remarks);
    }

    let wide = place.width > 500.0;
    let decimals = decimals(panel);
    let totals: Vec<String> = panel.bars.iter().map(|b| number::fixed(b.total, decimals)).collect();
    let longest =
        |texts: &mut dyn Iterator<Item = &str>| texts.map(|t| text_width(t, TEXT)).fold(0.0, f64::max);
    let left =
        if wide { longest(&mut panel.bars.iter().map(|b| b.name.as_str())).min(190.0) + 14.0 } else { 14.0 };
    let right =
        place.width - if wide { longest(&mut totals.iter().map(String::as_str)) * 1.1 + 14.0 } else { 14.0 };
    let Some(scale) = axis.scale(reach.into_iter(), if wide { 7 } else { 5 }) else {
        return Drawing::empty(place, &panel.title, remarks);
    };
    let px = |value: f64| left + scale.position(value) * (right - left);

    let mut out = String::new();
    write_hatches(place.id, &mut out);
    let signed = panel.bars.iter().flat_map(|b| &b.terms).any(|t| t.value < 0.0);
    let top = match place.legend {
        Legend::Shown => write_legend(&keys(&names, place.id, signed), place.width, &mut out) + 8.0,
        Legend::Elsewhere => 4.0,
    };
    let row = if wide { BAR + 14.0 } else { BAR + 34.0 };
    let bottom = top + row * panel.bars.len() as f64;
    for (tick, label) in scale.ticks.iter().zip(&scale.labels) {
        let x = px(*tick);
        line(if *tick == 0.0 { "axis" } else { "grid" }, x, top, x, bottom, &mut out);
        // Labels at the ends lean inwards, so that nothing is cut off on a narrow page.
        let half = 0.5 * text_width(label, TEXT);
        let anchor = match x {
            _ if x - half < 0.0 => "tick",
            _ if x + half > place.width => "tick end",
            _ => "tick middle",
        };
        Element::new("text").class(anchor).at(x, bottom + 15.0).text(label, &mut out);
    }

    let mut description = String::new();
    for (index, (bar, total)) in panel.bars.iter().zip(&totals).enumerate() {
        let y = top + row * index as f64 + if wide { 7.0 } else { 22.0 };
        let middle = y + BAR / 2.0 + 4.0;
        if wide {
            let name = shorten(&bar.name, TEXT, left - 12.0);
            Element::new("text").class("name end").at(left - 10.0, middle).text(&name, &mut out);
            Element::new("text").class("strong end").at(place.width, middle).text(total, &mut out);
        } else {
            let name = shorten(&bar.name, TEXT, place.width - 90.0);
            Element::new("text").class("name haloed").at(0.0, y - 6.0).text(&name, &mut out);
            Element::new("text").class("strong haloed end").at(place.width, y - 6.0).text(total, &mut out);
        }
        description.push_str(&format!("{}: total {total}", bar.name));
        // Without negative terms the bar itself ends at the total.
        let negative = bar.terms.iter().any(|t| axis.shows(t.value) && t.value < 0.0);
        let stroke = (negative && axis.shows(bar.total)).then(|| px(bar.total));
        let (mut below, mut above) = (0.0, 0.0);
        for term in bar.terms.iter().filter(|t| axis.shows(t.value)) {
            let value = number::fixed(term.value, decimals);
            description.push_str(&format!(", {} {value}", term.name));
            let end = if term.value < 0.0 { &mut below } else { &mut above };
            let (from, to) = (*end, *end + term.value);
            *end = to;
            let (x, width) = (px(from.min(to)), px(from.max(to)) - px(from.min(to)));
            let slot = names.iter().position(|n| *n == term.name).unwrap_or(0);
            let share = if bar.total > 0.0 && bar.total.is_finite() {
                format!("\n{}% of the total", number::fixed(100.0 * term.value / bar.total, 1))
            } else {
                String::new()
            };
            let tip = format!("{}\n{}: {value}{share}", bar.name, term.name);
            let shape = |class: &str| {
                Element::new("rect").class(class).at(x, y).number("width", width).number("height", BAR)
            };
            shape(&format!("term s{}", slot % 8)).tip(&tip, &mut out);
            if slot % 2 == 1 {
                shape("over")
                    .attribute("fill", &format!("url(#{}-hatch{})", place.id, slot / 2 % 2))
                    .empty(&mut out);
            }
            if let Some(centre) = label_centre(x, width, text_width(&value, TEXT), stroke) {
                if slot % 2 == 1 {
                    // Text on hatching would flicker: a plain patch under it.
                    let patch = text_width(&value, TEXT) + 6.0;
                    Element::new("rect")
                        .class(&format!("over patch s{}", slot % 8))
                        .attribute("fill", "currentColor")
                        .at(centre - patch / 2.0, y + 5.0)
                        .number("width", patch)
                        .number("height", BAR - 10.0)
                        .empty(&mut out);
                }
                Element::new("text").class("inside").at(centre, middle).text(&value, &mut out);
            }
        }
        description.push_str(". ");
        if let Some(x) = stroke {
            line("halo", x, y - 4.0, x, y + BAR + 4.0, &mut out);
            line("total", x, y - 4.0, x, y + BAR + 4.0, &mut out);
        }
    }
    Drawing {
        body: out,
        width: place.width,
        height: bottom + 22.0,
        title: panel.title.clone(),
        description: description.trim_end().to_owned(),
        remarks,
        id: place.id.to_owned(),
    }
}

/// Where a text of width `text` stands inside a segment: in its middle, beside the stroke of the total if that runs
/// through it, nowhere if there is no room.
fn label_centre(x: f64, width: f64, text: f64, stroke: Option<f64>) -> Option<f64> {
    let (mut from, mut to) = (x, x + width);
    if let Some(stroke) = stroke.filter(|s| *s > from && *s < to) {
        if stroke - from > to - stroke { to = stroke - 2.0 } else { from = stroke + 2.0 }
    }
    (text + 6.0 < to - from).then_some(0.5 * (from + to))
}

fn keys(names: &[&str], id: &str, signed: bool) -> Vec<Key> {
    let mut keys: Vec<Key> = names
        .iter()
        .enumerate()
        .map(|(slot, name)| {
            let mut sample = String::new();
            let shape =
                |class: &str| Element::new("rect").class(class).number("width", 26.0).number("height", 12.0);
            shape(&format!("term s{}", slot % 8)).empty(&mut sample);
            if slot % 2 == 1 {
                shape("over")
                    .attribute("fill", &format!("url(#{id}-hatch{})", slot / 2 % 2))
                    .empty(&mut sample);
            }
            Key { sample, name: (*name).to_owned() }
        })
        .collect();
    if signed {
        let mut sample = String::new();
        line("total", 13.0, 0.0, 13.0, 12.0, &mut sample);
        keys.push(Key { sample, name: "total".to_owned() });
    }
    keys
}

/// Two hatchings, leaning right and left, laid over every other colour.
fn write_hatches(id: &str, out: &mut String) {
    let mut defs = String::new();
    for (index, angle) in [45.0, -45.0].into_iter().enumerate() {
        let mut stroke = String::new();
        line("hatch", 0.0, 0.0, 0.0, 6.0, &mut stroke);
        Element::new("pattern")
            .attribute("id", &format!("{id}-hatch{index}"))
            .attribute("patternUnits", "userSpaceOnUse")
            .number("width", 6.0)
            .number("height", 6.0)
            .attribute("patternTransform", &format!("rotate({})", coordinate(angle)))
            .raw(&stroke, &mut defs);
    }
    Element::new("defs").raw(&defs, out);
}
