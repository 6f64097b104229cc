//! What is said about tables that are wrong: the whole message, since people read the whole message.

use super::*;

fn csv_error(text: impl AsRef<[u8]>) -> String {
    let error = parse_csv("t.csv", text.as_ref(), &options()).unwrap_err();
    assert!(error.is_input());
    error.to_string()
}

fn json_error(text: &str) -> String {
    let error = parse_json("t.json", text.as_bytes(), &options()).unwrap_err();
    assert!(error.is_input());
    error.to_string()
}

#[test]
fn csv_values() {
    let remedy = "if the column is not a feature, list those that are in `data.features`";
    for (rows, expected) in [
        ("a,1,2\na,,2\n", "line 3, column `x`: the value is missing; fill it in or remove the row".to_string()),
        ("a,1,2\n\n\na,3,\n", "line 5, column `y`: the value is missing; fill it in or remove the row".into()),
        ("a,red,2\n", format!("line 2, column `x`: expected a finite number, found `red`; {remedy}")),
        ("a,1,high\n", "line 2, column `y`: expected a finite number, found `high`".into()),
        ("a,NaN,2\n", "line 2, column `x`: expected a finite number, found `NaN`; remove the row or replace the value".into()),
        ("a,1,-inf\n", "line 2, column `y`: expected a finite number, found `-inf`; remove the row or replace the value".into()),
        ("a,1e999,2\n", "line 2, column `x`: expected a finite number, found `1e999`; remove the row or replace the value".into()),
        ("a,\"1,5\",2\n", "line 2, column `x`: expected a finite number, found `1,5`; write the decimal comma as a point".into()),
        ("a,1\n", "line 2: expected 3 fields as in the header, found 2".into()),
        ("a,1,2\r\na,1,2,3\r\n", "line 3: expected 3 fields as in the header, found 4".into()),
        ("a,\"1,2\nb,3,4\n", "line 2: expected 3 fields as in the header, found 2; a field goes over several lines: is a quotation mark left open?".into()),
        ("\"a\nb\",1,2\n\"a\nb\",x,2\n", format!("line 4, column `x`: expected a finite number, found `x`; {remedy}")),
        (" ,1,2\n", "line 2, column `task`: the task's name is missing; fill it in or remove the row".into()),
    ] {
        assert_eq!(csv_error(format!("task,x,y\n{rows}")), format!("t.csv, {expected}"));
    }
    assert_eq!(
        csv_error("task,x,y,adapt\na,1,2,1\na,1,2,yes\n"),
        "t.csv, line 3, column `adapt`: expected 1 (the example is in the adaptation set) or 0 (it is not), found `yes`; the \
         name `adapt` is reserved for that: if the column is a feature, rename it or list it in `data.features`"
    );
    assert_eq!(
        csv_error("task,x,y,adapt\na,1,2,1\nb,1,2,0\n"),
        "t.csv, column `adapt`: task `b` has no example with 1; mark at least one in every task, or remove the column"
    );
}

#[test]
fn csv_columns() {
    for (text, expected) in [
        (
            "",
            "t.csv: the file is empty; expected a line with the names of the columns, then one example a line",
        ),
        (
            "\n\r\n",
            "t.csv: the file is empty; expected a line with the names of the columns, then one example a line",
        ),
        ("task,x,y\n", "t.csv: there is no row after the header; expected one example a line"),
        (
            "\ntsak,x,y\n",
            "t.csv, line 2: there is no column `task` (did you mean `tsak`?): it names the task of each row; choose \
             another by `data.task`; the columns are `tsak`, `x`, `y`",
        ),
        (
            "task,x,price\n",
            "t.csv, line 1: there is no column `y`: it holds the target; choose another by `data.target`; the columns \
             are `task`, `x`, `price`",
        ),
        (
            "task;x;y\n",
            "t.csv, line 1: there is no column `task`: it names the task of each row; choose \
             another by `data.task`; the columns are `task;x;y`; separate the columns by commas",
        ),
        (
            "1,2,3\n",
            "t.csv, line 1: there is no column `task`: it names the task of each row; choose another by `data.task`; the \
             columns are `1`, `2`, `3`; the first line must name the columns",
        ),
        ("task,x,y, x\n", "t.csv, line 1: two columns are called `x`; give each its own name"),
        (
            ",task,x,y\n",
            "t.csv, line 1: column 1 has no name (an index or a comma too many?); name it, remove it, or list the columns \
             to use in `data.features`",
        ),
        (
            "task,y\n",
            "t.csv, line 1: there is no feature: the columns are `task`, `y`; add at least one beside task and target",
        ),
    ] {
        assert_eq!(csv_error(text), expected);
    }
    assert_eq!(
        csv_error(b"task,x,y\na,1,2\nb\xff,1,2\n"),
        "t.csv, line 3: the text is not UTF-8; save the file as UTF-8"
    );
    assert_eq!(csv_error(b"\xff\xfet\0a\0"), "t.csv: the text is in UTF-16; save the file as UTF-8");
}

