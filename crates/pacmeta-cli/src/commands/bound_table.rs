//! Bounds as text, term by term, one or several side by side.

use pacmeta::bounds::TheoremReport;
use pacmeta::experiment::RunBound;
use pacmeta::report::RunResults;

use super::scores::{plain, wrapped};
use crate::table::{Table, number, with_error};

/// The terms down, the bounds across, and below a line the settings.
pub(super) fn bound_table(bounds: &[(String, &TheoremReport)]) -> String {
    let mut table =
        Table::new(std::iter::once("term".to_owned()).chain(bounds.iter().map(|(name, _)| name.clone())));
    let mut row = |name: String, value: &dyn Fn(&TheoremReport) -> String| {
        table.row(std::iter::once(name).chain(bounds.iter().map(|(_, report)| value(report))));
    };
    let names = bounds.first().map(|(_, report)| report.terms.named().map(|(name, _)| name));
    for (index, name) in names.into_iter().flatten().enumerate() {
        let sign = if index == 0 { " " } else { "+" };
        row(format!("{sign} {name}"), &|report| {
            let term = report.terms.named()[index].1;
            with_error(term.value, term.standard_error)
        });
    }
    row("= bound".to_owned(), &|report| with_error(report.total.value, report.total.standard_error));
    table.rule();
    let mut row = |name: &str, value: &dyn Fn(&TheoremReport) -> String| {
        table.row(std::iter::once(name.to_owned()).chain(bounds.iter().map(|(_, report)| value(report))));
    };
    row("  beta", &|report| plain(report.settings.beta));
    if bounds.iter().any(|(_, report)| report.settings.alpha.is_some()) {
        row("  alpha", &|report| report.settings.alpha.map(plain).unwrap_or_default());
    }
    row("  lambda", &|report| plain(report.settings.lambda));
    row("  delta", &|report| plain(report.settings.delta));
    row("  xi", &|report| number(report.xi));
    row("  draws of priors", &|report| report.settings.draws.to_string());
    table.render()
}

/// What a bound rests on, one line each.
pub(super) fn assumed(report: &TheoremReport) -> String {
    report.assumed.iter().map(|line| wrapped(&format!("- {line}"), "  ")).collect()
}

/// The bounds of runs side by side, what they are worth, what each rests on, and why others have none; empty if no run
/// could have one.
pub(super) fn bounds_of_runs(runs: &[RunResults]) -> String {
    let bounds = || runs.iter().filter_map(|run| Some((run.name.as_str(), run.bound.as_ref()?)));
    let stated: Vec<(String, &TheoremReport)> =
        bounds().filter_map(|(name, bound)| Some((name.to_owned(), &bound.stated()?.report))).collect();
    let stated_reports: Vec<&TheoremReport> = stated.iter().map(|(_, report)| *report).collect();
    let mut text = String::new();
    if !stated.is_empty() {
        text.push_str(&bound_table(&stated));
        let units = match runs.iter().any(|run| run.model.standardisation().is_some()) {
            true => "squared standardised units",
            false => "squared units",
        };
        let risk = "the risk on a new task, averaged over a Gaussian around the learned prior (the hyper-posterior), is at most";
        let worth = if stated_reports.iter().any(|report| report.certainty == "estimated") {
            format!("An estimate, not a guarantee, of what {risk} with probability at least 1 - delta")
        } else {
            format!("With probability at least 1 - delta, {risk} this")
        };
        let units = format!("all in {units} of the target, ± is the Monte-Carlo standard error");
        text.push_str(&wrapped(&format!("{worth}; {units}."), ""));
    }
    for (name, bound) in bounds() {
        match bound {
            RunBound::Refused { refused } => {
                text.push_str(&wrapped(&format!("{name}: no bound is stated: {refused}."), "  "));
            }
            RunBound::Stated(stated) => {
                let report = &stated.report;
                let mut remarks = stated.remarks.join(" ");
                let own: Vec<&str> = report
                    .assumed
                    .iter()
                    .filter(|line| !shared(&stated_reports, line))
                    .map(String::as_str)
                    .collect();
                if !own.is_empty() {
                    remarks.push_str(&format!(" It rests on this: {}.", own.join("; ")));
                }
                text.push_str(&wrapped(
                    &format!("{name}: {}, {}. {remarks}", report.theorem, report.certainty),
                    "  ",
                ));
            }
        }
    }
    if let Some(first) = stated_reports.first() {
        text.push_str(if stated_reports.len() > 1 { "All rest on this:\n" } else { "It rests on this:\n" });
        let lines = first.assumed.iter().filter(|line| shared(&stated_reports, line));
        lines.for_each(|line| text.push_str(&wrapped(&format!("- {line}"), "  ")));
    }
    text
}

/// Whether all bounds rest on this.
fn shared(reports: &[&TheoremReport], line: &String) -> bool {
    reports.iter().all(|report| report.assumed.contains(line))
}
