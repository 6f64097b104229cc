//! Grids of settings: the cartesian product of named axes.
//!
//! Points are in a stable order, the first axis slowest: index 0 has the first value of every axis, index 1 the second
//! value of the *last* axis. So an index names a point for good, as long as axes and values keep their order.
//!
//! ```
//! use pacmeta::studies::grid::{Axis, Grid};
//!
//! let grid = Grid::new(vec![Axis::new("beta", [10, 30]), Axis::new("ratio", [0.1, 0.2])])?;
//! let labels: Vec<String> = grid.points().map(|point| point.label()).collect();
//! assert_eq!(labels, ["beta=10, ratio=0.1", "beta=10, ratio=0.2", "beta=30, ratio=0.1", "beta=30, ratio=0.2"]);
//! # Ok::<(), pacmeta::Error>(())
//! ```

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};

/// The most points of one grid: beyond it a typing mistake is likelier than a wish.
pub const MOST_POINTS: usize = 1_000_000;

/// One named setting and the values it takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// The setting, e.g. a dotted configuration key.
    pub name: String,
    /// Its values, in the order of the grid.
    pub values: Vec<Value>,
}

impl Axis {
    /// An axis of these values.
    pub fn new<V: Into<Value>>(name: impl Into<String>, values: impl IntoIterator<Item = V>) -> Self {
        Self { name: name.into(), values: values.into_iter().map(Into::into).collect() }
    }
}

/// Axes that were checked: names differ, each has values, and the product is of a reasonable size.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Grid {
    axes: Vec<Axis>,
}

/// One point of a grid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GridPoint {
    /// Its place in the order of the grid.
    pub index: usize,
    /// The name and value on each axis, in the order of the axes.
    pub values: Vec<(String, Value)>,
}

impl Grid {
    /// The grid of these axes. Without axes it has one point, which sets nothing.
    ///
    /// # Errors
    ///
    /// A name that is empty or occurs twice; an axis without values, with a value twice, or with a value that is no
    /// text, number, truth value or list of these; more than [`MOST_POINTS`] points.
    pub fn new(axes: Vec<Axis>) -> Result<Self> {
        let mut points = 1_usize;
        for (position, axis) in axes.iter().enumerate() {
            let refuse =
                |message: String| Err(Error::input_at("grid", format!("axis `{}`", axis.name), message));
            if axis.name.trim().is_empty() {
                return Err(Error::input_at("grid", format!("axis {position}"), "has no name"));
            }
            if axes[..position].iter().any(|earlier| earlier.name == axis.name) {
                return refuse("occurs twice; put all its values into one list".to_owned());
            }
            if axis.values.is_empty() {
                return refuse("has no values; give at least one, or leave the axis out".to_owned());
            }
            for (place, value) in axis.values.iter().enumerate() {
                if !is_setting(value) {
                    return refuse(format!(
                        "value {place} is {value}, expected a text, a finite number, true, false or a list of these"
                    ));
                }
                if axis.values[..place].contains(value) {
                    return refuse(format!("has the value {value} twice; the same point would be run again"));
                }
            }
            points = points
                .checked_mul(axis.values.len())
                .filter(|&points| points <= MOST_POINTS)
                .ok_or_else(|| {
                    Error::input(
                        "grid",
                        format!("has more than {MOST_POINTS} points; take values away or split it"),
                    )
                })?;
        }
        Ok(Self { axes })
    }

    /// The grid of a TOML table of lists, `beta = [10, 30]`; a table inside a table makes a dotted name.
    ///
    /// # Errors
    ///
    /// A key whose value is no list, and everything that [`Grid::new`] refuses.
    pub fn from_toml(table: &toml::Table) -> Result<Self> {
        let mut axes = Vec::new();
        collect_axes("", table, &mut axes)?;
        Self::new(axes)
    }

    /// The axes, in order.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// How many points there are.
    pub fn count(&self) -> usize {
        self.axes.iter().map(|axis| axis.values.len()).product()
    }

    /// The point of an index, if there is one.
    pub fn point(&self, index: usize) -> Option<GridPoint> {
        if index >= self.count() {
            return None;
        }
        let mut rest = index;
        let mut values: Vec<(String, Value)> = self
            .axes
            .iter()
            .rev()
            .map(|axis| {
                let value = axis.values[rest % axis.values.len()].clone();
                rest /= axis.values.len();
                (axis.name.clone(), value)
            })
            .collect();
        values.reverse();
        Some(GridPoint { index, values })
    }

    /// All points, in order.
    pub fn points(&self) -> impl Iterator<Item = GridPoint> + '_ {
        (0..self.count()).filter_map(|index| self.point(index))
    }
}

impl GridPoint {
    /// The value on an axis.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.values.iter().find(|(axis, _)| axis == name).map(|(_, value)| value)
    }

    /// `beta=10, method.name=pacoh`; `the only point` for a grid without axes.
    pub fn label(&self) -> String {
        if self.values.is_empty() {
            return "the only point".to_owned();
        }
        let part = |(name, value): &(String, Value)| match value {
            Value::String(text) => format!("{name}={text}"),
            other => format!("{name}={other}"),
        };
        self.values.iter().map(part).collect::<Vec<_>>().join(", ")
    }

    /// The point as overrides of a configuration: each dotted key with its value in TOML notation, as
    /// [`Config::parse`](crate::config::Config::parse) takes them.
    ///
    /// # Errors
    ///
    /// A number that TOML cannot hold (a whole number above 2^63 - 1).
    pub fn overrides(&self) -> Result<Vec<(String, String)>> {
        self.values
            .iter()
            .map(|(name, value)| match toml::Value::try_from(value) {
                Ok(value) => Ok((name.clone(), value.to_string())),
                Err(problem) => Err(Error::input_at("grid", format!("axis `{name}`"), problem.to_string())),
            })
            .collect()
    }
}

