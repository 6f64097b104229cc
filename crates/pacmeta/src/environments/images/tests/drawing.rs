//! Sets in memory: turning, episodes, generated characters.

use std::collections::BTreeSet;

use pacmeta_tensor::Key;

use super::*;

const GREY: PictureShape = PictureShape { side: 28, channels: Channels::Grey };

/// A set of 3 x 3 pictures whose class c has the sizes given; pixel values are the picture's number.
fn plain_set(sizes: &[usize]) -> ImageSet {
    let total: usize = sizes.iter().sum();
    let mut first = 0;
    let classes = sizes.iter().enumerate().map(|(class, &size)| {
        first += size;
        let name = format!("class-{class}");
        ImageClass { display_name: name.clone(), name, pictures: (first - size..first).collect() }
    });
    let shape = PictureShape { side: 3, channels: Channels::Grey };
    let pixels = (0..total).flat_map(|picture| [picture as u8; 9]).collect();
    let names = (0..total).map(|picture| format!("{picture}.png")).collect();
    ImageSet::in_memory("plain", shape, classes.collect(), names, pixels).unwrap()
}

#[test]
fn a_quarter_turn_is_clockwise_and_four_are_none() {
    let shape = PictureShape { side: 2, channels: Channels::Colour };
    let pixels: Vec<u8> = [1, 2, 3, 4].into_iter().flat_map(|value| [value, 10 * value, 100]).collect();
    let class = ImageClass { name: "a".into(), display_name: "a".into(), pictures: vec![0] };
    let set = ImageSet::in_memory("one", shape, vec![class], vec!["a/1".into()], pixels).unwrap();
    let turned = |turns| {
        let mut out = Vec::new();
        set.append_turned(0, turns, &mut out);
        assert!(out.chunks(3).all(|pixel| pixel[1] == 10 * pixel[0] && pixel[2] == 100), "{out:?}");
        out.chunks(3).map(|pixel| pixel[0]).collect::<Vec<_>>()
    };
    assert_eq!(turned(0), [1, 2, 3, 4]);
    assert_eq!(turned(1), [3, 1, 4, 2]);
    assert_eq!(turned(2), [4, 3, 2, 1]);
    assert_eq!(turned(3), [2, 4, 1, 3]);
    assert_eq!(turned(4), turned(0));
}

#[test]
fn a_set_whose_numbers_disagree_is_refused() {
    let shape = PictureShape { side: 2, channels: Channels::Grey };
    let class = |pictures| ImageClass { name: "a".into(), display_name: "a".into(), pictures };
    let short = ImageSet::in_memory("x", shape, vec![class(vec![0])], vec!["1".into()], vec![0; 3]);
    assert!(short.unwrap_err().to_string().contains("3 bytes are not those of 1 pictures of 4 bytes"));
    let beyond = ImageSet::in_memory("x", shape, vec![class(vec![1])], vec!["1".into()], vec![0; 4]);
    assert!(beyond.unwrap_err().to_string().contains("class `a` has a picture that is not there"));
    let huge = PictureShape { side: 1 << 20, ..shape };
    assert!(
        ImageSet::in_memory("x", huge, vec![], vec![], vec![]).unwrap_err().to_string().contains("data.side")
    );
}

#[test]
fn episodes_are_in_the_stated_order_without_repetition() {
    let set = plain_set(&[30, 25, 40, 30, 30, 35]);
    let classes = set.class_ids();
    let sampler = EpisodeSampler { way: 4, shots: 20 };
    sampler.check(&set, &classes, "training").unwrap();
    let mut orders = BTreeSet::new();
    for index in 0..50 {
        let episode = sampler.draw(&set, &classes, Key::new(3).index(index));
        assert_eq!((episode.len(), episode.way()), (80, 4));
        let distinct: BTreeSet<_> = episode.pictures.iter().map(|picture| picture.index).collect();
        assert_eq!(distinct.len(), 80);
        assert_eq!(episode.classes.iter().collect::<BTreeSet<_>>().len(), 4);
        for (example, picture) in episode.pictures.iter().enumerate() {
            assert_eq!(episode.labels[example], example % 4);
            let class = episode.classes[episode.labels[example]];
            assert!(set.classes()[class.class as usize].pictures.contains(&picture.index));
        }
        assert_eq!(episode.first_shots(3), 0..12);
        let mut pixels = vec![7; 3];
        episode.copy_pixels(&set, 4..12, &mut pixels);
        let expected: Vec<u8> =
            episode.pictures[4..12].iter().flat_map(|picture| [picture.index as u8; 9]).collect();
        assert_eq!(pixels, expected);
        orders.insert(episode.classes);
    }
    assert!(orders.len() > 40, "classes come in random order: {} of 360 orders", orders.len());
}

