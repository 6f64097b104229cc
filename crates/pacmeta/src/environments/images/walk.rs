//! A walk through folders, sorted, that follows links only as long as they stay inside.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::source::{Listing, SPLIT_FILES, ending, is_hidden, is_picture, join, stem};
use crate::error::{Error, Result};

/// Folders in folders deeper than this are refused rather than followed.
const MAX_DEPTH: usize = 64;

/// Adds all pictures in a folder, its folders and its zip files.
pub(super) fn folder(root: &Path, listing: &mut Listing) -> Result<()> {
    let inside = fs::canonicalize(root).map_err(|source| Error::io("read", root, source))?;
    let mut walk = Walk { inside: inside.clone(), above: vec![inside], listing };
    walk.descend(root, "")
}

struct Walk<'a> {
    /// The root, without links.
    inside: PathBuf,
    /// The folders on the way from the root to the present one, without links.
    above: Vec<PathBuf>,
    listing: &'a mut Listing,
}

impl Walk<'_> {
    fn descend(&mut self, folder: &Path, class: &str) -> Result<()> {
        let list_error = |source| Error::io("list", folder, source);
        let mut entries = Vec::new();
        for entry in fs::read_dir(folder).map_err(list_error)? {
            let entry = entry.map_err(list_error)?;
            entries.push((entry.file_name(), entry.path(), entry.file_type().map_err(list_error)?));
        }
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, path, kind) in entries {
            let shown = name.to_string_lossy();
            if is_hidden(&shown) {
                continue;
            }
            let kind = if kind.is_symlink() {
                let Some(kind) = self.target(&path, &shown)? else { continue };
                kind
            } else {
                kind
            };
            let is_archive = kind.is_file() && ending(&shown) == "zip";
            if !(kind.is_dir() || is_archive || (kind.is_file() && is_picture(&shown))) {
                if !(class.is_empty() && SPLIT_FILES.contains(&&*shown)) {
                    self.listing.pass_over(&shown, || path.display().to_string());
                }
                continue;
            }
            let Some(name) = name.to_str() else {
                return Err(Error::input(path.display(), "the name is not UTF-8; rename the file or folder"));
            };
            if kind.is_dir() {
                self.enter(&path, &join(class, name))?;
            } else if is_archive {
                self.listing.add_archive(&path, &join(class, stem(name)))?;
            } else {
                self.listing.add_file(&path, class, name)?;
            }
        }
        Ok(())
    }

    fn enter(&mut self, path: &Path, class: &str) -> Result<()> {
        let canonical = fs::canonicalize(path).map_err(|source| Error::io("read", path, source))?;
        if self.above.contains(&canonical) {
            return Err(Error::input(path.display(), "is a link to a folder that it lies in; remove it"));
        }
        if self.above.len() > MAX_DEPTH {
            return Err(Error::input(
                path.display(),
                format!("the folders are nested more than {MAX_DEPTH} deep; choose a folder further inside"),
            ));
        }
        self.above.push(canonical);
        let before = self.listing.found();
        self.descend(path, class)?;
        self.listing.remember_if_bare(class, before);
        self.above.pop();
        Ok(())
    }

    /// What a link leads to; none if that is no matter of ours.
    fn target(&self, path: &Path, name: &str) -> Result<Option<fs::FileType>> {
        let canonical = match fs::canonicalize(path) {
            Ok(canonical) => canonical,
            // What has no ending may have been a class.
            Err(_) if !is_picture(name) && !matches!(&*ending(name), "zip" | "") => return Ok(None),
            Err(source) if source.kind() == ErrorKind::PermissionDenied => {
                return Err(Error::io("follow the link", path, source));
            }
            Err(source) if source.kind() == ErrorKind::NotFound => {
                let message = "is a link to something that is not there; restore it, or remove the link";
                return Err(Error::input(path.display(), message));
            }
            Err(source) => {
                let message = format!("is a link that leads nowhere ({source}); remove it");
                return Err(Error::input(path.display(), message));
            }
        };
        let kind = fs::metadata(&canonical).map_err(|source| Error::io("read", path, source))?.file_type();
        let matters = kind.is_dir() || is_picture(name) || ending(name) == "zip";
        if matters && !canonical.starts_with(&self.inside) {
            return Err(Error::input(
                path.display(),
                format!(
                    "is a link out of the folder, to {}; copy what it leads to, or choose a folder that holds both",
                    canonical.display()
                ),
            ));
        }
        Ok(matters.then_some(kind))
    }
}
