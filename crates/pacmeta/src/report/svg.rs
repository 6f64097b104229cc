//! A small writer of XML text: elements, attributes, escaping. No state beyond the string that grows.

use std::f64::consts::FRAC_1_SQRT_2;
use std::fmt::Write as _;

/// `text` as it may stand in XML content and in quoted attributes. Characters that XML 1.0 forbids are replaced.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(character),
            c if c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}') => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out
}

/// A coordinate with two decimals at most: a hundredth of a pixel is not seen, and the text stays short.
pub(crate) fn coordinate(value: f64) -> String {
    // Far outside any drawing; renderers overflow on larger ones.
    let value = if value.is_finite() { value.clamp(-1e5, 1e5) } else { 0.0 };
    let mut text = format!("{value:.2}");
    text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    if text == "-0" { "0".to_owned() } else { text }
}

/// One element under construction.
#[must_use]
pub(crate) struct Element {
    name: &'static str,
    tag: String,
}

impl Element {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, tag: format!("<{name}") }
    }

    pub(crate) fn attribute(mut self, name: &str, value: &str) -> Self {
        // Writing to a string cannot fail.
        let _ = write!(self.tag, " {name}=\"{}\"", escape(value));
        self
    }

    pub(crate) fn class(self, value: &str) -> Self {
        self.attribute("class", value)
    }

    pub(crate) fn number(self, name: &str, value: f64) -> Self {
        let value = coordinate(value);
        self.attribute(name, &value)
    }

    pub(crate) fn at(self, x: f64, y: f64) -> Self {
        self.number("x", x).number("y", y)
    }

    /// The element without content.
    pub(crate) fn empty(self, out: &mut String) {
        out.push_str(&self.tag);
        out.push_str("/>");
    }

    /// The element with text in it.
    pub(crate) fn text(self, text: &str, out: &mut String) {
        self.raw(&escape(text), out);
    }

    /// The element with a hover text: a `title` child, which browsers show without any script.
    pub(crate) fn tip(self, tip: &str, out: &mut String) {
        self.raw(&format!("<title>{}</title>", escape(tip)), out);
    }

    /// The element around markup that is already escaped.
    pub(crate) fn raw(self, inner: &str, out: &mut String) {
        let _ = write!(out, "{}>{inner}</{}>", self.tag, self.name);
    }
}

/// Path data of a polyline through positions.
pub(crate) fn polyline(points: &[(f64, f64)]) -> String {
    let mut out = String::new();
    for (index, (x, y)) in points.iter().enumerate() {
        out.push(if index == 0 { 'M' } else { 'L' });
        out.push_str(&coordinate(*x));
        out.push(' ');
        out.push_str(&coordinate(*y));
    }
    out
}

/// Path data of the area between an upper and a lower edge.
pub(crate) fn area(edges: &[(f64, f64, f64)]) -> String {
    let mut outline: Vec<(f64, f64)> = edges.iter().map(|(x, low, _)| (*x, *low)).collect();
    outline.extend(edges.iter().rev().map(|(x, _, high)| (*x, *high)));
    if outline.is_empty() { String::new() } else { polyline(&outline) + "Z" }
}

/// Path data of the marker of a series: each slot its own shape, so that colour is never the only difference.
pub(crate) fn marker(slot: usize, x: f64, y: f64, radius: f64) -> String {
    let r = radius;
    let corners: &[(f64, f64)] = match turned(slot) {
        0 => {
            let [left, top, r, d] = [x - r, y, r, 2.0 * r].map(coordinate);
            return format!("M{left} {top}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0Z");
        }
        1 => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        2 => &[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)],
        3 => &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
        4 => &[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)],
        5 => &[(-1.2, -0.45), (1.2, -0.45), (1.2, 0.45), (-1.2, 0.45)],
        other => {
            // A cross: upright for one slot, lying for the other.
            let (arm, half) = (1.3, 0.42);
            let upright = [
                (-half, -arm),
                (half, -arm),
                (half, -half),
                (arm, -half),
                (arm, half),
                (half, half),
                (half, arm),
                (-half, arm),
                (-half, half),
                (-arm, half),
                (-arm, -half),
                (-half, -half),
            ];
            let turn = |(dx, dy): (f64, f64)| match other {
                6 => (dx, dy),
                _ => ((dx - dy) * FRAC_1_SQRT_2, (dx + dy) * FRAC_1_SQRT_2),
            };
            let points = upright.map(turn).map(|(dx, dy)| (x + dx * r, y + dy * r));
            return polyline(&points) + "Z";
        }
    };
    let points: Vec<(f64, f64)> = corners.iter().map(|(dx, dy)| (x + dx * r, y + dy * r)).collect();
    polyline(&points) + "Z"
}

