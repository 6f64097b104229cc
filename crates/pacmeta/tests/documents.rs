//! Keeps the documents true: the map from the paper to the code names things that exist, links lead somewhere, the
//! README's commands are what the build checks, and the example tables are what the README says they are.
//!
//! Every check is a function that returns the problems it found. The last tests feed them documents with known faults.

#![allow(clippy::unwrap_used, reason = "a failing test may panic")]

use std::fs;
use std::path::{Path, PathBuf};

use pacmeta::environments::table::{TableOptions, read_queries, read_support, read_tasks};

/// What the README's first code block must hold, line by line.
const COMMANDS: [&str; 2] = ["cargo run --release -- reproduce sinusoid", "cargo test --release"];

/// Folders that hold no documents of ours.
const PASSED_OVER: [&str; 8] =
    ["target", ".git", ".venv", "node_modules", "runs", "corpus", "artifacts", "__pycache__"];

/// Beginnings of paths that exist on one machine only.
const MACHINE_PATHS: [&str; 7] = ["/work/", "/tmp/", "/home/", "/root/", "/Users/", "/mnt/", "C:\\"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_path_buf()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All Markdown files below a folder, in a fixed order.
fn markdown_files(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()).collect();
    entries.sort_by_key(|entry| entry.file_name());
    let mut files = Vec::new();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            if !PASSED_OVER.contains(&name.as_str()) {
                files.extend(markdown_files(&path));
            }
        } else if name.ends_with(".md") {
            files.push(path);
        }
    }
    files
}

/// The text outside fenced code blocks.
fn prose(text: &str) -> String {
    let mut inside = false;
    let outside = text.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        !inside && !fence
    });
    outside.flat_map(|line| [line, "\n"]).collect()
}

/// The lines of the first fenced code block.
fn first_code_block(text: &str) -> Vec<&str> {
    let after = text.lines().skip_while(|line| !line.starts_with("```")).skip(1);
    after.take_while(|line| !line.starts_with("```")).collect()
}

/// Targets of links and images that are neither addresses nor places on the same page.
fn relative_links(text: &str) -> Vec<String> {
    let prose = prose(text);
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let files = targets.map(|target| target.split(['#', ' ']).next().unwrap_or_default());
    files.filter(|file| !file.is_empty() && !file.contains(':')).map(str::to_owned).collect()
}

fn broken_links(root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    for file in markdown_files(root) {
        for link in relative_links(&read(&file)) {
            if !file.parent().unwrap().join(&link).exists() {
                problems.push(format!("{}: the link `{link}` leads nowhere", file.display()));
            }
        }
    }
    problems
}

fn machine_paths(root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    for file in markdown_files(root) {
        for (number, line) in read(&file).lines().enumerate() {
            if let Some(found) = MACHINE_PATHS.iter().find(|start| line.contains(**start)) {
                problems.push(format!("{}, line {}: `{found}`", file.display(), number + 1));
            }
        }
    }
    problems
}

fn readme_problems(root: &Path) -> Vec<String> {
    let text = read(&root.join("README.md"));
    let mut problems = Vec::new();
    let block = first_code_block(&text);
    if block != COMMANDS {
        problems.push(format!("the first code block is {block:?}"));
    }
    let mut configs = 0;
    for word in text.split(|c: char| c.is_whitespace() || "`()\"',;:".contains(c)) {
        if word.starts_with("configs/") && word.ends_with(".toml") {
            configs += 1;
            if !root.join(word).is_file() {
                problems.push(format!("{word} does not exist"));
            }
        }
    }
    if configs == 0 {
        problems.push("no configuration is mentioned".to_owned());
    }
    problems
}

/// One row of the map.
#[derive(Debug)]
struct Row {
    statement: String,
    code: String,
    tests: String,
}

/// The rows of all tables that have the columns of the map.
fn map_rows(text: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        match cells[..] {
            ["", "paper", "what", "code", "test", ""] => inside = true,
            ["", statement, _, code, tests, ""] if inside => {
                if !statement.starts_with("---") {
                    let [statement, code, tests] = [statement, code, tests].map(str::to_owned);
                    rows.push(Row { statement, code, tests });
                }
            }
            _ => inside = false,
        }
    }
    rows
}

