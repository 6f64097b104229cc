//! Tables of aligned text.

use crate::output::bold;

/// A table whose first column holds names and whose other columns hold numbers, aligned to the right.
pub(crate) struct Table {
    head: Vec<String>,
    rows: Vec<Row>,
}

enum Row {
    Cells(Vec<String>),
    Rule,
}

const GAP: &str = "   ";

impl Table {
    /// A table with these column headings.
    pub(crate) fn new<T: Into<String>>(head: impl IntoIterator<Item = T>) -> Self {
        Self { head: head.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row; missing cells are empty.
    pub(crate) fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(Row::Cells(cells.into_iter().map(Into::into).collect()));
    }

    /// Adds a line, as above a sum.
    pub(crate) fn rule(&mut self) {
        self.rows.push(Row::Rule);
    }

    /// The text, with a newline at the end of each line and none of the trailing spaces.
    pub(crate) fn render(&self) -> String {
        let cells = || {
            std::iter::once(&self.head).chain(self.rows.iter().filter_map(|row| match row {
                Row::Cells(cells) => Some(cells),
                Row::Rule => None,
            }))
        };
        let mut widths = vec![0; cells().map(Vec::len).max().unwrap_or(0)];
        for row in cells() {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let line = |row: &[String]| {
            let mut text = String::new();
            for (column, width) in widths.iter().enumerate() {
                let cell = row.get(column).map_or("", String::as_str);
                let spaces = " ".repeat(width - cell.chars().count());
                if column == 0 {
                    text.push_str(&format!("{cell}{spaces}"));
                } else {
                    text.push_str(&format!("{GAP}{spaces}{cell}"));
                }
            }
            text.trim_end().to_owned()
        };
        let whole = widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1);
        let mut text = format!("{}\n", bold(&line(&self.head)));
        for row in &self.rows {
            match row {
                Row::Cells(cells) => text.push_str(&line(cells)),
                Row::Rule => text.push_str(&"─".repeat(whole)),
            }
            text.push('\n');
        }
        text
    }
}

/// `0.2041 ± 0.0123`, or the number alone.
pub(crate) fn with_error(value: f64, error: Option<f64>) -> String {
    match error {
        Some(error) => format!("{} ± {}", number(value), number(error)),
        None => number(value),
    }
}

/// Four decimals, or a power of ten where they would say nothing.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    if value != 0.0 && value.is_finite() && !(1e-3..1e6).contains(&size) {
        format!("{value:.3e}")
    } else {
        format!("{value:.4}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_whatever_is_in_them() {
        let mut table = Table::new(["method", "RMSE"]);
        table.row(["pacmaml", "0.2 ± 0.1"]);
        table.rule();
        table.row(["plain", "1"]);
        assert_eq!(
            table.render(),
            "method         RMSE\npacmaml   0.2 ± 0.1\n───────────────────\nplain             1\n"
        );
    }

    #[test]
    fn numbers_keep_four_decimals_or_digits() {
        assert_eq!(number(0.20414), "0.2041");
        assert_eq!(number(0.0), "0.0000");
        assert_eq!(number(1.5e-6), "1.500e-6");
        assert_eq!(with_error(1.0, Some(0.25)), "1.0000 ± 0.2500");
        assert_eq!(with_error(f64::NAN, None), "NaN");
    }
}
