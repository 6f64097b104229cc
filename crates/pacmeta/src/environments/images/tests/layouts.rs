//! How folders and lists beside the pictures divide the classes.

use std::path::Path;

use pacmeta_tensor::Key;

use super::files::{pack, png, put};
use super::*;

const SHAPE: PictureShape = PictureShape { side: 6, channels: Channels::Grey };

fn options(path: &Path) -> ImageOptions {
    let split = SplitChoice::Automatic(SplitRecipe { way: 1, ..SplitRecipe::standard(Key::new(1)) });
    ImageOptions { split, ..ImageOptions::small(path, SHAPE) }
}

fn problem(path: &Path) -> String {
    let error = find_images(&options(path)).unwrap_err();
    assert!(error.is_input(), "{error}");
    error.to_string()
}

/// The names of the classes of each part.
fn parts(found: &FoundImages) -> [Vec<&str>; 3] {
    Part::ALL.map(|part| {
        let ids = found.splits().part(part).iter();
        ids.map(|id| found.classes()[id.class as usize].name.as_str()).collect()
    })
}

#[test]
fn folders_called_after_parts_divide_the_classes() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("folder");
    let files =
        ["train/cat/1.png", "train/dog/1.png", "Valid/emu/1.png", "test/fox/red/1.png", "test/gnu/1.png"];
    let picture = png(6, 1);
    files.iter().for_each(|file| put(&folder, file, &picture));
    let zip = place.path().join("packed.zip");
    let inside: Vec<String> = files.iter().map(|file| format!("my data/{file}")).collect();
    pack(&zip, &inside.iter().map(|file| (file.as_str(), picture.as_slice())).collect::<Vec<_>>());

    for (path, above) in [(&folder, ""), (&zip, "my data/")] {
        let found = find_images(&options(path)).unwrap();
        let expected = [vec!["train/cat", "train/dog"], vec!["Valid/emu"], vec!["test/fox/red", "test/gnu"]];
        let expected =
            expected.map(|names| names.iter().map(|name| format!("{above}{name}")).collect::<Vec<_>>());
        assert_eq!(
            parts(&found).map(|names| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()),
            expected
        );
        let shown: Vec<&str> = found.classes().iter().map(|class| class.display_name.as_str()).collect();
        let mut sorted = shown.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, ["cat", "dog", "emu", "fox/red", "gnu"]);
        let opened = found.open(&mut ()).unwrap();
        assert_eq!(
            opened.notes,
            [
                "the split is that of the folders `Valid`, `test`, `train`: 2 classes for training, 1 for validation, 2 for the \
              test"
            ]
        );
        // The file that a run leaves says the same about the same folders.
        put(place.path(), "run/split.csv", opened.splits.to_csv(&opened.set).as_bytes());
        let split = SplitChoice::Path(place.path().join("run/split.csv"));
        let again = open_images(&ImageOptions { split, ..options(path) }, &mut ()).unwrap();
        assert_eq!((again.splits, again.set.checksum()), (opened.splits, opened.set.checksum()));
    }
}

#[test]
fn a_class_in_two_folders_of_parts_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for file in ["train/cat/1.png", "train/dog/1.png", "val/dog/2.png", "test/cat/3.png", "test/emu/1.png"] {
        put(folder.path(), file, b"unread");
    }
    let message = problem(folder.path());
    assert!(
        message.contains(
            "class `cat` is in test and in train, and 1 more are in two parts; a class seen in training"
        ),
        "{message}"
    );
    for folders in ["train/dog", "test/cat"] {
        std::fs::remove_dir_all(folder.path().join(folders)).unwrap();
    }
    let found = find_images(&options(folder.path())).unwrap();
    assert_eq!(parts(&found), [vec!["train/cat"], vec!["val/dog"], vec!["test/emu"]]);
    put(folder.path(), "train/stray.png", b"unread");
    let message = problem(folder.path());
    assert!(message.contains("1 picture lies in `train` in no folder of a class"), "{message}");
    // a part without classes, beside one with them, is no class either
    let flat = tempfile::tempdir().unwrap();
    put(flat.path(), "train/cat/1.png", b"unread");
    put(flat.path(), "train/dog/1.png", b"unread");
    put(flat.path(), "val/1.png", b"unread");
    let message = problem(flat.path());
    assert!(message.contains("1 picture lies in `val` in no folder of a class"), "{message}");
}

