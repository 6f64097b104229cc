//! Opening whole sets: folders, splits, notes, the cache as people meet it.

use std::fs;
use std::path::Path;

use pacmeta_tensor::Key;

use super::files::{encode, pack, png, put};
use super::*;

const SHAPE: PictureShape = PictureShape { side: 6, channels: Channels::Grey };

/// Three classes: cat of 3 pictures, dog of 4, emu of 2; pixel values 10 * class + picture.
fn pets(folder: &Path) {
    for (class, name, count) in [(0u8, "cat", 3u8), (1, "dog", 4), (2, "emu", 2)] {
        for picture in 0..count {
            put(folder, &format!("{name}/{name}{picture}.png"), &png(6, 10 * class + picture));
        }
    }
}

fn open(options: &ImageOptions) -> OpenedImages {
    open_images(options, &mut ()).unwrap()
}

fn problem(options: &ImageOptions) -> String {
    let error = open_images(options, &mut ()).unwrap_err();
    assert!(error.is_input(), "{error}");
    error.to_string()
}

fn class_names(set: &ImageSet) -> Vec<&str> {
    set.classes().iter().map(|class| class.name.as_str()).collect()
}

fn names_of<'a>(set: &'a ImageSet, ids: &[ClassId]) -> Vec<&'a str> {
    ids.iter().map(|id| set.classes()[id.class as usize].name.as_str()).collect()
}

#[test]
fn a_folder_of_folders_becomes_a_set() {
    let folder = tempfile::tempdir().unwrap();
    pets(folder.path());
    let OpenedImages { set, splits, notes, .. } = open(&ImageOptions::small(folder.path(), SHAPE));
    assert_eq!(class_names(&set), ["cat", "dog", "emu"]);
    assert_eq!((splits, notes), (Splits::default(), vec![]));
    assert_eq!((set.len(), set.picture_name(4)), (9, "dog/dog1.png"));
    assert_eq!(set.classes()[1].pictures, [3, 4, 5, 6]);
    assert_eq!(set.pixels(4), [11; 36]);
}

#[test]
fn changes_are_told() {
    let folder = tempfile::tempdir().unwrap();
    pets(folder.path());
    put(folder.path(), "emu/large.png", &png(9, 1));
    let colour = image::DynamicImage::ImageRgb8(image::RgbImage::new(6, 6));
    put(folder.path(), "emu/colour.webp", &encode(&colour, image::ImageFormat::WebP));
    let opened = open(&ImageOptions::small(folder.path(), SHAPE));
    assert_eq!(opened.changes, Changes { resized: 1, converted: 1 });
    let expected =
        ["1 of 11 pictures were resized to 6 x 6 pixels", "1 of 11 pictures were converted to grey"];
    assert_eq!(opened.notes, expected);
}

#[test]
fn pictures_without_a_class_are_refused_or_one_class() {
    let folder = tempfile::tempdir().unwrap();
    pets(folder.path());
    put(folder.path(), "stray.png", &png(6, 99));
    let options = ImageOptions::small(folder.path(), SHAPE);
    assert!(
        problem(&options).contains("1 picture (`stray.png`) lies in no folder of a class"),
        "{}",
        problem(&options)
    );
    let set = open(&ImageOptions { root_pictures: RootPictures::OneClass, ..options }).set;
    assert_eq!(class_names(&set), ["", "cat", "dog", "emu"]);
    assert_eq!((set.picture_name(0), set.pixels(0)), ("stray.png", [99; 36].as_slice()));
}

#[test]
fn small_classes_are_left_out_when_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    pets(folder.path());
    let options = ImageOptions::small(folder.path(), SHAPE);
    let opened = open(&ImageOptions { min_pictures: Some(3), ..options.clone() });
    assert_eq!(class_names(&opened.set), ["cat", "dog"]);
    assert_eq!(opened.notes, ["left out for fewer than 3 pictures: `emu`"]);
    let message = problem(&ImageOptions { min_pictures: Some(5), ..options });
    assert!(
        message.contains("none of 3 classes has `data.min_examples = 5` pictures, the largest has 4"),
        "{message}"
    );
}

#[test]
fn a_split_file_in_the_folder_is_found_and_leaves_classes_out() {
    let folder = tempfile::tempdir().unwrap();
    pets(folder.path());
    put(folder.path(), "split.csv", b"wnid,split,name\nemu,train,The Emu\ncat,test,\n");
    let split = SplitChoice::Automatic(SplitRecipe::standard(Key::new(1)));
    let opened = open(&ImageOptions { split, ..ImageOptions::small(folder.path(), SHAPE) });
    assert_eq!(class_names(&opened.set), ["cat", "emu"]);
    assert_eq!(names_of(&opened.set, &opened.splits.train), ["emu"]);
    assert_eq!(names_of(&opened.set, &opened.splits.test), ["cat"]);
    assert_eq!(opened.set.classes()[1].display_name, "The Emu");
    assert_eq!(opened.set.classes()[0].display_name, "cat");
    assert_eq!(opened.set.pixels(3), [20; 36], "emu's first picture follows cat's three");
    assert!(
        opened.notes[1].contains("1 class of the data is not in the split and left out: `dog`"),
        "{:?}",
        opened.notes
    );
}

