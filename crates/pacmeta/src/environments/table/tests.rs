//! Tables: what they give, and what they say when they are wrong.

use proptest::prelude::*;

use super::*;

mod messages;

fn options() -> TableOptions {
    TableOptions::default()
}

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|name| name.to_string()).collect()
}

#[test]
fn csv_rows_in_any_order_become_tasks_in_order_of_appearance() {
    let text = "\u{feff} b , task,y,adapt,a\r\n1,second, 10 ,0,2\r\n\r\n3,first,11,1,4\r\n5,second,12,1,6\r\n7,first,13,0,8";
    let table = parse_csv("t.csv", text.as_bytes(), &options()).unwrap();
    assert_eq!((table.feature_names, table.target_name), (names(&["b", "a"]), "y".to_string()));
    let second = Task::new("second", 2, vec![1.0, 2.0, 5.0, 6.0], vec![10.0, 12.0]).unwrap();
    let first = Task::new("first", 2, vec![3.0, 4.0, 7.0, 8.0], vec![11.0, 13.0]).unwrap();
    assert_eq!(table.tasks, [second.with_adapt(vec![1]).unwrap(), first.with_adapt(vec![0]).unwrap()]);
    assert!(table.left_out.is_empty());
}

#[test]
fn columns_are_the_users_choice() {
    let text = "note,shop,price,task,sold,adapt\nx,n,1,2,3,4\ny,n,5,6,7,8\n";
    let chosen = TableOptions {
        task: "shop".into(),
        target: "sold".into(),
        features: Some(names(&["adapt", "task", "price"])),
        min_examples: None,
    };
    let table = parse_csv("t.csv", text.as_bytes(), &chosen).unwrap();
    assert_eq!(table.tasks[0].inputs(), [4.0, 2.0, 1.0, 8.0, 6.0, 5.0]);
    assert_eq!(table.tasks[0].targets(), [3.0, 7.0]);
    assert_eq!(table.tasks[0].adapt(), None);
    assert_eq!(table.target_name, "sold");
}

#[test]
fn json_takes_rows_or_plain_numbers() {
    let text = r#"{"tasks": [{"x": [1, 2.5, -3e2], "y": [0, 1, 2], "adapt": [2, 0]}, {"name": " b ", "x": [[7], [8]], "y": [3, 4]}]}"#;
    let table = parse_json("t.json", text.as_bytes(), &options()).unwrap();
    assert_eq!(table.feature_names, ["x"]);
    assert_eq!(table.tasks[0].name(), "task-000");
    assert_eq!(table.tasks[0].inputs(), [1.0, 2.5, -300.0]);
    assert_eq!(table.tasks[0].adapt(), Some(&[2, 0][..]));
    assert_eq!((table.tasks[1].name(), table.tasks[1].inputs()), ("b", &[7.0, 8.0][..]));
}