/// Tables and nothing (which is how a number that is not finite arrives) are no values of a setting.
fn is_setting(value: &Value) -> bool {
    match value {
        Value::Null | Value::Object(_) => false,
        Value::Array(items) => items.iter().all(is_setting),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

fn collect_axes(prefix: &str, table: &toml::Table, axes: &mut Vec<Axis>) -> Result<()> {
    for (key, value) in table {
        let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            toml::Value::Table(inner) => collect_axes(&name, inner, axes)?,
            toml::Value::Array(values) => {
                // A number that is not finite becomes nothing and is refused with the rest by `Grid::new`.
                let values = values.iter().map(serde_json::to_value).collect::<std::result::Result<_, _>>();
                let values = values.map_err(|problem| {
                    Error::input_at("grid", format!("axis `{name}`"), problem.to_string())
                })?;
                axes.push(Axis { name, values });
            }
            other => {
                let message = format!("is {other}, expected a list of values such as [{other}]");
                return Err(Error::input_at("grid", format!("axis `{name}`"), message));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(axes: Vec<Axis>) -> String {
        let error = Grid::new(axes).unwrap_err();
        assert!(error.is_input());
        error.to_string()
    }

    #[test]
    fn every_combination_occurs_once_and_indices_find_them() {
        let grid = Grid::new(vec![
            Axis::new("method", ["pacoh", "maml"]),
            Axis::new("beta", [10, 30, 100]),
            Axis::new("quick", [true, false]),
        ])
        .unwrap();
        let points: Vec<GridPoint> = grid.points().collect();
        assert_eq!((grid.count(), points.len()), (12, 12));
        for (index, point) in points.iter().enumerate() {
            assert_eq!(point.index, index);
            assert_eq!(grid.point(index).as_ref(), Some(point));
            assert!(points[..index].iter().all(|earlier| earlier.values != point.values));
        }
        assert_eq!(points[7].label(), "method=maml, beta=10, quick=false");
        assert_eq!(points[7].value("beta"), Some(&Value::from(10)));
        assert_eq!(points[7].value("gamma"), None);
        assert_eq!(grid.point(12), None);
    }

    #[test]
    fn no_axes_make_one_point() {
        let grid = Grid::new(Vec::new()).unwrap();
        let points: Vec<GridPoint> = grid.points().collect();
        assert_eq!(points, [GridPoint { index: 0, values: Vec::new() }]);
        assert_eq!(points[0].label(), "the only point");
    }

    #[test]
    fn axes_that_make_no_grid_are_refused() {
        assert!(refusal(vec![Axis::new(" ", [1])]).contains("axis 0: has no name"));
        assert!(refusal(vec![Axis::new("a", [1]), Axis::new("a", [2])]).contains("`a`: occurs twice"));
        assert!(refusal(vec![Axis::new("a", [0_i64; 0])]).contains("has no values"));
        assert!(refusal(vec![Axis::new("a", [1, 2, 1])]).contains("the value 1 twice"));
        assert!(refusal(vec![Axis::new("a", [f64::NAN])]).contains("value 0 is null"));
        assert!(refusal(vec![Axis::new("a", [serde_json::json!({"b": 1})])]).contains("expected a text"));
        let long = |name: &str| Axis::new(name, 0..1001);
        assert!(refusal(vec![long("a"), long("b")]).contains("more than 1000000 points"));
        assert!(refusal((0..9).map(|axis| long(&axis.to_string())).collect()).contains("more than"));
    }

    #[test]
    fn toml_tables_make_dotted_axes_and_points_make_overrides() {
        let table: toml::Table =
            "method.beta = [10, 2.5]\n[training]\noptimiser = [\"adam\", \"a\\\"b\"]\n".parse().unwrap();
        let grid = Grid::from_toml(&table).unwrap();
        assert_eq!(grid.axes()[0], Axis::new("method.beta", [Value::from(10), Value::from(2.5)]));
        let overrides = grid.point(3).unwrap().overrides().unwrap();
        assert_eq!(overrides[0], ("method.beta".to_owned(), "2.5".to_owned()));
        // Whatever quotes TOML prefers, the text reads back.
        let line: toml::Table = format!("x = {}", overrides[1].1).parse().unwrap();
        assert_eq!(line["x"].as_str(), Some("a\"b"));
    }

    #[test]
    fn toml_that_is_no_list_of_values_is_refused() {
        for (text, expected) in [
            ("beta = 3", "axis `beta`: is 3, expected a list of values such as [3]"),
            ("a.b = [1, nan]", "axis `a.b`: value 1 is null"),
            ("a = [{ b = 1 }]", "expected a text"),
            ("a = [1979-05-27]", "axis `a`"),
            ("a = []", "has no values"),
        ] {
            let message = Grid::from_toml(&text.parse().unwrap()).unwrap_err().to_string();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }

    #[test]
    fn points_survive_writing_and_reading() {
        let grid = Grid::new(vec![Axis::new("a", [0.1, 3.0]), Axis::new("b", ["x"])]).unwrap();
        for point in grid.points() {
            let text = serde_json::to_string(&point).unwrap();
            assert_eq!(serde_json::from_str::<GridPoint>(&text).unwrap(), point);
        }
    }

    #[test]
    fn whole_numbers_beyond_toml_are_an_error_not_another_number() {
        let grid = Grid::new(vec![Axis::new("a", [u64::MAX])]).unwrap();
        assert!(grid.point(0).unwrap().overrides().unwrap_err().is_input());
    }
}
