//! Where pictures lie: folders, zip files, links, and names that lead astray.

use std::fs::{self, File};
use std::io::{Cursor, Write};
use std::path::Path;

use image::{DynamicImage, GrayImage, ImageFormat, Luma};
use proptest::prelude::*;
use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

use crate::environments::images::source::{Listing, OpenFile, Wanted};

/// A picture of one grey value.
pub(in super::super) fn png(side: u32, value: u8) -> Vec<u8> {
    encode(&DynamicImage::ImageLuma8(GrayImage::from_pixel(side, side, Luma([value]))), ImageFormat::Png)
}

pub(in super::super) fn encode(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// Writes a file and the folders above it.
pub(in super::super) fn put(folder: &Path, name: &str, bytes: &[u8]) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Writes a zip file.
pub(in super::super) fn pack(path: &Path, entries: &[(&str, &[u8])]) {
    let mut writer = ZipWriter::new(File::create(path).unwrap());
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    for (name, bytes) in entries {
        writer.start_file(*name, options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap();
}

fn paths(listing: &Listing) -> Vec<String> {
    listing.pictures.iter().map(|picture| picture.path()).collect()
}

fn problem(path: &Path) -> String {
    let error = Listing::find(path, Wanted::Classes).unwrap_err();
    assert!(error.is_input(), "{error}");
    error.to_string()
}

#[test]
fn folders_are_classes_and_all_else_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let names = [
        "b/2.PNG",
        "b/10.jpeg",
        "a/deep/x.webp",
        "a/y.jpg",
        "zebra/.hidden.png",
        ".git/a.png",
        "__MACOSX/a.png",
    ];
    for name in names.into_iter().chain(["split.csv", "b/notes.txt", "b/Thumbs.db", "png"]) {
        put(folder.path(), name, b"unread");
    }
    let listing = Listing::find(folder.path(), Wanted::Classes).unwrap();
    assert_eq!(paths(&listing), ["a/y.jpg", "a/deep/x.webp", "b/10.jpeg", "b/2.PNG"]);
    assert_eq!((listing.pictures[1].class.as_str(), listing.pictures[1].length), ("a/deep", 6));
    assert_eq!(listing.passed_over().unwrap(), "2 files were passed over (no ending 1, .txt 1)");
}

#[test]
fn a_zip_file_is_a_folder_of_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let content: &[(&str, &[u8])] = &[
        ("latin/b/1.png", b"one"),
        ("latin/a/1.png", b"two!"),
        ("__MACOSX/latin/a/1.png", b"junk"),
        ("readme.txt", b"text"),
        ("latin\\c\\1.png", b"backward"),
    ];
    pack(&folder.path().join("glyphs.zip"), content);
    pack(&folder.path().join("n01.ZIP"), &[("x.png", b"three"), ("./y.png", b"four")]);
    put(folder.path(), "loose/z.png", b"five");
    let listing = Listing::find(folder.path(), Wanted::Classes).unwrap();
    assert_eq!(listing.passed_over().unwrap(), "1 file was passed over (.txt 1)");
    let expected = [
        ("glyphs/latin/a/1.png", "two!"),
        ("glyphs/latin/b/1.png", "one"),
        ("glyphs/latin/c/1.png", "backward"),
        ("loose/z.png", "five"),
        ("n01/x.png", "three"),
        ("n01/y.png", "four"),
    ];
    assert_eq!(paths(&listing), expected.map(|(path, _)| path));
    let mut open = OpenFile::default();
    for (picture, (_, content)) in listing.pictures.iter().zip(expected) {
        assert_eq!(listing.read(picture, &mut open).unwrap(), content.as_bytes());
    }

    let alone = Listing::find(&folder.path().join("glyphs.zip"), Wanted::Classes).unwrap();
    assert_eq!(paths(&alone), ["latin/a/1.png", "latin/b/1.png", "latin/c/1.png"]);
    assert!(alone.describe(&alone.pictures[0]).ends_with("glyphs.zip, entry `latin/a/1.png`"));
}

#[test]
fn places_without_pictures_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "a/b.gif", b"GIF89a");
    let message = problem(folder.path());
    assert!(
        message.contains("there is no picture; looked for files that end in .png, .jpg, .jpeg, .webp"),
        "{message}"
    );
    assert!(message.contains("; 1 file was passed over (.gif 1); give each class a folder"), "{message}");
    assert!(problem(&folder.path().join("a/b.gif")).contains("expected a folder of pictures"));
    assert!(problem(&folder.path().join("absent")).contains("absent"));
    put(folder.path(), "a/c.zip", b"not a zip file");
    let message = problem(folder.path());
    assert!(message.contains("c.zip: the zip file cannot be read"), "{message}");
    pack(&folder.path().join("a/c.zip"), &[("readme", b"")]);
    assert!(problem(folder.path()).contains("in all folders and 1 zip file"));
}

