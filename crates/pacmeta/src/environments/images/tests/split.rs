//! Split files, lists of pictures and drawn splits.

use std::collections::BTreeSet;

use pacmeta_tensor::Key;
use proptest::prelude::*;

use super::*;

fn problem(text: &str) -> String {
    let error = parse_split("split.csv", text.as_bytes()).unwrap_err();
    assert!(error.is_input(), "{error}");
    error.to_string()
}

#[test]
fn split_files_are_read_with_any_of_the_known_columns() {
    for (header, rest) in [("class,split", ""), ("wnid,split", ""), ("extra,label,split", "7,")] {
        let text = format!(
            "{header}\r\n{rest} a ,train\r\n{rest}b,Validation\r\n\r\n{rest}c,val\r\n{rest}d,test\r\n"
        );
        let split = parse_split("s", text.as_bytes()).unwrap();
        let found: Vec<_> = split.rows.iter().map(|row| (row.class.as_str(), row.part, row.line)).collect();
        let expected = [
            ("a", Part::Train, 2),
            ("b", Part::Validation, 3),
            ("c", Part::Validation, 5),
            ("d", Part::Test, 6),
        ];
        assert_eq!(found, expected);
    }
}

#[test]
fn wrong_split_files_are_explained() {
    for (text, expected) in [
        (
            "class,split\na,train\nb,tset\n",
            "split.csv, line 3, column `split`: expected train, val (or validation) or test, found `tset` (did you mean `test`?)",
        ),
        ("class,split\na,train\na,test\n", "class `a` is in train on line 2 and in test here"),
        ("class,split\na,train\na,train\n", "class `a` is already on line 2"),
        ("class,split\n ,train\n", "line 2, column `class`: the class is missing"),
        ("klass,split\na,train\n", "there is no column `class` (did you mean `klass`?)"),
        ("class\na\n", "there is no column `split`"),
        ("class,split\n", "there is no row after the header"),
        (
            "",
            "the file is empty; expected a line with the columns `class` and `split`, then one class a line",
        ),
        ("class,split\na\n", "expected 2 fields as in the header, found 1"),
    ] {
        assert!(problem(text).contains(expected), "{text:?}: {}", problem(text));
    }
}

#[test]
fn classes_that_are_not_there_are_named() {
    let split = parse_split("split.csv", b"class,split\ncat,train\ndgo,test\nemu,test\n").unwrap();
    let message = split.check_classes(&["cat", "dog"]).unwrap_err().to_string();
    assert!(
        message.contains("line 3: 2 of 3 classes have no pictures: `dgo`, `emu` (did you mean `dog`?)"),
        "{message}"
    );
    split.check_classes(&["cat", "dgo", "emu", "fox"]).unwrap();
}