#[test]
fn options_that_contradict_the_file_or_themselves() {
    let text = b"task,width,y\na,1,2\na,3,4\n";
    let refuse = |options: TableOptions| parse_csv("t.csv", text, &options).unwrap_err().to_string();
    let features = |list: &[&str]| TableOptions { features: Some(names(list)), ..options() };
    assert_eq!(
        refuse(features(&["widht"])),
        "t.csv, line 1: there is no column `widht` (did you mean `width`?): `data.features` asks for it; the columns are \
         `task`, `width`, `y`"
    );
    assert_eq!(
        refuse(features(&[])),
        "configuration key `data.features`: expected at least one feature; leave it out for all columns"
    );
    assert_eq!(
        refuse(features(&["width", "width"])),
        "configuration key `data.features`: `width` is listed twice"
    );
    assert_eq!(
        refuse(features(&["width", "y"])),
        "configuration key `data.features`: `y` is the task or the target, not a feature"
    );
    assert_eq!(
        refuse(TableOptions { target: "task".into(), ..options() }),
        "configuration key `data.target`: expected another column than `data.task`"
    );
    let json = br#"{"features": ["width"], "tasks": [{"x": [1, 2], "y": [1, 2]}]}"#;
    assert_eq!(
        parse_json("t.json", json, &features(&["widht"])).unwrap_err().to_string(),
        "t.json, features: there is no feature `widht` (did you mean `width`?): `data.features` asks for it; the features \
         are `width`"
    );
}

#[test]
fn tasks_that_are_too_small() {
    let text = "task,x,y\na,1,1\nb,1,1\nb,2,2\nc,1,1\n";
    assert_eq!(
        csv_error(text),
        "t.csv: 2 of 3 tasks have one example only, and learning from a task takes two: `a`, `c`; add examples, or set \
         `data.min_examples = 2` to leave such tasks out"
    );
    let strict = TableOptions { min_examples: Some(5), ..options() };
    assert_eq!(
        parse_csv("t.csv", text.as_bytes(), &strict).unwrap_err().to_string(),
        "t.csv: none of the 3 tasks has `data.min_examples = 5` examples, the largest has 2; lower `data.min_examples`"
    );
}

