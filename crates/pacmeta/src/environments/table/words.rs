//! How messages quote, list and suggest names that come from files.

/// Longer names are cut in messages, and not compared: comparing takes time in the product of the lengths.
const LONGEST: usize = 40;

/// More names are counted rather than listed.
const MOST: usize = 12;

/// A name or value between backquotes, cut to a readable length, with control characters made visible.
pub(crate) fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    // escape_debug also escapes quotes, which need no escape between backquotes.
    shown = shown.replace("\\'", "'").replace("\\\"", "\"");
    let dots = if text.chars().nth(LONGEST).is_some() { "..." } else { "" };
    format!("`{shown}{dots}`")
}

/// A number of things: `1 name`, `2 names`.
pub(crate) fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// Names as a list for people, the first few of them.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names = names.into_iter();
    let first: Vec<String> = names.by_ref().take(MOST).map(quoted).collect();
    match names.count() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// The shortest candidate that is worth suggesting because it is a part of what was written.
const SHORTEST_PART: usize = 4;

/// ` (did you mean ...?)` with the candidate nearest to what was written, else the longest one that is a part of it, or nothing.
pub(crate) fn did_you_mean<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    if wanted.len() > LONGEST {
        return String::new();
    }
    let wanted = wanted.to_lowercase();
    let similarity =
        |candidate: &str| strsim::normalized_damerau_levenshtein(&wanted, &candidate.to_lowercase());
    let is_part = |candidate: &str| {
        candidate.len() >= SHORTEST_PART && wanted.contains(candidate.to_lowercase().as_str())
    };
    let candidates: Vec<&str> = candidates
        .into_iter()
        .filter(|candidate| !candidate.is_empty() && candidate.len() <= LONGEST)
        .collect();
    let nearest = candidates
        .iter()
        .map(|candidate| (similarity(candidate), candidate))
        .filter(|&(similarity, _)| similarity >= 0.5)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate);
    let part = || candidates.iter().filter(|candidate| is_part(candidate)).max_by_key(|part| part.len());
    nearest
        .or_else(part)
        .map(|candidate| format!(" (did you mean {}?)", quoted(candidate)))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_short_and_visible() {
        assert_eq!(quoted("it's"), "`it's`");
        assert_eq!(quoted("a\u{1b}[31m\n"), "`a\\u{1b}[31m\\n`");
        assert_eq!(quoted(&"x".repeat(1000)), format!("`{}...`", "x".repeat(40)));
    }

    #[test]
    fn lists_are_short() {
        assert_eq!(listed(["a", "b"]), "`a`, `b`");
        assert!(listed(["a"; 100]).ends_with("`a` and 88 more"));
    }

    #[test]
    fn suggestions_ignore_case_and_are_not_forced() {
        assert_eq!(did_you_mean("target", ["x", "Traget", "tar"]), " (did you mean `Traget`?)");
        assert_eq!(did_you_mean("y", ["Y"]), " (did you mean `Y`?)");
        assert_eq!(did_you_mean("y", ["price", ""]), "");
        assert_eq!(did_you_mean("Learning_Rate", ["iterations", "rate"]), " (did you mean `rate`?)");
        assert_eq!(did_you_mean("batch_of_tasks", ["batch", "task"]), " (did you mean `batch`?)");
        assert_eq!(did_you_mean("extraordinary", ["x", "ext"]), "");
        assert_eq!(did_you_mean(&"y".repeat(1_000_000), ["y"]), "");
    }
}
