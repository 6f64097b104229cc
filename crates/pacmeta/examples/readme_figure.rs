//! Draws the figure of the README from finished runs: predictions of the first panel of `report`.
//!
//! ```text
//! cargo run --release -- compare configs/sinusoid.toml configs/sinusoid-pacoh.toml
//! cargo run --release -p pacmeta --example readme_figure runs/compare/sinusoid > docs/figures/sinusoid.svg
//! ```

use pacmeta::report::{Chart, RunResults, assemble, figure_svg};

fn main() -> pacmeta::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "runs/compare/sinusoid".to_owned());
    let report = assemble(&[RunResults::read(folder)?], None)?;
    if let Some(mut panel) = report.predictions.into_iter().next() {
        panel.title = "PACMAML on a new sinusoid after five examples".to_owned();
        println!("{}", figure_svg(&Chart::from(panel)));
    }
    Ok(())
}
