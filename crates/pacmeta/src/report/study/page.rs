//! The page of a study: contents, sections of text, figures, tables and claims.

use std::collections::BTreeSet;

use super::super::calibration;
use super::super::chart::{Chart, Key, Legend};
use super::super::line::Proportion;
use super::super::line_drawing;
use super::super::number;
use super::super::page::{self, Figure, document, paragraph, shared_legend};
use super::super::prediction;
use super::super::prior;
use super::super::scale::Axis;
use super::super::svg::escape;
use super::data::{Block, ClaimRow, ClaimVerdict, StudyFigure, StudyReport, StudySection};
use super::gallery;
use super::tables;

const STUDY_STYLE: &str = include_str!("study.css");

/// The complete HTML page of a study. Opens offline, prints, follows the reader's colour scheme, works without scripts.
///
/// ```
/// use pacmeta::report::{Axis, LineChart, Point, Series, StudyFigure, StudyReport, StudySection, study_page};
///
/// let points = [(5.0, 0.42), (10.0, 0.37), (100.0, 0.31)].map(|(x, y)| Point::new(x, y).error(0.02).observations(10));
/// let axis = Axis::new("examples per task").log().ticks([5.0, 10.0, 100.0]);
/// let chart = LineChart::new("Error", axis, Axis::new("RMSE"))
///     .with(Series::new("PACMAML", points).intervals_are("one standard error").observations_are("models"));
/// let figure = StudyFigure::new("error", "Error against examples", chart, "Lower is better.");
/// let section = StudySection::new("results", "Results").with(figure);
/// let html = study_page(&StudyReport { sections: vec![section], ..StudyReport::default() });
/// assert!(html.contains("<figure id=\"error\"") && html.contains("Behind each point: 10 models."));
/// ```
pub fn study_page(report: &StudyReport) -> String {
    let title = if report.title.trim().is_empty() { "Report of a study" } else { report.title.trim() };
    let mut names = Names::default();
    let mut contents = Vec::new();
    let mut body = String::new();
    for part in &report.sections {
        let id = names.take(&part.id, "section");
        body.push_str(&section(part, &id, &mut names));
        contents.push((id, heading(part).to_owned()));
    }
    for (id, name, part) in
        [("notes", "Notes", page::notes(&report.notes)), ("files", "Files", page::files(&report.files))]
    {
        if let Some(part) = part {
            body.push_str(&part);
            contents.push((id.to_owned(), name.to_owned()));
        }
    }
    let mut main = page::header(title, &report.subtitle, &report.facts, report.command.as_deref());
    main.push_str(&contents_list(&contents));
    main.push_str(&body);
    document(title, STUDY_STYLE, &main)
}

/// Identifiers of the page, each given once. Those that drawings derive from their own are kept free too.
struct Names(BTreeSet<String>);

impl Default for Names {
    fn default() -> Self {
        Self(["notes", "files", "contents"].map(str::to_owned).into())
    }
}

