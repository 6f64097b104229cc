//! A grid over one's own table: recorded, continued, reported, refused.

use std::fmt::Write as _;

use serde_json::Value;

use crate::helper::Place;

fn place(iterations: usize) -> Place {
    let place = Place::new();
    let mut table = "task,x,y\n".to_owned();
    for task in 0..10 {
        for example in 0..7 {
            let x = f64::from(example) * 0.25 - 0.7;
            writeln!(table, "t{task},{x},{}", (f64::from(task) * 0.9).cos() * x + f64::from(task) * 0.05)
                .unwrap();
        }
    }
    place.write("tasks.csv", table);
    place.write(
        "grid.toml",
        format!(
            "[data]\npath = \"tasks.csv\"\nsupport = 3\nheld_out = 4\n[prior]\nhidden = [4]\n[method]\nalpha_over_beta = 0.3\n\
             [training]\niterations = {iterations}\nbatch = 2\n[sweep]\nfolds = 2\n[sweep.grid]\n\
             \"method.name\" = [\"pacoh\", \"pacmaml\"]\n\"method.beta_per_example\" = [10, 30]\n"
        ),
    );
    place
}

/// Whole lines in the record, after its header.
fn recorded(place: &Place) -> usize {
    std::fs::read_to_string(place.path("out/records.jsonl"))
        .map_or(0, |text| text.matches('\n').count().max(1) - 1)
}

