//! The page of one run: text, tables and figures in one file.
//!
//! Figures across the page are drawn twice, for a wide and for a narrow screen, and the style sheet shows one of them:
//! scaling one drawing down would leave text that nobody can read on a phone.

use super::calibration;
use super::chart::{Chart, Drawing, FIGURE_STYLE, Key, Legend, NARROW, Place, WIDE, draw};
use super::data::{BoundPanel, CurveSeries, FileLink, RunReport, ScoreRow};
use super::line::{LineChart, Point, Series};
use super::line_drawing;
use super::number;
use super::prediction;
use super::scale::Axis;
use super::svg::escape;
use super::tables;

const PAGE_STYLE: &str = include_str!("style.css");
const PAGE_SCRIPT: &str = include_str!("page.js");
/// Nothing may be loaded from anywhere: the browser itself enforces what the page promises.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/// The complete HTML page of a run. Opens offline, prints, follows the reader's colour scheme, works without scripts.
///
/// ```
/// use pacmeta::report::{RunReport, page};
///
/// let report = RunReport { title: "Sensors <north>".to_owned(), ..RunReport::default() };
/// assert!(page(&report).contains("<h1>Sensors &lt;north&gt;</h1>"));
/// ```
pub fn page(report: &RunReport) -> String {
    let title = if report.title.trim().is_empty() { "Report of a run" } else { report.title.trim() };
    let mut main = header(title, &report.subtitle, &report.facts, report.command.as_deref());
    for section in [
        scores(report),
        predictions(report),
        observed(report),
        curve(report),
        calibration_section(report),
        bound(report.bound.as_ref(), "bound"),
        bound(report.guarantee.as_ref(), "guarantee"),
        notes(&report.notes),
        files(&report.files),
    ]
    .into_iter()
    .flatten()
    {
        main.push_str(&section);
    }
    document(title, "", &main)
}

/// A complete document around the content of its main element; `style` comes on top of the styles of every page.
pub(crate) fn document(title: &str, style: &str, main: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n<meta name=\"generator\" content=\"pacmeta\"/>\n\
         <link rel=\"icon\" href=\"data:,\"/>\n<title>{}</title>\n<style>\n{FIGURE_STYLE}{PAGE_STYLE}{style}</style>\n</head>\n\
         <body>\n<main>\n{main}</main>\n<script>\n{PAGE_SCRIPT}</script>\n</body>\n</html>\n",
        escape(title)
    )
}

pub(crate) fn paragraph(text: &str, class: &str) -> String {
    let text = text.trim();
    if text.is_empty() { String::new() } else { format!("<p class=\"{class}\">{}</p>\n", escape(text)) }
}

pub(crate) fn section(id: &str, heading: &str, body: &str) -> String {
    format!("<section id=\"{id}\">\n<h2>{}</h2>\n{body}</section>\n", escape(heading))
}

pub(crate) fn header(
    title: &str,
    subtitle: &str,
    facts: &[(String, String)],
    command: Option<&str>,
) -> String {
    let mut out = format!("<header>\n<h1>{}</h1>\n{}", escape(title), paragraph(subtitle, "lead"));
    if !facts.is_empty() {
        out.push_str("<dl class=\"facts\">");
        for (name, value) in facts {
            out.push_str(&format!("<div><dt>{}</dt><dd>{}</dd></div>", escape(name), escape(value)));
        }
        out.push_str("</dl>\n");
    }
    if let Some(command) = command {
        out.push_str(&format!("<pre class=\"command\"><code>{}</code></pre>\n", escape(command)));
    }
    out + "</header>\n"
}

/// A figure; `class` is `full` (two drawings) or `panel` (one).
pub(crate) struct Figure<'a> {
    pub(crate) id: String,
    pub(crate) chart: &'a Chart,
    pub(crate) heading: &'a str,
    pub(crate) caption: &'a str,
    pub(crate) numbers: String,
    pub(crate) class: &'a str,
    pub(crate) legend: Legend,
    /// The vertical range shared with figures beside it.
    pub(crate) values: Option<(f64, f64)>,
}

