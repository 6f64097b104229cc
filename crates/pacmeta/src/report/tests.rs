//! Whole pages and figures: well-formed, escaped, deterministic, unharmed by odd numbers.

use super::sample::report;
use super::*;

/// Checks that `text` is well-formed XML as far as we write it: tags nest, attributes are quoted and not repeated,
/// identifiers are unique, `&` starts an entity. Returns the names of all elements.
pub(super) fn well_formed(text: &str) -> Vec<String> {
    let mut open: Vec<String> = Vec::new();
    let mut seen = Vec::new();
    let mut ids = std::collections::BTreeSet::new();
    let mut rest = text.strip_prefix("<!DOCTYPE html>").unwrap_or(text);
    while let Some(start) = rest.find('<') {
        let content = &rest[..start];
        for after in content.split('&').skip(1) {
            assert!(
                ["amp;", "lt;", "gt;", "quot;", "#39;"].iter().any(|e| after.starts_with(e)),
                "bare &: {after:.30}"
            );
        }
        let end = start + rest[start..].find('>').expect("a tag must end");
        let tag = &rest[start + 1..end];
        assert!(!tag.contains('<'), "unescaped < near {tag:.40}");
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "closing tag");
            continue;
        }
        let body = tag.strip_suffix('/').unwrap_or(tag);
        let (name, mut attributes) = body.split_once(' ').unwrap_or((body, ""));
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric()), "element name {name:?}");
        let mut names = Vec::new();
        while !attributes.trim().is_empty() {
            let (key, tail) = attributes.trim_start().split_once("=\"").expect("attributes are quoted");
            let (value, tail) = tail.split_once('"').expect("attributes end");
            assert!(!names.contains(&key), "{key} twice in {tag}");
            if key == "id" {
                assert!(ids.insert(value.to_owned()), "id {value} twice");
            }
            names.push(key);
            attributes = tail;
        }
        seen.push(name.to_owned());
        if !tag.ends_with('/') {
            if name == "style" || name == "script" {
                rest = &rest[rest.find(&format!("</{name}>")).expect("raw text ends")..];
            }
            open.push(name.to_owned());
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
    seen
}

fn charts() -> Vec<Chart> {
    let report = report();
    let line = LineChart::new("Errors", Axis::new("examples").log(), Axis::new("RMSE").unit("m"))
        .with(Series::new(
            "a",
            [5.0, 10.0, 50.0].map(|x| Point::new(x, 1.0 / x).error(0.01).observations(40)),
        ))
        .with(
            Series::new("b", [5.0, 10.0, 50.0].map(|x| Point::new(x, 2.0 / x).between(1.0 / x, 3.0 / x)))
                .band(),
        )
        .guide(Guide::Horizontal(0.1, "floor".to_owned()));
    let mut charts: Vec<Chart> =
        vec![line.into(), Chart::Calibration(CalibrationKind::Quantile, report.calibration)];
    charts.extend(report.predictions.into_iter().map(Chart::from));
    charts.extend(report.observed.into_iter().map(Chart::from));
    charts.extend(report.bound.map(Chart::from));
    charts
}

#[test]
fn page_is_well_formed_and_has_every_figure() {
    let html = page(&report());
    let elements = well_formed(&html);
    for id in ["curve", "calibration", "bound", "prediction-1", "prediction-4", "observed-1"] {
        assert!(html.contains(&format!("<figure id=\"{id}\"")), "{id}");
    }
    assert_eq!(elements.iter().filter(|e| *e == "figure").count(), 8);
    assert!(elements.iter().filter(|e| *e == "table").count() >= 8);
}

#[test]
fn page_refers_to_nothing_outside() {
    let html = page(&report()).replace("http://www.w3.org/2000/svg", "");
    for word in ["http:", "https:", "src=", "@import", "url(h", "fetch("] {
        assert!(!html.contains(word), "{word}");
    }
}

#[test]
fn figures_are_well_formed_with_both_colour_schemes() {
    for chart in charts() {
        let svg = figure_svg(&chart);
        let elements = well_formed(&svg);
        assert!(elements.iter().filter(|e| ["path", "circle", "rect"].contains(&e.as_str())).count() > 5);
        assert!(
            svg.contains("prefers-color-scheme: dark")
                && svg.contains("role=\"img\"")
                && svg.contains("<desc")
        );
    }
}

#[test]
fn same_input_same_bytes() {
    assert!(page(&report()) == page(&report()));
    for chart in charts() {
        assert_eq!(figure_svg(&chart), figure_svg(&chart.clone()));
    }
}

