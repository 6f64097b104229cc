//! What the user should know before a run: settings that are allowed, and seldom meant.

use crate::classification::rates;
use crate::config::ClassificationMethodKind::{Bmaml, Fomaml, Maml, Pacmaml};
use crate::config::ImageConfig;
use crate::error::Result;
use crate::methods::SubsetRule;
use crate::priors::Downsampling;

/// The remarks on how a method learns from its tasks.
pub(super) fn of_method(config: &ImageConfig) -> Vec<String> {
    let rates = [rates::of_training(config.training.rate), rates::of_base_learners(config.method.rate)];
    rates.into_iter().chain([unbalanced_subset(config), nothing_unseen(config)]).flatten().collect()
}

/// A network that has no fast path.
pub(super) fn slow_body(config: &ImageConfig) -> Result<Option<String>> {
    let what = match config.prior.downsampling {
        Downsampling::Stride => "convolutions of stride 2".to_owned(),
        Downsampling::MaxPool => format!("{} filters", config.prior.filters),
    };
    Ok((!config.spec().body()?.is_fast()).then(|| {
        format!(
            "{what} run on general matrix products, slower than the path that is made for 64 filters with max-pools; see docs/engine.md"
        )
    }))
}

/// PACMAML that is judged outside of S' alone: nothing is left there to hold the term that pushes the risk on S' up.
fn unbalanced_subset(config: &ImageConfig) -> Option<String> {
    (config.method.kind == Pacmaml && config.method.split == SubsetRule::Disjoint).then(|| {
        "`method.split` is \"disjoint\", with which PACMAML's features collapsed on miniImageNet at two pictures of a class (docs/results.md); the paper's is \"nested\""
            .to_owned()
    })
}

/// A base learner that sees everything it is judged on.
fn nothing_unseen(config: &ImageConfig) -> Option<String> {
    let judged_elsewhere = matches!(config.method.kind, Pacmaml | Bmaml | Maml | Fomaml);
    (judged_elsewhere && config.data.shots == config.data.support).then(|| {
        format!(
            "`data.shots` is `data.support` ({}): the base learner sees every picture of a training task, and none is left to judge it by; \
             {} is made for larger training tasks",
            config.data.shots,
            config.method.kind.title()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remarks(data: &str, method: &str) -> Vec<String> {
        let text =
            format!("[data]\nenvironment = \"images\"\npath = \"synthetic\"\n{data}\n[method]\n{method}\n");
        of_method(&ImageConfig::parse("a.toml", &text, &[]).unwrap())
    }

    #[test]
    fn what_is_seldom_meant_is_remarked_on_and_nothing_else() {
        for name in ["pacmaml", "bmaml", "maml", "fomaml", "pacoh", "multi-task", "reptile"] {
            let method = format!("name = \"{name}\"");
            assert_eq!(remarks("", &method), [""; 0], "{name}");
            // PACOH and what does not adapt see everything by nature
            let expected = !["pacoh", "multi-task", "reptile"].contains(&name);
            let whole = remarks("shots = 1", &method);
            assert_eq!(
                whole.iter().any(|remark| remark.contains("`data.shots`")),
                expected,
                "{name}: {whole:?}"
            );
        }
        let disjoint = |name: &str| remarks("", &format!("name = \"{name}\"\nsplit = \"disjoint\""));
        assert!(disjoint("pacmaml").iter().any(|remark| remark.contains("`method.split`")));
        assert_eq!(disjoint("fomaml"), [""; 0]);
    }
}