#[test]
fn other_folders_are_classes_as_ever() {
    for files in [
        // one part only; one folder that is none; no folders of classes
        ["train/a/1.png", "train/b/1.png", "train/c/1.png"],
        ["train/a/1.png", "test/b/1.png", "more/c/1.png"],
        ["train/1.png", "val/1.png", "test/1.png"],
    ] {
        let folder = tempfile::tempdir().unwrap();
        files.iter().for_each(|file| put(folder.path(), file, b"unread"));
        let found = find_images(&options(folder.path())).unwrap();
        assert_eq!(found.classes().len(), 3);
        assert_eq!(parts(&found).map(|names| names.len()), [1, 1, 1], "{files:?}: drawn");
    }
}

#[test]
fn lists_without_validation_are_lists_and_a_single_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for file in ["cat/c.png", "dog/d.png", "emu/e.png"] {
        put(folder.path(), file, &png(6, 1));
    }
    put(folder.path(), "train.csv", b"filename,label\nc.png,cat\nd.png,dog\n");
    let message = problem(folder.path());
    assert!(message.contains("there is `train.csv` but no `val.csv`, `test.csv`"), "{message}");
    put(folder.path(), "test.csv", b"filename,label\ne.png,emu\n");
    let opened = open_images(&options(folder.path()), &mut ()).unwrap();
    assert_eq!(Part::ALL.map(|part| opened.splits.part(part).len()), [2, 0, 1]);
    assert!(opened.notes[0].ends_with(", which has none for validation"), "{:?}", opened.notes);
    std::fs::remove_file(folder.path().join("train.csv")).unwrap();
    assert!(problem(folder.path()).contains("there is `test.csv` but no `train.csv`, `val.csv`"));
    // A split file is meant before all lists.
    put(folder.path(), "split.csv", b"class,split\ncat,train\ndog,val\nemu,test\n");
    assert_eq!(
        parts(&find_images(&options(folder.path())).unwrap()),
        [["cat"], ["dog"], ["emu"]].map(|x| x.to_vec())
    );
}

#[test]
fn a_split_file_beside_a_zip_file_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let picture = png(6, 1);
    let zip = folder.path().join("pets.zip");
    pack(&zip, &[("cat/a.png", &picture), ("dog/a.png", &picture), ("emu/a.png", &picture)]);
    put(folder.path(), "split.csv", b"class,split\ncat,test\ndog,train\nemu,val\n");
    let found = find_images(&options(&zip)).unwrap();
    assert_eq!(parts(&found), [vec!["dog"], vec!["emu"], vec!["cat"]]);
}

#[test]
fn split_files_that_would_not_be_read_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let picture = png(6, 1);
    let zip = folder.path().join("pets.zip");
    pack(
        &zip,
        &[("cat/a.png", &picture), ("dog/a.png", &picture), ("split.csv", b"class,split\ncat,test\n")],
    );
    let message = problem(&zip);
    assert!(message.contains("pets.zip, entry `split.csv` may say which classes are for what"), "{message}");
    std::fs::remove_file(&zip).unwrap();
    for name in ["pets/cat/a.png", "pets/dog/a.png"] {
        put(folder.path(), name, &picture);
    }
    put(folder.path(), "pets/train.csv", b"filename,label\na.png,cat\n");
    put(folder.path(), "pets/test.csv", b"filename,label\na.png,dog\n");
    let message = problem(folder.path());
    assert!(message.contains("test.csv (and 1 more) may say"), "{message}");
    assert!(message.contains("Choose the folder with it (`data.path` or `--data`)"), "{message}");
    // who names or wants no split is not asked
    let whole = ImageOptions { split: SplitChoice::Whole, ..options(folder.path()) };
    assert!(find_images(&whole).is_ok());
}