#[test]
fn one_picture_is_enough_where_pictures_are_wanted() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "a/x.png", b"unread");
    let picture = folder.path().join("a/x.png");
    assert_eq!(paths(&Listing::find(&picture, Wanted::Pictures).unwrap()), ["x.png"]);
    assert!(problem(&picture).contains("expected a folder of pictures"));
    put(folder.path(), "empty/notes.txt", b"text");
    let error = Listing::find(&folder.path().join("empty"), Wanted::Pictures).unwrap_err().to_string();
    assert!(error.contains("(.txt 1); put the pictures there") && !error.contains("class"), "{error}");
    let error =
        Listing::find(&folder.path().join("empty/notes.txt"), Wanted::Pictures).unwrap_err().to_string();
    assert!(error.contains("expected a picture, a folder of pictures"), "{error}");
}

#[test]
fn entries_that_lead_out_of_a_zip_file_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.zip");
    for (name, expected) in [
        ("a/../../x.png", "leads out of the zip file"),
        ("a\\..\\..\\x.png", "leads out of the zip file"),
        ("/etc/x.png", "has an absolute path"),
        ("C:\\x.png", "has an absolute path"),
    ] {
        pack(&path, &[("fine/1.png", b"1"), (name, b"2")]);
        let message = problem(&path);
        assert!(message.contains(expected) && message.contains("entry `"), "{name}: {message}");
    }
    let mut writer = ZipWriter::new(File::create(&path).unwrap());
    writer.add_symlink("a/x.png", "/etc/passwd", SimpleFileOptions::default()).unwrap();
    writer.finish().unwrap();
    assert!(problem(&path).contains("entry `a/x.png`: is a link"), "{}", problem(&path));
}

#[test]
fn a_picture_that_is_there_twice_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "cat/1.png", b"x");
    pack(&folder.path().join("cat.zip"), &[("1.png", b"y")]);
    let message = problem(folder.path());
    assert!(message.contains("twice") && message.contains("cat.zip, entry `1.png`"), "{message}");
    fs::remove_dir_all(folder.path().join("cat")).unwrap();
    pack(&folder.path().join("cat.zip"), &[("a/1.png", b"y"), ("a//1.png", b"z")]);
    assert!(problem(folder.path()).contains("twice"));
}

/// Entries with equal names, which a careful packer does not write: two names of equal length, one overwritten.
#[test]
fn equal_names_in_a_zip_file_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.zip");
    pack(&path, &[("a/1.png", b"y"), ("a/2.png", b"z")]);
    let mut bytes = fs::read(&path).unwrap();
    while let Some(place) = bytes.windows(7).position(|part| part == b"a/2.png") {
        bytes[place + 2] = b'1';
    }
    fs::write(&path, bytes).unwrap();
    assert!(problem(&path).contains("two entries have the same name"), "{}", problem(&path));
}

#[test]
fn a_method_of_compression_that_is_not_read_is_named_before_anything_is_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.zip");
    pack(&path, &[("a/1.png", b"y")]);
    let mut bytes = fs::read(&path).unwrap();
    let directory = bytes.windows(4).position(|part| part == b"PK\x01\x02").unwrap();
    // stated in front of the entry and in the directory
    for place in [8, directory + 10] {
        bytes[place..place + 2].copy_from_slice(&14u16.to_le_bytes());
    }
    fs::write(&path, bytes).unwrap();
    let message = problem(&path);
    assert!(message.contains("entry `a/1.png`: is compressed by a method that is not read"), "{message}");
    assert!(message.contains("pack the zip file again with deflate"), "{message}");
}

#[test]
fn entries_larger_than_they_say_or_than_allowed_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb.zip");
    pack(&path, &[("a/1.png", &vec![0; 1_000_000])]);
    let whole = fs::read(&path).unwrap();
    assert!(whole.len() < 10_000);
    // The size is stated in four bytes, twice: in front of the entry and in the directory at the end.
    let restate = |size: u32| {
        let mut bytes = whole.clone();
        while let Some(place) = bytes.windows(4).position(|part| part == 1_000_000u32.to_le_bytes()) {
            bytes[place..place + 4].copy_from_slice(&size.to_le_bytes());
        }
        fs::write(&path, bytes).unwrap();
    };
    for stated in [1_000, 2_000_000] {
        restate(stated);
        let listing = Listing::find(&path, Wanted::Classes).unwrap();
        let error = listing.read(&listing.pictures[0], &mut OpenFile::default()).unwrap_err();
        let message = error.to_string();
        let reason = message.split_once("entry `a/1.png`: ").map(|(_, reason)| reason);
        let told = reason.is_some_and(|reason| {
            reason.contains("larger than its declared") || reason.contains("number of bytes")
        });
        assert!(error.is_input() && told, "{message}");
    }
    restate(3_000_000_000);
    assert!(
        problem(&path).contains("has 3000000000 bytes; a picture may have at most"),
        "{}",
        problem(&path)
    );
}

