//! The plot area of charts with two axes: scales, grid, tick labels, axis names, legend.
//!
//! The name of the vertical axis stands above it, not turned: it stays readable on a phone. Only horizontal grid lines
//! are drawn.

use super::chart::{Key, Place};
use super::scale::{Axis, Scale};
use super::svg::{Element, coordinate, shorten, text_width};

/// Size of tick labels and legends in pixels; the same as in the style sheet.
pub(crate) const TEXT: f64 = 12.0;
const LEGEND_ROW: f64 = 20.0;
const SAMPLE: f64 = 26.0;

/// How the height of the plot area follows from its width.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Shape {
    /// So many pixels high.
    Height(f64),
    /// As high as wide.
    Square,
}

/// What a frame is made from.
pub(crate) struct Plan<'a> {
    pub(crate) x: &'a Axis,
    pub(crate) y: &'a Axis,
    pub(crate) xs: Vec<f64>,
    pub(crate) ys: Vec<f64>,
    pub(crate) keys: &'a [Key],
    pub(crate) shape: Shape,
    /// Room on the right for labels at the ends of lines.
    pub(crate) right: f64,
}

/// A plot area with its axes already written to `out`.
pub(crate) struct Frame {
    pub(crate) out: String,
    pub(crate) x: Scale,
    pub(crate) y: Scale,
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    pub(crate) height: f64,
    clip: String,
}

impl Frame {
    /// `None` if there is nothing with a place on both axes.
    pub(crate) fn new(plan: Plan<'_>, place: &Place<'_>) -> Option<Self> {
        let y = plan.y.scale(plan.ys.into_iter(), if place.width > 500.0 { 7 } else { 6 })?;
        let widest = y.labels.iter().map(|l| text_width(l, TEXT)).fold(0.0, f64::max);
        let left = (widest + 10.0).ceil();
        let room = place.width - left - plan.right;
        let x = plan.x.scale(plan.xs.into_iter(), (room / 48.0) as usize)?;
        let last = x.labels.last().map_or(0.0, |l| text_width(l, TEXT));
        let right = place.width - plan.right.max((last / 2.0).min(24.0) + 2.0);

        let mut out = String::new();
        let legend = write_legend(plan.keys, place.width, &mut out);
        let top = legend + if plan.y.full_label().is_empty() { 10.0 } else { 26.0 };
        let plot_height = match plan.shape {
            Shape::Height(height) => height,
            Shape::Square => right - left,
        };
        let bottom = top + plot_height;
        let name = plan.x.full_label();
        let height = bottom + 22.0 + if name.is_empty() { 0.0 } else { 18.0 };
        let clip = format!("{}-clip", place.id);
        let mut frame = Self { out, x, y, left, right, top, bottom, height, clip };
        frame.write_axes(plan.y, &name, legend, place.width);
        Some(frame)
    }

    /// Horizontal position of a value.
    pub(crate) fn px(&self, value: f64) -> f64 {
        self.left + self.x.position(value) * (self.right - self.left)
    }

    /// Vertical position of a value.
    pub(crate) fn py(&self, value: f64) -> f64 {
        self.bottom - self.y.position(value) * (self.bottom - self.top)
    }

    /// Marks, cut at the edges of the plot area with room for markers that sit on an edge.
    pub(crate) fn clipped(&mut self, marks: &str) {
        let rect = Element::new("rect")
            .at(self.left - 6.0, self.top - 6.0)
            .number("width", self.right - self.left + 12.0)
            .number("height", self.bottom - self.top + 12.0);
        let mut inner = String::new();
        rect.empty(&mut inner);
        Element::new("clipPath").attribute("id", &self.clip).raw(&inner, &mut self.out);
        Element::new("g").attribute("clip-path", &format!("url(#{})", self.clip)).raw(marks, &mut self.out);
    }

    fn write_axes(&mut self, y_axis: &Axis, x_name: &str, legend: f64, width: f64) {
        let y_name = y_axis.full_label();
        if !y_name.is_empty() {
            let shown = shorten(&y_name, TEXT, width);
            Element::new("text").class("label").at(0.0, legend + 11.0).text(&shown, &mut self.out);
        }
        for (tick, label) in self.y.ticks.clone().iter().zip(self.y.labels.clone()) {
            let y = self.py(*tick);
            line("grid", self.left, y, self.right, y, &mut self.out);
            Element::new("text").class("tick end").at(self.left - 7.0, y + 4.0).text(&label, &mut self.out);
        }
        line("axis", self.left, self.bottom, self.right, self.bottom, &mut self.out);
        let mut free_from = f64::NEG_INFINITY;
        for (tick, label) in self.x.ticks.clone().iter().zip(self.x.labels.clone()) {
            let x = self.px(*tick);
            line("axis", x, self.bottom, x, self.bottom + 4.0, &mut self.out);
            let half = text_width(&label, TEXT) / 2.0;
            // On short axes a label that would touch its neighbour is left out; its tick stays.
            if x - half < free_from {
                continue;
            }
            free_from = x + half + 4.0;
            Element::new("text").class("tick middle").at(x, self.bottom + 17.0).text(&label, &mut self.out);
        }
        if !x_name.is_empty() {
            let middle = 0.5 * (self.left + self.right);
            let room = 2.0 * middle.min(width - middle);
            let shown = shorten(x_name, TEXT, room);
            Element::new("text")
                .class("label middle")
                .at(middle, self.bottom + 36.0)
                .text(&shown, &mut self.out);
        }
    }
}

/// A straight line.
pub(crate) fn line(class: &str, x1: f64, y1: f64, x2: f64, y2: f64, out: &mut String) {
    let path = format!("M{} {}L{} {}", coordinate(x1), coordinate(y1), coordinate(x2), coordinate(y2));
    Element::new("path").class(class).attribute("d", &path).empty(out);
}

/// Writes legend entries in rows from the top; returns the height they take.
pub(crate) fn write_legend(keys: &[Key], width: f64, out: &mut String) -> f64 {
    if keys.is_empty() {
        return 0.0;
    }
    let (mut x, mut row) = (0.0, 0.0);
    for key in keys {
        let name = shorten(&key.name, TEXT, width - SAMPLE - 6.0);
        let needed = SAMPLE + 6.0 + text_width(&name, TEXT);
        if x > 0.0 && x + needed > width {
            x = 0.0;
            row += 1.0;
        }
        let y = row * LEGEND_ROW;
        let shift = format!("translate({} {})", coordinate(x), coordinate(y + 1.0));
        Element::new("g").attribute("transform", &shift).raw(&key.sample, out);
        Element::new("text").class("name").at(x + SAMPLE + 6.0, y + 11.0).text(&name, out);
        x += needed + 16.0;
    }
    (row + 1.0) * LEGEND_ROW + 4.0
}