pub(crate) fn figure(figure: &Figure<'_>) -> String {
    let render = |suffix: &str, width: f64| {
        let id = format!("{}{suffix}", figure.id);
        draw(figure.chart, &Place { width, id: &id, legend: figure.legend, values: figure.values })
    };
    let narrow = render("-narrow", NARROW);
    let mut out = format!("<figure id=\"{}\" class=\"{}\">\n", figure.id, figure.class);
    if !figure.heading.is_empty() {
        out.push_str(&format!("<h3>{}</h3>\n", escape(figure.heading)));
    }
    if figure.class == "full" {
        let wide = render("", WIDE);
        out.push_str(&wide.inline("wide"));
        out.push('\n');
        out.push_str(&narrow.inline("narrow"));
        out.push_str(&captions(figure.caption, &wide, &narrow));
    } else {
        out.push_str(&narrow.inline("only"));
        out.push_str(&captions(figure.caption, &narrow, &narrow));
    }
    out.push_str(&figure.numbers);
    out + "</figure>\n"
}

/// The caption with the drawing's remarks; where the two drawings differ, each has its own.
fn captions(caption: &str, wide: &Drawing, narrow: &Drawing) -> String {
    let remarks = |drawing: &Drawing| escape(&drawing.remarks.join(" "));
    let (wide, narrow) = (remarks(wide), remarks(narrow));
    let remarks = if wide == narrow {
        wide
    } else {
        format!("<span class=\"wide\">{wide}</span><span class=\"narrow\">{narrow}</span>")
    };
    let text = format!("{} {remarks}", escape(caption.trim()));
    if text.trim().is_empty() {
        String::new()
    } else {
        format!("\n<figcaption>{}</figcaption>\n", text.trim())
    }
}

fn scores(report: &RunReport) -> Option<String> {
    let rows = &report.scores;
    if rows.is_empty() {
        return None;
    }
    let decimals = number::decimals_for(rows.iter().map(|r| r.rmse_standard_error));
    let named = |row: &ScoreRow| format!("{}, {}", row.name, number::fixed(row.rmse, decimals));
    let mut reading = String::new();
    if let Some(best) = tables::best(rows) {
        reading = format!("Lowest error: {}", named(best));
        let next = rows
            .iter()
            .filter(|r| r.rmse.is_finite() && !std::ptr::eq(*r, best))
            .min_by(|a, b| a.rmse.total_cmp(&b.rmse));
        if let Some(next) = next {
            reading.push_str(&format!("; next: {}", named(next)));
        }
        reading.push_str(". ");
    }
    reading.push_str("RMSE (lower is better) is computed per task and averaged over tasks.");
    if rows.iter().any(|r| r.log_likelihood.is_some()) {
        reading.push_str(" Log-likelihood is per query point; higher is better.");
    }
    if rows.iter().any(|r| r.calibration_error.is_some()) {
        reading.push_str(
            " Calibration error is the root mean square distance of the calibration curve from the diagonal; lower is better.",
        );
    }
    if rows.iter().any(|r| r.coverage95.is_some()) {
        reading.push_str(" Coverage is the part of the query inside the 95% interval; 95% is right.");
    }
    // On a phone the drawings in the table are not shown, and neither is the sentence about them.
    let drawn = "Dots show RMSE, lines two standard errors on either side; where rows were scored on the same tasks, \
                 differences between them can be surer than the lines suggest.";
    let caption =
        format!("<p class=\"caption\">{} <span class=\"wide\">{drawn}</span></p>\n", escape(&reading));
    Some(section("scores", "Scores on target tasks", &(tables::scores(rows) + &caption)))
}