/// The texts between backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether a line declares the name with one of the keywords.
fn declares(line: &str, keywords: &[&str], name: &str) -> bool {
    let words: Vec<&str> = line.split(|c| !is_word(c)).filter(|word| !word.is_empty()).collect();
    !line.trim_start().starts_with("//")
        && words.windows(2).any(|pair| keywords.contains(&pair[0]) && pair[1] == name)
}

fn has_item(source: &str, name: &str) -> bool {
    // `impl` stands for the type where its methods are spread over files.
    let keywords = ["fn", "struct", "enum", "trait", "const", "type", "impl"];
    source.lines().any(|line| declares(line, &keywords, name))
}

/// Whether the source has a test of this name: a function with the attribute `#[test]` above it.
fn has_test(source: &str, name: &str) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    lines.iter().enumerate().any(|(index, line)| {
        let above =
            lines[..index].iter().rev().take_while(|line| line.starts_with("#[") || line.starts_with("//"));
        declares(line, &["fn"], name) && above.into_iter().any(|line| *line == "#[test]")
    })
}

/// Checks `path::name` or `path::Type::name`.
fn reference_problem(root: &Path, reference: &str, known: fn(&str, &str) -> bool) -> Option<String> {
    let mut parts = reference.split("::");
    let path = parts.next().unwrap_or_default();
    let names: Vec<&str> = parts.collect();
    if names.is_empty() {
        return Some(format!("`{reference}` names no item; expected path::name"));
    }
    let Ok(source) = fs::read_to_string(root.join(path)) else {
        return Some(format!("`{reference}`: there is no file {path}"));
    };
    let missing = names.iter().find(|name| !known(&source, name))?;
    Some(format!("`{reference}`: {path} has no {missing}"))
}

fn map_problems(root: &Path, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for row in map_rows(text) {
        for (cell, known) in [(&row.code, has_item as fn(&str, &str) -> bool), (&row.tests, has_test)] {
            let references = quoted(cell);
            if references.is_empty() && cell != "later" {
                problems.push(format!("{}: expected a reference or `later`, found {cell:?}", row.statement));
            }
            for reference in references {
                let problem = reference_problem(root, reference, known);
                problems.extend(problem.map(|problem| format!("{}: {problem}", row.statement)));
            }
        }
    }
    problems
}

/// The paper's numbered statements: 4 theorems, 1 corollary, 25 equations, 1 algorithm, 8 figures, 7 tables.
fn statements() -> Vec<String> {
    let numbered = |word: &str, last: usize| -> Vec<String> {
        (1..=last).map(|number| format!("{word} {number}")).collect()
    };
    let mut all = vec!["Corollary".to_owned()];
    for (word, last) in [("Theorem", 4), ("Eq.", 25), ("Algorithm", 1), ("Figure", 8), ("Table", 7)] {
        all.extend(numbered(word, last));
    }
    all
}

#[test]
fn the_map_names_every_statement_once() {
    let rows = map_rows(&read(&root().join("docs/paper-map.md")));
    for statement in statements() {
        let count = rows.iter().filter(|row| row.statement == statement).count();
        assert_eq!(count, 1, "rows for {statement}");
    }
}

#[test]
fn the_map_names_items_and_tests_that_exist() {
    let text = read(&root().join("docs/paper-map.md"));
    assert_eq!(map_problems(&root(), &text), Vec::<String>::new());
}

#[test]
fn links_lead_to_files() {
    assert!(markdown_files(&root()).len() > 10, "documents are found at all");
    assert_eq!(broken_links(&root()), Vec::<String>::new());
}

#[test]
fn documents_name_no_place_on_somebodys_machine() {
    assert_eq!(machine_paths(&root()), Vec::<String>::new());
}

