//! Damage, other versions, writers at once, folders that cannot be written.

use super::*;
use crate::environments::images::Channels;
use crate::environments::images::source::{OpenFile, Wanted};
use crate::environments::images::tests::files::{png, put};

const SHAPE: PictureShape = PictureShape { side: 4, channels: Channels::Grey };

/// A listing of five pictures, the folder it is in, and a folder for the cache.
fn place() -> (tempfile::TempDir, Listing, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    for index in 0..5 {
        put(folder.path(), &format!("data/a/{index}.png"), &png(4, 50 * index));
    }
    let listing = Listing::find(&folder.path().join("data"), Wanted::Classes).unwrap();
    let cache = folder.path().join("cache");
    (folder, listing, cache)
}

fn open(cache: &Path, listing: &Listing) -> Result<CachedPixels> {
    let pictures: Vec<&Found> = listing.pictures.iter().collect();
    open_or_make(cache, listing, &pictures, SHAPE, &mut ())
}

fn assert_right(pixels: &CachedPixels) {
    let expected: Vec<u8> = (0..5).flat_map(|index| [50 * index; 16]).collect();
    assert_eq!(pixels.bytes(), expected);
}

fn pixel_file(cache: &Path) -> PathBuf {
    let mut files = fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.extension().is_some_and(|ending| ending == "pixels")).unwrap()
}

#[test]
fn a_damaged_file_is_made_anew() {
    let (_folder, listing, cache) = place();
    assert_right(&open(&cache, &listing).unwrap());
    let path = pixel_file(&cache);
    let whole = fs::read(&path).unwrap();
    assert_eq!(whole.len(), HEADER_BYTES + 80);
    let mut damaged: Vec<Vec<u8>> =
        vec![Vec::new(), whole[..whole.len() - 1].to_vec(), whole[..100].to_vec()];
    damaged.push([whole.clone(), vec![0]].concat());
    damaged.extend((0..CHECKED_BYTES + 8).map(|place| {
        let mut bytes = whole.clone();
        bytes[place] ^= 4;
        bytes
    }));
    for bytes in damaged {
        fs::write(&path, &bytes).unwrap();
        assert_right(&open(&cache, &listing).unwrap());
        assert_eq!(fs::read(&path).unwrap(), whole, "made anew");
    }
}

#[test]
fn counts_of_changes_are_kept() {
    let (folder, _, cache) = place();
    put(folder.path(), "data/a/9.png", &png(7, 0));
    let listing = Listing::find(&folder.path().join("data"), Wanted::Classes).unwrap();
    for _ in 0..2 {
        assert_eq!(open(&cache, &listing).unwrap().changes, Changes { resized: 1, converted: 0 });
    }
}

#[test]
fn the_key_depends_on_everything_that_pixels_depend_on() {
    let (_folder, listing, _) = place();
    let key = |change: fn(&mut Found), shape: PictureShape| {
        let mut pictures: Vec<Found> = listing.pictures.clone();
        change(&mut pictures[2]);
        Header::new(&pictures.iter().collect::<Vec<_>>(), shape).key
    };
    let keys = [
        key(|_| {}, SHAPE),
        key(|_| {}, PictureShape { side: 5, ..SHAPE }),
        key(|_| {}, PictureShape { channels: Channels::Colour, ..SHAPE }),
        key(|picture| picture.name = "x.png".into(), SHAPE),
        key(|picture| picture.class = "b".into(), SHAPE),
        key(|picture| (picture.class, picture.name) = ("a2".into(), ".png".into()), SHAPE),
        key(|picture| picture.length += 1, SHAPE),
        key(|picture| picture.stamp = Stamp::Crc32c(7), SHAPE),
        key(|picture| picture.stamp = Stamp::Crc32(7), SHAPE),
    ];
    for (index, key) in keys.iter().enumerate() {
        assert!(!keys[..index].contains(key), "key {index}");
    }
}