#[test]
fn json_values() {
    for (task, expected) in [
        (r#"{"x": [1, 2], "y": [1, "2"]}"#, "tasks[0].y[1]: expected a finite number, found a string (`2`)"),
        (r#"{"x": [1, null], "y": [1, 2]}"#, "tasks[0].x[1]: expected a finite number, found null"),
        (
            r#"{"x": [[1, 2], [3, true]], "y": [1, 2]}"#,
            "tasks[0].x[1][1]: expected a finite number, found true",
        ),
        (
            r#"{"x": [[1, 2], [3]], "y": [1, 2]}"#,
            "tasks[0].x[1]: expected 2 numbers as in tasks[0].x[0], found 1",
        ),
        (
            r#"{"x": [[1], 2], "y": [1, 2]}"#,
            "tasks[0].x[1]: expected a list of 1 number as in tasks[0].x[0], found 2",
        ),
        (r#"{"x": [1, [2]], "y": [1, 2]}"#, "tasks[0].x[1]: expected a finite number, found a list"),
        (
            r#"{"x": [[], []], "y": [1, 2]}"#,
            "tasks[0].x[0]: expected at least one feature, found an empty list",
        ),
        (r#"{"x": [], "y": []}"#, "tasks[0].x: expected at least one example, found an empty list"),
        (r#"{"x": 1, "y": []}"#, "tasks[0].x: expected a list, found 1"),
        (r#"{"x": [1, 2], "y": [1]}"#, "tasks[0].y: expected 2 numbers, one for each example of x, found 1"),
        (r#"{"x": [1, 2], "y": {}}"#, "tasks[0].y: expected a list, found an object"),
        (r#"{"x": [1, 2]}"#, "tasks[0]: the key `y` is missing; the keys found are `x`"),
        (r#"{}"#, "tasks[0]: the key `x` is missing; the keys found are none"),
        (r#"[1]"#, "tasks[0]: expected an object with the keys `name`, `x`, `y`, `adapt`, found a list"),
        (
            r#"{"x": [1], "y": [1], "adpat": [0]}"#,
            "tasks[0]: unknown key `adpat` (did you mean `adapt`?); expected `name`, `x`, `y`, `adapt`",
        ),
        (
            r#"{"x": [1, 2], "y": [1, 2], "adapt": [2]}"#,
            "tasks[0].adapt[0]: expected an index from 0 to 1, found 2",
        ),
        (
            r#"{"x": [1, 2], "y": [1, 2], "adapt": [-1]}"#,
            "tasks[0].adapt[0]: expected an index from 0 to 1, found -1",
        ),
        (
            r#"{"x": [1, 2], "y": [1, 2], "adapt": [0.5]}"#,
            "tasks[0].adapt[0]: expected an index from 0 to 1, found 0.5",
        ),
        (
            r#"{"x": [1, 2], "y": [1, 2], "adapt": [1, 1]}"#,
            "tasks[0].adapt[1]: index 1 occurs twice; remove one",
        ),
        (
            r#"{"x": [1, 2], "y": [1, 2], "adapt": []}"#,
            "tasks[0].adapt: expected at least one index, found an empty list; or leave `adapt` out",
        ),
        (r#"{"x": [1, 2], "y": [1, 2], "name": 7}"#, "tasks[0].name: expected a name, found 7"),
        (
            r#"{"x": [1, 2], "y": [1, 2], "name": " "}"#,
            "tasks[0].name: expected a name, found a string (` `)",
        ),
    ] {
        assert_eq!(json_error(&format!(r#"{{"tasks": [{task}]}}"#)), format!("t.json, {expected}"));
    }
}

#[test]
fn json_files() {
    let deep = "[".repeat(100_000);
    let task = r#"{"name": "a", "x": [1, 2], "y": [1, 2]}"#;
    for (text, expected) in [
        ("", ": the file is empty; expected an object with the key `tasks` or `x`".to_string()),
        ("{\n \"tasks\": [}", ", line 2, column 12: this is not JSON: expected value".into()),
        (r#"{"tasks": [{"x": [1"#, ", line 1, column 19: the file ends too early (EOF while parsing a list); is it cut off?".into()),
        (r#"{"tasks": []} 7"#, ", line 1, column 15: expected nothing after the end of the JSON value; remove the rest".into()),
        (r#"{"tasks": [{"x": [1e999]}]}"#, ", line 1, column 23: expected a finite number, found one that is too large for 64 bits".into()),
        (
            r#"{"tasks": [{"x": [NaN]}]}"#,
            ", line 1, column 19: expected a finite number, found NaN, which JSON does not have; remove the example or replace the \
             value".into(),
        ),
        (deep.as_str(), ", line 1, column 128: lists or objects are nested too deep; expected at most four levels".into()),
        (
            r#"{"tasks": [{"x": [1], "y": [1], "x": [2]}]}"#,
            ", line 1, column 35: the key `x` occurs twice; remove one".into(),
        ),
        (r#"{"tasks": []}"#, ", tasks: expected at least one task, found an empty list".into()),
        (r#"{"tasks": {}}"#, ", tasks: expected a list, found an object".into()),
        ("[]", ": expected an object with the keys `tasks`, `features`, found a list".into()),
        ("{}", ": the key `tasks` is missing; the keys found are none".into()),
        (r#"{"task": []}"#, ": unknown key `task` (did you mean `tasks`?); expected `tasks`, `features`".into()),
        (&format!(r#"{{"tasks": [{task}, {task}]}}"#), ", tasks[1].name: `a` is the name of tasks[0] too; give each task its own".into()),
        (&format!(r#"{{"tasks": [{task}, {{"x": [[1, 2]], "y": [1]}}]}}"#), ", tasks[1].x: expected 1 feature as in tasks[0], found 2".into()),
        (&format!(r#"{{"tasks": [{task}], "features": []}}"#), ", features: expected 1 name, one for each feature of x, found 0".into()),
        (&format!(r#"{{"tasks": [{task}], "features": [1]}}"#), ", features[0]: expected a name, found 1".into()),
        (
            r#"{"tasks": [{"x": [[1, 2], [1, 2]], "y": [1, 2]}], "features": ["a", "a "]}"#,
            ", features: two features are called `a`; give each its own name".into(),
        ),
        (
            r#"{"tasks": [{"x": [1], "y": [1]}]}"#,
            ": 1 of 1 tasks has one example only, and learning from a task takes two: `task-000`; add examples, or set \
             `data.min_examples = 2` to leave such tasks out".into(),
        ),
    ] {
        assert_eq!(json_error(text), format!("t.json{expected}"));
    }
    for number in ["Infinity", "-Infinity", "nan", "-inf", "-NaN"] {
        let message = json_error(&format!("{{\"tasks\": [{{\"x\": [1,\n {number}, 2]}}]}}"));
        let expected = format!("expected a finite number, found {number}, which JSON");
        assert!(message.starts_with("t.json, line 2") && message.contains(&expected), "{message}");
    }
    assert!(json_error(r#"{"tasks": [nap]}"#).contains("this is not JSON"));
    let error = parse_json("t.json", b"{\"tasks\":\n\"\xff\"}", &options()).unwrap_err();
    assert_eq!(error.to_string(), "t.json, line 2: the text is not UTF-8; save the file as UTF-8");
}

#[test]
fn supports_and_queries() {
    let features = names(&["width", "height"]);
    let support = |origin: &str, text: &str| {
        parse_support(origin, text.as_bytes(), &features, "price").unwrap_err().to_string()
    };
    assert_eq!(
        support("s.csv", "width,hieght,price\n1,2,3\n"),
        "s.csv, line 1: there is no column `height` (did you mean `hieght`?): the prior was trained on this feature; add \
         it or rename a column; the columns are `width`, `hieght`, `price`"
    );
    assert_eq!(
        support("s.csv", "width,height\n1,2\n"),
        "s.csv, line 1: there is no column `price`: the prior was trained on this target; name a column so; the columns \
         are `width`, `height`"
    );
    assert_eq!(
        support("s.csv", "width,height,price\n1,2,\n"),
        "s.csv, line 2, column `price`: the value is missing; fill it in or remove the row"
    );
    assert!(support("s.csv", "width,height,price\n").contains("no row after the header"));
    assert_eq!(
        support("s.json", r#"{"x": [1, 2], "y": [1, 2]}"#),
        "s.json, x: expected 2 features as the prior has (`width`, `height`), found 1"
    );
    let task = r#"{"x": [[1, 2]], "y": [1]}"#;
    assert_eq!(
        support("s.json", &format!(r#"{{"tasks": [{task}, {task}]}}"#)),
        "s.json, tasks: expected exactly one task to adapt to, found 2"
    );
    assert_eq!(
        support("s.json", &format!(r#"{{"tasks": [{task}], "y": [1]}}"#)),
        "s.json, y: expected either `tasks` or `x` and `y`, found both; remove one"
    );

    let queries =
        |text: &str| parse_queries("standard input", text.as_bytes(), &features).unwrap_err().to_string();
    assert_eq!(
        queries("width,height\n1,2\n3,tall\n"),
        "standard input, line 3, column `height`: expected a finite number, found `tall`"
    );
    assert_eq!(
        queries("width,height\n"),
        "standard input: there is no row after the header; expected one example a line"
    );
    assert_eq!(
        queries("[[1, 2], [3]]"),
        "standard input, list[1]: expected 2 numbers as in list[0], found 1"
    );
    assert_eq!(queries("[]"), "standard input, list: expected at least one example, found an empty list");
    assert_eq!(
        queries(r#"{"x": [[1, 2]], "features": ["width", "depth"]}"#),
        "standard input, features: there is no feature `height`: the prior was trained on this feature; add it or rename a \
         column; the features are `width`, `depth`"
    );
}

#[test]
fn features_that_nobody_named_are_taken_in_order() {
    let default = FeatureNames::Prior(names(&["x0", "x1"]));
    let only = SupportTask::Only { column: "task" };
    let support = |origin: &str, text: &str| parse_support_of(origin, text.as_bytes(), &default, "y", &only);
    let found = FeatureNames::Support(names(&["width", "height"]));
    for (origin, text) in [
        ("s.csv", "task,width,adapt,y,height\na,1,0,3,2\n"),
        ("s.json", r#"{"features": ["width", "height"], "x": [[1, 2]], "y": [3]}"#),
    ] {
        let (task, queries) = support(origin, text).unwrap();
        assert_eq!((task.inputs(), task.targets(), &queries), (&[1.0, 2.0][..], &[3.0][..], &found));
    }
    // Queries are told by the support's names, whatever their order.
    let query = |text: &str| parse_queries_for("q.csv", text.as_bytes(), &found);
    assert_eq!(query("height,id,width\n2,7,1\n").unwrap().inputs(), [1.0, 2.0]);
    assert_eq!(
        query("width,depth\n1,2\n").unwrap_err().to_string(),
        "q.csv, line 1: there is no column `height`: the support has this feature; add it or rename a column; the columns are \
         `width`, `depth`"
    );
    // A support without names says nothing of those of its queries.
    let (_, unnamed) = support("s.json", r#"{"x": [[1, 2]], "y": [3]}"#).unwrap();
    let queries = parse_queries_for("q.csv", b"width,height,y\n1,2,3\n", &unnamed).unwrap();
    assert_eq!(queries.inputs(), [1.0, 2.0]);
    let prior = TableOptions { features: Some(names(&["x0", "x1"])), ..options() };
    let tasks = |text: &str| parse_csv_for("t.csv", text.as_bytes(), &prior, ColumnsOf::Prior);
    let table = tasks("b,task,y,a\n1,t,3,2\n4,t,6,5\n").unwrap();
    assert_eq!(
        (table.tasks[0].inputs(), table.feature_names),
        (&[1.0, 2.0, 4.0, 5.0][..], names(&["b", "a"]))
    );
    for (text, expected) in [
        (
            "task,y,a,b,c\n",
            "t.csv, line 1: the prior has 2 features, the columns left beside task, target and `adapt` are `a`, `b`, `c`; leave \
             exactly as many, or name those to use `x0`, `x1`",
        ),
        (
            "task,y,x0,b\n",
            "t.csv, line 1: there is no column `x1` (did you mean `x0`?): the prior calls a feature so; name a column so; the \
             columns are `task`, `y`, `x0`, `b`",
        ),
        (
            "task,y,,b\n",
            "t.csv, line 1: there is no column `x0`: the prior calls a feature so; name a column so; the columns are `task`, \
             `y`, ``, `b`",
        ),
    ] {
        assert_eq!(tasks(text).unwrap_err().to_string(), expected);
    }
    let numbers = parse_queries("q.csv", b"1,2\n3,4\n", &names(&["x0", "x1"])).unwrap_err().to_string();
    assert!(numbers.contains("the first line must name the columns"), "{numbers}");
}

#[test]
fn what_is_no_table_is_not_read_to_its_end() {
    let refuse = |bytes: &[u8], max: u64| read_text("t", bytes, max).unwrap_err().to_string();
    let long = "1,".repeat(10_000);
    assert_eq!(read_text("t", long.as_bytes(), 20_000).unwrap(), long.as_bytes());
    assert_eq!(
        refuse(long.as_bytes(), 19_999),
        "t: has more than 19999 bytes, the most that is read; split it into several files"
    );
    let binary = "t: is no text: there are NUL bytes in it; expected CSV or JSON";
    assert_eq!(refuse(&[0; 1 << 20], 1 << 30), binary);
    // Without an end: only the first bytes are looked at.
    assert_eq!(read_text("t", std::io::repeat(0), 1 << 30).unwrap_err().to_string(), binary);
    let utf16 = b"\xff\xfet\0a\0";
    assert_eq!(read_text("t", &utf16[..], 100).unwrap(), utf16);
    #[cfg(unix)]
    assert!(read_bytes(Path::new("/dev/zero")).unwrap_err().to_string().contains("is a device"));
}
