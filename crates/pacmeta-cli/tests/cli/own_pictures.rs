//! One's own pictures: layouts of folders, what is passed over, one picture alone, and what people are told.

use std::path::Path;

use crate::helper::{Place, Ran};
use crate::images::{SMALL, write_pictures};

/// A configuration for the pictures in `folder`, with a cache in the same place.
fn configured(place: &Place, folder: &str) {
    place.write("own.toml", SMALL.replace("\"synthetic\"", &format!("\"{folder}\"\ncache = \"cache\"")));
}

/// Moves classes into folders called after the parts: three for each.
fn divide(place: &Place, folder: &str) {
    for class in 0..9 {
        let part = ["train", "val", "test"][class / 3];
        std::fs::create_dir_all(place.path(&format!("{folder}/{part}"))).unwrap();
        let name = format!("colour{class:02}");
        let to = place.path(&format!("{folder}/{part}/{name}"));
        std::fs::rename(place.path(&format!("{folder}/{name}")), to).unwrap();
    }
}

#[test]
fn folders_of_parts_are_the_split_and_overlaps_are_refused() {
    let place = Place::new();
    write_pictures(&place, "pictures", 9, 6);
    divide(&place, "pictures");
    place.write("pictures/train/colour00/note.bmp", "BM");
    std::fs::create_dir_all(place.path("pictures/train/none/at all")).unwrap();
    configured(&place, "pictures");
    let ran = place.run(&["train", "own.toml", "--out", "run", "--set", "data.parts=[0.6, 0.2, 0.2]"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for words in [
        "the split is that of the folders `test`, `train`, `val`: 3 classes",
        "`data.parts` is not used: it is for classes that no file or folder divides",
        "1 folder has no picture, and is no class: `train/none/at all`",
        "1 file was passed over (.bmp 1)",
    ] {
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
    let split = place.text("run/split.csv");
    for row in ["train/colour00,train,colour00", "val/colour03,val,colour03", "test/colour08,test,colour08"] {
        assert!(split.lines().any(|line| line == row), "{split}");
    }

    let name = "pictures/test/colour00/1.png";
    place.write(name, place.read("pictures/train/colour00/1.png"));
    let words = ["class `colour00` is in test and in train", "a class seen in training is no test"];
    place.refused(&["train", "own.toml", "--out", "other", "-q"], &words);
    assert!(!place.path("other").exists());
}

#[test]
fn validation_can_be_left_out() {
    let place = Place::new();
    write_pictures(&place, "pictures", 9, 6);
    configured(&place, "pictures");
    let train = ["train", "own.toml", "-q", "--out", "run", "--set", "data.parts=[0.6, 0, 0.4]"];
    place.refused(&train, &["validation part has 0 classes", "`training.validation_tasks = 0`"]);
    assert!(!place.path("cache").exists(), "pictures were decoded first");
    place.ok(&[&train[..], &["--set", "training.validation_tasks=0"]].concat());
    place.write("pictures/test.csv", "filename,label\n");
    place.refused(&train, &["there is `test.csv` but no `train.csv`, `val.csv`"]);
}

#[test]
fn predictions_do_not_depend_on_the_order_of_folders() {
    let place = Place::new();
    place.write("small.toml", SMALL);
    place.ok(&["train", "small.toml", "-q", "--out", "run"]);
    write_pictures(&place, "one", 3, 2);
    write_pictures(&place, "new", 3, 4);
    let other = ["z", "y", "x"];
    for (class, name) in other.iter().enumerate() {
        for picture in 0..2 {
            let bytes = place.read(&format!("one/colour{class:02}/{picture}.png"));
            place.write(&format!("two/{name}/{picture}.png"), bytes);
        }
    }
    let adapt = |support: &str| {
        let ran = place.run(&["adapt", "run", "--support", support, "--query", "new", "--json"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains("the head starts at zero"), "{}", ran.stderr);
        let found: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        found["predictions"].as_array().unwrap().clone()
    };
    let (one, two) = (adapt("one"), adapt("two"));
    assert_eq!((one.len(), two.len()), (12, 12));
    for (one, two) in one.iter().zip(&two) {
        for (class, name) in other.iter().enumerate() {
            let probability =
                |row: &serde_json::Value, name: &str| row["probabilities"][name].as_f64().unwrap();
            let (one, two) = (probability(one, &format!("colour{class:02}")), probability(two, name));
            assert!((one - two).abs() < 1e-3, "{one} and {two}");
        }
    }
}

#[test]
fn one_picture_is_classified_and_empty_folders_are_explained() {
    let place = Place::new();
    place.write("small.toml", SMALL);
    place.ok(&["train", "small.toml", "-q", "--out", "run", "--set", "evaluation.normalisation=support"]);
    write_pictures(&place, "labelled", 3, 2);
    std::fs::copy(place.path("labelled/colour01/0.png"), place.path("one.png")).unwrap();
    let adapt = ["adapt", "run", "--support", "labelled", "--query"];
    let found = place.json(&[&adapt[..], &["one.png", "--json"]].concat());
    assert_eq!(found["predictions"].as_array().unwrap().len(), 1);
    assert_eq!(found["predictions"][0]["picture"], "one.png");
    std::fs::create_dir(place.path("empty")).unwrap();
    let ran =
        place.refused(&[&adapt[..], &["empty"]].concat(), &["empty", "no picture", "put the pictures there"]);
    assert!(!ran.stderr.contains("each class"), "{}", ran.stderr);
}

/// The configuration for Omniglot, on generated characters, as it is and with 20 classes: strides, rotations, grey.
#[test]
fn the_configuration_for_omniglot_trains() {
    let place = Place::new();
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/omniglot.toml");
    let config = config.to_str().unwrap();
    let accuracy = |out: &str, settings: &[&str]| {
        let sizes = ["data.path=synthetic", "training.validation_tasks=2", "training.validate_every=20"];
        let mut command = vec!["train", config, "-q", "--json", "--out", out];
        command.extend(sizes.iter().chain(settings).flat_map(|setting| ["--set", *setting]));
        place.json(&command)["accuracy"].as_f64().unwrap()
    };
    // 0.37 with a standard error of 0.015, against a chance of 0.2
    let five = accuracy("five", &["training.iterations=20", "evaluation.tasks=20"]);
    assert!(five > 0.27, "{five}");
    assert!(place.text("five/config.toml").contains("downsampling = \"stride\""));
    // 0.26, against a chance of 0.05
    let twenty = accuracy(
        "twenty",
        &["data.way=20", "prior.head=zero", "training.iterations=3", "evaluation.tasks=3"],
    );
    assert!(twenty > 0.12, "{twenty}");
}

#[cfg(unix)]
#[test]
fn a_picture_that_may_not_be_read_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    write_pictures(&place, "pictures", 9, 6);
    configured(&place, "pictures");
    let path = place.path("pictures/colour02/3.png");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::File::open(&path).is_ok() {
        eprintln!("skipped: this user may read everything");
        return;
    }
    place
        .refused(&["train", "own.toml", "-q", "--out", "run"], &["colour02/3.png", "change its permissions"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_without_room_for_decoded_pictures_is_told_and_nothing_is_left() {
    let place = Place::new();
    write_pictures(&place, "pictures", 9, 6);
    configured(&place, "pictures");
    let train = ["train", "own.toml", "-q", "--out", "run"];
    // the header fits, the pictures do not
    let ran = Ran::from(place.with_full_disk(16, &train).output().unwrap());
    assert_eq!(ran.code, Some(2), "{}{}", ran.stdout, ran.stderr);
    for words in ["cannot write decoded pictures to", "bytes are needed", "`ulimit -f`", "`data.cache`"] {
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
    assert!(!place.path("run").exists());
    for entry in std::fs::read_dir(place.path("cache")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name.ends_with(".lock"), "{name} is left");
    }
    place.ok(&train);
}
