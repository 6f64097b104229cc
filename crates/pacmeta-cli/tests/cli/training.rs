//! Somebody trains, looks at the results, compares.

use crate::helper::{Place, Ran, SMALL};

#[test]
fn a_run_leaves_its_files_and_prints_scores_beside_the_floors() {
    let place = Place::with_small();
    let ran = place.run(&["train", "small.toml"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for file in ["config.toml", "metrics.jsonl", "prior.safetensors", "report.html", "temperatures.json"] {
        assert!(place.path("runs/small").join(file).exists(), "{file}");
    }
    for words in
        ["pacmaml", "plain GP", "prior mean", "±", "eta-learning", "beta = 240, alpha = 72", "report.html"]
    {
        assert!(ran.stdout.contains(words), "no `{words}` in: {}", ran.stdout);
    }
    assert!(!ran.stdout.contains('\u{1b}'), "no colours in a pipe");
    assert!(ran.stderr.contains("training, 60 iterations"), "{}", ran.stderr);
    let metrics = place.text("runs/small/metrics.jsonl");
    assert_eq!(metrics.lines().count(), 6);
    // TensorBoard's file has every number of every line under the same name.
    let mut names =
        std::fs::read_dir(place.path("runs/small")).unwrap().map(|entry| entry.unwrap().file_name());
    let events = names.find(|name| name.to_string_lossy().starts_with("events.out.tfevents.")).unwrap();
    let events = place.read(&format!("runs/small/{}", events.to_string_lossy()));
    let line: serde_json::Value = serde_json::from_str(metrics.lines().next().unwrap()).unwrap();
    let tags: Vec<&String> = line.as_object().unwrap().keys().filter(|key| *key != "iteration").collect();
    assert_eq!(tags.len(), 5, "{metrics}");
    for tag in tags {
        // Field 1 of a value: the tag with its length.
        let field = [&[0x0a, tag.len() as u8][..], tag.as_bytes()].concat();
        assert_eq!(events.windows(field.len()).filter(|window| *window == field).count(), 6, "{tag}");
    }
    let report = place.text("runs/small/report.html");
    assert!(report.contains("pacmeta train small.toml"), "the report shows the command");

    let again = place.run(&["train", "small.toml"]);
    assert!(again.stdout.contains("is finished (60 iterations)"), "{}", again.stdout);
    let table = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(table(&again.stdout), table(&ran.stdout));
}

#[test]
fn json_has_the_promised_keys() {
    let place = Place::with_small();
    let value = place.json(&["train", "small.toml", "--json", "--quiet", "--out", "here"]);
    assert_eq!(value["iterations"], 60);
    assert_eq!(value["iterations_now"], 60);
    assert_eq!(value["method"]["name"], "pacmaml");
    assert_eq!(value["method"]["beta"], 240.0);
    assert_eq!(value["scores"]["per_task"].as_array().unwrap().len(), 4);
    assert!(value["scores"]["rmse"].as_f64().unwrap() > 0.0);
    assert!(value["floors"]["plain_gp"]["rmse"].as_f64().unwrap() > 0.0);
    assert!(value["floors"]["prior_mean"]["rmse"].as_f64().unwrap() > 0.0);
    assert!(["yes", "no", "unclear"].contains(&value["meta_learning_helped"].as_str().unwrap()));
    assert_eq!(value["objective"]["objective"], "pacmaml");
    assert!(place.path(value["report"].as_str().unwrap()).exists());
}

#[test]
fn quiet_is_quiet() {
    let place = Place::with_small();
    assert_eq!(place.run(&["train", "small.toml", "-q"]).stderr, "");
}

#[test]
fn overrides_change_the_run_and_more_iterations_extend_it() {
    let place = Place::with_small();
    let arguments =
        ["train", "small.toml", "--seed", "7", "--set", "method.beta=100", "--set", "training.rate=0.01"];
    place.ok(&arguments);
    let config = place.text("runs/small/config.toml");
    for line in ["seed = 7", "beta = 100.0", "rate = 0.01"] {
        assert!(config.contains(line), "{config}");
    }
    assert!(!config.contains("beta_per_example"));
    let longer = [&arguments[..], &["--set", "training.iterations=80", "--json"]].concat();
    assert_eq!(place.json(&longer)["iterations_now"], 20);
}

#[test]
fn threads_do_not_change_a_bit() {
    let place = Place::with_small();
    let search = ["--set", "method.beta=auto", "--set", "method.alpha=auto", "--set", "search.iterations=10"];
    for threads in ["1", "2"] {
        let out = format!("with-{threads}");
        place.ok(&[&["train", "small.toml", "--threads", threads, "--out", &out], &search[..]].concat());
    }
    for file in ["prior.safetensors", "metrics.jsonl", "temperatures.json"] {
        assert_eq!(place.read(&format!("with-1/{file}")), place.read(&format!("with-2/{file}")), "{file}");
    }
}

#[test]
fn runs_of_a_comparison_go_side_by_side_to_the_same_bits() {
    let place = Place::with_small();
    place.write("second.toml", SMALL.replace("alpha_over_beta = 0.3", "alpha_over_beta = 0.6"));
    place.write(
        "third.toml",
        SMALL.replace("beta_per_example = 30\nalpha_over_beta = 0.3", "name = \"maml\""),
    );
    let recipe = SMALL.replace("beta_per_example = 30\nalpha_over_beta = 0.3", "name = \"pacoh-map\"");
    let recipe =
        recipe.replace("[training]", "[prior]\nkernel = \"learned\"\n[training]\noptimiser = \"adamw\"");
    place.write("fourth.toml", recipe);
    for threads in ["1", "2"] {
        let out = format!("with-{threads}");
        let configs = ["compare", "small.toml", "second.toml", "third.toml", "fourth.toml"];
        place.ok(&[&configs[..], &["--threads", threads, "--out", &out]].concat());
    }
    let config = place.text("with-1/fourth/config.toml");
    for line in
        ["name = \"pacoh-map\"", "kernel = \"learned\"", "optimiser = \"adamw\"", "weight_decay = 0.2"]
    {
        assert!(config.contains(line), "{config}");
    }
    let prior = place.text_lossy("with-1/fourth/prior.safetensors");
    assert!(
        prior.contains("likelihood.raw_noise") && prior.contains("learned_noise"),
        "it adapts with its own noise"
    );
    for run in ["small", "second", "third", "fourth"] {
        for file in ["prior.safetensors", "metrics.jsonl", "temperatures.json"] {
            let name = |threads: u8| format!("with-{threads}/{run}/{file}");
            assert_eq!(place.read(&name(1)), place.read(&name(2)), "{run} {file}");
        }
    }
    // Everything that is shown, bounds by Monte Carlo included.
    let page = |threads: u8| {
        let text = place.text(&format!("with-{threads}/report.html"));
        text.replace(&format!("--threads {threads} --out with-{threads}"), "")
    };
    assert_eq!(page(1), page(2));
}

#[test]
fn a_search_in_which_everything_diverges_asks_for_other_settings() {
    let place = Place::with_small();
    let search =
        ["--set", "method.beta=auto", "--set", "search.iterations=5", "--set", "training.rate=1e300"];
    let ran = place.run(&[&["train", "small.toml"], &search[..]].concat());
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("every candidate for the temperatures failed"), "{}", ran.stderr);
}

#[test]
fn chosen_temperatures_are_explained() {
    let place = Place::with_small();
    let search = [
        "--set",
        "method.beta=auto",
        "--set",
        "search.iterations=5",
        "--set",
        "search.beta_per_example=[10, 30]",
    ];
    let ran = place.run(&[&["train", "small.toml"], &search[..]].concat());
    assert!(ran.stderr.contains("choosing temperatures: 2 candidates"), "{}", ran.stderr);
    assert!(ran.stdout.contains("chose beta = "), "{}", ran.stdout);
    assert!(ran.stdout.contains("of 2 candidates"), "{}", ran.stdout);
}

#[test]
fn a_table_with_small_tasks_and_a_constant_column() {
    let place = Place::new();
    let mut text = "machine,load,fixed,wear\n".to_owned();
    for machine in 0..6 {
        for step in 0..(6 + machine) {
            let x = f64::from(step) * 0.7 - f64::from(machine) * 0.1;
            text.push_str(&format!("m{machine},{x},1.5,{}\n", x.sin() + 0.1 * f64::from(machine)));
        }
    }
    text.push_str("tiny,1,1.5,2\n");
    place.write("data.csv", text);
    place.write(
        "table.toml",
        "[data]\npath = \"data.csv\"\ntask = \"machine\"\ntarget = \"wear\"\nmin_examples = 5\nheld_out = 2\nsupport = 3\n\
         [method]\nbeta = 100\nalpha = 50\n[training]\niterations = 20\n",
    );
    let ran = place.run(&["train", "table.toml"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("warning: 1 task left out"), "{}", ran.stderr);
    assert!(ran.stderr.contains("tiny"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("constant in all observed tasks") && ran.stderr.contains("fixed"),
        "{}",
        ran.stderr
    );
    assert!(ran.stdout.contains("scored on 2 further tasks"), "{}", ran.stdout);

    // The same columns serve for evaluation and adaptation.
    place.write("new.csv", "machine,load,fixed,wear,adapt\na,1,1.5,0.8,1\na,2,1.5,0.9,0\n");
    let scores = place.json(&["evaluate", "runs/table", "--tasks", "new.csv", "--json"]);
    assert_eq!(scores["per_task"][0]["name"], "a");
    place.write("support.csv", "wear,fixed,load\n0.8,1.5,1\n");
    let out = place.ok(&["adapt", "runs/table", "--support", "support.csv", "--query", "support.csv"]);
    assert!(out.starts_with("wear,fixed,load,mean,std,lower95,upper95\n"), "{out}");
    place.refused(
        &["evaluate", "runs/table", "--tasks", "new.csv", "--task-column", "shop"],
        &["new.csv", "shop"],
    );
}

#[test]
fn compare_shows_all_methods_the_floors_and_the_objective() {
    let place = Place::with_small();
    let data = &SMALL[..SMALL.find("[method]").unwrap()];
    let training = &SMALL[SMALL.find("[training]").unwrap()..];
    place.write("pacoh.toml", format!("{data}[method]\nname = \"pacoh\"\nbeta_per_example = 30\n{training}"));
    place.write("maml.toml", format!("{data}[method]\nname = \"maml\"\n{training}"));
    let configs = ["small.toml", "pacoh.toml", "maml.toml"];
    let text = place.ok(&[&["compare"], &configs[..]].concat());
    for words in [
        "pacmaml",
        "pacoh",
        "maml",
        "plain GP, support only",
        "prior mean of maml",
        "pacmaml (W_2)",
        "pacoh (W_1)",
        "empirical risk",
        "xi log(2/delta)",
        "not a bound",
        "runs/compare/report.html",
    ] {
        assert!(text.contains(words), "no `{words}` in: {text}");
    }
    assert_eq!(text.matches("plain GP, support only").count(), 1);
    assert!(place.path("runs/compare/report.html").exists());
    assert!(place.path("runs/compare/pacoh/report.html").exists());
    let value = place.json(&[&["compare", "--json"], &configs[..]].concat());
    assert_eq!(value["runs"].as_array().unwrap().len(), 3);
    assert_eq!(value["runs"][1]["objective"]["objective"], "pacoh");
    assert!(value["runs"][2]["objective"].is_null());
    assert_eq!(value["plain_gp"]["tasks"], 4);

    place.refused(&["compare", "small.toml", "pacoh.toml", "--out", "o", "--set", "seed=x"], &["seed"]);
    place.write("other.toml", SMALL.replace("examples = 8", "examples = 9"));
    place.refused(
        &["compare", "small.toml", "other.toml"],
        &["other.toml", "`data.examples` is 8 there and 9 here"],
    );
    place.write("sub/small.toml", SMALL);
    place.refused(&["compare", "small.toml", "sub/small.toml"], &["called `small`"]);
}

#[test]
fn a_report_is_rebuilt_from_the_files() {
    let place = Place::with_small();
    place.ok(&["train", "small.toml"]);
    let written = place.read("runs/small/report.html");
    std::fs::remove_file(place.path("runs/small/report.html")).unwrap();
    assert_eq!(place.ok(&["report", "runs/small"]), "runs/small/report.html\n");
    assert_eq!(place.read("runs/small/report.html"), written);
    place.refused(&["report", "runs"], &["expected the folder of a run"]);
}

#[test]
fn a_run_continues_on_its_own_data_only_and_a_failed_start_leaves_the_folder_free() {
    let place = Place::new();
    let table = |shift: f64| {
        let mut text = "task,x,y\n".to_owned();
        for task in 0..4 {
            for example in 0..8 {
                let x = f64::from(example) / 2.0;
                text.push_str(&format!("t{task},{x},{}\n", (x + f64::from(task)).sin() + shift));
            }
        }
        text
    };
    place.write("tasks.csv", table(0.0));
    place.write(
        "own.toml",
        "[data]\npath = \"tasks.csv\"\nsupport = 3\n[method]\nbeta_per_example = 30\nalpha_over_beta = 0.5\n\
         [training]\niterations = 20\n",
    );
    let train =
        |extra: &[&'static str]| [&["train", "own.toml", "--out", "run", "--quiet"][..], extra].concat();
    // Diverges before the first checkpoint; other settings may then use the folder.
    let diverged = place.run(&train(&["--set", "training.rate=1e300"]));
    assert_eq!(diverged.code, Some(2), "{}", diverged.stderr);
    place.ok(&train(&[]));
    let prior = place.read("run/prior.safetensors");
    place.write("tasks.csv", table(1.0));
    place.refused(&train(&["--set", "training.iterations=40"]), &["run", "other data", "--out"]);
    place.refused(&train(&[]), &["other data"]);
    assert_eq!(place.read("run/prior.safetensors"), prior);
}

/// The sum of a bound's terms.
fn sum(bound: &serde_json::Value) -> f64 {
    bound["terms"].as_object().unwrap().values().map(|term| term["value"].as_f64().unwrap()).sum()
}

#[test]
fn a_run_states_the_bound_of_its_theorem_with_every_term() {
    let place = Place::with_small();
    let data = &SMALL[..SMALL.find("[method]").unwrap()];
    let training = &SMALL[SMALL.find("[training]").unwrap()..];
    let pacoh = format!("{data}[method]\nname = \"pacoh\"\nbeta_per_example = 30\n{training}");
    place.write("pacoh.toml", &pacoh);
    place.write("maml.toml", format!("{data}[method]\nname = \"maml\"\n{training}"));
    let assume = ["--set", "bound.assumption=non-negative", "--set", "bound.second_moment=20"];
    let configs = ["compare", "small.toml", "pacoh.toml", "maml.toml"];
    let text = place.ok(&[&configs[..], &assume].concat());
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "term by term",
        "cumulants of examples, Psi1",
        "cumulants of tasks, Psi2",
        "gap between the environments",
        "pacmaml: Theorem 4 (subsampling)",
        "pacoh: Corollary of Theorem 3",
        "Vacuous: predicting the mean",
        "second moment is at most 20",
    ] {
        assert!(text.contains(words), "no `{words}` in: {text}");
    }
    let report = place.text("runs/compare/report.html");
    assert!(report.contains("The bound, term by term") && report.contains("cumulants of tasks, Psi2"));
    let value = place.json(&[&configs[..], &assume, &["--json"]].concat());
    let bound = |index: usize| &value["runs"][index]["bound"];
    for index in [0, 1] {
        let total = bound(index)["total"]["value"].as_f64().unwrap();
        assert!((sum(bound(index)) - total).abs() < 1e-9 * total);
        assert_eq!(bound(index)["vacuous"], true);
        // (beta/m) s^2/2 and (lambda/n) s^2/2 for the stated second moment.
        assert!((bound(index)["terms"]["psi1"]["value"].as_f64().unwrap() - 30.0 * 10.0).abs() < 1e-9);
        assert!((bound(index)["terms"]["psi2"]["value"].as_f64().unwrap() - 10.0).abs() < 1e-9);
    }
    assert_eq!(bound(0)["terms"]["gap"]["value"], 0.0);
    assert!(bound(1)["terms"]["gap"]["standard_error"].as_f64().unwrap() > 0.0);
    assert!(bound(2).is_null(), "no theorem is about maml");

    // Observed tasks as large as target tasks: Theorem 2, without a gap.
    let same = ["train", "pacoh.toml", "--out", "same", "--set", "data.support=8", "--json"];
    let same = place.json(&[&same[..], &assume].concat());
    assert_eq!(same["bound"]["theorem"], "Theorem 2 (one environment)");
    assert_eq!(same["bound"]["terms"]["gap"]["value"], 0.0);
    // Without an assumption tasks that are drawn are simulated.
    let simulated = place.json(&["train", "small.toml", "--json"]);
    assert_eq!(simulated["bound"]["certainty"], "estimated");
    assert!(simulated["bound"]["terms"]["psi1"]["standard_error"].as_f64().unwrap() > 0.0);
    assert!(simulated["bound"]["assumed"].to_string().contains("no guarantee"));
}

#[test]
fn a_bound_that_cannot_be_stated_says_why_and_the_run_goes_on() {
    let place = Place::with_small();
    let none = place.ok(&["train", "small.toml", "--set", "bound.assumption=none"]);
    assert!(none.contains("no bound is stated: nothing is assumed"), "{none}");
    let mut table = "task,x,y\n".to_owned();
    for row in 0..40 {
        table.push_str(&format!("t{},{},{}\n", row % 5, f64::from(row) / 7.0, f64::from(row).sin()));
    }
    place.write("tasks.csv", table);
    place.write(
        "own.toml",
        "[data]\npath = \"tasks.csv\"\nsupport = 3\n[method]\nname = \"pacoh\"\nbeta_per_example = 30\n\
         [training]\niterations = 20\n[bound]\nassumption = \"non-negative\"\nsecond_moment = 20\n",
    );
    let value = place.json(&["train", "own.toml", "--json"]);
    let refused = value["bound"]["refused"].as_str().unwrap();
    assert!(refused.contains("target tasks have 3 examples") && refused.contains("--gap"), "{refused}");
    assert!(place.text("runs/own/report.html").contains("no bound is stated"));
    // A sub-gamma loss beyond its range is refused by the theorem.
    let beyond = ["bound.assumption=sub-gamma", "bound.variance=1", "bound.scale=1"];
    let sets: Vec<&str> = beyond.iter().flat_map(|set| ["--set", set]).collect();
    let text = place.ok(&[&["train", "small.toml", "--out", "beyond"][..], &sets].concat());
    assert!(text.contains("no bound is stated: a sub-gamma loss"), "{text}");
    assert_eq!(text.matches("= bound").count(), 0, "{text}");
}

#[test]
fn the_report_of_a_table_can_be_rebuilt_from_any_folder() {
    let place = Place::new();
    let mut table = "task,x,y\n".to_owned();
    for row in 0..40 {
        table.push_str(&format!("t{},{},{}\n", row % 5, f64::from(row) / 7.0, f64::from(row).sin()));
    }
    place.write("data/tasks.csv", table);
    place.write(
        "own.toml",
        "[data]\npath = \"data/tasks.csv\"\nsupport = 3\n[method]\nbeta_per_example = 30\nalpha_over_beta = 0.5\n\
         [training]\niterations = 20\n",
    );
    let text = place.ok(&["train", "own.toml", "--out", "run"]);
    assert!(text.contains("4 observed tasks of 8 examples from tasks.csv"), "{text}");
    let written = place.read("run/report.html");
    std::fs::remove_file(place.path("run/report.html")).unwrap();
    std::fs::create_dir(place.path("elsewhere")).unwrap();
    let mut command = place.command(&["report", "../run"]);
    let output = command.current_dir(place.path("elsewhere")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(place.read("run/report.html"), written);
    // The same command, or the same path written otherwise, is the same run.
    let again = place.path("data/tasks.csv");
    let again = format!("data.path={}", again.display());
    let again = place.json(&["train", "own.toml", "--out", "run", "--set", &again, "--json"]);
    assert_eq!(again["iterations_now"], 0);
}

#[test]
fn a_single_observed_task_is_singular_and_few_scored_tasks_tell_nothing() {
    let place = Place::with_small();
    let text = place.ok(&["train", "small.toml", "--set", "data.tasks=1"]);
    assert!(text.contains("1 observed task of 8 examples"), "{text}");
    assert!(text.contains("too few tasks to tell"), "{text}");
    let report = place.text("runs/small/report.html");
    assert!(report.contains("95% coverage"), "the report has the column of the printed table");
}

/// The system's own count of the most memory that the process held, read until the process is gone.
#[cfg(target_os = "linux")]
#[test]
fn a_run_on_the_largest_tasks_of_the_study_stays_below_100_mb() {
    for config in ["sinusoid.toml", "sinusoid-maml.toml"] {
        let place = Place::new();
        let config = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs").join(config);
        let mut child = place
            .command(&["train", config.to_str().unwrap(), "--quiet"])
            .args(["--set", "data.examples=100", "--set", "training.iterations=400"])
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let status = format!("/proc/{}/status", child.id());
        let mut peak = 0;
        let ended = loop {
            let text = std::fs::read_to_string(&status).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
            peak = line.map_or(peak, |kilobytes| kilobytes.parse::<u64>().unwrap());
            if let Some(ended) = child.try_wait().unwrap() {
                break ended;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        };
        assert!(ended.success(), "{config:?}");
        assert!((1_000..100_000).contains(&peak), "{config:?} held {peak} kB");
    }
}

#[test]
fn tasks_come_from_json_and_from_every_environment() {
    let place = Place::with_small();
    for (environment, features) in [("cauchy", 2), ("gp-draws", 1)] {
        let set = format!("data.environment={environment}");
        let value = place.json(&["train", "small.toml", "--set", &set, "--out", environment, "--json", "-q"]);
        assert_eq!(value["scores"]["tasks"], 4, "{value}");
        assert!(value["scores"]["rmse"].as_f64().unwrap() > 0.0, "{value}");
        let prior = place.text_lossy(&format!("{environment}/prior.safetensors"));
        let names = if features == 1 { r#"\"features\":[\"x\"]"# } else { r#"\"features\":[\"x0\",\"x1\"]"# };
        assert!(prior.contains(names), "{environment}: {}", prior.chars().take(2000).collect::<String>());
    }
    let task = |task: u32| {
        let x: Vec<f64> = (0..8).map(|example| f64::from(example) / 2.0).collect();
        let y: Vec<f64> = x.iter().map(|x| (x + f64::from(task)).sin()).collect();
        serde_json::json!({"name": format!("t{task}"), "x": x, "y": y})
    };
    let tasks: Vec<_> = (0..5).map(task).collect();
    place.write("tasks.json", serde_json::json!({"features": ["time"], "tasks": tasks}).to_string());
    place.write(
        "own.toml",
        "[data]\npath = \"tasks.json\"\nheld_out = 2\nsupport = 3\n[method]\nbeta_per_example = 30\nalpha_over_beta = 0.5\n\
         [training]\niterations = 20\n",
    );
    let text = place.ok(&["train", "own.toml"]);
    assert!(text.contains("3 observed tasks of 8 examples from tasks.json"), "{text}");
    let new = r#"{"features": ["time"], "tasks": [{"x": [1, 2, 3], "y": [0.8, 0.9, 0.1], "adapt": [0, 1]}]}"#;
    place.write("new.json", new);
    let scores = place.json(&["evaluate", "runs/own", "--tasks", "new.json", "--json"]);
    assert_eq!(scores["per_task"][0]["query"], 1);
}

/// A limit on file sizes fails like a full disk: the first training state is larger than all that is written before it.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_fails_the_run_and_the_same_command_goes_on_later() {
    let place = Place::with_small();
    let ran = Ran::from(place.with_full_disk(16, &["train", "small.toml", "-q"]).output().unwrap());
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    for words in ["cannot write", "iteration-00000020.safetensors", "`ulimit -f`"] {
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
    assert!(!place.path("runs/small/prior.safetensors").exists());
    for folder in ["runs/small", "runs/small/checkpoints"] {
        for entry in std::fs::read_dir(place.path(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(!name.ends_with(".tmp") && !name.starts_with("iteration-"), "{folder}/{name} is left");
        }
    }
    place.ok(&["train", "small.toml"]);
    place.ok(&["train", "small.toml", "--out", "whole"]);
    for file in ["prior.safetensors", "metrics.jsonl"] {
        assert_eq!(place.read(&format!("runs/small/{file}")), place.read(&format!("whole/{file}")), "{file}");
    }
}

#[test]
fn subsets_that_a_table_marks_are_those_of_training_unless_somebody_wants_others() {
    let place = Place::new();
    let table = |marked: [usize; 2]| {
        let rows = (0..16).map(|row| {
            let adapt = u8::from(marked.contains(&(row / 4)));
            format!("t{},{},{},{adapt}\n", row % 4, row as f64 / 3.0, (row * row) % 7)
        });
        format!("task,x,y,adapt\n{}", rows.collect::<String>())
    };
    let config = "[data]\npath = \"t.csv\"\nsupport = 2\nheld_out = 0\n[method]\nbeta = 9\nalpha = 3\n[training]\niterations = 3\n";
    place.write("c.toml", config);
    let train = |text: String, out: &str, extra: &[&str]| {
        place.write("t.csv", text);
        let ran = place.run(&[&["train", "c.toml", "--out", out], extra].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        (
            place.read(&format!("{out}/prior.safetensors")),
            place.text(&format!("{out}/config.toml")),
            ran.stderr,
        )
    };
    let first = train(table([0, 1]), "first", &[]);
    assert!(
        first.2.contains("4 of 4 observed tasks mark S' by `adapt`: pacmaml learns with these"),
        "{}",
        first.2
    );
    assert!(first.1.contains("resample = \"fixed\""), "what was done is stated: {}", first.1);
    assert_eq!(train(table([0, 1]), "first", &[]).1, first.1, "the same command finds its run");
    assert_ne!(train(table([2, 3]), "second", &[]).0, first.0, "other marks are other subsets");
    let anew = ["--set", "method.resample=each_iteration"];
    let third = train(table([0, 1]), "third", &anew);
    assert!(
        third.2.contains("warning: 4 of 4 observed tasks mark S'") && third.2.contains("does not use"),
        "{}",
        third.2
    );
    assert_eq!(train(table([2, 3]), "fourth", &anew).0, third.0, "marks do not count");
    let unmarked: String = table([0, 1])
        .lines()
        .map(|line| line.rsplit_once(',').map_or(String::new(), |(rest, _)| format!("{rest}\n")))
        .collect();
    let fifth = train(unmarked, "fifth", &[]);
    assert_eq!((&fifth.0, fifth.1.contains("resample = \"each_iteration\"")), (&third.0, true));
    assert!(!fifth.2.contains("mark S'"), "{}", fifth.2);
}