#[test]
fn a_grid_is_trained_once_reported_and_grown() {
    let place = place(20);
    let ran = place.run(&["sweep", "grid.toml", "--out", "out"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("4 settings x 1 seed, 6 tasks to learn from, 4 to be scored"),
        "{}",
        ran.stderr
    );
    for word in ["Chosen: method.name=", "plain GP, support only", "prior mean", "pacmeta train", "report"] {
        assert!(ran.stdout.contains(word), "{word}: {}", ran.stdout);
    }
    assert_eq!(recorded(&place), 5, "four models and the plain GP");
    for file in ["settings.csv", "tasks.csv", "conclusions.json", "study.json", "chosen.toml"] {
        assert!(place.path(&format!("out/{file}")).exists(), "{file}");
    }
    let page = place.read("out/report.html");
    let again = place.run(&["sweep", "grid.toml", "--out", "out"]);
    assert!(again.stderr.contains("all 5 pieces are recorded"), "{}", again.stderr);
    assert_eq!(again.stdout, ran.stdout);
    assert_eq!((recorded(&place), place.read("out/report.html") == page), (5, true));
    // From the folder alone.
    std::fs::remove_file(place.path("out/report.html")).unwrap();
    std::fs::rename(place.path("tasks.csv"), place.path("elsewhere.csv")).unwrap();
    place.ok(&["report", "out"]);
    assert!(place.read("out/report.html") == page, "the page differs");
    std::fs::rename(place.path("elsewhere.csv"), place.path("tasks.csv")).unwrap();

    let value = place.json(&["sweep", "grid.toml", "--out", "out", "-q", "--json", "--set", "sweep.seeds=2"]);
    assert_eq!(recorded(&place), 9, "one more seed of four settings");
    assert_eq!((value["recorded"].as_u64(), value["points"].as_u64()), (Some(9), Some(4)));
    let chosen = value["chosen"]["setting"].as_u64().unwrap() as usize;
    assert_eq!(value["settings"][chosen]["difference"]["mean"].as_f64(), Some(0.0));
    assert_eq!(value["chosen"]["tasks"].as_array().map(Vec::len), Some(4));
    assert_eq!(place.json(&["report", "out", "--json"]), value);
    // The chosen setting can be trained, on the same split.
    let trained = place.json(&["train", "out/chosen.toml", "--out", "chosen", "--json", "-q"]);
    let names = |tasks: &Value| -> Vec<String> {
        tasks.as_array().unwrap().iter().map(|task| task["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&trained["scores"]["per_task"]), names(&value["chosen"]["tasks"]));
    // Changed data are other models.
    let table = place.text("tasks.csv");
    assert!(table.contains("t8,-0.7,"));
    place.write("tasks.csv", table.replace("t8,-0.7,", "t8,-0.75,"));
    place.ok(&["sweep", "grid.toml", "--out", "out", "-q"]);
    assert_eq!(recorded(&place), 14);
}

#[test]
fn grids_that_mean_nothing_are_refused_before_anything_is_trained() {
    let place = place(5);
    let text = place.text("grid.toml");
    let refused = |from: &str, to: &str, words: &[&str]| {
        place.write("bad.toml", text.replace(from, to));
        place.refused(&["sweep", "bad.toml", "--out", "bad"], words);
        assert!(!place.path("bad").exists());
    };
    refused(
        "method.beta_per_example\" =",
        "method.beta_per_exampel\" =",
        &["did you mean `beta_per_example`"],
    );
    refused("[10, 30]", "[10, -30]", &["method.beta_per_example", "-30"]);
    refused("\"pacoh\", ", "\"pacho\", ", &["method.name", "did you mean `pacoh`"]);
    refused("[sweep.grid]", "[sweep.gird]", &["sweep.gird", "did you mean `grid`"]);
    refused("held_out = 4", "held_out = 0", &["data.held_out", "at least 2"]);
    refused("folds = 2", "folds = 9", &["sweep.folds", "only 4 tasks"]);
    place.write("none.toml", "seed = 1\n");
    place.refused(&["sweep", "none.toml"], &["none.toml", "[sweep.grid]", "method.beta_per_example"]);
    place.refused(&["sweep", "grid.toml", "--set", "method.name=pacoh"], &["method.name", "override"]);
    // Other commands have no use for the section.
    place.ok(&["train", "grid.toml", "--out", "run", "-q", "--set", "method.beta=20"]);
}

#[test]
fn grids_over_pictures_and_texts_are_refused_with_what_to_do_instead() {
    let place = place(5);
    for environment in ["images", "text"] {
        let grid = "[sweep.grid]\n\"method.name\" = [\"pacoh\", \"pacmaml\"]\n";
        let text =
            format!("[data]\nenvironment = \"{environment}\"\npath = \"p\"\n[prior]\nhead = 3\n{grid}");
        place.write("classes.toml", text);
        for command in
            [&["sweep", "classes.toml"][..], &["sweep", "plan", "classes.toml", "-o", "plan.jsonl"]]
        {
            let words = ["data.environment", "a sweep is for regression", "pacmeta train CONFIG.toml --set"];
            place.refused(command, &words);
        }
    }
    assert!(!place.path("plan.jsonl").exists());
}

#[test]
fn settings_that_all_fail_end_with_1_and_a_report() {
    let place = place(5);
    let ran = place.run(&["sweep", "grid.toml", "--out", "out", "-q", "--set", "training.rate=1e300"]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("no setting can be chosen"), "{}", ran.stderr);
    assert!(place.text("out/report.html").contains("4 failed models"));
    assert_eq!(recorded(&place), 5, "failures are recorded too");
    place.run(&["sweep", "grid.toml", "--out", "out", "-q", "--set", "training.rate=1e300"]);
    assert_eq!(recorded(&place), 5, "and not tried again");
}

#[cfg(unix)]
#[test]
fn killed_in_the_middle_and_continued_with_nothing_lost() {
    use std::process::Stdio;
    use std::thread::sleep;
    use std::time::Duration;

    let place = place(4000);
    let arguments = ["sweep", "grid.toml", "--out", "out", "-q", "--set", "sweep.seeds=4", "--threads", "1"];
    let mut kills = 0;
    for round in 0..40 {
        let mut child =
            place.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let before = recorded(&place);
        // Struck a little after another model is recorded.
        while recorded(&place) == before && child.try_wait().unwrap().is_none() {
            sleep(Duration::from_millis(1));
        }
        sleep(Duration::from_millis(round % 7));
        child.kill().unwrap(); // SIGKILL
        kills += usize::from(child.wait().unwrap().code().is_none());
        if place.path("out/report.html").exists() || kills >= 4 {
            break;
        }
        assert!(recorded(&place) > before, "what was recorded stays");
    }
    assert!(kills > 0, "no sweep was caught in the middle");
    let value = place.json(&[&arguments[..], &["--json"]].concat());
    assert_eq!((value["recorded"].as_u64(), value["pieces"].as_u64()), (Some(17), Some(17)));
    assert_eq!(recorded(&place), 17, "no model twice");
    // The same conclusions as without any kill.
    let mut undisturbed = arguments;
    undisturbed[3] = "undisturbed";
    let other = place.json(&[&undisturbed[..], &["--json"]].concat());
    assert_eq!((&value["settings"], &value["chosen"]), (&other["settings"], &other["chosen"]));
}
