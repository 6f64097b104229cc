//! The page of the memory table.

use super::{Bytes, Contender, Measurements, PAPER_STEPS, PAPER_THRESHOLDS, Plan};
use crate::report::{
    Axis, Cell, Column, LineChart, Point, Series, StudyFigure, StudyReport, StudySection, StudyTable,
};

const GIGABYTE: f64 = 1e9;

/// The page of a study, finished or not.
pub fn memory_report(plan: &Plan, found: &Measurements, command: Option<String>) -> StudyReport {
    let encoder = plan.shape.encoder();
    let first = plan.thresholds.first().copied().unwrap_or(0);
    StudyReport {
        title: "Memory of meta-learning on texts".to_owned(),
        subtitle: format!(
            "One meta-iteration of each method on an encoder of {} layers of {} with random weights, by the threshold v: layers \
             above it adapt in the inner steps. {}",
            encoder.layers,
            encoder.hidden,
            verdict(plan, found)
        ),
        command,
        facts: vec![
            ("Encoder".to_owned(), plan.shape.name().to_owned()),
            ("Examples of a task".to_owned(), format!("{}, {} of them in S'", plan.examples, plan.support)),
            ("Tokens of an example".to_owned(), plan.length.to_string()),
            ("Inner steps".to_owned(), listed(&found.measured_steps())),
            (
                "Limit".to_owned(),
                format!(
                    "{:.1} GB: 20 GB, or nine tenths of the memory that was free if that is less",
                    plan.limit as f64 / GIGABYTE
                ),
            ),
        ],
        sections: vec![
            StudySection::new("table", "The table").with(at_paper_steps(plan, found)),
            StudySection::new("growth", "By the number of inner steps")
                .with(growth(plan, found, first))
                .with(measured(plan, found)),
        ],
        notes: vec![
            "Bytes are counted by the engine: parameters with gradient and moments (in f64 where they are accumulated), activations of \
             passes, inner steps, tapes. Resident memory is what the system says of the process, and holds freed memory that was not given \
             back."
                .to_owned(),
            "The paper measured a TPU's memory with batches of its own, so that ratios can be compared and gigabytes cannot."
                .to_owned(),
        ],
        files: Vec::new(),
    }
}