#[test]
fn json_features_are_named_and_chosen() {
    let tasks = r#""tasks": [{"x": [[1, 2, 3], [4, 5, 6]], "y": [0, 1], "adapt": [1]}]"#;
    let table = parse_json("t.json", format!("{{{tasks}}}").as_bytes(), &options()).unwrap();
    assert_eq!(table.feature_names, ["x0", "x1", "x2"]);
    let chosen = TableOptions { features: Some(names(&["c", "a"])), target: "price".into(), ..options() };
    let named = format!(r#"{{"features": ["a", "b", "c"], {tasks}}}"#);
    let table = parse_json("t.json", named.as_bytes(), &chosen).unwrap();
    assert_eq!((table.feature_names, table.target_name), (names(&["c", "a"]), "price".to_string()));
    assert_eq!(table.tasks[0].inputs(), [3.0, 1.0, 6.0, 4.0]);
    assert_eq!(table.tasks[0].adapt(), Some(&[1][..]));
}

#[test]
fn small_tasks_are_left_out_when_asked() {
    let text = "task,x,y\na,1,1\nb,1,1\nb,2,2\nc,1,1\nc,2,2\nc,3,3\n";
    let left_out = |min_examples| {
        let table = parse_csv("t.csv", text.as_bytes(), &TableOptions { min_examples, ..options() }).unwrap();
        (table.tasks.len(), table.left_out)
    };
    assert_eq!(left_out(Some(2)), (2, names(&["a"])));
    assert_eq!(left_out(Some(3)), (1, names(&["a", "b"])));
    assert_eq!(left_out(Some(1)), (3, names(&[])));
}

#[test]
fn the_format_is_told_by_ending_then_by_look() {
    assert_eq!(Format::of("a.CSV", b"{"), Format::Csv);
    assert_eq!(Format::of("a.json", b"task,x,y"), Format::Json);
    assert_eq!(Format::of("a.txt", b"\xef\xbb\xbf\n {"), Format::Json);
    assert_eq!(Format::of("standard input", b"[1]"), Format::Json);
    assert_eq!(Format::of("standard input", b""), Format::Csv);
}

#[test]
fn files_are_read_and_missing_ones_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tasks.csv");
    std::fs::write(&path, "task,x,y\na,1,2\na,3,4\n").unwrap();
    assert_eq!(read_tasks(&path, &options()).unwrap().tasks[0].targets(), [2.0, 4.0]);
    assert_eq!(read_support(&path, &names(&["x"]), "y").unwrap().name(), "tasks");
    assert_eq!(read_queries(&path, &names(&["x"])).unwrap().inputs(), [1.0, 3.0]);
    let error = read_tasks(folder.path().join("none.csv"), &options()).unwrap_err();
    assert!(error.is_input() && error.to_string().contains("none.csv"), "{error}");
}