#[test]
fn the_readme_starts_with_the_two_commands_and_names_configurations_that_exist() {
    assert_eq!(readme_problems(&root()), Vec::<String>::new());
}

#[test]
fn every_configuration_is_explained_in_the_readme() {
    let text = read(&root().join("README.md"));
    for entry in fs::read_dir(root().join("configs")).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        assert!(text.contains(&format!("configs/{name}")), "configs/{name}");
    }
}

#[test]
fn the_example_tables_are_as_described() {
    let examples = root().join("examples");
    let table = read_tasks(examples.join("tasks.csv"), &TableOptions::default()).unwrap();
    assert_eq!(table.feature_names, ["flow", "pressure"]);
    assert_eq!(table.tasks.len(), 24);
    let sizes = || table.tasks.iter().map(|task| task.len());
    assert_eq!((sizes().min(), sizes().max()), (Some(6), Some(15)));
    let support = read_support(examples.join("support.csv"), &table.feature_names, "y").unwrap();
    assert_eq!(support.len(), 5);
    let queries = read_queries(examples.join("query.csv"), &table.feature_names).unwrap();
    assert_eq!(queries.len(), 10);
    assert_eq!(queries.columns(), ["setting", "flow", "pressure"]);
}

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

const SOURCE: &str =
    "pub struct Real;\n// fn imagined() is only spoken of\n#[test]\nfn checked() {}\nfn helper() {}\n";

#[test]
fn faults_in_the_map_are_found() {
    let folder = folder(&[("src/a.rs", SOURCE)]);
    let problems = |code: &str, test: &str| {
        let text =
            format!("| paper | what | code | test |\n|---|---|---|---|\n| Eq. 1 | x | {code} | {test} |\n");
        assert_eq!(map_rows(&text).len(), 1);
        map_problems(folder.path(), &text)
    };
    assert!(problems("`src/a.rs::Real`", "`src/a.rs::checked`").is_empty());
    assert!(problems("later", "later").is_empty());
    for (code, test, part) in [
        ("`src/b.rs::Real`", "`src/a.rs::checked`", "no file src/b.rs"),
        ("`src/a.rs::Rea`", "`src/a.rs::checked`", "has no Rea"),
        ("`src/a.rs::imagined`", "`src/a.rs::checked`", "has no imagined"),
        ("`src/a.rs::Real::absent`", "`src/a.rs::checked`", "has no absent"),
        ("`src/a.rs::Real`", "`src/a.rs::helper`", "has no helper"),
        ("`src/a.rs`", "`src/a.rs::checked`", "names no item"),
        ("", "`src/a.rs::checked`", "expected a reference or `later`"),
        ("`src/a.rs::Real`", "soon", "expected a reference or `later`"),
    ] {
        let found = problems(code, test);
        assert!(found.len() == 1 && found[0].contains(part), "{code} {test}: {found:?}");
    }
}

#[test]
fn faults_in_documents_are_found() {
    let readme = format!("# x\n```sh\n{}\n```\nconfigs/gone.toml [a](b.md#c) [d](docs/e.md)\n", COMMANDS[0]);
    let folder = folder(&[
        ("README.md", &readme),
        ("docs/e.md", "[up](../README.md) [web](https://example.org) ![p](p.svg)\n```\n[code](no.md)\n```\n"),
        ("docs/f.md", "see /home/somebody/notes\n"),
        ("target/g.md", "[passed over](nowhere.md)\n"),
        ("configs/sinusoid.toml", ""),
        ("configs/sinusoid-pacoh.toml", ""),
    ]);
    let links = broken_links(folder.path());
    assert_eq!(links.len(), 2, "{links:?}");
    assert!(links[0].contains("`b.md`") && links[1].contains("`p.svg`"), "{links:?}");
    let paths = machine_paths(folder.path());
    assert!(paths.len() == 1 && paths[0].contains("f.md, line 1"), "{paths:?}");
    let problems = readme_problems(folder.path());
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(
        problems[0].contains("first code block") && problems[1].contains("configs/gone.toml"),
        "{problems:?}"
    );
}