#[test]
fn damage_in_a_zip_file_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.zip");
    pack(&path, &[("a/1.png", &png(40, 3))]);
    let mut bytes = fs::read(&path).unwrap();
    let start = bytes.windows(7).position(|part| part == b"a/1.png").unwrap() + 7;
    bytes[start + 20] ^= 0x55;
    fs::write(&path, &bytes).unwrap();
    let listing = Listing::find(&path, Wanted::Classes).unwrap();
    let error = listing.read(&listing.pictures[0], &mut OpenFile::default()).unwrap_err();
    assert!(error.is_input() && error.to_string().contains("a.zip, entry `a/1.png`"), "{error}");
    assert!(error.to_string().contains("again"), "nothing is advised: {error}");
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    assert!(problem(&path).contains("the zip file cannot be read"));
}

#[cfg(unix)]
#[test]
fn links_stay_inside_the_folder() {
    use std::os::unix::fs::symlink;
    let place = tempfile::tempdir().unwrap();
    put(place.path(), "outside/1.png", b"x");
    put(place.path(), "data/a/1.png", b"x");
    let data = place.path().join("data");
    symlink("a", data.join("b")).unwrap();
    symlink("../a/1.png", data.join("a/2.png")).unwrap();
    symlink("nowhere", data.join("dangling.txt")).unwrap();
    symlink("/etc/hostname", data.join("notes")).unwrap();
    let listing = Listing::find(&data, Wanted::Classes).unwrap();
    assert_eq!(paths(&listing), ["a/1.png", "a/2.png", "b/1.png", "b/2.png"]);

    for (target, link, expected) in [
        ("../outside", "c", "is a link out of the folder"),
        ("../../outside/1.png", "a/3.png", "is a link out of the folder"),
        ("..", "a/above", "is a link to a folder that it lies in"),
        ("nowhere", "a/4.png", "is a link to something that is not there; restore it, or remove the link"),
        ("nowhere", "class", "is a link to something that is not there; restore it, or remove the link"),
        ("5.png", "a/5.png", "is a link that leads nowhere ("),
    ] {
        let link = data.join(link);
        symlink(target, &link).unwrap();
        let message = problem(&data);
        assert!(message.contains(expected), "{target}: {message}");
        fs::remove_file(link).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever names are packed, a zip file is refused or its classes stay inside it, and the same names in folders give
    /// the same listing.
    #[test]
    fn zip_files_and_folders_agree(
        names in proptest::collection::btree_set("[ab.]{1,2}(/[ab.]{1,3}){0,2}\\.(png|txt|JPG)", 1..8)
    ) {
        let place = tempfile::tempdir().unwrap();
        let zip = place.path().join("x.zip");
        let content: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), name.as_bytes())).collect();
        pack(&zip, &content);
        match Listing::find(&zip, Wanted::Classes) {
            Ok(packed) => {
                let folder = place.path().join("folder");
                fs::create_dir(&folder).unwrap();
                names.iter().for_each(|name| put(&folder, name, name.as_bytes()));
                let loose = Listing::find(&folder, Wanted::Classes).unwrap();
                prop_assert_eq!(paths(&packed), paths(&loose));
                for (a, b) in packed.pictures.iter().zip(&loose.pictures) {
                    prop_assert!(!a.class.split('/').any(|part| part == ".." || part == "."));
                    let (a, b) = (packed.read(a, &mut OpenFile::default()), loose.read(b, &mut OpenFile::default()));
                    prop_assert_eq!(a.unwrap(), b.unwrap());
                }
            }
            Err(error) => prop_assert!(error.is_input(), "{error}"),
        }
    }

    /// Damaged zip files are read or refused, never more.
    #[test]
    fn damaged_zip_files_never_panic(place in 0usize..4000, value: u8, cut in 0usize..4000) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.zip");
        pack(&path, &[("a/1.png", &png(30, 1)), ("b/1.jpg", &[7; 100]), ("b/2.webp", &[0; 300])]);
        let mut bytes = fs::read(&path).unwrap();
        let index = place % bytes.len();
        bytes[index] = value;
        bytes.truncate(bytes.len().saturating_sub(cut.saturating_sub(3800)));
        fs::write(&path, &bytes).unwrap();
        if let Ok(listing) = Listing::find(&path, Wanted::Classes) {
            for picture in &listing.pictures {
                let _ = listing.read(picture, &mut OpenFile::default());
            }
        }
    }
}