pub(crate) fn shared_legend(keys: &[Key]) -> String {
    let mut out = String::from("<ul class=\"key\">");
    for key in keys {
        out.push_str(&format!(
            "<li><svg width=\"26\" height=\"12\" viewBox=\"0 0 26 12\" aria-hidden=\"true\">{}</svg>{}</li>",
            key.sample,
            escape(&key.name)
        ));
    }
    out + "</ul>\n"
}

fn predictions(report: &RunReport) -> Option<String> {
    if report.predictions.is_empty() {
        return None;
    }
    let mut body = paragraph(
        "Each panel is one target task. The predictor saw only the support points; the bands are the central 50% and 95% \
         intervals of its prediction for a new observation. Look for query points inside the bands, and for bands that \
         widen away from the support.",
        "caption",
    );
    body.push_str(&shared_legend(&prediction::keys(report.predictions.iter())));
    body.push_str("<div class=\"panels\">\n");
    for (index, panel) in report.predictions.iter().enumerate() {
        body.push_str(&figure(&Figure {
            id: format!("prediction-{}", index + 1),
            chart: &Chart::Prediction(panel.clone()),
            heading: &panel.title,
            caption: &panel.caption,
            numbers: tables::folded(&tables::prediction(panel)),
            class: "panel",
            legend: Legend::Elsewhere,
            values: None,
        }));
    }
    Some(section("predictions", "Predictions", &(body + "</div>\n")))
}

fn observed(report: &RunReport) -> Option<String> {
    if report.observed.is_empty() {
        return None;
    }
    let mut body = paragraph(
        "Each panel is one target task, each dot one query point with its 95% interval. Good predictions lie near the \
         dashed line of equality; about 19 of 20 intervals should cross it.",
        "caption",
    );
    body.push_str("<div class=\"panels\">\n");
    for (index, panel) in report.observed.iter().enumerate() {
        body.push_str(&figure(&Figure {
            id: format!("observed-{}", index + 1),
            chart: &Chart::Observed(panel.clone()),
            heading: &panel.title,
            caption: &panel.caption,
            numbers: tables::folded(&tables::observed(panel)),
            class: "panel",
            legend: Legend::Elsewhere,
            values: None,
        }));
    }
    Some(section("observed", "Predicted and observed", &(body + "</div>\n")))
}

/// The training curves as a chart, and a remark if its frame leaves something out.
///
/// Training often starts far above where it ends. Positive values that span a wide range get a log axis; otherwise the
/// frame follows the curves without their first fiftieth, where that makes it much smaller.
fn curve_chart(series: &[CurveSeries], label: &str) -> (LineChart, Option<String>) {
    let title = if label.is_empty() { "Training".to_owned() } else { format!("Training: {label}") };
    let mut chart = LineChart::new(title, Axis::new("iteration").tight(), Axis::new(label));
    chart.series = series
        .iter()
        .map(|s| Series::new(s.name.clone(), s.points.iter().map(|(x, y)| Point::new(*x, *y))))
        .collect();
    let shown = |points: &[(f64, f64)]| -> Vec<f64> {
        points.iter().map(|p| p.1).filter(|y| chart.y.shows(*y)).collect()
    };
    let mut all: Vec<f64> = series.iter().flat_map(|s| shown(&s.points)).collect();
    if all.len() < 50 {
        return (chart, None);
    }
    all.sort_by(f64::total_cmp);
    let (low, middle, high) = (all[0], all[all.len() / 2], all[all.len() - 1]);
    if low > 0.0 && high / middle > 10.0 {
        chart.y = chart.y.log();
        return (chart, None);
    }
    let mut later: Vec<f64> = series.iter().flat_map(|s| shown(&s.points[s.points.len() / 50..])).collect();
    later.sort_by(f64::total_cmp);
    if let (Some(first), Some(last)) = (later.first(), later.last())
        && high - low > 3.0 * (last - first)
        && last > first
        && let Some(scale) = Axis::new("").scale([*first, *last].into_iter(), 6)
    {
        chart.y = chart.y.range(scale.low, scale.high);
        let remark = format!(
            "The frame leaves out part of the first fiftieth of training, where values reach from {} to {}.",
            number::brief(low),
            number::brief(high)
        );
        return (chart, Some(remark));
    }
    (chart, None)
}

