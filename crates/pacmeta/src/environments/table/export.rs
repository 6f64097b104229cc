//! Tasks written as tables, for other programs and for exchange between the two formats.

use serde_json::{Map, Value, json};

use super::{TaskTable, quoted, repeated};
use crate::error::{Error, Result};
use crate::task::Task;

/// The tasks as JSON; reading it gives the same tasks back, to the bit.
pub fn tasks_to_json(table: &TaskTable) -> String {
    let tasks: Vec<Value> = table.tasks.iter().map(task_to_json).collect();
    let mut text = json!({ "features": table.feature_names, "tasks": tasks }).to_string();
    text.push('\n');
    text
}

fn task_to_json(task: &Task) -> Value {
    let mut map = Map::new();
    map.insert("name".into(), task.name().into());
    let x: Value = match task.dimension() {
        1 => task.inputs().into(),
        dimension => task.inputs().chunks_exact(dimension).map(Value::from).collect(),
    };
    map.insert("x".into(), x);
    map.insert("y".into(), task.targets().into());
    if let Some(adapt) = task.adapt() {
        map.insert("adapt".into(), adapt.into());
    }
    map.into()
}

/// The tasks as CSV with the column `task_column` for their names, the features, the target, and `adapt` if the tasks
/// state it. Reading it gives the same tasks back, to the bit, with `adapt` in ascending order.
///
/// # Errors
/// When two columns would have one name, or only some of the tasks state `adapt`, which CSV cannot say.
pub fn tasks_to_csv(table: &TaskTable, task_column: &str) -> Result<String> {
    let mut header = vec![task_column];
    header.extend(table.feature_names.iter().map(String::as_str));
    header.push(&table.target_name);
    header.push("adapt");
    if let Some(name) = repeated(header.iter().copied()) {
        return Err(Error::input("CSV", format!("two columns would be called {}; rename one", quoted(name))));
    }
    let stated = table.tasks.iter().filter(|task| task.adapt().is_some()).count();
    if stated != 0 && stated != table.tasks.len() {
        return Err(Error::input(
            "CSV",
            format!(
                "{stated} of {} tasks state `adapt`, CSV takes all or none; write JSON",
                table.tasks.len()
            ),
        ));
    }
    if stated == 0 {
        header.pop();
    }
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let failed = |problem: String| Error::input("CSV", problem);
    writer.write_record(&header).map_err(|problem| failed(problem.to_string()))?;
    for task in &table.tasks {
        let mut inside = vec!["0"; task.len()];
        task.adapt().into_iter().flatten().for_each(|&index| inside[index] = "1");
        for index in 0..task.len() {
            let numbers = task.input(index).iter().chain([&task.targets()[index]]);
            let mut record = vec![task.name().to_string()];
            record.extend(numbers.map(|number| format!("{number:?}")));
            record.extend((stated != 0).then(|| inside[index].to_string()));
            writer.write_record(&record).map_err(|problem| failed(problem.to_string()))?;
        }
    }
    let bytes = writer.into_inner().map_err(|problem| failed(problem.to_string()))?;
    String::from_utf8(bytes).map_err(|problem| failed(problem.to_string()))
}