#[test]
fn without_a_split_file_the_split_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    pets(folder.path());
    let recipe = SplitRecipe { way: 1, ..SplitRecipe::standard(Key::new(1)) };
    for split in [SplitChoice::Automatic(recipe), SplitChoice::Made(recipe)] {
        let opened = open(&ImageOptions { split, ..ImageOptions::small(folder.path(), SHAPE) });
        assert_eq!(Part::ALL.map(|part| opened.splits.part(part).len()), [1, 1, 1]);
        assert_eq!(
            opened.notes,
            ["the split was drawn: 1 classes for training, 1 for validation, 1 for the test"]
        );
    }
}

#[test]
fn lists_of_pictures_say_classes_and_files() {
    let folder = tempfile::tempdir().unwrap();
    pets(folder.path());
    let lists = folder.path().join("lists");
    put(&lists, "train.csv", b"filename,label\ndog1.jpg,hound\ndog0.jpg,hound\n");
    put(&lists, "val.csv", b"filename,label\ncat/cat2.png,feline\n");
    put(&lists, "test.csv", b"filename,label\nemu0.jpg,bird\n");
    let options =
        ImageOptions { split: SplitChoice::Path(lists.clone()), ..ImageOptions::small(folder.path(), SHAPE) };
    let OpenedImages { set, splits, .. } = open(&options);
    assert_eq!(class_names(&set), ["hound", "feline", "bird"]);
    assert_eq!((set.len(), set.pixels(0)[0], set.pixels(1)[0], set.pixels(2)[0]), (4, 11, 10, 2));
    assert_eq!(names_of(&set, &splits.validation), ["feline"]);

    let with_test = |text: &str| {
        put(&lists, "test.csv", text.as_bytes());
        problem(&options)
    };
    for (text, expected) in [
        (
            "filename,label\nemu0.jpg,bird\nemu7.jpg,bird\nemu8.jpg,bird\n",
            "test.csv, line 3: 2 of 3 files are not among the pictures",
        ),
        ("filename,label\nemu0.jpg,hound\n", "test.csv, line 2: class `hound` is in train and in test"),
        ("filename,label\ndog1.png,bird\n", "test.csv, line 2: picture `dog1.png` is also on line 2 of"),
    ] {
        let message = with_test(text);
        assert!(message.contains(expected), "{message}");
    }
    put(folder.path(), "other/emu0.png", &png(6, 50));
    let message = with_test("filename,label\nemu0.jpg,bird\n");
    assert!(
        message.contains("2 pictures are called `emu0`: `emu/emu0.png`, `other/emu0.png`; write the folder"),
        "{message}"
    );
    put(&lists, "test.csv", b"filename,label\nemu0.jpg,emu\nother/emu0.jpg,thing\n");
    let set = open(&options).set;
    assert_eq!((set.pixels(3)[0], set.pixels(4)[0]), (20, 50), "by label, and by folder");
}

#[test]
fn a_split_that_does_not_fit_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    pets(folder.path());
    let with = |path: &Path| {
        let split = SplitChoice::Path(path.to_path_buf());
        problem(&ImageOptions { split, ..ImageOptions::small(folder.path(), SHAPE) })
    };
    let message = with(&folder.path().join("none.csv"));
    assert!(message.contains("none.csv: there is no such file; expected a CSV file"), "{message}");
    assert!(message.contains("`data.split`"), "{message}");
    assert!(with(&folder.path().join("cat")).contains("expected `split.csv`, or `train.csv`"));
    put(folder.path(), "other.csv", b"class,split\ncta,train\n");
    let message = with(&folder.path().join("other.csv"));
    assert!(message.contains("1 of 1 classes has no pictures: `cta` (did you mean `cat`?)"), "{message}");
}

#[test]
fn damaged_pictures_are_named_with_their_zip_file() {
    let folder = tempfile::tempdir().unwrap();
    let whole = png(6, 1);
    pack(&folder.path().join("cat.zip"), &[("1.png", &whole), ("2.png", &whole[..40])]);
    let message = problem(&ImageOptions::small(folder.path(), SHAPE));
    assert!(message.contains("cat.zip, entry `2.png`: the picture is damaged or cut short"), "{message}");
}

#[test]
fn all_damaged_pictures_are_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let whole = png(6, 1);
    for picture in 0..15 {
        let bytes = if picture % 5 == 4 { &whole[..] } else { &whole[..40] };
        put(folder.path(), &format!("cat/{picture:02}.png"), bytes);
    }
    let message = problem(&ImageOptions::small(folder.path(), SHAPE));
    assert!(message.contains("12 of 15 pictures cannot be used:"), "{message}");
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), 12, "{message}");
    assert!(lines[1].contains("00.png: the picture is damaged"), "{message}");
    assert!(lines[10].contains("11.png: the picture is damaged") && lines[11] == "  and 2 more", "{message}");
}