/// As `rsync --times` or an unpacker would leave it.
#[test]
fn another_picture_of_the_same_length_and_time_is_noticed() {
    let (folder, listing, cache) = place();
    assert_right(&open(&cache, &listing).unwrap());
    let path = folder.path().join("data/a/2.png");
    let before = fs::metadata(&path).unwrap();
    let other = (0..=255).find(|&value| value != 100 && png(4, value).len() as u64 == before.len()).unwrap();
    fs::write(&path, png(4, other)).unwrap();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_modified(before.modified().unwrap()).unwrap();
    drop(file);
    let now = fs::metadata(&path).unwrap();
    assert_eq!((now.len(), now.modified().unwrap()), (before.len(), before.modified().unwrap()));
    let listing = Listing::find(&folder.path().join("data"), Wanted::Classes).unwrap();
    assert_eq!(open(&cache, &listing).unwrap().bytes()[32..48], [other; 16]);
}

#[test]
fn a_picture_that_changes_while_it_is_read_is_refused() {
    let (folder, listing, _) = place();
    let pictures = with_stamps(&listing, &listing.pictures.iter().collect::<Vec<_>>(), &()).unwrap();
    let read = |picture: &Found| listing.read(picture, &mut OpenFile::default());
    assert_eq!(read(&pictures[1]).unwrap(), png(4, 50));
    put(folder.path(), "data/a/1.png", &png(4, 51));
    let error = read(&pictures[1]).unwrap_err();
    assert!(error.is_input() && error.to_string().contains("1.png: was changed"), "{error}");
}

#[test]
fn two_writers_at_once_make_one_whole_file() {
    let (_folder, listing, cache) = place();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_right(&open(&cache, &listing).unwrap()));
        }
    });
    let mut endings: Vec<_> = fs::read_dir(&cache)
        .unwrap()
        .map(|entry| entry.unwrap().path().extension().unwrap().to_owned())
        .collect();
    endings.sort();
    assert_eq!(endings, ["lock", "pixels"], "no temporary file stays");
}

#[test]
fn what_a_crash_left_is_cleared_away() {
    let (_folder, listing, cache) = place();
    fs::create_dir(&cache).unwrap();
    let pictures = with_stamps(&listing, &listing.pictures.iter().collect::<Vec<_>>(), &()).unwrap();
    let header = Header::new(&pictures.iter().collect::<Vec<_>>(), SHAPE);
    let stale = cache.join(format!("{}xyz.tmp", header.temporary_prefix()));
    let other = cache.join(".pacmeta-0123-abc.tmp");
    fs::write(&stale, b"half").unwrap();
    fs::write(&other, b"somebody else's").unwrap();
    assert_right(&open(&cache, &listing).unwrap());
    assert!(!stale.exists() && other.exists());
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error_that_names_it() {
    let (folder, listing, _) = place();
    put(folder.path(), "occupied", b"a file");
    let error = open(&folder.path().join("occupied"), &listing).unwrap_err();
    for words in ["cannot create the cache folder", "4176 bytes are needed", "`data.cache`"] {
        assert!(error.to_string().contains(words), "{error}");
    }
    let error = open(&folder.path().join("occupied/below"), &listing).unwrap_err();
    assert!(error.is_input() && error.to_string().contains("occupied/below"), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_that_names_the_file() {
    let (_folder, listing, _) = place();
    let pictures: Vec<&Found> = listing.pictures.iter().collect();
    let mut full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let header = Header::new(&pictures, SHAPE);
    let path = Path::new("cache/x.pixels");
    let error = write_pixels(&mut full, path, header, &listing, &pictures, SHAPE, &mut ()).unwrap_err();
    assert!(
        matches!(&error, Error::Cache { source, .. } if source.kind() == io::ErrorKind::StorageFull)
            && error.is_input(),
        "{error}"
    );
    let message = error.to_string();
    assert!(message.starts_with("cannot write decoded pictures to cache/x.pixels: "), "{message}");
    let advice = "4176 bytes are needed; free some space, or name another folder for decoded pictures by `data.cache` \
                  (`reproduce`: `--cache`)";
    assert!(message.ends_with(advice), "{message}");
}

#[test]
fn a_failed_decoding_leaves_no_file() {
    let (folder, _, cache) = place();
    put(folder.path(), "data/a/8.png", &png(4, 0)[..30]);
    let listing = Listing::find(&folder.path().join("data"), Wanted::Classes).unwrap();
    let error = open(&cache, &listing).unwrap_err().to_string();
    assert!(error.contains("8.png: the picture is damaged or cut short"), "{error}");
    let left: Vec<_> = fs::read_dir(&cache).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.iter().all(|path| path.extension().is_some_and(|ending| ending == "lock")), "{left:?}");
}
