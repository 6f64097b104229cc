//! `pacmeta evaluate`.

use pacmeta::evaluation::{Floor, Scores, evaluate, floor_scores, with_support};
use pacmeta::{Error, Result};
use pacmeta_tensor::Key;
use serde_json::{Value, json};

use super::inputs::{in_files, large_enough, read_adaptable_model, read_tasks};
use super::scores::score_table;
use crate::arguments::Evaluate;
use crate::output::{print, print_json};

pub(crate) fn run(arguments: &Evaluate) -> Result<()> {
    let model = read_adaptable_model(&arguments.run, arguments.temperature)?;
    let table = read_tasks(&arguments.tasks, &model, &arguments.run, arguments.task_column.as_deref())?;
    let advice = [
        "so that there is nothing to score after adapting to it",
        "or leave such tasks out with --min-examples 2",
    ];
    let (tasks, left_out) = large_enough(table.tasks, arguments.min_examples, &arguments.tasks, advice)?;
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
            map.insert("left_out".into(), json!(left_out));
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
