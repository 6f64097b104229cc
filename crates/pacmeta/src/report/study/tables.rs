//! Tables of a study, and the numbers behind its figures.

use super::super::bars;
use super::super::calibration;
use super::super::chart::Chart;
use super::super::data::PriorPanel;
use super::super::line::{Interval, LineChart, Point, Series};
use super::super::number::{self, brief, fixed};
use super::super::page::may_link;
use super::super::scale::Axis;
use super::super::svg::escape;
use super::super::tables::{
    self, brief_whole, calibration_numbers, folded, observed, prediction, selection, selection_caption,
};
use super::data::{Cell, CellValue, Column, ColumnKind, StudyTable};

const MISSING: &str = "<span class=\"none\">–<span class=\"hide\">missing</span></span>";
/// Tables of more columns may be broader than the text.
const BROAD: usize = 6;

/// A table of the study as its author gave it; `id` is the name that links use.
pub(crate) fn table(table: &StudyTable, id: &str) -> String {
    let class = if table.columns.len() > BROAD { "table broad" } else { "table" };
    let mut out = format!("<div class=\"{class}\" id=\"{id}\">\n");
    let heading = table.heading.trim();
    // A box that scrolls must have a name, for it can take the keyboard's focus.
    let named = if heading.is_empty() {
        "aria-label=\"Table\"".to_owned()
    } else {
        out.push_str(&format!("<h3 id=\"{id}-heading\">{}</h3>\n", escape(heading)));
        format!("aria-labelledby=\"{id}-heading\"")
    };
    out.push_str(&format!(
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" {named}><table class=\"study\">"
    ));
    let usual = usual_count(&table.rows);
    let formats: Vec<Format> =
        (0..table.columns.len()).map(|index| Format::of(&table.rows, index, usual)).collect();
    out.push_str("<thead><tr>");
    for column in &table.columns {
        out.push_str(&format!("<th scope=\"col\"{}>{}</th>", alignment(column), escape(&column.name)));
    }
    out.push_str("</tr></thead><tbody>\n");
    let absent = Cell::missing();
    for row in &table.rows {
        out.push_str("<tr>");
        for (index, (column, format)) in table.columns.iter().zip(&formats).enumerate() {
            let text = write_cell(row.get(index).unwrap_or(&absent), format);
            let class = alignment(column);
            match index {
                0 => out.push_str(&format!("<th scope=\"row\"{class}>{text}</th>")),
                _ => out.push_str(&format!("<td{class}>{text}</td>")),
            }
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    let mut caption = escape(table.caption.trim());
    if let Some(remark) = remark(table, usual) {
        caption.push_str(&format!(" {remark}"));
    }
    if let Some(href) = table.csv.as_deref().filter(|href| may_link(href)) {
        caption.push_str(&format!(" <a href=\"{}\">The same numbers as CSV</a>", escape(href.trim())));
    }
    if !caption.trim().is_empty() {
        out.push_str(&format!("<p class=\"caption\">{}</p>\n", caption.trim()));
    }
    out + "</div>\n"
}

/// What a reader of the table must know beyond the caption.
fn remark(table: &StudyTable, usual: Option<usize>) -> Option<String> {
    let cells = || table.rows.iter().flatten();
    let lost = cells()
        .filter(|cell| match cell.value {
            CellValue::Number(value) | CellValue::Estimate { value, .. } => !value.is_finite(),
            CellValue::Text(_) | CellValue::Missing => false,
        })
        .count();
    let mut remarks = Vec::new();
    if let Some(usual) = usual {
        let uneven = counts(&table.rows).any(|count| count != usual);
        let unless = if uneven { " unless a cell says otherwise" } else { "" };
        remarks.push(format!("After ± stands the standard error; n = {}{unless}.", number::count(usual)));
    }
    if cells().any(|cell| cell.best) {
        remarks.push("A star marks the best.".to_owned());
    }
    match lost {
        0 => {}
        1 => remarks.push("1 value that is not finite is shown as missing.".to_owned()),
        n => remarks.push(format!("{} values that are not finite are shown as missing.", number::count(n))),
    }
    (!remarks.is_empty()).then(|| remarks.join(" "))
}

fn alignment(column: &Column) -> &'static str {
    match column.kind {
        ColumnKind::Text => " class=\"words\"",
        ColumnKind::Number => " class=\"figures\"",
    }
}

/// The counts behind all estimates of a table.
fn counts(rows: &[Vec<Cell>]) -> impl Iterator<Item = usize> {
    rows.iter().flatten().filter_map(|cell| match cell.value {
        CellValue::Estimate { observations, .. } => Some(observations),
        CellValue::Text(_) | CellValue::Number(_) | CellValue::Missing => None,
    })
}

/// The count that most estimates have: it is said once, and only other counts stand in their cells.
fn usual_count(rows: &[Vec<Cell>]) -> Option<usize> {
    let how_often = |wanted: usize| counts(rows).filter(|count| *count == wanted).count();
    counts(rows).max_by_key(|count| (how_often(*count), *count))
}

/// How the numbers of one column are written, so that they can be compared down the column.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Format {
    /// Shared decimals; `None` where magnitudes differ too much for that.
    decimals: Option<usize>,
    /// The count that need not be written.
    usual: Option<usize>,
}

