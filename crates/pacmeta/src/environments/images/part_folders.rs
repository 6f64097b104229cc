//! Folders called after the parts: `train/<class>`, `val/<class>` and `test/<class>`, the usual layout of data for
//! supervised learning. They say how the classes are divided, for a draw over them would put one class into two parts.

use std::collections::BTreeMap;
use std::path::Path;

use super::plan::PlannedClass;
use super::split::Part;
use crate::environments::table::{counted, listed, quoted};
use crate::error::{Error, Result};

/// Gives every class the part of its folder and the name below it, if the folders are called after at least two parts; says
/// so then. Folders that hold all others do not count: zip files often have one.
///
/// # Errors
/// When two folders of parts have a class of the same name, or pictures lie beside the folders of classes.
pub(super) fn divide(root: &Path, classes: &mut [PlannedClass]) -> Result<Option<String>> {
    let names: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
    let Some(above) = common_folders(&names) else { return Ok(None) };
    let Some(placed) = names.iter().map(|name| Placed::of(&name[above..])).collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let has_part = |part: &&Part| placed.iter().any(|class| class.part == **part);
    let parts = Part::ALL.iter().filter(has_part).count();
    let has_classes = placed.iter().any(|class| !class.rest.is_empty());
    // One part with classes beside another one with pictures of all classes is an error below, not two classes.
    if !has_classes || parts < 2 {
        return Ok(None);
    }
    let wrong = |message: String| Error::input(root.display(), message);
    if let Some(index) = placed.iter().position(|class| class.rest.is_empty()) {
        return Err(wrong(format!(
            "{} in {} in no folder of a class; expected train/<class>, val/<class> and test/<class>, so give each class a \
             folder of its own",
            match classes[index].pictures.len() {
                1 => "1 picture lies".to_owned(),
                count => format!("{} lie", counted(count, "picture")),
            },
            quoted(names[index])
        )));
    }
    let mut seen: BTreeMap<&str, Vec<Part>> = BTreeMap::new();
    for class in &placed {
        seen.entry(class.rest).or_default().push(class.part);
    }
    let twice: Vec<(&str, Vec<Part>)> = seen.into_iter().filter(|(_, parts)| parts.len() > 1).collect();
    if let Some((name, parts)) = twice.first() {
        return Err(wrong(format!(
            "class {} is in {} and in {}{}; a class seen in training is no test, so give the parts different classes (or put \
             the classes side by side, each into one folder, to have them divided)",
            quoted(name),
            parts[0].word(),
            parts[1].word(),
            match twice.len() - 1 {
                0 => String::new(),
                more => format!(", and {more} more are in two parts"),
            }
        )));
    }
    let mut folders: Vec<String> = placed.iter().map(|class| class.folder.to_owned()).collect();
    folders.dedup();
    let counts = Part::ALL.map(|part| placed.iter().filter(|class| class.part == part).count());
    let named: Vec<(Part, String)> = placed.iter().map(|class| (class.part, class.rest.to_owned())).collect();
    for (class, (part, name)) in classes.iter_mut().zip(named) {
        class.part = Some(part);
        class.display_name = name;
    }
    let [train, validation, test] = counts;
    Ok(Some(format!(
        "the split is that of the folders {}: {train} classes for training, {validation} for validation, {test} for the test",
        listed(folders.iter().map(String::as_str))
    )))
}

/// A class below the folder of a part.
struct Placed<'a> {
    part: Part,
    folder: &'a str,
    /// The name below that folder; empty for its own pictures.
    rest: &'a str,
}

impl<'a> Placed<'a> {
    fn of(name: &'a str) -> Option<Self> {
        let (folder, rest) = name.split_once('/').unwrap_or((name, ""));
        Some(Self { part: Part::of_folder(folder)?, folder, rest })
    }
}

/// The length of the folders above all classes, the last `/` included; none if there are no classes.
fn common_folders(names: &[&str]) -> Option<usize> {
    let (first, others) = names.split_first()?;
    let folders = first.match_indices('/').map(|(place, _)| place + 1);
    let common = folders.take_while(|&end| others.iter().all(|name| name.starts_with(&first[..end])));
    Some(common.last().unwrap_or(0))
}
