//! Tables of the page: scores, and the numbers behind each chart.

use super::bars;
use super::calibration;
use super::data::{
    BoundPanel, CalibrationKind, CalibrationSeries, CurveSeries, ObservedPanel, PredictionPanel, ScoreRow,
};
use super::frame::line;
use super::number::{self, brief, fixed};
use super::scale::{Axis, Scale};
use super::svg::{Element, escape};

/// At most so many rows for long lists; the caption says that they are a selection.
const MOST_ROWS: usize = 20;
const SPARK: f64 = 150.0;

/// A table from cells that are already escaped; the first column holds names.
pub(crate) fn table(class: &str, caption: &str, head: &[String], rows: &[Vec<String>]) -> String {
    labelled_table(class, caption, head, rows, &[])
}

/// The same with a label for the cells of each column: on a phone, where there is no room for columns, the style sheet
/// shows every row as a list of labelled values.
fn labelled_table(
    class: &str,
    caption: &str,
    head: &[String],
    rows: &[Vec<String>],
    labels: &[&str],
) -> String {
    let mut out = format!("<div class=\"scroll\"><table class=\"{class}\">");
    if !caption.is_empty() {
        out.push_str(&format!("<caption>{}</caption>", escape(caption)));
    }
    out.push_str("<thead><tr>");
    for cell in head {
        out.push_str(&format!("<th scope=\"col\">{cell}</th>"));
    }
    out.push_str("</tr></thead><tbody>");
    for row in rows {
        out.push_str("<tr>");
        for (index, cell) in row.iter().enumerate() {
            match labels.get(index) {
                _ if index == 0 => out.push_str(&format!("<th scope=\"row\">{cell}</th>")),
                Some(label) => out.push_str(&format!("<td data-label=\"{label}\">{cell}</td>")),
                None => out.push_str(&format!("<td>{cell}</td>")),
            }
        }
        out.push_str("</tr>\n");
    }
    out + "</tbody></table></div>"
}

/// Numbers that a reader may want but need not see at once.
pub(crate) fn folded(table: &str) -> String {
    format!("<details><summary>Numbers</summary>{table}</details>")
}

fn optional(value: Option<f64>, decimals: usize) -> String {
    match value {
        Some(value) if value.is_finite() => fixed(value, decimals),
        _ => "–".to_owned(),
    }
}

/// The row with the lowest finite error.
pub(crate) fn best(scores: &[ScoreRow]) -> Option<&ScoreRow> {
    scores.iter().filter(|r| r.rmse.is_finite()).min_by(|a, b| a.rmse.total_cmp(&b.rmse))
}

/// Scores, with a drawing of each error and its uncertainty on a common scale.
pub(crate) fn scores(rows: &[ScoreRow]) -> String {
    let decimals = number::decimals_for(rows.iter().map(|r| r.rmse_standard_error));
    let has_likelihood = rows.iter().any(|r| r.log_likelihood.is_some());
    let has_calibration = rows.iter().any(|r| r.calibration_error.is_some());
    let ends = rows.iter().flat_map(|r| [r.rmse - 2.0 * spread(r), r.rmse + 2.0 * spread(r)]);
    let scale = Axis::new("").scale(ends, 5);
    let lowest = best(rows).map(|r| r.rmse);

    let mut head = vec![
        "<span class=\"hide\">Predictor</span>".to_owned(),
        "RMSE <small>± standard error</small>".to_owned(),
    ];
    let mut labels = vec!["", "RMSE ± standard error"];
    if let Some(scale) = &scale {
        head.push(spark_head(scale));
        labels.push("");
    }
    let has_coverage = rows.iter().any(|r| r.coverage95.is_some());
    let wanted = [
        ("Log-likelihood", has_likelihood),
        ("Calibration error", has_calibration),
        ("95% coverage", has_coverage),
        ("Tasks", true),
    ];
    for (name, _) in wanted.iter().filter(|(_, wanted)| *wanted) {
        head.push((*name).to_owned());
        labels.push(name);
    }

    let body: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let note =
                row.note.as_deref().map(|n| format!("<small>{}</small>", escape(n))).unwrap_or_default();
            let error = optional(Some(row.rmse_standard_error), decimals);
            let rmse =
                format!("<span>{} <small>± {error}</small></span>", optional(Some(row.rmse), decimals));
            let is_best = lowest.is_some_and(|l| row.rmse == l);
            let mut cells = vec![
                format!("{}{note}", escape(&row.name)),
                if is_best { format!("<strong>{rmse}</strong>") } else { rmse },
            ];
            if let Some(scale) = &scale {
                cells.push(spark(row, scale));
            }
            if has_likelihood {
                cells.push(optional(row.log_likelihood, 3));
            }
            if has_calibration {
                cells.push(optional(row.calibration_error, 3));
            }
            if has_coverage {
                let percent = row.coverage95.filter(|part| part.is_finite());
                cells.push(percent.map_or("–".to_owned(), |part| format!("{}%", fixed(100.0 * part, 1))));
            }
            cells.push(number::count(row.tasks));
            cells
        })
        .collect();
    labelled_table("scores", "", &head, &body, &labels)
}

