//! The page of a study: structure, escaping, holes in the data, and the abilities of charts that it needs.

use super::super::sample::Noise;
use super::super::tests::well_formed;
use super::super::{Axis, Chart, Guide, LineChart, Point, PriorPanel, Series, figure_svg};
use super::sample::{SIZES, before_and_after, error_chart, study};
use super::*;

fn figures(report: &StudyReport) -> Vec<StudyFigure> {
    let mut out = Vec::new();
    for block in report.sections.iter().flat_map(|s| &s.blocks) {
        match block {
            Block::Figure(figure) => out.push(figure.clone()),
            Block::Panels(figures) => out.extend(figures.iter().cloned()),
            _ => {}
        }
    }
    out
}

fn one_section(section: StudySection) -> StudyReport {
    StudyReport { sections: vec![section], ..StudyReport::default() }
}

/// The part of the page between the figure's opening and closing tag.
fn figure<'a>(html: &'a str, id: &str) -> &'a str {
    html.split(&format!("<figure id=\"{id}\"")).nth(1).unwrap().split("</figure>").next().unwrap()
}

/// The number in an attribute of the first tag of `text`.
fn attribute(text: &str, key: &str) -> f64 {
    text.split(&format!(" {key}=\"")).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
}

/// Where the marker paths of a series start, in order.
fn marker_starts(svg: &str, slot: usize) -> Vec<(f64, f64)> {
    svg.split(&format!("<path class=\"mark s{slot}\" d=\"M"))
        .skip(1)
        .filter(|m| m.contains("<title>") && m.find("<title>") < m.find("</path>"))
        .map(|m| {
            let mut numbers = m.split(['a', 'L', '"']).next().unwrap().split(' ').map(|n| n.parse().unwrap());
            (numbers.next().unwrap(), numbers.next().unwrap())
        })
        .collect()
}

#[test]
fn page_has_every_figure_with_caption_and_numbers() {
    let report = study();
    let html = study_page(&report);
    let elements = well_formed(&html);
    let figures = figures(&report);
    assert_eq!(figures.len(), 12);
    assert_eq!(elements.iter().filter(|e| *e == "figure").count(), figures.len());
    for one in &figures {
        let part = figure(&html, &one.id);
        assert!(
            part.contains("<figcaption>") && part.contains("<summary>Numbers</summary><div"),
            "{}",
            one.id
        );
        assert!(part.contains("<title>") && !part.contains("class=\"void\""), "{}", one.id);
    }
    // The file for the check in a browser, where somebody asks for it.
    if let Some(path) = std::env::var_os("PACMETA_STUDY_SAMPLE") {
        std::fs::write(path, html).unwrap();
    }
}

#[test]
fn contents_lead_to_sections_and_headings_keep_their_order() {
    let html = study_page(&study());
    let nav = html.split("<nav").nth(1).unwrap().split("</nav>").next().unwrap();
    let targets: Vec<&str> = nav.split("href=\"#").skip(1).map(|a| a.split('"').next().unwrap()).collect();
    assert_eq!(targets, ["claims", "errors", "uncertainty", "tasks", "bound", "notes", "files"]);
    for target in targets {
        assert!(html.contains(&format!("<section id=\"{target}\">")), "{target}");
    }
    let levels: Vec<char> = html
        .match_indices("<h")
        .filter_map(|(at, _)| html[at + 2..].chars().next().filter(char::is_ascii_digit))
        .collect();
    assert_eq!(levels.iter().filter(|l| **l == '1').count(), 1);
    assert!(levels.windows(2).all(|w| w[1] as u32 <= w[0] as u32 + 1), "a level is skipped: {levels:?}");
}

#[test]
fn page_refers_to_nothing_outside_and_is_the_same_each_time() {
    let html = study_page(&study());
    assert!(html == study_page(&study()));
    let rest = html.replace("http://www.w3.org/2000/svg", "");
    for word in ["http:", "https:", "src=", "@import", "url(h", "fetch("] {
        assert!(!rest.contains(word), "{word}");
    }
}

#[test]
fn thirty_figures_stay_small() {
    let mut noise = Noise(3);
    let mut section = StudySection::new("many", "Many");
    for index in 0..30 {
        let mut chart = error_chart(8, 5.0, &mut noise);
        chart.title = format!("{index}");
        section = section.with(StudyFigure::new("errors", "Errors", chart, ""));
    }
    let html = study_page(&one_section(section));
    well_formed(&html);
    assert_eq!(html.matches("<figure id=").count(), 30);
    assert!(html.len() < 3_000_000, "{} bytes", html.len());
}

