//! Rates that are allowed, and seldom meant.

/// The largest outer rate of which nothing is said. Adam moves every parameter by about the rate, and those of a network are below 1.
pub(crate) const LARGEST_OUTER: f64 = 0.1;

/// The largest inner rate of which nothing is said.
const LARGEST_INNER: f64 = 10.0;

/// What the user should know of the rates of training and of the base learner.
pub(crate) fn remarks(outer: f64, inner: f64) -> Vec<String> {
    let outer = (outer > LARGEST_OUTER).then(|| {
        format!(
            "`training.rate` is {outer}, and each iteration moves every parameter by about as much; networks take 0.00001 to 0.01"
        )
    });
    let inner = (inner > LARGEST_INNER).then(|| {
        format!(
            "`method.rate` is {inner}; base learners with steps so large seldom learn: most take 0.00001 to 1"
        )
    });
    outer.into_iter().chain(inner).collect()
}

#[cfg(test)]
mod tests {
    use super::remarks;

    #[test]
    fn only_rates_that_are_seldom_meant_are_remarked_on() {
        assert!(remarks(0.1, 10.0).is_empty());
        assert!(remarks(1e6, 0.1)[0].contains("`training.rate` is 1000000"));
        assert!(remarks(0.001, 1e3)[0].contains("`method.rate` is 1000;"));
        assert_eq!(remarks(1.0, 11.0).len(), 2);
    }
}
