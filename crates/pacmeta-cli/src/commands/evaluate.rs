//! `pacmeta evaluate`.

use pacmeta::evaluation::{Floor, Scores, evaluate, floor_scores, with_support};
use pacmeta::{Error, Result, Task};
use pacmeta_tensor::Key;
use serde_json::{Value, json};

use super::inputs::{in_files, read_adaptable_model, read_tasks};
use super::scores::score_table;
use crate::arguments::Evaluate;
use crate::output::{print, print_json, warn};

pub(crate) fn run(arguments: &Evaluate) -> Result<()> {
    let model = read_adaptable_model(&arguments.run, arguments.temperature)?;
    let table = read_tasks(&arguments.tasks, &model, &arguments.run, arguments.task_column.as_deref())?;
    let (tasks, single): (Vec<Task>, Vec<Task>) = table.tasks.into_iter().partition(|task| task.len() > 1);
    let single: Vec<&str> = single.iter().map(Task::name).collect();
    if tasks.is_empty() {
        return Err(Error::input(
            arguments.tasks.display(),
            "every task has one example only: after adapting to it there is nothing to score",
        ));
    }
    if !single.is_empty() {
        warn(&format!(
            "{}: {} of one example left out, for there is nothing to score: {}",
            arguments.tasks.display(),
            if single.len() == 1 { "a task".to_owned() } else { format!("{} tasks", single.len()) },
            single.join(", ")
        ));
    }
    let drawn = tasks.iter().filter(|task| task.adapt().is_none()).count();
    let tasks = match (arguments.support, tasks.iter().find(|task| task.adapt().is_none())) {
        (None, Some(task)) => {
            return Err(Error::input(
                arguments.tasks.display(),
                format!(
                    "task `{}` marks no support: mark the examples to adapt to with `adapt` (a column of 0 and 1 in CSV, a \
                     list of indices in JSON), or have them drawn with --support N",
                    task.name()
                ),
            ));
        }
        (None, None) => tasks,
        (Some(_), None) => {
            return Err(Error::input(
                "option `--support`",
                format!(
                    "every task of {} marks its support, so that none is drawn; remove it",
                    arguments.tasks.display()
                ),
            ));
        }
        (Some(support), _) => {
            let key = Key::new(arguments.seed).named("support");
            let tasks = tasks.into_iter().enumerate();
            tasks
                .map(|(index, task)| match task.adapt() {
                    Some(_) => Ok(task),
                    None => with_support(task, support as usize, key.index(index as u64)),
                })
                .collect::<Result<_>>()?
        }
    };
    let named = |error| in_files(error, &arguments.run, &arguments.tasks);
    let scores = evaluate(&model, &tasks).map_err(named)?;
    let plain = floor_scores(Floor::PlainGp, &model, &tasks).map_err(named)?;
    let mean = floor_scores(Floor::PriorMean, &model, &tasks).map_err(named)?;
    if arguments.json {
        let mut value = json!(scores);
        if let Value::Object(map) = &mut value {
            map.insert("left_out".into(), json!(single));
            if let Some(support) = arguments.support {
                let drawn = json!({ "support": support, "seed": arguments.seed, "tasks": drawn });
                map.insert("drawn".into(), drawn);
            }
            map.insert("floors".into(), json!({ "plain_gp": plain, "prior_mean": mean }));
        }
        return print_json(&value);
    }
    let method = model.notes.get("method").and_then(|method| method.get("name")).and_then(Value::as_str);
    let method = method.unwrap_or("the prior, adapted");
    let rows: [(String, &Scores); 3] = [
        (method.to_owned(), &scores),
        (Floor::PlainGp.name().to_owned(), &plain),
        (Floor::PriorMean.name().to_owned(), &mean),
    ];
    let mut text = score_table(rows);
    if let Some(support) = arguments.support {
        text.push_str(&format!(
            "Support drawn by seed {} in {drawn} of {} tasks: {support} examples each, fewer where one would not remain.\n",
            arguments.seed,
            tasks.len()
        ));
    }
    print(&text)
}