#[test]
fn hostile_texts_stay_text() {
    fn replace(value: serde_json::Value, text: &str) -> serde_json::Value {
        use serde_json::Value;
        let words = ["kind", "format", "ends", "interval", "proportion", "verdict", "calibration"];
        match value {
            // Missing cells are written as a word too.
            Value::String(word) if word == "missing" => Value::String(word),
            Value::String(_) => Value::String(text.to_owned()),
            Value::Array(list) => list.into_iter().map(|v| replace(v, text)).collect(),
            Value::Object(map) => map
                .into_iter()
                .map(|(k, v)| if words.contains(&k.as_str()) { (k, v) } else { (k, replace(v, text)) })
                .collect(),
            other => other,
        }
    }
    let hostile = "<script>alert(1)</script>\"' onload=\"x\" & ]]> \u{0}\u{1b}</style>";
    let value = serde_json::to_value(study()).unwrap();
    let report: StudyReport = serde_json::from_value(replace(value, hostile)).unwrap();
    let html = study_page(&report);
    let scripts = well_formed(&html).into_iter().filter(|e| e == "script").count();
    assert_eq!(scripts, 1, "only the page's own script");
    assert!(html.contains("&lt;script&gt;alert(1)"));
    let table = |href: &str| StudyTable { csv: Some(href.to_owned()), ..StudyTable::default() };
    let linked =
        |href: &str| study_page(&one_section(StudySection::new("s", "S").with(table(href)))).contains("CSV");
    assert!(linked("scores.csv") && !linked("javascript:alert(1)"));
}

#[test]
fn identifiers_are_clean_and_never_repeat() {
    let chart =
        || LineChart::new("t", Axis::new("x"), Axis::new("y")).with(Series::new("a", [Point::new(1.0, 2.0)]));
    let section = ["a b", "a-b", "", "a-b-narrow", "notes", "a-b-title"]
        .into_iter()
        .fold(StudySection::new("a-b", "S"), |s, id| s.with(StudyFigure::new(id, "", chart(), "")));
    let html = study_page(&one_section(section));
    // Repeated identifiers fail here.
    well_formed(&html);
    for id in ["a-b-2", "a-b-3", "figure", "a-b-narrow-2", "notes-2"] {
        assert!(html.contains(&format!("<figure id=\"{id}\"")), "{id}");
    }
}

