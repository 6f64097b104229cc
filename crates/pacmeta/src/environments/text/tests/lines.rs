use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::*;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The message with which a file is refused.
fn refusal(text: &str) -> String {
    let error = parse_texts("own.jsonl", text.as_bytes()).unwrap_err();
    assert!(error.is_input(), "{error}");
    error.to_string()
}

const TWO: &str = "{\"sentence1\": \"It rains.\", \"label\": \"weather\"}\n{\"sentence1\": \"It sells.\", \"label\": \"trade\"}\n";

#[test]
fn a_dozen_sentences_are_a_task() {
    let lines: String = (0..12)
        .map(|index| {
            format!("{{\"sentence1\": \"number {index}\", \"label\": {}, \"id\": [1]}}\n", index % 3)
        })
        .collect();
    let task = parse_texts("folder/numbers.jsonl.gz", &gzip(lines.as_bytes())).unwrap();
    assert_eq!((task.name.as_str(), task.train.len(), task.dev.len()), ("numbers", 12, 0));
    assert_eq!(task.classes, ["0", "1", "2"]);
    assert_eq!(task.train[4], LabelledText { sentences: Sentences::single("number 4"), label: 1 });
    assert!(!task.is_paired());
}

#[test]
fn marks_blank_lines_and_carriage_returns_do_not_count() {
    let plain = parse_texts("own.jsonl", TWO.as_bytes()).unwrap();
    let untidy = format!("\u{feff}\r\n  \n{}\r\n\r\n", TWO.replace('\n', "\r\n").replace("{\"s", "  {\"s"));
    assert_eq!(parse_texts("own.jsonl", untidy.as_bytes()).unwrap(), plain);
    assert_eq!(parse_texts("own.jsonl", TWO.trim_end().as_bytes()).unwrap(), plain, "no line end at the end");
    let two_members = [gzip(&TWO.as_bytes()[..20]), gzip(&TWO.as_bytes()[20..])].concat();
    assert_eq!(parse_texts("own.jsonl", &two_members).unwrap(), plain, "told by bytes, not by the name");
}

#[test]
fn labels_are_texts_numbers_or_flags() {
    let lines = r#"{"sentence1": "a", "label": 1}
        {"sentence1": "b", "label": 1.0}
        {"sentence1": "c", "label": " 1 "}
        {"sentence1": "d", "label": true}
        {"sentence1": "e", "label": 0.5}
        {"sentence1": "f", "label": -7}"#;
    let task = parse_texts("own.jsonl", lines.as_bytes()).unwrap();
    assert_eq!(task.classes, ["-7", "0.5", "1", "true"]);
    let labels: Vec<usize> = task.train.iter().map(|example| example.label).collect();
    assert_eq!(labels, [2, 2, 2, 3, 1, 0]);
}

#[test]
fn splits_have_several_names() {
    let lines: String = ["train", "train", "dev", "val", "validation", "test", "eval"]
        .iter()
        .enumerate()
        .map(|(index, part)| {
            format!("{{\"sentence1\": \"s\", \"label\": {}, \"split\": \"{part}\"}}\n", index % 2)
        })
        .collect();
    let task = parse_texts("own.jsonl", lines.as_bytes()).unwrap();
    assert_eq!((task.train.len(), task.dev.len()), (2, 5));
}