#[test]
fn an_episode_is_a_function_of_its_key() {
    let set = plain_set(&[30; 8]);
    let classes = set.class_ids();
    let sampler = EpisodeSampler { way: 5, shots: 4 };
    let draw = |seed| sampler.draw(&set, &classes, Key::new(seed));
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1).pictures, draw(2).pictures);
}

#[test]
fn every_class_and_picture_is_drawn_equally_often() {
    let set = plain_set(&[6; 5]);
    let classes = set.class_ids();
    let sampler = EpisodeSampler { way: 2, shots: 3 };
    let mut counts = vec![0usize; set.len()];
    let draws = 5_000;
    for index in 0..draws {
        for picture in sampler.draw(&set, &classes, Key::new(9).index(index)).pictures {
            counts[picture.index] += 1;
        }
    }
    // Each picture is in an episode with probability 2/5 * 3/6 = 0.2: mean 1000, standard deviation 28.
    assert!(counts.iter().all(|&count| (860..1140).contains(&count)), "{counts:?}");
}

#[test]
fn too_few_classes_or_pictures_are_explained() {
    let set = plain_set(&[20, 3, 20, 5]);
    let message = |way, shots| {
        let sampler = EpisodeSampler { way, shots };
        sampler.check(&set, &set.class_ids(), "training").unwrap_err().to_string()
    };
    assert!(
        message(5, 1).contains("the training part has 4 classes, and a task takes 5"),
        "{}",
        message(5, 1)
    );
    assert!(message(5, 1).contains("every part needs `data.way`"), "{}", message(5, 1));
    assert!(message(2, 4).contains("lower `data.shots`, or leave"), "{}", message(2, 4));
    let of_test = EpisodeSampler { way: 2, shots: 4 }.check(&set, &set.class_ids(), "test").unwrap_err();
    assert!(of_test.to_string().contains("lower `data.support` or `data.query`, or leave"), "{of_test}");
    assert!(message(1, 1).contains("at least 2 classes"), "{}", message(1, 1));
    assert!(message(2, 0).contains("1 picture of each"), "{}", message(2, 0));
    let pictures = message(4, 10);
    assert!(
        pictures.contains("2 classes of the training part have fewer than the 10 pictures"),
        "{pictures}"
    );
    assert!(pictures.contains("`class-1` (3), `class-3` (5)"), "{pictures}");
    assert!(pictures.contains("`data.min_examples = 10`"), "{pictures}");
}

#[test]
fn rotations_quadruple_the_classes_and_turn_the_pictures() {
    let set = strokes(&StrokeOptions { classes: 6, pictures: 5, shape: GREY, seed: 1 }).unwrap();
    let upright = Splits { train: set.class_ids(), ..Splits::default() };
    let splits = upright.with_rotations();
    assert_eq!(splits.train.len(), 24);
    assert_eq!(splits.with_rotations(), splits);
    let sampler = EpisodeSampler { way: 24, shots: 5 };
    let episode = sampler.draw(&set, &splits.train, Key::new(4));
    let mut seen = BTreeSet::new();
    for (example, picture) in episode.pictures.iter().enumerate() {
        assert_eq!(picture.quarter_turns, episode.classes[example % 24].quarter_turns);
        seen.insert((picture.index, picture.quarter_turns));
    }
    assert_eq!(seen.len(), 120);
    let one = episode.pictures.iter().position(|picture| picture.quarter_turns == 2).unwrap();
    let mut pixels = Vec::new();
    episode.copy_pixels(&set, one..one + 1, &mut pixels);
    pixels.reverse();
    assert_eq!(pixels, set.pixels(episode.pictures[one].index));
}