/// Every text of the report replaced.
fn with_texts(text: &str) -> RunReport {
    let value = serde_json::to_value(report()).unwrap();
    fn replace(value: serde_json::Value, text: &str) -> serde_json::Value {
        use serde_json::Value;
        match value {
            Value::String(_) => Value::String(text.to_owned()),
            Value::Array(list) => list.into_iter().map(|v| replace(v, text)).collect(),
            Value::Object(map) => map
                .into_iter()
                .map(|(k, v)| if k == "calibration_kind" { (k, v) } else { (k, replace(v, text)) })
                .collect(),
            other => other,
        }
    }
    serde_json::from_value(replace(value, text)).unwrap()
}

#[test]
fn hostile_texts_stay_text() {
    let hostile = "<script>alert(1)</script>\"' onload=\"x\" & ]]> \u{0}\u{1b}</style>";
    let report = with_texts(hostile);
    let html = page(&report);
    let scripts = well_formed(&html).into_iter().filter(|e| e == "script").count();
    assert_eq!(scripts, 1, "only the page's own script");
    assert!(html.contains("&lt;script&gt;alert(1)"));
    well_formed(&figure_svg(&report.predictions[0].clone().into()));
    well_formed(&figure_svg(&report.bound.unwrap().into()));
}

#[test]
fn dangerous_links_become_text() {
    for (href, linked) in [
        ("javascript:alert(1)", false),
        (" JavaScript:alert(1)", false),
        ("java\nscript:alert(1)", false),
        ("data:text/html,x", false),
        ("config.toml", true),
        ("../a:b/c", true),
        ("https://example.org/", true),
    ] {
        let file = FileLink { name: "file".to_owned(), href: href.to_owned(), what: String::new() };
        let html = page(&RunReport { files: vec![file], ..RunReport::default() });
        assert_eq!(html.contains("<a href="), linked, "{href:?}");
    }
}

#[test]
fn values_that_are_not_finite_are_counted() {
    let mut report = report();
    report.curve[0].points[10].1 = f64::NAN;
    report.curve[0].points[11].1 = f64::INFINITY;
    report.predictions[0].grid[3].std = f64::NAN;
    report.predictions[0].support[0].1 = f64::NEG_INFINITY;
    report.predictions[0].truth.as_mut().unwrap()[0].0 = f64::NAN;
    report.scores[0].rmse = f64::NAN;
    let bound = report.bound.as_mut().unwrap();
    bound.bars[0].terms[0].value = f64::INFINITY;
    bound.bars[0].total = f64::INFINITY;
    let html = page(&report);
    well_formed(&html);
    let caption = |id: &str| -> &str {
        let figure =
            html.split(&format!("<figure id=\"{id}\"")).nth(1).unwrap().split("</figure>").next().unwrap();
        figure.split("<figcaption>").nth(1).unwrap()
    };
    assert!(caption("curve").contains("2 values that are not finite"), "{:.300}", caption("curve"));
    assert!(caption("prediction-1").contains("3 values that are not finite"));
    assert!(caption("bound").contains("2 values that are not finite"));
    let visible = html.split("<script>").next().unwrap();
    assert!(!visible.contains("NaN") && !visible.contains(">inf"), "raw float text on the page");
}

#[test]
fn empty_series_and_empty_reports_say_so() {
    well_formed(&page(&RunReport::default()));
    let series = |name: &str, points| CurveSeries { name: name.to_owned(), points };
    let mut report = RunReport { curve: vec![series("nothing", vec![])], ..RunReport::default() };
    let html = page(&report);
    assert!(
        html.contains("There are no finite values to draw.")
            && html.contains("“nothing” has no values to draw.")
    );
    report.curve.push(series("one", vec![(1.0, 2.0)]));
    let html = page(&report);
    well_formed(&html);
    assert!(
        !html.contains("There are no finite values") && html.contains("“nothing” has no values to draw.")
    );
    for chart in [
        Chart::from(PredictionPanel::default()),
        ObservedPanel::default().into(),
        BoundPanel::default().into(),
        LineChart::default().into(),
        Chart::Calibration(CalibrationKind::Interval, vec![]),
    ] {
        well_formed(&figure_svg(&chart));
    }
}

