//! Rates that are allowed, and seldom meant.

/// The largest rate of Adam of which nothing is said. Adam moves every parameter by about the rate, and those of a network are below 1.
const LARGEST_ADAM: f64 = 0.1;

/// The largest inner rate of which nothing is said.
const LARGEST_INNER: f64 = 10.0;

/// What the user should know of the rate of training.
pub(crate) fn of_training(rate: f64) -> Option<String> {
    (rate > LARGEST_ADAM).then(|| {
        format!(
            "`training.rate` is {rate}, and each iteration moves every parameter by about as much; networks take 0.00001 to 0.01"
        )
    })
}

/// What the user should know of the rate of base learners.
pub(crate) fn of_base_learners(rate: f64) -> Option<String> {
    (rate > LARGEST_INNER).then(|| {
        format!(
            "`method.rate` is {rate}; base learners with steps so large seldom learn: most take 0.00001 to 1"
        )
    })
}

/// What the user should know of the rate at which a model adapts to a new task by Adam.
#[cfg(feature = "text")]
pub(crate) fn of_adaptation(rate: f64) -> Option<String> {
    (rate > LARGEST_ADAM).then(|| {
        format!(
            "steps of rate {rate} move every weight by about as much, and make predictions sure whatever they are worth; most take \
             0.00001 to 0.01 (--rate)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{of_base_learners, of_training};

    #[test]
    fn only_rates_that_are_seldom_meant_are_remarked_on() {
        assert_eq!((of_training(0.1), of_base_learners(10.0)), (None, None));
        assert!(of_training(1e6).unwrap().contains("`training.rate` is 1000000"));
        assert!(of_base_learners(1e3).unwrap().contains("`method.rate` is 1000;"));
        #[cfg(feature = "text")]
        assert_eq!([0.1, 1e30].map(|rate| super::of_adaptation(rate).is_some()), [false, true]);
        assert!(of_training(0.2).is_some() && of_base_learners(11.0).is_some());
    }
}