fn listed(steps: &[usize]) -> String {
    steps.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

/// Whether the paper's finding holds here.
fn verdict(plan: &Plan, found: &Measurements) -> String {
    let [maml, _, _, pacmaml] = Contender::ALL;
    let Some(&threshold) = plan.thresholds.first() else { return String::new() };
    let line = |contender| found.line(plan, contender, threshold);
    let bytes = |contender| found.bytes_at(plan, contender, threshold, PAPER_STEPS);
    let (Some(of_maml), Some(of_pacmaml), Some(maml_bytes), Some(pacmaml_bytes)) =
        (line(maml), line(pacmaml), bytes(maml), bytes(pacmaml))
    else {
        return "The measurements are not finished, or too little memory is free.".to_owned();
    };
    let ratio = maml_bytes.value() / pacmaml_bytes.value();
    let needs = match maml_bytes {
        Bytes::Measured(_) => "needs",
        Bytes::Extrapolated(_) => "would need",
    };
    format!(
        "At v = {threshold} and {PAPER_STEPS} steps MAML {needs} {ratio:.1} times the memory of PACMAML (in the paper 3.6 times); a step \
         adds {:.2} GB to MAML and {:.3} GB to PACMAML.",
        of_maml.slope / GIGABYTE,
        of_pacmaml.slope / GIGABYTE
    )
}

/// The paper's table: measured, or extrapolated and marked so.
fn at_paper_steps(plan: &Plan, found: &Measurements) -> StudyTable {
    let mut columns = vec![Column::text("")];
    for &threshold in &plan.thresholds {
        columns.push(Column::number(format!("v = {threshold} (GB)")));
    }
    // Beside other encoders the paper's numbers would mean nothing.
    let with_paper = plan.thresholds == PAPER_THRESHOLDS;
    if with_paper {
        columns.extend(PAPER_THRESHOLDS.map(|v| Column::number(format!("paper, v = {v} (GB)"))));
    }
    let rows = Contender::ALL
        .into_iter()
        .map(|contender| {
            let mut cells = vec![Cell::text(contender.title())];
            cells.extend(plan.thresholds.iter().map(|&threshold| {
                match found.bytes_at(plan, contender, threshold, PAPER_STEPS) {
                    Some(bytes) => Cell::text(bytes.in_gigabytes()),
                    None => Cell::missing(),
                }
            }));
            if with_paper {
                cells.extend((0..4).map(|place| match contender.in_paper() {
                    Some(values) => Cell::number(values[place]),
                    None => Cell::missing(),
                }));
            }
            cells
        })
        .collect();
    StudyTable {
        id: "paper-steps".to_owned(),
        heading: format!("Memory with {PAPER_STEPS} inner steps"),
        columns,
        rows,
        caption: format!(
            "Measured with {PAPER_STEPS} steps, but for numbers with a ~: these are extrapolated by the line through the engine's bytes at \
             fewer steps. Where one number of steps was measured at most, there is no line. Every measurement is in the table below."
        ),
        csv: Some("measurements.csv".to_owned()),
    }
}

fn growth(plan: &Plan, found: &Measurements, threshold: usize) -> StudyFigure {
    let mut chart = LineChart::new(
        format!("Memory at v = {threshold}"),
        Axis::new("inner steps").tight(),
        Axis::new("gigabytes"),
    );
    for (look, contender) in Contender::ALL.into_iter().enumerate() {
        let points: Vec<Point> = found
            .of(plan, contender, threshold)
            .iter()
            .map(|step| Point::new(step.settings.steps as f64, step.total_bytes as f64 / GIGABYTE))
            .collect();
        if !points.is_empty() {
            chart = chart.with(Series::new(contender.title(), points).look(look));
        }
    }
    StudyFigure::new(
        "growth-figure",
        "Memory by the number of inner steps",
        chart,
        "Counted by the engine, with half of the layers adapting. A line that ends early reached the limit.",
    )
}

fn measured(plan: &Plan, found: &Measurements) -> StudyTable {
    let mut rows = Vec::new();
    for contender in Contender::ALL {
        for &threshold in &plan.thresholds {
            for step in found.of(plan, contender, threshold) {
                let gigabytes = |bytes: usize| Cell::number(bytes as f64 / GIGABYTE);
                rows.push(vec![
                    Cell::text(contender.title()),
                    Cell::number(threshold as f64),
                    Cell::number(step.settings.steps as f64),
                    gigabytes(step.total_bytes),
                    gigabytes(step.parameter_bytes),
                    gigabytes(step.pass_bytes),
                    gigabytes(step.step_bytes + step.tape_bytes + step.kept_bytes),
                    match step.resident_bytes {
                        Some(bytes) => Cell::number(bytes as f64 / GIGABYTE),
                        None => Cell::missing(),
                    },
                    Cell::number(step.milliseconds / 1e3),
                ]);
            }
        }
    }
    StudyTable {
        id: "measured".to_owned(),
        heading: "Measurements".to_owned(),
        columns: vec![
            Column::text(""),
            Column::number("v"),
            Column::number("steps"),
            Column::number("engine (GB)"),
            Column::number("parameters (GB)"),
            Column::number("passes (GB)"),
            Column::number("inner steps (GB)"),
            Column::number("resident (GB)"),
            Column::number("seconds"),
        ],
        rows,
        caption: "One meta-iteration each, in a process of its own.".to_owned(),
        csv: Some("measurements.csv".to_owned()),
    }
}

/// The measurements as CSV.
pub fn table_csv(plan: &Plan, found: &Measurements) -> String {
    let mut text = "method,threshold,steps,engine_bytes,parameter_bytes,pass_bytes,step_bytes,tape_bytes,kept_bytes,resident_bytes,milliseconds\n".to_owned();
    for contender in Contender::ALL {
        for &threshold in &plan.thresholds {
            for step in found.of(plan, contender, threshold) {
                let resident = step.resident_bytes.map_or(String::new(), |bytes| bytes.to_string());
                text.push_str(&format!(
                    "\"{}\",{threshold},{},{},{},{},{},{},{},{resident},{:.1}\n",
                    contender.title(),
                    step.settings.steps,
                    step.total_bytes,
                    step.parameter_bytes,
                    step.pass_bytes,
                    step.step_bytes,
                    step.tape_bytes,
                    step.kept_bytes,
                    step.milliseconds
                ));
            }
        }
    }
    text
}
