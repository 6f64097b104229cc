//! A world in which every expectation is a finite sum.
//!
//! A task is a coin that shows heads with probability theta. An example is a flip y together with a die u, uniform on
//! 0..DIE. A hypothesis is a biased coin from a grid, h = g/DIE: it calls heads if u < g. The loss is 1 if the call is
//! wrong, so it is Bernoulli with parameter h (1 - theta) + (1 - h) theta. A data set of m examples matters only through
//! its 2 DIE counts, and there are few enough of them to sum over.

pub(crate) mod play;

use rand::{Rng, RngExt};

/// Faces of the die.
pub(crate) const DIE: usize = 3;
/// Number of hypotheses: biases 0, 1/3, 2/3, 1.
pub(crate) const HYPOTHESES: usize = DIE + 1;
/// Kinds of example: face and side.
const CELLS: usize = 2 * DIE;

/// One number a hypothesis.
pub(crate) type PerHypothesis = [f64; HYPOTHESES];

/// An environment: a mass for each coin, and the number of examples of its tasks.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    pub(crate) coins: Vec<f64>,
    pub(crate) masses: Vec<f64>,
    pub(crate) size: usize,
}

/// A hyper-prior over finitely many priors.
#[derive(Clone, Debug)]
pub(crate) struct HyperPrior {
    pub(crate) priors: Vec<PerHypothesis>,
    pub(crate) masses: Vec<f64>,
}

/// Counts of a data set by kind of example.
pub(crate) type Counts = [usize; CELLS];

/// True risk of each hypothesis on a coin.
pub(crate) fn true_risk(theta: f64) -> PerHypothesis {
    std::array::from_fn(|g| {
        let h = g as f64 / DIE as f64;
        h * (1.0 - theta) + (1.0 - h) * theta
    })
}

/// Empirical risk of each hypothesis on a data set.
pub(crate) fn empirical_risk(counts: &Counts) -> PerHypothesis {
    let size: usize = counts.iter().sum();
    std::array::from_fn(|g| {
        let wrong: usize = (0..DIE).map(|u| if u < g { counts[2 * u] } else { counts[2 * u + 1] }).sum();
        wrong as f64 / size as f64
    })
}

/// Probability of each kind of example: tails at 2u, heads at 2u + 1.
fn cell_masses(theta: f64) -> [f64; CELLS] {
    std::array::from_fn(|cell| if cell % 2 == 1 { theta } else { 1.0 - theta } / DIE as f64)
}

/// Every data set of `size` examples from a coin (as counts) with its probability.
pub(crate) fn data_sets(theta: f64, size: usize) -> Vec<(Counts, f64)> {
    fn extend(
        cell: usize,
        left: usize,
        counts: &mut Counts,
        mass: f64,
        masses: &[f64; CELLS],
        all: &mut Vec<(Counts, f64)>,
    ) {
        // A multinomial as a chain: `mass` is the multinomial weight of the cells filled so far.
        if cell == CELLS - 1 {
            counts[cell] = left;
            let factor: f64 = (1..=left).map(|k| masses[cell] / k as f64).product();
            all.push((*counts, mass * factor));
            return;
        }
        let mut factor = 1.0;
        for count in 0..=left {
            counts[cell] = count;
            extend(cell + 1, left - count, counts, mass * factor, masses, all);
            factor *= masses[cell] / (count + 1) as f64;
        }
    }
    let factorial: f64 = (1..=size).map(|k| k as f64).product();
    let mut all = Vec::new();
    extend(0, size, &mut [0; CELLS], factorial, &cell_masses(theta), &mut all);
    all
}

/// One example from a coin.
pub(crate) fn draw_example(theta: f64, generator: &mut impl Rng) -> usize {
    let face = generator.random_range(0..DIE);
    2 * face + usize::from(generator.random_bool(theta))
}

/// An index drawn with these masses.
pub(crate) fn draw_index(masses: &[f64], generator: &mut impl Rng) -> usize {
    let mut point: f64 = generator.random();
    for (index, mass) in masses.iter().enumerate() {
        point -= mass;
        if point < 0.0 {
            return index;
        }
    }
    masses.len() - 1
}

/// Counts of a list of examples.
pub(crate) fn count(examples: &[usize]) -> Counts {
    let mut counts = [0; CELLS];
    for &example in examples {
        counts[example] += 1;
    }
    counts
}

/// E_q[f].
pub(crate) fn average(q: &[f64], values: &[f64]) -> f64 {
    q.iter().zip(values).map(|(q, value)| q * value).sum()
}

/// Masses proportional to prior exp(-temperature losses), and the logarithm of the normaliser.
pub(crate) fn gibbs(prior: &[f64], temperature: f64, losses: &[f64]) -> (Vec<f64>, f64) {
    let weights: Vec<f64> = prior.iter().zip(losses).map(|(p, l)| p * (-temperature * l).exp()).collect();
    let z: f64 = weights.iter().sum();
    (weights.iter().map(|weight| weight / z).collect(), z.ln())
}

/// A base learner: from a prior, a coin and a data set to a posterior.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Learner {
    /// The Gibbs posterior with a temperature per example.
    Gibbs { per_example: f64 },
    /// A learner that knows the task and prefers what looks better than it is: prior exp(beta (L - L^)). No learner
    /// makes the task level of a bound tighter, and the theorems hold for it as for any other.
    Malign { beta: f64 },
}

impl Learner {
    pub(crate) fn learn(self, prior: &PerHypothesis, theta: f64, counts: &Counts) -> Vec<f64> {
        let empirical = empirical_risk(counts);
        match self {
            Self::Gibbs { per_example } => {
                let size: usize = counts.iter().sum();
                gibbs(prior, per_example * size as f64, &empirical).0
            }
            Self::Malign { beta } => {
                let risks = true_risk(theta);
                let flattery: PerHypothesis = std::array::from_fn(|g| empirical[g] - risks[g]);
                gibbs(prior, beta, &flattery).0
            }
        }
    }
}

/// psi_h(t) of a 0/1 loss with risk p: t p + log(p e^-t + 1 - p).
pub(crate) fn bernoulli_psi(p: f64, t: f64) -> f64 {
    if p == 1.0 { 0.0 } else { t * p + (p * (-t).exp() + (1.0 - p)).ln() }
}

/// psi_h(t) of every hypothesis on a coin.
pub(crate) fn psi_of_hypotheses(theta: f64, t: f64) -> PerHypothesis {
    true_risk(theta).map(|p| bernoulli_psi(p, t))
}

/// The distribution of the true risk of the base learner on a task drawn from an environment: (mass, risk) pairs.
pub(crate) fn task_risks(
    prior: &PerHypothesis,
    environment: &Environment,
    learner: Learner,
) -> Vec<(f64, f64)> {
    let mut pairs = Vec::new();
    for (&theta, &mass) in environment.coins.iter().zip(&environment.masses) {
        let risks = true_risk(theta);
        for (counts, probability) in data_sets(theta, environment.size) {
            pairs.push((mass * probability, average(&learner.learn(prior, theta, &counts), &risks)));
        }
    }
    pairs
}

/// R(P, T).
pub(crate) fn transfer_risk(pairs: &[(f64, f64)]) -> f64 {
    pairs.iter().map(|(mass, risk)| mass * risk).sum()
}

/// psi_P(t) = log E exp(t (R(P, T) - risk of a random task)).
pub(crate) fn psi_of_prior(pairs: &[(f64, f64)], t: f64) -> f64 {
    let mean = transfer_risk(pairs);
    pairs.iter().map(|(mass, risk)| mass * (t * (mean - risk)).exp()).sum::<f64>().ln()
}
