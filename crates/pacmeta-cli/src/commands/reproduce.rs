//! `pacmeta reproduce`, and what `pacmeta report` does for the folder of a study.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use pacmeta::learners::TargetTemperature;
use pacmeta::report::{figure_svg, study_page};
use pacmeta::studies::claims::{Claim, Verdict};
use pacmeta::studies::sinusoid::{
    Analysis, MethodPoint, Plan, Preset, SinusoidSpec, StudyMethod, claims, main_chart, numbers, report,
};
use pacmeta::studies::summary::Summary;
use pacmeta::studies::sweep::SweepSpec;
use pacmeta::studies::{Records, Spec, StoredPlan};
use pacmeta::studies::{leopard as leopard_study, mini_imagenet as image_study};
use pacmeta::training::files::write_atomically;
use pacmeta::{Error, Result};
use serde_json::{Value, json};

use super::scores::wrapped;
use super::study::{Manner, run_in};
use super::{leopard, memory, mini_imagenet};
use crate::arguments::{PresetName, Reproduce, StudyName};
use crate::output::{bold, joined, print, print_json};
use crate::table::Table;

pub(crate) fn run(arguments: &Reproduce) -> Result<()> {
    refuse_options_of_other_studies(arguments)?;
    match arguments.study {
        StudyName::Sinusoid => sinusoid(arguments),
        StudyName::MiniImagenet => mini_imagenet::run(arguments),
        StudyName::Leopard => leopard::run(arguments),
        StudyName::Memory => memory::run(arguments),
    }
}

/// An option that a study would not heed is a mistake.
fn refuse_options_of_other_studies(arguments: &Reproduce) -> Result<()> {
    use StudyName::{Leopard, Memory, MiniImagenet, Sinusoid};
    let options: [(&str, bool, &[StudyName]); 13] = [
        ("--data", arguments.data.is_some(), &[MiniImagenet, Leopard]),
        ("--model", arguments.model.is_some(), &[Leopard]),
        ("--cache", arguments.cache.is_some(), &[MiniImagenet]),
        ("--methods", arguments.methods.is_some(), &[MiniImagenet, Leopard]),
        ("--examples", arguments.examples.is_some(), &[MiniImagenet]),
        ("--tasks", arguments.tasks.is_some(), &[MiniImagenet]),
        ("--set", !arguments.set.is_empty(), &[MiniImagenet]),
        ("--seed", arguments.seed.is_some(), &[MiniImagenet, Leopard]),
        ("--model-shape", arguments.model_shape.is_some(), &[Memory]),
        ("--sets", arguments.sets.is_some(), &[Sinusoid]),
        ("--seeds", arguments.seeds.is_some(), &[Sinusoid]),
        ("--iterations", arguments.iterations.is_some(), &[Sinusoid, MiniImagenet, Leopard]),
        ("--retry-failed", arguments.retry_failed, &[Sinusoid]),
    ];
    for (option, given, studies) in options {
        if given && !studies.contains(&arguments.study) {
            let names: Vec<String> = studies
                .iter()
                .filter_map(|study| Some(study.to_possible_value()?.get_name().to_owned()))
                .collect();
            let plural = if names.len() == 1 { "study" } else { "studies" };
            let message = format!("is for the {plural} {}; remove it", names.join(", "));
            return Err(Error::input(format!("option `{option}`"), message));
        }
    }
    Ok(())
}

/// A preset with other numbers.
pub(super) fn sinusoid_plan(
    preset: PresetName,
    sets: Option<u64>,
    seeds: Option<u64>,
    iterations: Option<u64>,
) -> Result<Plan> {
    let mut plan = Plan::new(match preset {
        PresetName::Quick => Preset::Quick,
        PresetName::Cpu => {
            return Err(Error::input(
                "option `--preset`",
                "`cpu` is for the studies mini-imagenet and leopard; choose `quick` or `paper`",
            ));
        }
        PresetName::Paper => Preset::Paper,
    });
    plan.data_sets = sets.unwrap_or(plan.data_sets);
    plan.seeds = seeds.unwrap_or(plan.seeds);
    plan.iterations = iterations.unwrap_or(plan.iterations);
    plan.ablation_sets = plan.ablation_sets.min(plan.data_sets);
    Ok(plan)
}

fn sinusoid(arguments: &Reproduce) -> Result<()> {
    let plan = sinusoid_plan(arguments.preset, arguments.sets, arguments.seeds, arguments.iterations)?;
    let out: PathBuf = match &arguments.out {
        Some(out) => out.clone(),
        None => Path::new("runs").join(format!("{}-{}", SinusoidSpec::STUDY, plan.preset)),
    };
    run_in(&out, &plan, &plan.specs(), &Manner::new(arguments.quiet, arguments.retry_failed))?;
    show(&out, arguments.json, Value::Null)
}

/// Draws the report of the study in a folder anew, from its record alone; false if the folder is no study's.
pub(super) fn report_of_study(folder: &Path, as_json: bool) -> Result<bool> {
    let Some(stored) = StoredPlan::read(folder)? else { return Ok(false) };
    match stored.study.as_str() {
        SinusoidSpec::STUDY => show(folder, as_json, Value::Null)?,
        image_study::STUDY => mini_imagenet::show(folder, as_json)?,
        leopard_study::STUDY => leopard::show(folder, as_json)?,
        pacmeta::studies::memory::STUDY => memory::show(folder, as_json)?,
        SweepSpec::STUDY => super::sweep::show(folder, as_json, Value::Null)?,
        other => return Err(Error::input(folder.display(), format!("holds the unknown study `{other}`"))),
    }
    Ok(true)
}

