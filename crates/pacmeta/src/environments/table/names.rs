//! By which names features are looked for.

/// The names of the features that a file is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeatureNames {
    /// Those of a prior. Where nobody named them ([`are_default_names`]) and the file has other names, exactly as many, they are
    /// taken in their order.
    Prior(Vec<String>),
    /// Those of the support, which its queries have too.
    Support(Vec<String>),
}

impl FeatureNames {
    /// The names, in the prior's order.
    pub fn names(&self) -> &[String] {
        match self {
            Self::Prior(names) | Self::Support(names) => names,
        }
    }

    /// Whether a file with these names has its features in order: nobody named those wanted, and none of them is there.
    pub(super) fn are_in_order(&self, mut found: impl Iterator<Item = impl AsRef<str>>) -> bool {
        self.are_nobodys() && !found.any(|name| self.names().iter().any(|own| own == name.as_ref()))
    }

    /// What queries of a support with these names are to have.
    pub(super) fn of_queries(&self, found: Option<Vec<String>>) -> Self {
        match found {
            Some(found) if self.are_nobodys() => Self::Support(found),
            _ => self.clone(),
        }
    }

    /// What to do when one of them is not there.
    pub(super) fn remedy(&self) -> &'static str {
        match self {
            Self::Prior(names) if are_default_names(names) => {
                "the prior calls a feature so; name a column so"
            }
            Self::Prior(_) => "the prior was trained on this feature; add it or rename a column",
            Self::Support(_) => "the support has this feature; add it or rename a column",
        }
    }

    fn are_nobodys(&self) -> bool {
        matches!(self, Self::Prior(names) if are_default_names(names))
    }
}

/// Whether names are `x`, or `x0`, `x1`, ...: those of features that nobody named.
pub fn are_default_names(names: &[String]) -> bool {
    match names {
        [name] => name == "x" || name == "x0",
        names => names.iter().enumerate().all(|(index, name)| *name == format!("x{index}")),
    }
}