/// How many looks of series have a colour of their own.
pub const LOOKS: usize = 8;

/// The place of a slot among marks and dashes. Colours come again after [`LOOKS`] slots, then with the marks and dashes of their
/// neighbours.
fn turned(slot: usize) -> usize {
    (slot + slot / LOOKS) % LOOKS
}

/// Dash pattern of the line of a series.
pub(crate) fn dash(slot: usize) -> &'static str {
    ["none", "7 3", "2 3", "9 3 2 3", "12 4", "4 2 1 2", "14 3 2 3 2 3", "4 5"][turned(slot)]
}

/// A generous estimate of a text's width in the fonts the style sheet asks for.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    let units: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'l' | 'j' | 't' | 'f' | 'r' | 'I' | '.' | ',' | ' ' | '\'' | '|' | ':' | '(' | ')' => 0.36,
            'm' | 'w' | 'M' | 'W' | '—' | '%' => 0.88,
            '⁰'..='⁹' | '¹' | '²' | '³' | '⁻' => 0.4,
            c if c.is_ascii_uppercase() => 0.71,
            c if (c as u32) >= 0x1100 => 1.0,
            _ => 0.6,
        })
        .sum();
    units * size
}

/// `text` cut to fit, with an ellipsis; the full text belongs in a hover text or a table.
pub(crate) fn shorten(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    for character in text.chars() {
        out.push(character);
        if text_width(&out, size) + 0.9 * size > width {
            out.pop();
            break;
        }
    }
    out.trim_end().to_owned() + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_markup_and_forbidden_characters() {
        assert_eq!(escape("<script>\"a\" & 'b'"), "&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;");
        assert_eq!(escape("a\u{0}b\u{7}"), "a\u{FFFD}b\u{FFFD}");
        assert_eq!(escape("β ≤ 1"), "β ≤ 1");
    }

    #[test]
    fn coordinates_are_short_and_finite() {
        assert_eq!(coordinate(1.0), "1");
        assert_eq!(coordinate(10.0), "10");
        assert_eq!(coordinate(-0.001), "0");
        assert_eq!(coordinate(2.346), "2.35");
        assert_eq!(coordinate(f64::NAN), "0");
        assert_eq!(coordinate(1e12), "100000");
    }

    #[test]
    fn long_names_are_cut() {
        let name = "a name that is far too long for its place";
        let cut = shorten(name, 12.0, 90.0);
        assert!(cut.ends_with('…') && text_width(&cut, 12.0) <= 95.0, "{cut}");
        assert_eq!(shorten("short", 12.0, 90.0), "short");
    }

    #[test]
    fn markers_differ_by_slot() {
        let shapes: std::collections::BTreeSet<String> =
            (0..8).map(|slot| marker(slot, 5.0, 5.0, 3.0)).collect();
        assert_eq!(shapes.len(), 8);
        let dashes: std::collections::BTreeSet<&str> = (0..8).map(dash).collect();
        assert_eq!(dashes.len(), 8);
        // the same colour again, drawn otherwise
        for slot in 0..8 {
            assert_ne!(dash(slot), dash(slot + LOOKS));
            assert_ne!(marker(slot, 5.0, 5.0, 3.0), marker(slot + LOOKS, 5.0, 5.0, 3.0));
        }
    }
}