#[test]
fn supports_take_the_priors_columns_and_ignore_others() {
    let features = names(&["a", "b"]);
    let expected = Task::new("new", 2, vec![1.0, 2.0, 3.0, 4.0], vec![5.0, 6.0]).unwrap();
    for (origin, text) in [
        ("new.csv", "b,when,y,a,adapt\n2,today,5,1,\n4,,6,3,?\n"),
        ("new.json", r#"{"x": [[1, 2], [3, 4]], "y": [5, 6]}"#),
        ("new.json", r#"{"features": ["b", "z", "a"], "x": [[2, 0, 1], [4, 0, 3]], "y": [5, 6]}"#),
        ("new.json", r#"{"features": ["b", "a"], "tasks": [{"x": [[2, 1], [4, 3]], "y": [5, 6]}]}"#),
    ] {
        assert_eq!(parse_support(origin, text.as_bytes(), &features, "y").unwrap(), expected, "{text}");
    }
    let single = parse_support("new.csv", b"x,y\n1,2\n", &names(&["x"]), "y").unwrap();
    assert_eq!(single.len(), 1);
}

#[test]
fn queries_keep_every_column_and_predictions_come_after_them() {
    let text = "id,b,note,a\n007,2,\"so, \"\"so\"\"\",1.50\n008,4,,3\n";
    let queries = parse_queries("q.csv", text.as_bytes(), &names(&["a", "b"])).unwrap();
    assert_eq!((queries.len(), queries.dimension(), queries.format()), (2, 2, Format::Csv));
    assert_eq!(queries.inputs(), [1.5, 2.0, 3.0, 4.0]);
    assert_eq!(queries.input(1), [3.0, 4.0]);
    let predictions = [Prediction::normal(0.5, 0.0), Prediction::normal(1e300, 1.0)];

    let mut out = Vec::new();
    write_predictions("out.csv", &mut out, Format::Csv, &queries, &predictions).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "id,b,note,a,mean,std,lower95,upper95\n007,2,\"so, \"\"so\"\"\",1.50,0.5,0.0,0.5,0.5\n\
         008,4,,3,1e300,1.0,1e300,1e300\n"
    );

    let mut out = Vec::new();
    write_predictions("out.json", &mut out, Format::Json, &queries, &predictions[..1]).unwrap_err();
    write_predictions("out.json", &mut out, Format::Json, &queries, &predictions).unwrap();
    let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let first = serde_json::json!({
        "x": [1.5, 2.0], "mean": 0.5, "std": 0.0, "lower95": 0.5, "upper95": 0.5,
        "columns": {"id": "007", "note": "so, \"so\""}
    });
    assert_eq!((&value["features"], &value["predictions"][0]), (&serde_json::json!(["a", "b"]), &first));
}

#[test]
fn json_queries_and_taken_names() {
    for text in [
        "[1, 2]",
        "[[1], [2]]",
        r#"{"x": [1, 2], "y": [0, 0]}"#,
        r#"{"features": ["b", "mean"], "x": [[5, 1], [6, 2]]}"#,
    ] {
        let queries = parse_queries("standard input", text.as_bytes(), &names(&["mean"])).unwrap();
        assert_eq!((queries.inputs(), queries.format()), (&[1.0, 2.0][..], Format::Json), "{text}");
        let mut out = Vec::new();
        write_predictions("out", &mut out, Format::Csv, &queries, &[Prediction::normal(0.0, 1.0); 2])
            .unwrap();
        let header = String::from_utf8(out).unwrap().lines().next().unwrap().to_string();
        let expected = "mean,predicted_mean,predicted_std,predicted_lower95,predicted_upper95";
        assert!(header.ends_with(expected), "{header}");
    }
}

#[test]
fn a_full_disk_is_reported_with_the_destination() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let queries = parse_queries("q.json", b"[1]", &names(&["x"])).unwrap();
    for format in [Format::Csv, Format::Json] {
        let error = write_predictions("out.csv", Full, format, &queries, &[Prediction::normal(0.0, 1.0)])
            .unwrap_err();
        assert!(error.to_string().starts_with("cannot write out.csv"), "{error}");
        assert!(!error.is_input());
    }
}

#[test]
fn export_refuses_what_csv_cannot_say() {
    let text = r#"{"tasks": [{"x": [1, 2], "y": [0, 1], "adapt": [1]}, {"x": [1, 2], "y": [0, 1]}]}"#;
    let mixed = parse_json("t.json", text.as_bytes(), &options()).unwrap();
    assert!(tasks_to_csv(&mixed, "task").unwrap_err().to_string().contains("1 of 2 tasks state `adapt`"));
    assert!(tasks_to_csv(&mixed, "x").unwrap_err().to_string().contains("two columns would be called `x`"));
}

/// Finite numbers of every size.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![any::<f64>().prop_filter("finite", |value| value.is_finite()), -10.0..10.0f64]
}

/// Tables that both formats can hold: names without outer spaces, `adapt` ascending and in all tasks or none.
fn tables() -> impl Strategy<Value = TaskTable> {
    let task = |dimension: usize, stated: bool| {
        (2..6usize).prop_flat_map(move |rows| {
            (
                prop::collection::vec(number(), rows * dimension),
                prop::collection::vec(number(), rows),
                prop::collection::vec(any::<bool>(), rows),
            )
                .prop_map(move |(inputs, targets, mut inside)| {
                    inside[0] = true;
                    let task = Task::new("", dimension, inputs, targets).unwrap();
                    let adapt = (0..rows).filter(|&row| inside[row]).collect();
                    if stated { task.with_adapt(adapt).unwrap() } else { task }
                })
        })
    };
    (1..4usize, any::<bool>())
        .prop_flat_map(move |(dimension, stated)| {
            (
                prop::collection::vec(task(dimension, stated), 1..5),
                prop::collection::vec("[a-z\"',;\n\réλ 0-9]{0,6}", 5),
                prop::collection::vec("[a-z\"', é]{0,6}", dimension),
            )
        })
        .prop_map(|(tasks, task_names, feature_names)| {
            let rename = |(index, task): (usize, Task)| {
                let name = format!("t{}{index}", task_names[index]);
                let renamed =
                    Task::new(name, task.dimension(), task.inputs().to_vec(), task.targets().to_vec())
                        .unwrap();
                match task.adapt() {
                    Some(adapt) => renamed.with_adapt(adapt.to_vec()).unwrap(),
                    None => renamed,
                }
            };
            TaskTable {
                tasks: tasks.into_iter().enumerate().map(rename).collect(),
                feature_names: feature_names
                    .iter()
                    .enumerate()
                    .map(|(i, name)| format!("f{name}{i}"))
                    .collect(),
                target_name: "y".into(),
                left_out: Vec::new(),
            }
        })
}