impl Names {
    const DERIVED: [&'static str; 6] = ["", "-title", "-text", "-clip", "-hatch0", "-hatch1"];

    fn take(&mut self, wanted: &str, otherwise: &str) -> String {
        let clean: String = wanted
            .trim()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' })
            .collect();
        let stem = if clean.trim_matches('-').is_empty() { otherwise.to_owned() } else { clean };
        let mut name = stem.clone();
        let mut count = 1;
        while Self::family(&name).any(|n| self.0.contains(&n)) {
            count += 1;
            name = format!("{stem}-{count}");
        }
        self.0.extend(Self::family(&name));
        name
    }

    fn family(name: &str) -> impl Iterator<Item = String> {
        let both = [name.to_owned(), format!("{name}-narrow")];
        both.into_iter()
            .flat_map(|stem| Self::DERIVED.map(|suffix| format!("{stem}{suffix}")))
            .chain([format!("{name}-heading")])
    }
}

fn heading(section: &StudySection) -> &str {
    let heading = section.heading.trim();
    if heading.is_empty() { "Untitled" } else { heading }
}

fn contents_list(contents: &[(String, String)]) -> String {
    if contents.len() < 2 {
        return String::new();
    }
    let items: String = contents
        .iter()
        .map(|(id, name)| format!("<li><a href=\"#{id}\">{}</a></li>\n", escape(name)))
        .collect();
    format!("<nav class=\"contents\" aria-label=\"Contents\" id=\"contents\">\n<ol>\n{items}</ol>\n</nav>\n")
}

fn section(section: &StudySection, id: &str, names: &mut Names) -> String {
    let mut body: String = section.text.iter().map(|text| paragraph(text, "text")).collect();
    for block in &section.blocks {
        body.push_str(&match block {
            Block::Figure(figure) => single(figure, names),
            Block::Panels(figures) => panels(figures, names),
            Block::Table(table) => {
                let id = names.take(&table.id, "table");
                tables::table(table, &id)
            }
            Block::Claims(claims) => claims_list(claims),
            Block::Gallery(tasks) => tasks.iter().map(gallery::task).collect(),
            Block::Text(text) => paragraph(text, "text"),
        });
    }
    if body.is_empty() {
        body = paragraph("There is nothing to show here.", "caption");
    }
    page::section(id, heading(section), &body)
}

/// The caption with what stands behind the points.
fn caption(figure: &StudyFigure, evidence: &str) -> String {
    format!("{} {evidence}", figure.caption.trim()).trim().to_owned()
}

fn single(figure: &StudyFigure, names: &mut Names) -> String {
    let square = match &figure.chart {
        Chart::Line(chart) => chart.proportion == Proportion::Square,
        Chart::Observed(_) | Chart::Calibration(..) => true,
        Chart::Prediction(_) | Chart::Prior(_) | Chart::Bound(_) => false,
    };
    page::figure(&Figure {
        id: names.take(&figure.id, "figure"),
        chart: &figure.chart,
        heading: figure.heading.trim(),
        caption: &caption(figure, &tables::evidence(&figure.chart)),
        numbers: tables::numbers(&figure.chart),
        // As high as wide and across the page would fill a screen.
        class: if square { "panel" } else { "full" },
        legend: Legend::Shown,
        values: None,
    })
}

fn panels(figures: &[StudyFigure], names: &mut Names) -> String {
    if figures.is_empty() {
        return String::new();
    }
    // Three in a row where that leaves no gap that two in a row would fill.
    let class = if figures.len() == 3 || figures.len() > 4 { "group three" } else { "group" };
    let mut out = format!("<div class=\"{class}\">\n");
    let keys = common_keys(figures);
    let legend = match &keys {
        Some(keys) => {
            if keys.len() > 1 {
                out.push_str(&shared_legend(keys));
            }
            Legend::Elsewhere
        }
        None => Legend::Shown,
    };
    // What holds for all panels is said once.
    let evidence: Vec<String> = figures.iter().map(|f| tables::evidence(&f.chart)).collect();
    let shared = figures.len() > 1 && evidence.iter().all(|e| *e == evidence[0]);
    if shared {
        out.push_str(&paragraph(&evidence[0], "caption"));
    }
    out.push_str("<div class=\"panels\">\n");
    for (figure, evidence) in figures.iter().zip(&evidence) {
        out.push_str(&page::figure(&Figure {
            id: names.take(&figure.id, "figure"),
            chart: &figure.chart,
            heading: figure.heading.trim(),
            caption: &caption(figure, if shared { "" } else { evidence }),
            numbers: tables::numbers(&figure.chart),
            class: "panel",
            legend,
            values: common_values(figures, &figure.chart),
        }));
    }
    out + "</div>\n</div>\n"
}

/// One legend for all panels, unless a name would stand for two looks or a look for two names.
fn common_keys(figures: &[StudyFigure]) -> Option<Vec<Key>> {
    let mut all: Vec<Key> = Vec::new();
    for figure in figures {
        let own = match &figure.chart {
            Chart::Line(chart) => line_drawing::all_keys(chart),
            Chart::Calibration(kind, series) => line_drawing::all_keys(&calibration::chart(*kind, series)),
            Chart::Prediction(panel) => prediction::keys(std::iter::once(panel)),
            Chart::Prior(panel) => prior::keys(std::iter::once(panel)),
            Chart::Observed(_) => Vec::new(),
            Chart::Bound(_) => return None,
        };
        for key in own {
            let clash = |k: &&Key| (k.name == key.name) != (k.sample == key.sample);
            if all.iter().any(|k| clash(&k)) {
                return None;
            }
            if !all.contains(&key) {
                all.push(key);
            }
        }
    }
    Some(all)
}

/// The vertical range of priors and predictions of the same quantity. A vague prior may not squeeze the predictions:
/// then it is cut at the frame.
fn common_values(figures: &[StudyFigure], chart: &Chart) -> Option<(f64, f64)> {
    let (Chart::Prediction(_) | Chart::Prior(_)) = chart else { return None };
    let quantity = |chart: &Chart| match chart {
        Chart::Prediction(panel) => Some(panel.y_label.clone()),
        Chart::Prior(panel) => Some(panel.y_label.clone()),
        _ => None,
    };
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for other in figures.iter().map(|f| &f.chart).filter(|c| quantity(c) == quantity(chart)) {
        match other {
            Chart::Prediction(panel) => after.extend(prediction::values(panel)),
            Chart::Prior(panel) => before.extend(prior::values(panel)),
            _ => {}
        }
    }
    if after.is_empty() || prediction::extent(&before) <= 2.5 * prediction::extent(&after) {
        after.extend(before);
    }
    let scale = Axis::default().tight().scale(after.into_iter(), 6)?;
    let margin = 0.04 * (scale.high - scale.low);
    Some((scale.low - margin, scale.high + margin))
}

/// The shape that goes with a verdict, so that colour is never the only difference.
fn verdict_shape(verdict: ClaimVerdict) -> (&'static str, &'static str) {
    match verdict {
        ClaimVerdict::Supported => ("yes", "M3.5 8.6l3 3 6-7"),
        ClaimVerdict::NotSupported => ("no", "M4 4l8 8M12 4l-8 8"),
        ClaimVerdict::Undecided => ("open", "M4 8h8"),
    }
}

fn verdict(verdict: ClaimVerdict) -> String {
    let (class, path) = verdict_shape(verdict);
    format!(
        "<span class=\"verdict {class}\"><svg width=\"16\" height=\"16\" viewBox=\"0 0 16 16\" aria-hidden=\"true\">\
         <path d=\"{path}\"/></svg>{}</span>",
        verdict.words()
    )
}

fn claims_list(claims: &[ClaimRow]) -> String {
    if claims.is_empty() {
        return String::new();
    }
    let tally: Vec<String> = [ClaimVerdict::Supported, ClaimVerdict::NotSupported, ClaimVerdict::Undecided]
        .into_iter()
        .map(|kind| (kind, claims.iter().filter(|c| c.verdict == kind).count()))
        .filter(|(_, count)| *count > 0)
        .map(|(kind, count)| format!("{} {}", number::count(count), kind.words()))
        .collect();
    let mut out = format!("<p class=\"caption\">Claims: {}.</p>\n<ul class=\"claims\">\n", tally.join(", "));
    for claim in claims {
        let statement = escape(claim.statement.trim());
        out.push_str(&format!("<li>{}<div>\n<h3>{statement}</h3>\n", verdict(claim.verdict)));
        out.push_str(&paragraph(&claim.test, "caption"));
        out.push_str(&format!("<p class=\"effect\">{}</p>\n", effect(claim)));
        out.push_str(&paragraph(&claim.detail, "caption"));
        out.push_str("</div></li>\n");
    }
    out + "</ul>\n"
}

/// The effect with its uncertainty, or a word that there is none.
fn effect(claim: &ClaimRow) -> String {
    let error = claim.standard_error.filter(|e| e.is_finite());
    let value = match (claim.effect.is_finite(), error) {
        (false, _) => "not a finite number".to_owned(),
        (true, Some(error)) => {
            let decimals = number::decimals_for(std::iter::once(error));
            format!(
                "<strong>{}</strong> ± {} <small>standard error</small>",
                number::fixed(claim.effect, decimals),
                number::fixed(error, decimals)
            )
        }
        (true, None) => format!("<strong>{}</strong>", number::brief(claim.effect)),
    };
    format!("Effect: {value}, n = {}", number::count(claim.observations))
}