impl Format {
    fn of(rows: &[Vec<Cell>], index: usize, usual: Option<usize>) -> Self {
        let mut errors = Vec::new();
        let mut values = Vec::new();
        for cell in rows.iter().filter_map(|row| row.get(index)) {
            match cell.value {
                CellValue::Number(value) => values.push(value),
                CellValue::Estimate { value, standard_error, .. } => {
                    values.push(value);
                    errors.push(standard_error);
                }
                CellValue::Text(_) | CellValue::Missing => {}
            }
        }
        values.retain(|v| v.is_finite());
        let decimals = if errors.is_empty() {
            common_decimals(&values)
        } else {
            Some(number::decimals_for(errors.iter().copied()))
        };
        Self { decimals, usual }
    }

    fn write(&self, value: f64) -> String {
        match self.decimals {
            Some(decimals) => fixed(value, decimals),
            None => brief(value),
        }
    }
}

/// Decimals with three digits of the largest value, if the smallest is still seen with them.
fn common_decimals(values: &[f64]) -> Option<usize> {
    if values.iter().all(|v| v.fract() == 0.0 && v.abs() < 1e7) {
        return Some(0);
    }
    let sizes = || values.iter().map(|v| v.abs()).filter(|v| *v > 0.0);
    let (largest, smallest) = (sizes().fold(0.0, f64::max), sizes().fold(f64::INFINITY, f64::min));
    let decimals = (2 - number::exponent(largest)).clamp(0, 5);
    let seen = smallest >= 10f64.powi(-decimals) && largest < 1e7;
    seen.then_some(decimals as usize)
}

fn write_cell(cell: &Cell, format: &Format) -> String {
    // The count stands in a line of its own, below value and star.
    let mut count = String::new();
    let text = match &cell.value {
        CellValue::Text(text) => escape(text),
        CellValue::Number(value) if value.is_finite() => format.write(*value),
        CellValue::Estimate { value, standard_error, observations } if value.is_finite() => {
            let error =
                if standard_error.is_finite() { format.write(*standard_error) } else { "?".to_owned() };
            if format.usual != Some(*observations) {
                count = format!(" <small class=\"count\">n = {}</small>", number::count(*observations));
            }
            format!("{} <small>± {error}</small>", format.write(*value))
        }
        CellValue::Number(_) | CellValue::Estimate { .. } | CellValue::Missing => MISSING.to_owned(),
    };
    if cell.best {
        format!(
            "<strong>{text}</strong><span class=\"star\" aria-hidden=\"true\">★</span><span class=\"hide\"> best</span>{count}"
        )
    } else {
        text + &count
    }
}

/// The numbers behind a chart, folded.
pub(crate) fn numbers(chart: &Chart) -> String {
    let table = match chart {
        Chart::Line(chart) => line(chart),
        Chart::Prediction(panel) => prediction(panel),
        Chart::Prior(panel) => prior(panel),
        Chart::Observed(panel) => observed(panel),
        Chart::Bound(panel) => tables::bound(panel),
        Chart::Calibration(kind, series) => calibration_numbers(*kind, series),
    };
    if table.is_empty() { String::new() } else { folded(&table) }
}

/// A line chart as numbers: a row for every place, a column for every series.
fn line(chart: &LineChart) -> String {
    let mut places: Vec<f64> =
        chart.series.iter().flat_map(|s| s.points.iter().map(|p| p.x)).filter(|x| x.is_finite()).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    if places.is_empty() {
        return String::new();
    }
    let label = chart.x.full_label();
    let mut head = vec![escape(if label.is_empty() { "x" } else { &label })];
    head.extend(chart.series.iter().map(|s| escape(&s.name)));
    let rows: Vec<Vec<String>> = selection(places.len())
        .into_iter()
        .map(|index| {
            let x = places[index];
            let mut row = vec![write_place(&chart.x, x)];
            row.extend(chart.series.iter().map(|series| {
                let here: Vec<String> =
                    series.points.iter().filter(|p| p.x == x).map(|p| write_point(&chart.y, p)).collect();
                if here.is_empty() { MISSING.to_owned() } else { here.join("; ") }
            }));
            row
        })
        .collect();
    let mut caption = vec![chart.y.full_label()];
    let intervals = interval_names(chart);
    if !intervals.is_empty() {
        caption.push(format!("±: {}", intervals.join(", or ")));
    }
    caption.push(selection_caption(places.len()));
    caption.retain(|text| !text.is_empty());
    tables::table("numbers", &caption.join(". "), &head, &rows)
}