/// Writes page and numbers, and prints the conclusions; in JSON with these keys besides.
pub(super) fn show(folder: &Path, as_json: bool, more: Value) -> Result<()> {
    let Some(stored) = StoredPlan::read(folder)? else {
        return Err(Error::input(folder.display(), "is no study's folder"));
    };
    let plan: Plan = stored.plan(folder)?;
    plan.check()?;
    let records = Records::<SinusoidSpec>::read(folder)?;
    let analysis = Analysis::new(&plan, &records)?;
    for file in numbers(&analysis)? {
        write_atomically(folder.join(file.name), file.content.as_bytes())?;
    }
    write_atomically(folder.join("errors.svg"), figure_svg(&main_chart(&analysis).into()).as_bytes())?;
    let page = folder.join("report.html");
    let html = study_page(&report(&analysis, &stored.command, &stored.history)?);
    write_atomically(&page, html.as_bytes())?;
    let claims = claims(&analysis);
    if as_json {
        return print_json(&joined(conclusions(&analysis, &claims, &page), more));
    }
    print(&in_words(&analysis, &claims, &page))
}

fn conclusions(analysis: &Analysis<'_>, claims: &[Claim], page: &Path) -> Value {
    let (done, failed, total) = analysis.counts();
    let errors: Vec<Value> = StudyMethod::ALL
        .into_iter()
        .flat_map(|method| analysis.curve(method, TargetTemperature::PerExample))
        .map(|point| json!(point))
        .collect();
    json!({
        "pieces": total,
        "done": done,
        "failed": failed,
        "errors": errors,
        "claims": claims,
        "report": page.display().to_string(),
    })
}

fn in_words(analysis: &Analysis<'_>, claims: &[Claim], page: &Path) -> String {
    let (done, failed, total) = analysis.counts();
    let mut text = format!("{done} of {total} pieces recorded, {failed} failed\n\n");
    let mut part = |heading: &str, table: Table| {
        text.push_str(&format!("{}\n{}\n", bold(heading), table.render()));
    };
    part(
        "RMSE on held-out target tasks: mean over models ± standard error over meta-training sets (plain GP: over tasks)",
        by_size(analysis, &StudyMethod::ALL, |point| point.test),
    );
    let predictive = [StudyMethod::Pacmaml, StudyMethod::Pacoh, StudyMethod::PlainGp];
    part(
        "Log-likelihood of an observation, in the same way",
        by_size(analysis, &predictive, |point| point.log_likelihood),
    );
    part(
        "Calibration error (0 is perfect), in the same way",
        by_size(analysis, &predictive, |point| point.calibration_error),
    );
    let beta = analysis.plan.beta_per_example.iter().copied().fold(f64::NAN, f64::max);
    part(
        &format!("Terms of the bounds at β/mᵢ = {beta}, without Psi terms: totals to compare, not bounds"),
        terms(analysis, beta),
    );
    text.push_str(&format!("{}\n", bold("The paper's claims on these numbers")));
    for claim in claims {
        let verdict = match claim.verdict {
            Verdict::Supported => "supported",
            Verdict::NotSupported => "not supported",
            Verdict::Undecided => "undecided",
        };
        text.push_str(&format!("  {verdict:<13}  {}", wrapped(&claim.statement, "                 ")));
    }
    text.push_str(&format!("\nreport   {}\n", page.display()));
    text
}

/// A number of methods at every m_i.
fn by_size(analysis: &Analysis<'_>, methods: &[StudyMethod], number: fn(&MethodPoint) -> Summary) -> Table {
    let sizes = &analysis.plan.examples;
    let header =
        std::iter::once(String::new()).chain(sizes.iter().map(|examples| format!("mᵢ = {examples}")));
    let mut table = Table::new(header);
    for &method in methods {
        let cells = sizes.iter().map(|examples| {
            let point = analysis.method(method, *examples, TargetTemperature::PerExample);
            point.map_or_else(|| "-".to_owned(), |point| estimate(&number(&point), 3))
        });
        table.row(std::iter::once(method.name().to_owned()).chain(cells));
    }
    table
}

/// Every term of both bounds at every m_i.
fn terms(analysis: &Analysis<'_>, beta: f64) -> Table {
    let header = ["", "mᵢ", "W", "ξ KL", "ξ log(2/δ)", "gap", "total"].map(str::to_owned);
    let mut table = Table::new(header);
    for method in [StudyMethod::Pacmaml, StudyMethod::Pacoh] {
        for &examples in &analysis.plan.examples {
            let Some(point) = analysis.bound(method, examples, beta) else { continue };
            let gap = point.gap.as_ref().map_or_else(|| "none".to_owned(), |gap| estimate(gap, 4));
            let parts = [&point.w, &point.hyper_prior, &point.confidence].map(|term| estimate(term, 4));
            let names = [method.name().to_owned(), examples.to_string()];
            table.row(names.into_iter().chain(parts).chain([gap, estimate(&point.total, 4)]));
        }
    }
    table
}

fn estimate(summary: &Summary, decimals: usize) -> String {
    match (summary.mean, summary.standard_error) {
        (Some(mean), Some(error)) => format!("{mean:.decimals$} ± {error:.decimals$}"),
        (Some(mean), None) => format!("{mean:.decimals$}"),
        _ => "-".to_owned(),
    }
}
