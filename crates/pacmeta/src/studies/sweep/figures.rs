//! The metric against each numeric axis of the grid, the other axes at their best.

use std::fmt::Write;

use serde_json::Value;

use super::analysis::{Analysis, SettingResult};
use super::plan::is_numeric;
use crate::config::SweepMetric;
use crate::report::{Axis, Guide, LineChart, Point, Series, StudyFigure};

/// More lines than this cannot be told apart.
const MOST_LINES: usize = 8;

/// One figure for each numeric axis with more than one value.
pub(super) fn by_axis(analysis: &Analysis<'_>) -> Vec<StudyFigure> {
    let axes = analysis.plan.axes.iter().enumerate();
    axes.filter(|(_, axis)| is_numeric(axis) && axis.values.len() > 1)
        .map(|(index, axis)| {
            let values: Vec<f64> = axis.values.iter().filter_map(Value::as_f64).collect();
            figure(analysis, index, &axis.name, &values)
        })
        .collect()
}

/// The axis of the metric.
fn metric_axis(metric: SweepMetric) -> Axis {
    match metric {
        SweepMetric::Rmse => Axis::new("RMSE on scored tasks"),
        SweepMetric::LogLikelihood => Axis::new("log-likelihood on scored tasks").unit("nats"),
    }
}

fn figure(analysis: &Analysis<'_>, index: usize, name: &str, values: &[f64]) -> StudyFigure {
    let metric = analysis.plan.metric;
    let (low, high) =
        values.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), x| (low.min(*x), high.max(*x)));
    let mut x_axis = Axis::new(name).ticks(values.iter().copied());
    if low > 0.0 && high >= 10.0 * low {
        x_axis = x_axis.log();
    }
    let title = format!("{} by {name}", metric.name());
    let mut chart = LineChart::new(title, x_axis, metric_axis(metric));
    for (line, members) in lines(analysis, index) {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let points = sorted.into_iter().filter_map(|x| best_at(metric, &members, index, x));
        let series =
            Series::new(line, points).intervals_are("standard error over tasks").observations_are("tasks");
        if !series.points.is_empty() {
            chart = chart.with(series);
        }
    }
    let plain = analysis.plain_gp.and_then(|(rmse, log_likelihood)| match metric {
        SweepMetric::Rmse => rmse.mean,
        SweepMetric::LogLikelihood => log_likelihood.mean,
    });
    let mut caption = "Every point is the best setting with this value, whatever the other axes; settings for which the key has no \
                   effect are not drawn. Bars are standard errors over tasks, and mostly common to all points: see the \
                   differences in the table. A line that still improves at its end says that the grid should go further."
        .to_owned();
    // A floor far away would press the lines together.
    let (low, high) = range(&chart);
    match plain {
        Some(plain) if (2.0 * low - high..=2.0 * high - low).contains(&plain) => {
            chart = chart.guide(Guide::Horizontal(plain, "plain GP, support only".to_owned()));
        }
        Some(plain) => {
            let _ = write!(caption, " A Gaussian process on the support alone is far away, at {plain:.4}.");
        }
        None => {}
    }
    StudyFigure::new(format!("axis-{index}"), name, chart, caption)
}

/// The lowest and the highest end of a bar.
fn range(chart: &LineChart) -> (f64, f64) {
    let points = chart.series.iter().flat_map(|series| &series.points);
    let ends = points.map(|point| point.interval.unwrap_or((point.y, point.y)));
    ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), end| (low.min(end.0), high.max(end.1)))
}

/// Settings with a value on the axis, by their values on the axes that are no numbers.
fn lines<'a>(analysis: &'a Analysis<'_>, index: usize) -> Vec<(String, Vec<&'a SettingResult>)> {
    let words: Vec<usize> = analysis
        .plan
        .axes
        .iter()
        .enumerate()
        .filter(|(_, axis)| !is_numeric(axis) && axis.values.len() > 1)
        .map(|(place, _)| place)
        .collect();
    let grouped = |by: &[usize]| {
        let mut groups: Vec<(String, Vec<&'a SettingResult>)> = Vec::new();
        for setting in analysis.settings.iter().filter(|setting| setting.values[index].is_some()) {
            let parts: Vec<String> =
                by.iter().filter_map(|place| setting.values[*place].as_ref()).map(words_of).collect();
            let name = if parts.is_empty() { "best setting".to_owned() } else { parts.join(", ") };
            match groups.iter_mut().find(|(other, _)| *other == name) {
                Some((_, members)) => members.push(setting),
                None => groups.push((name, vec![setting])),
            }
        }
        groups
    };
    let all = grouped(&words);
    if all.len() <= MOST_LINES {
        return all;
    }
    let fewer = grouped(&words[..1]);
    if fewer.len() <= MOST_LINES { fewer } else { grouped(&[]) }
}

/// A value without the quotes of texts.
pub(super) fn words_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn best_at(metric: SweepMetric, members: &[&SettingResult], index: usize, x: f64) -> Option<Point> {
    let here = members.iter().filter(|setting| {
        setting.values[index].as_ref().and_then(Value::as_f64).is_some_and(|value| value == x)
    });
    let summaries = here.filter(|setting| setting.failed == 0).map(|setting| metric.of(setting));
    let known = summaries.filter_map(|summary| Some((summary.mean?, summary)));
    let (mean, summary) =
        known.min_by(|left, right| (metric.sign() * left.0).total_cmp(&(metric.sign() * right.0)))?;
    let point = Point::new(x, mean).observations(summary.observations);
    Some(match summary.standard_error {
        Some(error) => point.error(error),
        None => point,
    })
}