fn spread(row: &ScoreRow) -> f64 {
    if row.rmse_standard_error.is_finite() { row.rmse_standard_error.abs() } else { 0.0 }
}

fn spark_svg(body: &str, height: f64) -> String {
    format!(
        "<svg class=\"chart spark\" viewBox=\"0 0 {SPARK} {height}\" width=\"{SPARK}\" height=\"{height}\" aria-hidden=\"true\">{body}</svg>"
    )
}

fn spark_x(scale: &Scale, value: f64) -> f64 {
    16.0 + scale.position(value) * (SPARK - 32.0)
}

fn spark_head(scale: &Scale) -> String {
    let mut body = String::new();
    let last = scale.ticks.len() - 1;
    for index in [0, last] {
        let x = spark_x(scale, scale.ticks[index]);
        Element::new("text").class("tick middle").at(x, 12.0).text(&scale.labels[index], &mut body);
    }
    spark_svg(&body, 16.0)
}

fn spark(row: &ScoreRow, scale: &Scale) -> String {
    let mut body = String::new();
    for tick in &scale.ticks {
        let x = spark_x(scale, *tick);
        line("grid", x, 0.0, x, 24.0, &mut body);
    }
    if row.rmse.is_finite() && scale.position(row.rmse).is_finite() {
        let x = |value: f64| spark_x(scale, value);
        line(
            "bar s0",
            x(row.rmse - 2.0 * spread(row)),
            12.0,
            x(row.rmse + 2.0 * spread(row)),
            12.0,
            &mut body,
        );
        Element::new("circle")
            .class("mark s0")
            .number("cx", x(row.rmse))
            .number("cy", 12.0)
            .number("r", 3.4)
            .empty(&mut body);
    }
    spark_svg(&body, 24.0)
}

/// Indices of at most [`MOST_ROWS`] entries, evenly spread, first and last included.
pub(crate) fn selection(length: usize) -> Vec<usize> {
    if length <= MOST_ROWS {
        return (0..length).collect();
    }
    (0..MOST_ROWS).map(|i| i * (length - 1) / (MOST_ROWS - 1)).collect()
}

pub(crate) fn selection_caption(length: usize) -> String {
    if length <= MOST_ROWS {
        String::new()
    } else {
        format!("{MOST_ROWS} of {} points, evenly spread.", number::count(length))
    }
}

/// Training curves as numbers; series that share their iterations share rows.
pub(crate) fn curve(series: &[CurveSeries], label: &str) -> String {
    let mut out = String::new();
    let same = series.windows(2).all(|w| {
        w[0].points.len() == w[1].points.len()
            && w[0].points.iter().zip(&w[1].points).all(|(a, b)| a.0.to_bits() == b.0.to_bits())
    });
    let groups: Vec<&[CurveSeries]> = if same { vec![series] } else { series.chunks(1).collect() };
    for group in groups.iter().filter(|g| !g.is_empty() && !g[0].points.is_empty()) {
        let length = group[0].points.len();
        let mut head = vec!["iteration".to_owned()];
        head.extend(group.iter().map(|s| escape(&s.name)));
        let rows: Vec<Vec<String>> = selection(length)
            .into_iter()
            .map(|i| {
                let mut row = vec![brief_whole(group[0].points[i].0)];
                row.extend(group.iter().map(|s| brief(s.points[i].1)));
                row
            })
            .collect();
        let caption = [label, &selection_caption(length)]
            .into_iter()
            .filter(|s| !s.is_empty())
            .collect::<Vec<_>>()
            .join(". ");
        out.push_str(&table("numbers", &caption, &head, &rows));
    }
    out
}