fn write_place(axis: &Axis, x: f64) -> String {
    if axis.format == Default::default() { brief_whole(x) } else { axis.write(x) }
}

/// A value with its interval, as ± where it is symmetric, and its count.
fn write_point(axis: &Axis, point: &Point) -> String {
    if !point.y.is_finite() {
        return MISSING.to_owned();
    }
    let mut out = axis.write(point.y);
    if let Some((low, high)) = point.interval.filter(|(low, high)| low.is_finite() && high.is_finite()) {
        let interval = match point.reach() {
            Some(reach) => format!("± {}", axis.write(reach)),
            None => format!("({} to {})", axis.write(low), axis.write(high)),
        };
        out.push_str(&format!(" <small>{interval}</small>"));
    }
    if let Some(count) = point.observations {
        out.push_str(&format!(" <small class=\"count\">n = {}</small>", number::count(count)));
    }
    out
}

/// A prior as numbers: its functions at some inputs, and mean and standard deviation where they are known.
fn prior(panel: &PriorPanel) -> String {
    /// More functions than this make a table that nobody reads.
    const MOST_COLUMNS: usize = 6;
    let mut out = String::new();
    if !panel.grid.is_empty() {
        let head = [&panel.x_label, "mean", "standard deviation"].map(escape);
        let rows: Vec<Vec<String>> = selection(panel.grid.len())
            .into_iter()
            .map(|i| panel.grid[i])
            .map(|p| vec![brief(p.x), brief(p.mean), brief(p.std)])
            .collect();
        let caption = format!("Before adaptation. {}", selection_caption(panel.grid.len()));
        out.push_str(&tables::table("numbers", &caption, &head, &rows));
    }
    let shown = &panel.samples[..panel.samples.len().min(MOST_COLUMNS)];
    let longest = shown.iter().map(Vec::len).max().unwrap_or(0);
    let aligned = shown.iter().all(|sample| {
        sample.len() == longest && sample.iter().zip(&shown[0]).all(|(a, b)| a.0.to_bits() == b.0.to_bits())
    });
    if longest > 0 && aligned {
        let mut head = vec![escape(&panel.x_label)];
        head.extend((1..=shown.len()).map(|i| format!("function {i}")));
        let rows: Vec<Vec<String>> = selection(longest)
            .into_iter()
            .map(|i| {
                let mut row = vec![brief(shown[0][i].0)];
                row.extend(shown.iter().map(|sample| brief(sample[i].1)));
                row
            })
            .collect();
        let caption = format!(
            "{} of {} functions. {}",
            shown.len(),
            number::count(panel.samples.len()),
            selection_caption(longest)
        );
        out.push_str(&tables::table("numbers", &caption, &head, &rows));
    }
    out
}

/// What the intervals of a chart are, each kind once.
fn interval_names(chart: &LineChart) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for series in chart.series.iter().filter(|s| s.points.iter().any(|p| p.interval.is_some())) {
        if !series.interval_name.is_empty() && !names.contains(&series.interval_name.as_str()) {
            names.push(&series.interval_name);
        }
    }
    names
}

/// What stands behind the points of a chart: the meaning of its bars and the number of observations.
pub(crate) fn evidence(chart: &Chart) -> String {
    let chart = match chart {
        Chart::Line(chart) => chart.clone(),
        Chart::Calibration(kind, series) => calibration::chart(*kind, series),
        Chart::Bound(panel) if bars::term_names(panel).len() > 1 => {
            return "Numbers at the right are totals.".to_owned();
        }
        _ => return String::new(),
    };
    let mut out = Vec::new();
    let names = interval_names(&chart);
    if !names.is_empty() {
        out.push(format!("Intervals: {}.", names.join(", or ")));
    }
    let mut behind: Vec<(&str, usize, usize)> = Vec::new();
    for series in &chart.series {
        let name =
            if series.observations_name.is_empty() { "observations" } else { &series.observations_name };
        for count in series.points.iter().filter_map(|point| point.observations) {
            match behind.iter_mut().find(|(other, ..)| *other == name) {
                Some((_, least, most)) => (*least, *most) = ((*least).min(count), (*most).max(count)),
                None => behind.push((name, count, count)),
            }
        }
    }
    let behind: Vec<String> = behind
        .into_iter()
        .map(|(name, least, most)| match least == most {
            true => format!("{} {name}", number::count(least)),
            false => format!("{} to {} {name}", number::count(least), number::count(most)),
        })
        .collect();
    if !behind.is_empty() {
        out.push(format!("Behind each point: {}.", behind.join(", or ")));
    }
    let barred = |s: &&Series| s.interval == Interval::Bars && s.points.iter().any(|p| p.interval.is_some());
    if chart.series.iter().filter(barred).count() > 1 {
        out.push("Points that share a place are drawn side by side where there is room.".to_owned());
    }
    out.join(" ")
}
