//! `pacmeta report`.

use pacmeta::Result;
use pacmeta::images::ImageRunFiles;
use pacmeta::report::RunResults;
use pacmeta::text::TextRunFiles;
use serde_json::json;

use super::reproduce::report_of_study;
use super::scores::run_json;
use super::train::rewrite_report;
use super::trained::report_of_run;
use crate::arguments::Report;
use crate::output::{print, print_json};

pub(crate) fn run(arguments: &Report) -> Result<()> {
    if report_of_study(&arguments.run, arguments.json)?
        || report_of_run::<ImageRunFiles>(&arguments.run, arguments.json)?
        || report_of_run::<TextRunFiles>(&arguments.run, arguments.json)?
    {
        return Ok(());
    }
    let results = RunResults::read(&arguments.run)?;
    let path = rewrite_report(&results, &arguments.run)?;
    if arguments.json {
        let mut map = run_json(&results)?;
        map.insert("report".into(), json!(path.display().to_string()));
        return print_json(&map);
    }
    print(&format!("{}\n", path.display()))
}