pub(crate) fn brief_whole(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e12 { fixed(value, 0) } else { brief(value) }
}

/// Calibration curves as numbers.
pub(crate) fn calibration_numbers(kind: CalibrationKind, series: &[CalibrationSeries]) -> String {
    let chart = calibration::chart(kind, series);
    let mut out = String::new();
    for one in series.iter().filter(|s| !s.points.is_empty()) {
        let head = vec![escape(&chart.x.label), escape(&chart.y.label)];
        let rows: Vec<Vec<String>> = selection(one.points.len())
            .into_iter()
            .map(|i| vec![percent(one.points[i].0), percent(one.points[i].1)])
            .collect();
        out.push_str(&table("numbers", &one.name, &head, &rows));
    }
    out
}

fn percent(value: f64) -> String {
    if value.is_finite() { fixed(100.0 * value, 1) + "%" } else { fixed(value, 0) }
}

/// A prediction as numbers.
pub(crate) fn prediction(panel: &PredictionPanel) -> String {
    let mut out = String::new();
    if !panel.grid.is_empty() {
        let head = [&panel.x_label, "mean", "standard deviation"].map(escape);
        let rows: Vec<Vec<String>> = selection(panel.grid.len())
            .into_iter()
            .map(|i| panel.grid[i])
            .map(|p| vec![brief(p.x), brief(p.mean), brief(p.std)])
            .collect();
        out.push_str(&table(
            "numbers",
            &format!("Prediction. {}", selection_caption(panel.grid.len())),
            &head,
            &rows,
        ));
    }
    for (name, points) in [("Support", &panel.support), ("Query", &panel.query)] {
        if !points.is_empty() {
            let head = [&panel.x_label, &panel.y_label].map(|s| escape(s));
            let rows: Vec<Vec<String>> = selection(points.len())
                .into_iter()
                .map(|i| vec![brief(points[i].0), brief(points[i].1)])
                .collect();
            out.push_str(&table(
                "numbers",
                &format!("{name} points. {}", selection_caption(points.len())),
                &head,
                &rows,
            ));
        }
    }
    out
}

/// Predicted and observed values as numbers.
pub(crate) fn observed(panel: &ObservedPanel) -> String {
    let head = ["observed", "predicted", "standard deviation"].map(str::to_owned);
    let rows: Vec<Vec<String>> = selection(panel.points.len())
        .into_iter()
        .map(|i| panel.points[i])
        .map(|(observed, predicted, std)| vec![brief(observed), brief(predicted), brief(std)])
        .collect();
    table("numbers", &selection_caption(panel.points.len()), &head, &rows)
}

/// The bound as numbers: terms down, bars across.
pub(crate) fn bound(panel: &BoundPanel) -> String {
    let decimals = bars::decimals(panel);
    let mut head = vec!["Term".to_owned()];
    head.extend(panel.bars.iter().map(|b| escape(&b.name)));
    let mut rows: Vec<Vec<String>> = Vec::new();
    for name in bars::term_names(panel) {
        let mut row = vec![escape(name)];
        for bar in &panel.bars {
            let values: Vec<f64> = bar.terms.iter().filter(|t| t.name == name).map(|t| t.value).collect();
            // A term that a bound does not have is not a term of zero.
            row.push(if values.is_empty() { "–".to_owned() } else { fixed(values.iter().sum(), decimals) });
        }
        rows.push(row);
    }
    let mut total = vec!["<strong>Total</strong>".to_owned()];
    total.extend(panel.bars.iter().map(|b| format!("<strong>{}</strong>", fixed(b.total, decimals))));
    rows.push(total);
    table("bound", "", &head, &rows)
}