#[test]
fn studies_survive_json_with_holes() {
    let mut report = study();
    let Block::Figure(figure) = &mut report.sections[1].blocks[0] else { panic!("a figure") };
    let Chart::Line(chart) = &mut figure.chart else { panic!("a line chart") };
    chart.series[0].points[1].y = f64::NAN;
    let text = serde_json::to_string(&report).unwrap();
    let read: StudyReport = serde_json::from_str(&text).unwrap();
    let html = study_page(&read);
    assert!(html == study_page(&report));
    assert!(super::tests::figure(&html, "errors-all").contains("1 value that is not finite is not drawn."));
    let partial: StudyReport = serde_json::from_str(r#"{"title": "t", "sections": [{"id": "s"}]}"#).unwrap();
    assert_eq!(partial.sections[0].id, "s");
}

#[test]
fn empty_parts_say_so_and_break_nothing() {
    let html = study_page(&StudyReport::default());
    well_formed(&html);
    assert!(html.contains("<h1>Report of a study</h1>") && !html.contains("<nav"));
    let section = StudySection::new("", "")
        .with(Block::Panels(Vec::new()))
        .with(Block::Claims(Vec::new()))
        .with(Block::Text(String::new()));
    let html = study_page(&one_section(section));
    well_formed(&html);
    assert!(html.contains("<h2>Untitled</h2>") && html.contains("There is nothing to show here."));
    let section = StudySection::new("s", "S")
        .with(StudyTable::default())
        .with(StudyFigure::new("empty", "", LineChart::default(), ""))
        .with(vec![StudyFigure::new("nothing", "", PriorPanel::default(), "")]);
    let html = study_page(&one_section(section));
    well_formed(&html);
    assert_eq!(html.matches("class=\"void\"").count(), 3, "two drawings across the page, one panel");
}

#[test]
fn cells_are_written_for_comparison_down_the_column() {
    let columns = vec![Column::text("m"), Column::number("e"), Column::number("k"), Column::number("v")];
    let rows = vec![
        vec![Cell::text("a <b>"), Cell::estimate(0.3456, 0.0123, 10).best(), Cell::number(12_000.0)],
        vec![Cell::text("c"), Cell::estimate(f64::NAN, 0.1, 10), Cell::number(7.0), Cell::number(1e-9)],
        vec![Cell::text("d"), Cell::missing(), Cell::number(f64::INFINITY), Cell::number(2.5)],
    ];
    let table = StudyTable { columns, rows, ..StudyTable::default() };
    let html = study_page(&one_section(StudySection::new("s", "S").with(table.clone())));
    well_formed(&html);
    assert!(html.contains("<th scope=\"col\" class=\"figures\">e</th>"));
    assert!(html.contains("After ± stands the standard error; n = 10. A star marks the best."));
    assert!(html.contains("<th scope=\"row\" class=\"words\">a &lt;b&gt;</th>"));
    assert!(html.contains("<strong>0.346 <small>± 0.012</small></strong>"));
    assert!(html.contains(">12,000<") && html.contains(">7<") && html.contains(">1.00×10⁻⁹<"));
    assert_eq!(html.matches(">missing<").count(), 4, "NaN, missing, infinity, and a row that is too short");
    assert!(html.contains("2 values that are not finite are shown as missing."));
    // Only counts that differ from the usual one are told cell by cell.
    let mut uneven = table;
    uneven.rows[1][1] = Cell::estimate(0.5, 0.02, 10);
    uneven.rows[2][1] = Cell::estimate(0.5, 0.02, 9);
    let html = study_page(&one_section(StudySection::new("s", "S").with(uneven.clone())));
    assert!(html.contains("<small>± 0.020</small> <small class=\"count\">n = 9</small>"));
    assert!(html.contains("n = 10 unless a cell says otherwise.") && !html.contains("n = 10</small>"));
    // A star stands beside its value.
    uneven.rows[2][1] = Cell::estimate(0.5, 0.02, 9).best();
    let html = study_page(&one_section(StudySection::new("s", "S").with(uneven)));
    assert!(
        html.contains("0.020</small></strong><span class=\"star\"")
            && html.contains("best</span> <small class=\"count\">n = 9")
    );
}

#[test]
fn verdicts_are_words_with_a_shape_of_their_own() {
    let html = study_page(&study());
    assert!(html.contains("Claims: 2 supported, 1 not supported, 1 undecided."));
    let list = html.split("<ul class=\"claims\">").nth(1).unwrap().split("</ul>").next().unwrap();
    let mut seen = std::collections::BTreeMap::new();
    for part in list.split("<span class=\"verdict").skip(1) {
        let path = part.split("d=\"").nth(1).unwrap().split('"').next().unwrap();
        let word = part.split("</svg>").nth(1).unwrap().split('<').next().unwrap();
        assert_eq!(*seen.entry(word).or_insert(path), path);
    }
    assert_eq!(seen.keys().copied().collect::<Vec<_>>(), ["not supported", "supported", "undecided"]);
    assert_eq!(seen.values().collect::<std::collections::BTreeSet<_>>().len(), 3);
    assert!(
        list.contains("<strong>0.113</strong> ± 0.021")
            && list.contains("Effect: <strong>0</strong>, n = 40")
    );
}

#[test]
fn axes_have_exactly_the_ticks_that_were_run() {
    let svg = figure_svg(&error_chart(2, 5.0, &mut Noise(1)).into());
    let ticks: Vec<&str> = svg
        .split("<text class=\"tick middle\"")
        .skip(1)
        .map(|t| t.split('>').nth(1).unwrap().split('<').next().unwrap())
        .collect();
    assert_eq!(ticks, ["5", "10", "30", "50", "100"]);
    let mixed = Axis::new("x").ticks([0.5, 2.0, f64::NAN, 2.0]).scale([1.0].into_iter(), 6).unwrap();
    assert_eq!(mixed.labels, ["0.5", "2"]);
    assert!(mixed.low < 0.5 && mixed.high > 2.0, "data on the outermost ticks have room beside them");
}

#[test]
fn error_bars_at_one_place_stand_side_by_side() {
    let chart = error_chart(8, 5.0, &mut Noise(1));
    let svg = figure_svg(&chart.clone().into());
    let bars: Vec<f64> = (0..8)
        .map(|slot| {
            let bar = svg.split(&format!("<path class=\"bar s{slot}\" d=\"M")).nth(1).unwrap();
            bar.split(' ').next().unwrap().parse().unwrap()
        })
        .collect();
    assert!(bars.windows(2).all(|w| w[1] - w[0] > 2.0), "{bars:?}");
    let places: Vec<f64> = (0..5).map(|i| marker_starts(&svg, 0)[i].0).collect();
    let gap = places.windows(2).map(|w| w[1] - w[0]).fold(f64::INFINITY, f64::min);
    assert!(bars[7] - bars[0] < 0.5 * gap, "bars of one place keep clear of the next");
    // Without intervals nothing moves.
    let plain = LineChart::new("t", Axis::new("x"), Axis::new("y"))
        .with(Series::new("a", SIZES.map(|m| Point::new(m, 1.0))))
        .with(Series::new("b", SIZES.map(|m| Point::new(m, 1.0))));
    let svg = figure_svg(&plain.into());
    let (round, square) = (marker_starts(&svg, 0), marker_starts(&svg, 1));
    // A circle's path starts 3.6 left of its centre, a square's 3.24.
    assert!(
        round.iter().zip(&square).all(|(a, b)| (a.0 + 3.6 - b.0 - 3.24).abs() < 0.03),
        "{round:?} {square:?}"
    );
}

#[test]
fn a_look_is_kept_across_charts_and_shared_by_one_legend() {
    let points = || [Point::new(1.0, 1.0), Point::new(2.0, 2.0)];
    let chart =
        |series: Vec<Series>| LineChart { series, ..LineChart::new("t", Axis::new("x"), Axis::new("y")) };
    let panels = |second: Series| {
        let first = chart(vec![Series::new("a", points()), Series::new("b", points())]);
        let figures = vec![
            StudyFigure::new("one", "", first, ""),
            StudyFigure::new("two", "", chart(vec![second]), ""),
        ];
        study_page(&one_section(StudySection::new("s", "S").with(figures)))
    };
    let same = panels(Series::new("b", points()).look(1));
    assert_eq!(same.matches("<ul class=\"key\">").count(), 1);
    assert!(
        !figure(&same, "one").contains(">a</text>") && figure(&same, "two").contains("class=\"line s1\"")
    );
    // The same name with another look, or another name with the same look, would mislead.
    for clash in [Series::new("b", points()), Series::new("c", points())] {
        let html = panels(clash);
        assert!(!html.contains("<ul class=\"key\">") && figure(&html, "one").contains(">a</text>"));
    }
}

#[test]
fn priors_and_predictions_share_their_range() {
    let figures = before_and_after("M", 0.1, &mut Noise(5));
    let html = study_page(&one_section(StudySection::new("s", "S").with(figures.clone())));
    let ticks = |id: &str| -> Vec<String> {
        let part = figure(&html, id);
        part.split("<text class=\"tick end\"")
            .skip(1)
            .map(|t| t.split('<').next().unwrap().to_owned())
            .collect()
    };
    assert!(ticks("prior-m").len() >= 3);
    assert_eq!(ticks("prior-m"), ticks("posterior-m"));
    assert_eq!(figure(&html, "prior-m").matches("<path class=\"sample\"").count(), 10);
    assert_eq!(html.matches("<ul class=\"key\">").count(), 1);
    let Chart::Prior(mut panel) = figures[0].chart.clone() else { panic!("a prior") };
    panel.samples[2][7].1 = f64::INFINITY;
    panel.grid[0].std = -1.0;
    let svg = figure_svg(&panel.into());
    well_formed(&svg);
    assert!(svg.contains("2 values that are not finite are not drawn."));
}

#[test]
fn captions_say_what_stands_behind_points() {
    let html = study_page(&study());
    let caption = figure(&html, "errors-all").split("<figcaption>").nth(1).unwrap();
    assert!(
        caption.contains("Intervals: one standard error. Behind each point: 40 models."),
        "{caption:.300}"
    );
    assert!(figure(&html, "errors-all").contains("models: 40"), "hover texts count models");
    // Panels that have this in common say it once.
    assert!(!figure(&html, "errors-5").contains("Behind each point"));
    assert_eq!(html.matches("Behind each point: 40 models.").count(), 2);
    let uneven = [Point::new(1.0, 1.0).observations(8), Point::new(2.0, 1.0).observations(10)];
    let chart = LineChart::new("t", Axis::new("x"), Axis::new("y"))
        .with(Series::new("a", uneven))
        .guide(Guide::Horizontal(0.5, "g".to_owned()));
    let html =
        study_page(&one_section(StudySection::new("s", "S").with(StudyFigure::new("f", "", chart, ""))));
    assert!(html.contains("Behind each point: 8 to 10 observations."));
    assert!(attribute(html.split("class=\"chart wide\"").nth(1).unwrap(), "width") > 700.0);
}