#[test]
fn errors_say_where_and_what_to_do() {
    let after_two = |line: &str| refusal(&format!("{TWO}{line}\n"));
    for (line, expected) in [
        (
            r#"{"sentence": "a", "label": 1}"#,
            "own.jsonl, line 3: `sentence1` is missing (did you mean `sentence`?); the fields are `label`, `sentence`",
        ),
        (
            r#"{"text": "a", "label": 1}"#,
            "line 3: `sentence1` is missing; the fields are `label`, `text`: rename the field `text` to `sentence1`",
        ),
        (r#"{"sentence1": null, "text": "a", "label": 1}"#, "write a sentence, or remove the line"),
        ("{}", "the object is empty"),
        (
            r#"{"sentence1": "  ", "label": 1}"#,
            "line 3: `sentence1` is empty; write a sentence, or remove the line",
        ),
        (r#"{"sentence1": 3, "label": 1}"#, "`sentence1` is a number; expected a text in quotation marks"),
        (
            r#"{"sentence1": "a"}"#,
            "line 3: `label` is missing; the fields are `sentence1`: every line of a task needs a label",
        ),
        (r#"{"sentence1": "a", "label": null}"#, "`label` is null; the fields are `label`, `sentence1`"),
        (r#"{"sentence1": "a", "label": ""}"#, "`label` is empty"),
        (
            r#"{"sentence1": "a", "label": [1]}"#,
            "`label` is a list; expected a text, a number, true or false",
        ),
        (r#"{"sentence1": "a", "label": 1, "label": 2}"#, "line 3: duplicate field `label`"),
        (r#"{"sentence1": "a", "label": 1"#, "line 3: is not JSON: EOF while parsing an object (column 29)"),
        ("plain text", "line 3: is not JSON: expected value (column 1)"),
        ("[1, 2]", "expected an object such as {\"sentence1\""),
        ("[", "a list begins here; expected one JSON object a line"),
        ("\"a\"", "expected an object such as"),
        (
            r#"{"sentence1": "a", "sentence2": "b", "label": 1}"#,
            "line 3: this line has a `sentence2`, and line 1 has none",
        ),
        (
            r#"{"sentence1": "a", "label": "trade", "split": "dev"}"#,
            "this line has a `split`, and line 1 has none",
        ),
        (
            r#"{"sentence1": "a", "label": "trade", "split": "tain"}"#,
            "`split` is `tain` (did you mean `train`?)",
        ),
    ] {
        let message = after_two(line);
        assert!(message.contains(expected), "{line}: {message}");
    }
    let message = refusal("{\"sentence1\": \"a\", \"label\": 1}\n{\"sentence1\": \"b\", \"label\": 1}\n");
    assert!(
        message.contains("all 2 training lines have the label `1`; a task needs two classes or more"),
        "{message}"
    );
    let message = refusal(
        "{\"sentence1\": \"a\", \"label\": 1, \"split\": \"train\"}\n{\"sentence1\": \"a\", \"label\": 2, \"split\": \"train\"}\n\
         {\"sentence1\": \"b\", \"label\": 3, \"split\": \"dev\"}\n",
    );
    assert!(
        message.contains("line 3: the label `3` occurs in no training line (those have `1`, `2`)"),
        "{message}"
    );
    assert!(refusal("\n \n").contains("there is no line"));
    assert!(
        refusal("{\"sentence1\": \"a\", \"label\": 1, \"split\": \"dev\"}")
            .contains("no line has the split `train`")
    );
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let refuse = |bytes: &[u8]| parse_texts("own.jsonl", bytes).unwrap_err().to_string();
    let broken = [TWO.as_bytes(), b"{\"sentence1\": \"\xff\", \"label\": 1}\n"].concat();
    assert!(refuse(&broken).contains("line 3: the text is not UTF-8"), "{}", refuse(&broken));
    assert!(refuse(b"\xff\xfe{\0").contains("UTF-16"));
    let packed = gzip(TWO.repeat(100).as_bytes());
    let cut = refuse(&packed[..packed.len() - 9]);
    assert!(cut.contains("the gzip file is cut off here; copy or download it again"), "{cut}");
    let mut damaged = packed.clone();
    let middle = damaged.len() - 6;
    damaged[middle] ^= 0x10; // the checksum
    let message = refuse(&damaged);
    assert!(message.contains("the gzip file is damaged here"), "{message}");
}

#[test]
fn long_lines_are_refused_before_they_fill_the_memory() {
    // Two gigabytes of one line, packed by hand into two megabytes.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(TWO.as_bytes()).unwrap();
    for _ in 0..64 {
        encoder.write_all(&vec![b' '; 1 << 20]).unwrap();
    }
    let bytes = encoder.finish().unwrap();
    let message = parse_texts("own.jsonl.gz", &bytes).unwrap_err().to_string();
    assert!(message.contains("line 3: the line has more than 1048576 bytes"), "{message}");
    let long = "x".repeat((1 << 20) - 40);
    let lines =
        format!("{{\"sentence1\": \"{long}\", \"label\": 1}}\n{{\"sentence1\": \"b\", \"label\": 2}}\n");
    assert_eq!(
        parse_texts("own.jsonl", lines.as_bytes()).unwrap().train[0].sentences.first.len(),
        long.len()
    );
}

#[test]
fn queries_need_no_labels() {
    let lines = "\n{\"sentence1\": \"a\", \"sentence2\": \"b\"}\n{\"sentence1\": \"c\", \"sentence2\": \"d\", \"label\": 3}\n";
    let queries = parse_queries("queries.jsonl", lines.as_bytes()).unwrap();
    assert_eq!(queries.sentences, [Sentences::pair("a", "b"), Sentences::pair("c", "d")]);
    assert_eq!((queries.labels, queries.lines), (vec![None, Some("3".to_owned())], vec![2, 3]));
    let error = parse_queries("queries.jsonl", b"{\"sentence2\": \"b\"}").unwrap_err();
    assert!(error.to_string().contains("line 1: `sentence1` is missing"), "{error}");
}

#[test]
fn folders_hold_a_task_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    let error = read_folder(folder.path()).unwrap_err().to_string();
    assert!(error.contains("there is no .jsonl or .jsonl.gz file in this folder"), "{error}");
    write("a.CSV", b"");
    write("README.txt", b"");
    let error = read_folder(folder.path()).unwrap_err().to_string();
    assert!(error.contains("(there is `a.CSV`: convert it)"), "{error}");
    write("b.jsonl", TWO.as_bytes());
    write("a.jsonl.gz", &gzip(TWO.as_bytes()));
    write(".hidden.jsonl", b"");
    write("notes.txt", b"");
    let tasks = open_folder(folder.path(), &small_tokeniser(8)).unwrap();
    let names: Vec<&str> = tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(passed_over(folder.path()), ["a.CSV", "notes.txt"]);
    assert_eq!(tasks[0].train, tasks[1].train);
    assert_eq!(read_folder(&folder.path().join("b.jsonl")).unwrap()[0].name, "b");
    write("C.JSONL", TWO.as_bytes());
    assert_eq!(read_folder(folder.path()).unwrap()[0].name, "C", "no ending is passed over for its case");
    std::fs::create_dir(folder.path().join("d.jsonl")).unwrap();
    let error = read_folder(folder.path()).unwrap_err().to_string();
    assert!(error.contains("d.jsonl") && error.contains("is no file"), "{error}");
    std::fs::remove_dir(folder.path().join("d.jsonl")).unwrap();
    write("a.jsonl", TWO.as_bytes());
    let error = read_folder(folder.path()).unwrap_err().to_string();
    assert!(error.contains("is the same task as"), "{error}");
    let error = read_folder(&folder.path().join("none")).unwrap_err();
    assert!(error.is_input() && error.to_string().contains("none"), "{error}");
}

/// Every reader on the same bytes. They may refuse; what they accept must make sense.
fn parse_everything(bytes: &[u8]) {
    if let Ok(task) = parse_texts("fuzz.jsonl", bytes) {
        assert!(task.classes.len() >= 2 && task.classes.is_sorted());
        assert!(task.train.iter().chain(&task.dev).all(|example| example.label < task.classes.len()));
        let queries = parse_queries("fuzz.jsonl", bytes).unwrap();
        assert_eq!(queries.sentences.len(), task.train.len() + task.dev.len());
        assert_eq!(parse_texts("fuzz.jsonl", task.to_json_lines().as_bytes()).unwrap(), task);
    }
    if let Ok(queries) = parse_queries("fuzz.jsonl", bytes) {
        let pairs = queries.sentences.iter().filter(|sentences| sentences.second.is_some()).count();
        assert!(pairs == 0 || pairs == queries.sentences.len());
    }
}

proptest! {
    #[test]
    fn sentences_survive(
        sentences in prop::collection::vec(("\\PC{0,20}", "\\PC{0,20}"), 2..8),
        pairs in any::<bool>(),
        crlf in any::<bool>(),
    ) {
        let written: Vec<Sentences> = sentences
            .iter()
            .map(|(a, b)| Sentences { first: format!("a{a}"), second: pairs.then(|| format!("b{b}")) })
            .collect();
        let end = if crlf { "\r\n" } else { "\n" };
        let lines: String = written.iter().enumerate().map(|(index, sentences)| {
            let mut object = serde_json::json!({"sentence1": sentences.first, "label": index % 2});
            if let Some(second) = &sentences.second {
                object["sentence2"] = second.as_str().into();
            }
            format!("{object}{end}")
        }).collect();
        let read = parse_texts("t.jsonl", lines.as_bytes()).unwrap();
        let sentences: Vec<Sentences> = read.train.into_iter().map(|example| example.sentences).collect();
        prop_assert_eq!(sentences, written);
        let packed = parse_queries("t.jsonl", &gzip(lines.as_bytes())).unwrap();
        prop_assert_eq!(packed.sentences.len(), packed.lines.len());
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        parse_everything(&bytes);
        parse_everything(&[&[0x1f, 0x8b], &bytes[..]].concat());
    }

    #[test]
    fn near_lines_never_panic(text in "(\\{|\\}|\"sentence1\"|\"sentence2\"|\"label\"|\"split\"|\"train\"|:|,|\n|[0-9\\[\\]\" a.-]){0,60}") {
        parse_everything(text.as_bytes());
    }

    #[test]
    fn changed_bytes_never_panic(place in any::<prop::sample::Index>(), byte in any::<u8>(), packed in any::<bool>()) {
        let mut bytes = if packed { gzip(TWO.as_bytes()) } else { TWO.as_bytes().to_vec() };
        let place = place.index(bytes.len());
        bytes[place] = byte;
        parse_everything(&bytes);
        parse_everything(&bytes[..place]);
    }
}
