//! Split files and lists of pictures in CSV.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pacmeta::environments::images::{
    Channels, ClassId, ImageClass, ImageSet, Part, PictureShape, Splits, parse_picture_list, parse_split,
};

fuzz_target!(|bytes: &[u8]| {
    let _ = parse_picture_list("fuzz.csv", bytes);
    let Ok(split) = parse_split("fuzz.csv", bytes) else { return };
    // A set with just these classes writes a split that reads the same.
    let class = |(index, row): (usize, &pacmeta::environments::images::SplitRow)| ImageClass {
        name: row.class.clone(),
        display_name: row.display_name.clone().unwrap_or_else(|| row.class.clone()),
        pictures: vec![index],
    };
    let classes: Vec<ImageClass> = split.rows.iter().enumerate().map(class).collect();
    let count = classes.len();
    let shape = PictureShape { side: 1, channels: Channels::Grey };
    let set = ImageSet::in_memory("fuzz", shape, classes, vec![String::new(); count], vec![0; count])
        .expect("one byte a picture");
    let mut splits = Splits::default();
    for (index, row) in split.rows.iter().enumerate() {
        let part = match row.part {
            Part::Train => &mut splits.train,
            Part::Validation => &mut splits.validation,
            Part::Test => &mut splits.test,
        };
        part.push(ClassId::upright(index as u32));
    }
    let again = parse_split("again.csv", splits.to_csv(&set).as_bytes()).expect("what was written can be read");
    assert_eq!(again.rows.len(), count);
    for row in &split.rows {
        assert!(again.rows.iter().any(|other| other.class == row.class && other.part == row.part));
    }
});