/// A change of a few bytes: flipped, inserted, or everything after cut.
fn mutate(bytes: &mut Vec<u8>, mutations: &[(u8, prop::sample::Index, u8)]) {
    for (kind, place, byte) in mutations {
        let index = place.index(bytes.len() + 1);
        match kind % 3 {
            0 if index < bytes.len() => bytes[index] ^= byte,
            1 => bytes.insert(index, *byte),
            2 => bytes.truncate(index.max(bytes.len() / 2)),
            _ => {}
        }
    }
}

/// Every parser on the same bytes. They may refuse; what they accept must make sense.
fn parse_everything(bytes: &[u8]) {
    let features = names(&["f0", "f1"]);
    for min_examples in [None, Some(1)] {
        for features in [None, Some(features.clone())] {
            let options = TableOptions { min_examples, features, ..options() };
            for table in
                [parse_csv("t", bytes, &options), parse_json("t", bytes, &options)].into_iter().flatten()
            {
                assert!(!table.tasks.is_empty());
                assert!(table.tasks.iter().all(|task| task.dimension() == table.feature_names.len()));
            }
        }
    }
    for origin in ["t.csv", "t.json"] {
        if let Ok(task) = parse_support(origin, bytes, &features, "y") {
            assert_eq!(task.dimension(), 2);
        }
        if let Ok(queries) = parse_queries(origin, bytes, &features) {
            assert_eq!(queries.inputs().len(), 2 * queries.len());
            let predictions = vec![Prediction::normal(0.0, 1.0); queries.len()];
            for format in [Format::Csv, Format::Json] {
                write_predictions("out", Vec::new(), format, &queries, &predictions).unwrap();
            }
        }
    }
}

proptest! {
    #[test]
    fn tasks_survive_both_formats(table in tables()) {
        let json = tasks_to_json(&table);
        let read = parse_json("t.json", json.as_bytes(), &options()).unwrap();
        prop_assert_eq!(&read, &table);
        let csv = tasks_to_csv(&read, "task").unwrap();
        let read = parse_csv("t.csv", csv.as_bytes(), &options()).unwrap();
        prop_assert_eq!(&read, &table);
        let bits = |table: &TaskTable| -> Vec<u64> {
            table.tasks.iter().flat_map(|task| task.inputs().iter().chain(task.targets())).map(|v| v.to_bits()).collect()
        };
        prop_assert_eq!(bits(&read), bits(&table));
        let crlf = csv.split_inclusive('"').enumerate().map(|(i, part)| {
            // Only line ends outside quotation marks separate rows.
            if i % 2 == 0 { part.replace('\n', "\r\n") } else { part.to_string() }
        }).collect::<String>();
        prop_assert_eq!(parse_csv("t.csv", crlf.as_bytes(), &options()).unwrap(), table);
    }

    #[test]
    fn changed_bytes_never_panic(
        mut table in tables(),
        mutations in prop::collection::vec((any::<u8>(), any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        table.feature_names = (0..table.feature_names.len()).map(|index| format!("f{index}")).collect();
        for text in [tasks_to_json(&table), tasks_to_csv(&table, "task").unwrap()] {
            let mut bytes = text.into_bytes();
            mutate(&mut bytes, &mutations);
            parse_everything(&bytes);
        }
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        parse_everything(&bytes);
    }

    #[test]
    fn near_tables_never_panic(text in "(task|y|f0|f1|adapt|x|[0-9.,;\n\r\"{}\\[\\]: e-]){0,80}") {
        parse_everything(text.as_bytes());
        parse_everything(format!("task,f0,f1,y\n{text}").as_bytes());
    }
}