#[cfg(unix)]
#[test]
fn pictures_that_may_not_be_read_are_named() {
    use std::os::unix::fs::PermissionsExt;
    let (data, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    pets(data.path());
    let path = data.path().join("dog/dog2.png");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::File::open(&path).is_ok() {
        eprintln!("skipped: this user may read everything");
        return;
    }
    let small = ImageOptions::small(data.path(), SHAPE);
    let storage = Storage::CacheIn(cache.path().to_path_buf());
    for options in [small.clone(), ImageOptions { storage, ..small }] {
        let message = problem(&options);
        assert!(message.contains("dog2.png") && message.contains("change its permissions"), "{message}");
    }
}

#[test]
fn sizes_are_checked_before_anything_is_decoded() {
    let folder = tempfile::tempdir().unwrap();
    for (class, count) in [("cat", 3), ("dog", 4), ("emu", 2)] {
        (0..count).for_each(|picture| put(folder.path(), &format!("{class}/{picture}.png"), b"no picture"));
    }
    (0..160).for_each(|picture| put(folder.path(), &format!("emu/{picture}.bmp"), b"BM"));
    let found = find_images(&ImageOptions::small(folder.path(), SHAPE)).unwrap();
    assert_eq!(found.classes().iter().map(|class| class.pictures.len()).collect::<Vec<_>>(), [3, 4, 2]);
    let classes: Vec<ClassId> = (0..3).map(ClassId::upright).collect();
    let check = |way, shots, part| found.check(&EpisodeSampler { way, shots }, &classes, part);
    check(3, 2, "training").unwrap();
    let message = check(3, 3, "training").unwrap_err().to_string();
    let others = "; 160 files were passed over (.bmp 160), for pictures end in .png, .jpg, .jpeg, .webp";
    assert!(message.contains("1 class of the training part") && message.ends_with(others), "{message}");
    let message = check(4, 1, "validation").unwrap_err().to_string();
    assert!(message.contains("`training.validation_tasks = 0`"), "{message}");
    assert!(!check(4, 1, "test").unwrap_err().to_string().contains("validation"));
    assert!(found.open(&mut ()).unwrap_err().to_string().contains("9 of 9 pictures cannot be used"));
}

/// Counts pictures, and stops after some.
struct Counting {
    seen: Vec<(usize, usize)>,
    stop_at: usize,
}

impl Progress for Counting {
    fn decoded(&mut self, done: usize, total: usize) {
        self.seen.push((done, total));
    }

    fn stop(&self) -> bool {
        self.seen.last().is_some_and(|&(done, _)| done >= self.stop_at)
    }
}

#[test]
fn the_cache_is_made_once_and_gives_the_same_pixels() {
    let (data, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    pets(data.path());
    let small = ImageOptions::small(data.path(), SHAPE);
    let folder = cache.path().join("new/folder");
    let cached = ImageOptions { storage: Storage::CacheIn(folder.clone()), ..small.clone() };
    let mut progress = Counting { seen: vec![], stop_at: usize::MAX };
    let first = open_images(&cached, &mut progress).unwrap();
    assert_eq!(progress.seen, [(0, 9), (9, 9)]);
    let again = open_images(&cached, &mut progress).unwrap();
    assert_eq!(progress.seen.len(), 2, "nothing is decoded a second time");
    let plain = open(&small);
    for picture in 0..9 {
        assert_eq!(first.set.pixels(picture), plain.set.pixels(picture));
        assert_eq!(again.set.pixels(picture), plain.set.pixels(picture));
    }

    // Another picture, another file; another shape too.
    put(data.path(), "cat/cat0.png", &png(6, 200));
    assert_eq!(open(&cached).set.pixels(0), [200; 36]);
    assert_eq!(
        open(&ImageOptions { shape: PictureShape { side: 3, ..SHAPE }, ..cached }).set.pixels(0),
        [200; 9]
    );
    let files = fs::read_dir(folder)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|ending| ending == "pixels"));
    assert_eq!(files.count(), 3);
}

#[test]
fn stopping_leaves_no_file_and_says_so() {
    let (data, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let entries: Vec<(String, Vec<u8>)> =
        (0..1300).map(|index| (format!("a/{index:04}.png"), png(2, (index % 251) as u8))).collect();
    let entries: Vec<(&str, &[u8])> =
        entries.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    let path = data.path().join("many.zip");
    pack(&path, &entries);
    let options = ImageOptions {
        storage: Storage::CacheIn(cache.path().to_path_buf()),
        ..ImageOptions::small(path, PictureShape { side: 2, channels: Channels::Grey })
    };
    let error = open_images(&options, &mut Counting { seen: vec![], stop_at: 600 }).unwrap_err();
    assert!(error.is_interruption(), "{error}");
    assert_eq!(
        error.to_string(),
        "interrupted after decoding 1024 of 1300 pictures; the same command decodes them anew"
    );
    let left: Vec<_> = fs::read_dir(cache.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.iter().all(|path| path.extension().is_some_and(|ending| ending == "lock")), "{left:?}");
    let set = open(&options).set;
    assert!((0..1300).all(|index| set.pixels(index) == [(index % 251) as u8; 4]), "batches keep their order");
}