#[test]
fn lists_of_pictures_are_read_and_wrong_ones_explained() {
    let list = parse_picture_list("train.csv", b"label,filename\ncat,a\\b.jpg\n").unwrap();
    assert_eq!(list, [ListedPicture { file: "a/b.jpg".into(), label: "cat".into(), line: 2 }]);
    for (text, expected) in [
        ("filename\na.jpg\n", "there is no column `label`"),
        ("filename,label\na.jpg,\n", "train.csv, line 2, column `label`: the value is missing"),
        ("filename,label\n", "one picture a line"),
        (
            " \r\n",
            "the file is empty; expected a line with the columns `filename` and `label`, then one picture",
        ),
    ] {
        let message = parse_picture_list("train.csv", text.as_bytes()).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}

fn classes(count: usize) -> ImageSet {
    let shape = PictureShape { side: 1, channels: Channels::Grey };
    let class = |index: usize| ImageClass {
        name: format!("c{index:03}, \"quoted\""),
        display_name: format!("class {index}"),
        pictures: vec![index],
    };
    let names = (0..count).map(|index| index.to_string()).collect();
    ImageSet::in_memory("classes", shape, (0..count).map(class).collect(), names, vec![0; count]).unwrap()
}

fn sizes(count: usize, recipe: &SplitRecipe) -> [usize; 3] {
    let set = classes(count);
    let splits = Splits::made(&set, recipe).unwrap();
    let all: BTreeSet<_> = Part::ALL.iter().flat_map(|&part| splits.part(part)).collect();
    assert_eq!(all.len(), count, "every class is in one part");
    Part::ALL.map(|part| splits.part(part).len())
}

#[test]
fn drawn_splits_have_the_asked_fractions_and_enough_classes() {
    let recipe = SplitRecipe::standard(Key::new(1));
    assert_eq!(sizes(100, &recipe), [64, 16, 20]);
    assert_eq!(sizes(20, &recipe), [10, 5, 5]);
    assert_eq!(sizes(15, &recipe), [5, 5, 5]);
    assert_eq!(sizes(14, &recipe), [9, 2, 3], "too few for five each: by fractions, none empty");
    assert_eq!(sizes(3, &recipe), [1, 1, 1]);
    assert_eq!(sizes(1, &recipe).iter().sum::<usize>(), 1);
    assert_eq!(sizes(10, &SplitRecipe { train: 0.5, validation: 0.0, test: 0.5, ..recipe }), [5, 0, 5]);
    assert_eq!(sizes(10, &SplitRecipe { train: 1.0, validation: 0.0, test: 0.0, ..recipe }), [10, 0, 0]);
    for (train, validation, test) in
        [(0.5, 0.2, 0.2), (0.0, 0.5, 0.5), (1.5, -0.5, 0.0), (f64::NAN, 0.5, 0.5)]
    {
        let error =
            Splits::made(&classes(9), &SplitRecipe { train, validation, test, ..recipe }).unwrap_err();
        assert!(error.is_input() && error.to_string().contains("add up to 1"), "{error}");
    }
}

#[test]
fn drawn_splits_are_keyed_and_can_be_written_and_read() {
    let set = classes(40);
    let draw = |seed| Splits::made(&set, &SplitRecipe::standard(Key::new(seed))).unwrap();
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
    let text = draw(1).with_rotations().to_csv(&set);
    let read = parse_split("written.csv", text.as_bytes()).unwrap();
    assert_eq!(read.rows.len(), 40);
    for row in &read.rows {
        let index = set.classes().iter().position(|class| class.name == row.class).unwrap();
        assert!(draw(1).part(row.part).contains(&ClassId::upright(index as u32)));
        assert_eq!(row.display_name.as_ref(), Some(&set.classes()[index].display_name));
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_split_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for result in [parse_split("x", &bytes).err(), parse_picture_list("x", &bytes).err()].into_iter().flatten() {
            prop_assert!(result.is_input());
        }
    }

    #[test]
    fn rows_survive_in_order(
        rows in proptest::collection::btree_map("[a-z,\" ]{0,6}[a-z]", 0usize..3, 1..20),
        blank: bool,
    ) {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(["split", "class"]).unwrap();
        for (class, part) in &rows {
            writer.write_record([Part::ALL[*part].word(), class]).unwrap();
        }
        let mut text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
        if blank {
            text = text.replace('\n', "\r\n\r\n");
        }
        let names: BTreeSet<&str> = rows.keys().map(|class| class.trim()).collect();
        match parse_split("x", text.as_bytes()) {
            Ok(split) => {
                prop_assert_eq!(names.len(), rows.len());
                let found: Vec<_> = split.rows.iter().map(|row| (row.class.as_str(), row.part)).collect();
                let expected: Vec<_> = rows.iter().map(|(class, part)| (class.trim(), Part::ALL[*part])).collect();
                prop_assert_eq!(found, expected);
                let step = if blank { 2 } else { 1 };
                prop_assert!(split.rows.iter().enumerate().all(|(index, row)| row.line == 1 + step * (index + 1)));
            }
            // Names that differ in spaces around them only.
            Err(_) => prop_assert!(names.len() < rows.len()),
        }
    }

    #[test]
    fn drawn_parts_are_never_too_small_without_need(count in 1usize..120, way in 1usize..12, cut in 0.0f64..1.0) {
        let recipe = SplitRecipe { train: 0.5, validation: 0.5 * cut, test: 0.5 - 0.5 * cut, way, key: Key::new(3) };
        let used = [recipe.train, recipe.validation, recipe.test].map(|fraction| fraction > 0.0);
        let found = sizes(count, &recipe);
        let parts = used.iter().filter(|&&used| used).count();
        for part in 0..3 {
            if !used[part] {
                prop_assert_eq!(found[part], 0);
            } else if count >= parts * way {
                prop_assert!(found[part] >= way, "{:?}", found);
            }
        }
    }
}
