//! The public benchmarks, where they lie in `../shared/data` beside the repository.

use super::*;
use crate::environments::images::source::{Listing, OpenFile, Wanted};

/// A folder of the benchmarks, if it is there.
fn benchmark(name: &str) -> Option<std::path::PathBuf> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(name);
    let there = path.is_dir();
    if !there {
        eprintln!("skipped: there is no {}", path.display());
    }
    there.then_some(path)
}

#[test]
fn mini_imagenet_is_as_published() {
    let Some(path) = benchmark("miniimagenet") else { return };
    let listing = Listing::find(&path, Wanted::Classes).unwrap();
    assert_eq!(listing.pictures.len(), 60_000);
    let split = parse_split("split.csv", &std::fs::read(path.join("split.csv")).unwrap()).unwrap();
    let count = |part| split.rows.iter().filter(|row| row.part == part).count();
    assert_eq!(Part::ALL.map(count), [64, 16, 20]);
    let mut classes: Vec<&str> = listing.pictures.iter().map(|picture| picture.class.as_str()).collect();
    assert!(classes.chunk_by(|a, b| a == b).all(|class| class.len() == 600));
    classes.dedup();
    split.check_classes(&classes).unwrap();
    assert_eq!((classes.len(), split.rows[0].display_name.as_deref()), (100, Some("house_finch")));

    // Every 15th picture, 40 of each class: a standard error of the mean of about 0.0025 with classes evenly covered.
    let shape = PictureShape { side: 84, channels: Channels::Colour };
    let sample: Vec<_> = listing.pictures.iter().step_by(15).collect();
    let (mut sums, mut squares, mut pixels) = ([0.0; 3], [0.0; 3], 0.0);
    let changes = parallel::decode_in_order(&listing, &sample, shape, &mut (), |part| {
        for pixel in part.chunks_exact(3) {
            for channel in 0..3 {
                let value = f64::from(pixel[channel]) / 255.0;
                sums[channel] += value;
                squares[channel] += value * value;
            }
            pixels += 1.0;
        }
        Ok(())
    });
    assert_eq!(changes.unwrap(), Changes::default(), "nothing is resized or converted");
    for channel in 0..3 {
        let mean: f64 = sums[channel] / pixels;
        let std = (squares[channel] / pixels - mean * mean).sqrt();
        println!("channel {channel}: mean {mean:.4}, standard deviation {std:.4}");
        assert!((mean - [0.4724, 0.4497, 0.4041][channel]).abs() < 3e-3, "channel {channel}: mean {mean}");
        assert!((std - [0.2695, 0.2640, 0.2760][channel]).abs() < 3e-3, "channel {channel}: std {std}");
    }
}

#[test]
fn omniglot_has_1623_characters_of_20_pictures() {
    let Some(path) = benchmark("omniglot") else { return };
    let listing = Listing::find(&path, Wanted::Classes).unwrap();
    let classes: Vec<_> = listing.pictures.chunk_by(|a, b| a.class == b.class).collect();
    assert_eq!((classes.len(), listing.pictures.len()), (1623, 32_460));
    assert!(classes.iter().all(|class| class.len() == 20));
    let background = classes.iter().filter(|class| class[0].class.starts_with("images_background/"));
    assert_eq!(background.count(), 964);
    let (first, mut open) = (&listing.pictures[0], OpenFile::default());
    assert_eq!(first.class, "images_background/Alphabet_of_the_Magi/character01");
    let bytes = listing.read(first, &mut open).unwrap();
    let shape = PictureShape { side: 105, channels: Channels::Grey };
    let (pixels, changes) = decode_picture("first", &bytes, shape).unwrap();
    assert_eq!(changes, Changes::default());
    assert!(pixels.iter().all(|&pixel| pixel == 0 || pixel == 255), "black ink on white paper");
    let ink = pixels.iter().filter(|&&pixel| pixel == 0).count();
    assert!((100..3000).contains(&ink), "{ink} pixels of ink");
    let (small, changes) = decode_picture("first", &bytes, PictureShape { side: 28, ..shape }).unwrap();
    assert_eq!((small.len(), changes.resized), (784, 1));
}

/// `cargo test -p pacmeta time_of_decoding -- --ignored --nocapture` tells how long a first start takes.
#[test]
#[ignore = "decodes 60,000 pictures and prints the time"]
fn time_of_decoding() {
    let Some(path) = benchmark("miniimagenet") else { return };
    let cache = tempfile::tempdir().unwrap();
    let options = ImageOptions {
        storage: Storage::CacheIn(cache.path().to_path_buf()),
        split: SplitChoice::Path(path.join("split.csv")),
        ..ImageOptions::small(path, PictureShape { side: 84, channels: Channels::Colour })
    };
    for attempt in ["decoded", "from the cache"] {
        let start = std::time::Instant::now();
        let opened = open_images(&options, &mut ()).unwrap();
        println!("{attempt}: {} pictures in {:.2?}", opened.set.len(), start.elapsed());
        assert_eq!((opened.set.len(), opened.splits.train.len()), (60_000, 64));
    }
}

/// `cargo test -p pacmeta time_of_drawing -- --ignored --nocapture` tells how long generated characters take.
#[test]
#[ignore = "draws 10,000 pictures and prints the time"]
fn time_of_drawing() {
    let shape = PictureShape { side: 84, channels: Channels::Colour };
    let start = std::time::Instant::now();
    let set = strokes(&StrokeOptions { classes: 100, pictures: 100, shape, seed: 0 }).unwrap();
    println!("{} pictures in {:.2?}", set.len(), start.elapsed());
    assert_eq!(set.len(), 10_000);
}