#[test]
fn reports_survive_json_with_holes() {
    let mut original = report();
    original.curve[0].points[0].1 = f64::NAN;
    original.observed[0].points[0].2 = f64::INFINITY;
    let text = serde_json::to_string(&original).unwrap();
    let read: RunReport = serde_json::from_str(&text).unwrap();
    assert!(read.curve[0].points[0].1.is_nan() && read.observed[0].points[0].2.is_nan());
    // Only whether a value is finite matters to the page, apart from the tables, which would print the infinity.
    original.observed[0].points[0].2 = f64::NAN;
    assert!(page(&read) == page(&original));
    let partial: RunReport = serde_json::from_str(r#"{"title": "t"}"#).unwrap();
    assert_eq!(partial.title, "t");
}

#[test]
fn long_curves_are_averaged_and_say_so() {
    let points = (0..8000).map(|i| (f64::from(i), f64::from(i % 10))).collect();
    let series = CurveSeries { name: "run".to_owned(), points };
    let html = page(&RunReport { curve: vec![series], ..RunReport::default() });
    assert!(html.contains("Each point averages 50 neighbouring values"));
    let tip = html.split("<title>run\n").nth(1).unwrap().split("</title>").next().unwrap();
    assert_eq!(tip, "iteration: about 24.5\nvalue, mean: 4.5\nrange: 0 to 9\nobservations: 50");
    assert!(html.len() < 300_000, "{} bytes", html.len());
}

#[test]
fn log_axes_count_what_has_no_place() {
    let points = [0.0, -1.0, 1.0, 10.0, f64::NAN].map(|y| Point::new(1.0 + y.abs(), y));
    let chart = LineChart::new("Log", Axis::new("x"), Axis::new("y").log()).with(Series::new("a", points));
    let svg = figure_svg(&chart.into());
    assert!(svg.contains("1 value that is not finite is not drawn."));
    assert!(svg.contains("Values with no place on a log axis, being zero or negative: 2."));
}

#[test]
fn log_axes_draw_intervals_that_reach_below_zero() {
    let points = [Point::new(1.0, 1.0).error(2.0), Point::new(2.0, 10.0).between(f64::NAN, 20.0)];
    let chart = LineChart::new("Log", Axis::new("x"), Axis::new("y").log()).with(Series::new("a", points));
    let svg = figure_svg(&chart.clone().into());
    assert_eq!(svg.matches("class=\"bar s0\"").count(), 3, "one bar with two caps");
    assert!(svg.contains("interval: ± 2") && svg.contains("1 value that is not finite is not drawn."));
    let text = serde_json::to_string(&chart).unwrap();
    let read: LineChart = serde_json::from_str(&text).unwrap();
    assert_eq!(figure_svg(&read.into()), svg);
}

#[test]
fn names_stand_beside_lines_and_guides_keep_their_legend() {
    let series = |name: &str, y: f64| Series::new(name, [1.0, 2.0].map(|x| Point::new(x, y)));
    let chart = LineChart::new("t", Axis::new("x"), Axis::new("y"))
        .with(series("first", 1.0))
        .with(series("second", 1.001))
        .guide(Guide::Horizontal(0.0, "floor".to_owned()));
    let svg = figure_svg(&chart.into());
    let y_of = |name: &str| -> f64 {
        let before = svg.split(&format!("\">{name}</text>")).next().unwrap();
        before.rsplit("y=\"").next().unwrap().parse().unwrap()
    };
    assert!((y_of("first") - y_of("second")).abs() >= 14.9, "labels of close lines are pushed apart");
    assert!(svg.contains(">floor</text>"));
    assert_eq!(svg.matches(">first</text>").count(), 1);
}

#[test]
fn terms_that_do_not_add_up_are_reported() {
    let mut report = report();
    report.bound.as_mut().unwrap().bars[1].total += 0.5;
    assert!(
        page(&report).contains(
            "The terms of “Theorem 3, two environments” add up to 0.774, its stated total is 1.274."
        )
    );
}

#[test]
fn bars_start_at_zero_and_negative_terms_go_left() {
    let bar = |values: &[f64]| BoundBar {
        name: "b".to_owned(),
        terms: values
            .iter()
            .enumerate()
            .map(|(i, v)| BoundTerm { name: format!("t{i}"), value: *v })
            .collect(),
        total: values.iter().sum(),
    };
    let panel = BoundPanel { bars: vec![bar(&[2.0, -1.0, 1.0])], ..BoundPanel::default() };
    let svg = figure_svg(&panel.into());
    let spans: Vec<(f64, f64)> = svg
        .split("<rect class=\"term s")
        .skip(1)
        .filter(|r| r.contains("<title>") && r.find("<title>") < r.find("</rect>"))
        .map(|r| {
            let number = |key: &str| -> f64 {
                r.split(&format!("{key}=\"")).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
            };
            (number(" x"), number(" width"))
        })
        .collect();
    let [(x0, w0), (x1, w1), (x2, w2)] = spans[..] else { panic!("{spans:?}") };
    assert!((x1 + w1 - x0).abs() < 0.05, "negative term ends where the first positive begins: {spans:?}");
    assert!(
        (x0 + w0 - x2).abs() < 0.05 && (w1 - w2).abs() < 0.05 && (w0 - 2.0 * w1).abs() < 0.05,
        "{spans:?}"
    );
}