fn curve(report: &RunReport) -> Option<String> {
    if report.curve.is_empty() {
        return None;
    }
    let (chart, remark) = curve_chart(&report.curve, &report.curve_label);
    let caption = format!(
        "A curve that still falls at the right end asks for more iterations; one that rises again has begun to fit its \
         training tasks only. {}",
        remark.unwrap_or_default()
    );
    let body = figure(&Figure {
        id: "curve".to_owned(),
        chart: &Chart::Line(chart),
        heading: "",
        caption: &caption,
        numbers: tables::folded(&tables::curve(&report.curve, &report.curve_label)),
        class: "full",
        legend: Legend::Shown,
        values: None,
    });
    Some(section("training", "Training", &body))
}

fn calibration_section(report: &RunReport) -> Option<String> {
    if report.calibration.is_empty() {
        return None;
    }
    let kind = report.calibration_kind;
    let chart = calibration::chart(kind, &report.calibration);
    let key = shared_legend(&line_drawing::keys(&chart));
    let body = figure(&Figure {
        id: "calibration".to_owned(),
        chart: &Chart::Line(chart),
        heading: "",
        caption: calibration::reading(kind),
        numbers: tables::folded(&tables::calibration_numbers(kind, &report.calibration)),
        class: "side",
        legend: Legend::Elsewhere,
        values: None,
    });
    Some(section("calibration-section", "Calibration", &(key + &body)))
}

/// A panel without bars is text only: why there is no bound.
fn bound(panel: Option<&BoundPanel>, id: &str) -> Option<String> {
    let panel = panel?;
    let heading =
        if panel.title.trim().is_empty() { "The bound, term by term" } else { panel.title.as_str() };
    let mut body = paragraph(&panel.explanation, "caption");
    if panel.bars.is_empty() {
        return Some(section(&format!("{id}-section"), heading, &body));
    }
    body.push_str(&figure(&Figure {
        id: id.to_owned(),
        chart: &Chart::Bound(panel.clone()),
        heading: "",
        caption: "The longest segment is what costs most. Numbers at the right are totals.",
        numbers: tables::bound(panel),
        class: "full",
        legend: Legend::Shown,
        values: None,
    }));
    Some(section(&format!("{id}-section"), heading, &body))
}

pub(crate) fn notes(notes: &[String]) -> Option<String> {
    if notes.is_empty() {
        return None;
    }
    let items: String = notes.iter().map(|note| format!("<li>{}</li>\n", escape(note))).collect();
    Some(section("notes", "Notes", &format!("<ul class=\"notes\">\n{items}</ul>\n")))
}

pub(crate) fn files(files: &[FileLink]) -> Option<String> {
    if files.is_empty() {
        return None;
    }
    let items: String = files
        .iter()
        .map(|file| {
            let name = escape(&file.name);
            let name = if may_link(&file.href) {
                format!("<a href=\"{}\">{name}</a>", escape(&file.href))
            } else {
                name
            };
            format!("<div><dt>{name}</dt><dd>{}</dd></div>\n", escape(&file.what))
        })
        .collect();
    Some(section("files", "Files", &format!("<dl class=\"files\">\n{items}</dl>\n")))
}

/// Relative addresses and plain schemes only: a report may be made from names that somebody else chose.
pub(crate) fn may_link(href: &str) -> bool {
    let href = href.trim();
    // Browsers ignore control characters and white space inside a scheme.
    if href.is_empty() || href.chars().any(|c| c.is_control()) {
        return false;
    }
    let before_path = href.split(['/', '?', '#']).next().unwrap_or_default();
    match before_path.split_once(':') {
        None => true,
        Some((scheme, _)) => ["http", "https", "file"].contains(&scheme.to_ascii_lowercase().as_str()),
    }
}