#[test]
fn a_larger_generated_set_contains_the_smaller() {
    let options = StrokeOptions { classes: 4, pictures: 3, shape: GREY, seed: 5 };
    let (small, large) =
        (strokes(&options).unwrap(), strokes(&StrokeOptions { classes: 6, pictures: 8, ..options }).unwrap());
    for class in 0..4 {
        for picture in 0..3 {
            let pixels = |set: &ImageSet| set.pixels(set.classes()[class].pictures[picture]).to_vec();
            assert_eq!(pixels(&small), pixels(&large));
        }
    }
    let other = strokes(&StrokeOptions { seed: 6, ..options }).unwrap();
    assert_ne!(small.pixels(0), other.pixels(0));
}

#[test]
fn generated_characters_have_ink_on_paper_of_every_shape() {
    for (side, channels) in
        [(1, Channels::Grey), (8, Channels::Grey), (28, Channels::Grey), (84, Channels::Colour)]
    {
        let shape = PictureShape { side, channels };
        let set = strokes(&StrokeOptions { classes: 5, pictures: 6, shape, seed: 2 }).unwrap();
        assert_eq!((set.side(), set.channels(), set.len()), (side, channels.count(), 30));
        for picture in (0..set.len()).filter(|_| side > 8) {
            let pixels = set.pixels(picture);
            let (low, high) = (*pixels.iter().min().unwrap(), *pixels.iter().max().unwrap());
            assert!(u32::from(high - low) > 80, "picture {picture}: {low}..{high}");
            let grey = |pixel: &[u8]| pixel.iter().map(|&value| u32::from(value)).sum::<u32>();
            let paper = grey(&pixels[..channels.count()]); // a corner, which is hardly ever written on
            let inked = pixels.chunks(channels.count()).filter(|pixel| grey(pixel) + 20 < paper).count();
            let part = inked as f64 / (side * side) as f64;
            assert!((0.02..0.5).contains(&part), "picture {picture}: {part} of the paper has ink");
        }
    }
    let shape = GREY;
    assert!(strokes(&StrokeOptions { classes: 0, pictures: 1, shape, seed: 0 }).unwrap_err().is_input());
    let endless = StrokeOptions { classes: usize::MAX, pictures: 2, shape, seed: 0 };
    assert!(strokes(&endless).unwrap_err().to_string().contains("fit into memory"));
}

#[test]
fn one_example_tells_the_character_better_than_chance_but_not_surely() {
    let set = strokes(&StrokeOptions { classes: 60, pictures: 12, shape: GREY, seed: 3 }).unwrap();
    let sampler = EpisodeSampler { way: 5, shots: 3 };
    let (mut right, mut total) = (0, 0);
    let mut pixels = Vec::new();
    for index in 0..400 {
        let episode = sampler.draw(&set, &set.class_ids(), Key::new(8).index(index));
        episode.copy_pixels(&set, 0..episode.len(), &mut pixels);
        let picture = |example: usize| &pixels[example * 784..(example + 1) * 784];
        for query in 5..episode.len() {
            let distance = |support: usize| -> i64 {
                let pairs = picture(query).iter().zip(picture(support));
                pairs.map(|(&a, &b)| (i64::from(a) - i64::from(b)).pow(2)).sum()
            };
            right += usize::from((0..5).min_by_key(|&support| distance(support)) == Some(query % 5));
            total += 1;
        }
    }
    let accuracy = f64::from(right as u32) / f64::from(total);
    println!("nearest neighbour on pixels, 5 classes, 1 shot: {accuracy}");
    assert!((0.35..0.9).contains(&accuracy), "chance is 0.2, found {accuracy}");
}

/// `PACMETA_SHEET=sheet.png cargo test -p pacmeta contact_sheet -- --ignored` draws characters to look at.
#[test]
#[ignore = "writes a picture for people to look at"]
fn contact_sheet() {
    let path = std::env::var("PACMETA_SHEET").unwrap();
    let shape = PictureShape { side: 56, channels: Channels::Colour };
    let set = strokes(&StrokeOptions { classes: 14, pictures: 16, shape, seed: 11 }).unwrap();
    let mut sheet = image::RgbImage::new(16 * 58, 14 * 58);
    for picture in 0..set.len() {
        let tile = image::RgbImage::from_raw(56, 56, set.pixels(picture).to_vec()).unwrap();
        let (column, row) = ((picture % 16) as i64 * 58, (picture / 16) as i64 * 58);
        image::imageops::replace(&mut sheet, &tile, column, row);
    }
    sheet.save(&path).unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() > 1000);
}
