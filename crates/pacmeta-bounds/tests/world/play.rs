//! Playing the solvable world: draw observed tasks, compute every bound with exact terms, count.

use pacmeta_bounds::{
    AveragedPsi, Bound, CorollaryGap, EnvironmentSizes, ExamplePsi, HyperPriorGap, JointPsi, MetaSettings,
    Psi, RiskDifference, RiskPair, SubsampledTask, TaskTerms, corollary, discrete_kl, log_weighted_mean_exp,
    theorem_2, theorem_3, theorem_4, xi,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::{self as world, Environment, HyperPrior, Learner, PerHypothesis};

/// Everything that is fixed before tasks are drawn.
#[derive(Clone, Copy)]
pub(crate) struct Scenario {
    /// (mass, probability of heads) of the coins in the environment.
    pub(crate) coins: &'static [(f64, f64)],
    /// (mass, prior) of the hyper-prior.
    pub(crate) priors: &'static [(f64, PerHypothesis)],
    pub(crate) learner: Learner,
    pub(crate) tasks: usize,
    pub(crate) observed_size: usize,
    pub(crate) beta: f64,
    pub(crate) lambda: f64,
    pub(crate) delta: f64,
    pub(crate) draws: usize,
}

pub(crate) const TARGET_SIZE: usize = 2;
pub(crate) const MIXED: &[(f64, f64)] = &[(0.3, 0.35), (0.3, 0.5), (0.2, 0.6), (0.2, 0.75)];
pub(crate) const SEVERAL: &[(f64, PerHypothesis)] = &[
    (0.3, [0.7, 0.1, 0.1, 0.1]),
    (0.3, [0.25, 0.25, 0.25, 0.25]),
    (0.2, [0.1, 0.1, 0.2, 0.6]),
    (0.2, [0.05, 0.45, 0.45, 0.05]),
];

/// A Gibbs learner that overfits, and enough tasks for bounds below the trivial value 1: the divergences matter.
pub(crate) const OVERFITTING: Scenario = Scenario {
    coins: MIXED,
    priors: SEVERAL,
    learner: Learner::Gibbs { per_example: 6.0 },
    tasks: 60,
    observed_size: 4,
    beta: 3.0,
    lambda: 100.0,
    delta: 0.2,
    draws: 2000,
};

/// The worst learner: the constants matter.
pub(crate) const MALIGN: Scenario = Scenario {
    learner: Learner::Malign { beta: 4.0 },
    tasks: 20,
    beta: 4.0,
    lambda: 60.0,
    draws: 4000,
    ..OVERFITTING
};

/// All coins fair: every hypothesis has risk 1/2 on every task, Psi2 = 0, and with a large lambda only the task level
/// is left. One task, a high temperature and a large delta bring Markov's inequality close to equality.
pub(crate) const FAIR: Scenario = Scenario {
    coins: &[(1.0, 0.5)],
    priors: &[(0.9, [1.0, 0.0, 0.0, 0.0]), (0.1, [0.9, 0.1, 0.0, 0.0])],
    learner: Learner::Malign { beta: 30.0 },
    tasks: 1,
    observed_size: 3,
    beta: 30.0,
    lambda: 1e6,
    delta: 0.5,
    draws: 5000,
};

/// Coins that always show the same side and hypotheses that always call the same: no noise within a task, Psi1 = 0, and
/// with a large beta only the environment level is left, again close to equality.
pub(crate) const STEADY: Scenario = Scenario {
    coins: &[(0.15, 0.0), (0.85, 1.0)],
    priors: &[(0.9, [1.0, 0.0, 0.0, 0.0]), (0.1, [0.5, 0.0, 0.0, 0.5])],
    learner: Learner::Gibbs { per_example: 0.0 },
    beta: 1e3,
    lambda: 30.0,
    ..FAIR
};

impl Scenario {
    pub(crate) fn environment(&self, size: usize) -> Environment {
        let (masses, coins) = self.coins.iter().copied().unzip();
        Environment { coins, masses, size }
    }

    pub(crate) fn hyper_prior(&self) -> HyperPrior {
        let (masses, priors) = self.priors.iter().copied().unzip();
        HyperPrior { priors, masses }
    }
}

/// Exact quantities of one environment: for each prior R(P, T) and psi_P(lambda/n).
pub(crate) struct Exact {
    pub(crate) scenario: Scenario,
    pub(crate) temperature: f64,
    pub(crate) risks: Vec<f64>,
    pub(crate) psi: Vec<f64>,
}

impl Exact {
    pub(crate) fn new(scenario: &Scenario, size: usize) -> Self {
        let temperature = scenario.lambda / scenario.tasks as f64;
        let (mut risks, mut psi) = (Vec::new(), Vec::new());
        for prior in &scenario.hyper_prior().priors {
            let pairs = world::task_risks(prior, &scenario.environment(size), scenario.learner);
            risks.push(world::transfer_risk(&pairs));
            psi.push(world::psi_of_prior(&pairs, temperature));
        }
        Self { scenario: *scenario, temperature, risks, psi }
    }

    /// Psi2 that holds for every prior.
    pub(crate) fn uniform_psi(&self) -> Psi {
        Psi::Uniform { temperature: self.temperature, value: self.psi.iter().copied().fold(0.0, f64::max) }
    }

    /// Psi2 as the average over the hyper-prior, power n inside.
    pub(crate) fn averaged_psi(&self) -> Psi {
        let Scenario { tasks, .. } = self.scenario;
        let masses = self.scenario.hyper_prior().masses;
        Psi::Averaged(AveragedPsi::from_masses(self.temperature, tasks, &masses, &self.psi).unwrap())
    }
}

/// What was observed: the coins, and for each prior and task the risk on the whole task and the divergence.
pub(crate) struct Observation {
    pub(crate) scenario: Scenario,
    pub(crate) coins: Vec<f64>,
    pub(crate) risks: Vec<Vec<f64>>,
    pub(crate) kls: Vec<Vec<f64>>,
}

impl Observation {
    pub(crate) fn draw(scenario: Scenario, adapt_size: usize, generator: &mut ChaCha8Rng) -> Self {
        let environment = scenario.environment(scenario.observed_size);
        let priors = scenario.hyper_prior().priors;
        let mut coins = Vec::new();
        let (mut risks, mut kls) = (vec![Vec::new(); priors.len()], vec![Vec::new(); priors.len()]);
        for _ in 0..scenario.tasks {
            let theta = environment.coins[world::draw_index(&environment.masses, generator)];
            let examples: Vec<usize> =
                (0..environment.size).map(|_| world::draw_example(theta, generator)).collect();
            let (whole, adapt) = (world::count(&examples), world::count(&examples[..adapt_size]));
            let losses = world::empirical_risk(&whole);
            for (index, prior) in priors.iter().enumerate() {
                let posterior = scenario.learner.learn(prior, theta, &adapt);
                risks[index].push(world::average(&posterior, &losses));
                kls[index].push(discrete_kl(&posterior, prior).unwrap());
            }
            coins.push(theta);
        }
        Self { scenario, coins, risks, kls }
    }

    /// The exact joint moment: log E_P prod_i E_h exp(m psi_{i,h}(beta/m)).
    pub(crate) fn joint_log_moment(&self) -> f64 {
        let size = self.scenario.observed_size as f64;
        let HyperPrior { priors, masses } = self.scenario.hyper_prior();
        let logs: Vec<f64> = priors
            .iter()
            .map(|prior| {
                let log = |&theta: &f64| {
                    let psi = world::psi_of_hypotheses(theta, self.scenario.beta / size);
                    log_weighted_mean_exp(prior, &psi.map(|psi| size * psi)).unwrap()
                };
                self.coins.iter().map(log).sum()
            })
            .collect();
        log_weighted_mean_exp(&masses, &logs).unwrap()
    }

    pub(crate) fn settings(&self, task_psi: Psi) -> MetaSettings {
        let Scenario { beta, lambda, delta, tasks, .. } = self.scenario;
        let example_psi = ExamplePsi::Joint(JointPsi::exact(beta, tasks, self.joint_log_moment()).unwrap());
        MetaSettings { beta, lambda, delta, example_psi, task_psi }
    }

    /// The tasks' terms averaged over a hyper-posterior.
    pub(crate) fn terms(&self, hyper_posterior: &[f64]) -> Vec<TaskTerms> {
        (0..self.scenario.tasks)
            .map(|task| {
                let at = |table: &[Vec<f64>]| -> f64 {
                    hyper_posterior.iter().zip(table).map(|(mass, row)| mass * row[task]).sum()
                };
                TaskTerms::new(at(&self.risks), at(&self.kls), self.scenario.observed_size)
            })
            .collect()
    }

    /// The hyper-posterior that minimises the bound, and for each list of left-hand sides the one with the largest
    /// excess over it.
    pub(crate) fn hyper_posteriors(&self, left_hand_sides: &[&[f64]]) -> Vec<Vec<f64>> {
        let Scenario { beta, lambda, tasks, .. } = self.scenario;
        let masses = self.scenario.hyper_prior().masses;
        let inverse = 1.0 / xi(lambda, beta, tasks).unwrap();
        let objective: Vec<f64> = (0..masses.len())
            .map(|prior| {
                let pairs = self.risks[prior].iter().zip(&self.kls[prior]);
                pairs.map(|(risk, kl)| risk + kl / beta).sum::<f64>() / tasks as f64
            })
            .collect();
        let mut all = vec![world::gibbs(&masses, inverse, &objective).0];
        for risks in left_hand_sides {
            let shortfall: Vec<f64> = objective.iter().zip(*risks).map(|(sum, risk)| sum - risk).collect();
            all.push(world::gibbs(&masses, inverse, &shortfall).0);
        }
        all
    }

    /// Whether some single prior exceeds a bound that has lost its divergences.
    pub(crate) fn fails_without_divergences(&self, bound: &Bound, risks: &[f64]) -> bool {
        let rest = bound.confidence.value + bound.psi1.value + bound.psi2.value + bound.gap.value;
        (0..risks.len()).any(|prior| {
            risks[prior] > self.risks[prior].iter().sum::<f64>() / self.scenario.tasks as f64 + rest
        })
    }
}

/// Counts over draws.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) draws: usize,
    pub(crate) failures: usize,
    pub(crate) without_divergences: usize,
    pub(crate) without_constants: usize,
    /// Sums over draws for the hyper-posterior that minimises the bound.
    pub(crate) slack: f64,
    pub(crate) total: f64,
}

impl Tally {
    /// Score one draw: `bound_of` gives the bound of a hyper-posterior from its task terms and its divergence.
    pub(crate) fn add(
        &mut self,
        observation: &Observation,
        hyper_posteriors: &[Vec<f64>],
        risks: &[f64],
        bound_of: impl Fn(&[f64], &[TaskTerms], f64) -> Bound,
    ) {
        let masses = observation.scenario.hyper_prior().masses;
        let (mut failed, mut no_constants, mut no_divergences) = (false, false, false);
        for (index, hyper_posterior) in hyper_posteriors.iter().enumerate() {
            let terms = observation.terms(hyper_posterior);
            let bound = bound_of(hyper_posterior, &terms, discrete_kl(hyper_posterior, &masses).unwrap());
            let (risk, total) = (world::average(hyper_posterior, risks), bound.total().value);
            failed |= risk > total;
            no_constants |= risk > total - bound.confidence.value - bound.psi1.value - bound.psi2.value;
            if index == 0 {
                no_divergences = observation.fails_without_divergences(&bound, risks);
                self.slack += total - risk;
                self.total += total;
            }
        }
        self.draws += 1;
        self.failures += usize::from(failed);
        self.without_constants += usize::from(no_constants);
        self.without_divergences += usize::from(no_divergences);
    }

    pub(crate) fn rate(&self, count: usize) -> f64 {
        count as f64 / self.draws as f64
    }
}

/// The gaps between the target environment and the observed one.
pub(crate) struct Gaps {
    pub(crate) hyper_prior: HyperPriorGap,
    pub(crate) pairs: Vec<RiskPair>,
}

impl Gaps {
    pub(crate) fn new(target: &Exact, observed: &Exact) -> Self {
        let scenario = target.scenario;
        let pairs: Vec<RiskPair> = target
            .risks
            .iter()
            .zip(&observed.risks)
            .map(|(&target, &observed)| RiskPair { target, observed })
            .collect();
        let masses = scenario.hyper_prior().masses;
        let hyper_prior = HyperPriorGap::from_masses(scenario.lambda, &masses, &pairs).unwrap();
        Self { hyper_prior, pairs }
    }

    pub(crate) fn difference(&self, hyper_posterior: &[f64]) -> RiskDifference {
        let side = |risk: fn(&RiskPair) -> f64| -> f64 {
            hyper_posterior.iter().zip(&self.pairs).map(|(mass, pair)| mass * risk(pair)).sum()
        };
        RiskDifference::from_risks(side(|pair| pair.target), side(|pair| pair.observed)).unwrap()
    }
}

/// Names and tallies of Theorems 2, 3, 4, the corollary with the difference, and the corollary with the minimum.
pub(crate) fn play(scenario: Scenario, seed: u64) -> Vec<(&'static str, Tally)> {
    let (target, observed) =
        (Exact::new(&scenario, TARGET_SIZE), Exact::new(&scenario, scenario.observed_size));
    let gaps = Gaps::new(&target, &observed);
    let sizes = EnvironmentSizes { observed: scenario.observed_size as f64, target: TARGET_SIZE as f64 };
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    let [mut second, mut third, mut difference, mut smaller, mut fourth]: [Tally; 5] = Default::default();
    for _ in 0..scenario.draws {
        let whole = Observation::draw(scenario, scenario.observed_size, &mut generator);
        // One environment: the target is the observed environment itself.
        let averaged = whole.settings(observed.averaged_psi());
        let worst = whole.hyper_posteriors(&[&observed.risks]);
        second.add(&whole, &worst, &observed.risks, |_, terms, kl| theorem_2(&averaged, terms, kl).unwrap());
        let uniform = whole.settings(observed.uniform_psi());
        let worst = whole.hyper_posteriors(&[&target.risks, &observed.risks]);
        third.add(&whole, &worst, &target.risks, |_, terms, kl| {
            theorem_3(&uniform, terms, kl, sizes, &gaps.hyper_prior).unwrap()
        });
        difference.add(&whole, &worst, &target.risks, |hyper_posterior, terms, kl| {
            let gap = CorollaryGap::Difference(gaps.difference(hyper_posterior));
            corollary(&averaged, terms, kl, sizes, &gap).unwrap()
        });
        smaller.add(&whole, &worst, &target.risks, |hyper_posterior, terms, kl| {
            let difference = gaps.difference(hyper_posterior);
            let gap = CorollaryGap::Smaller { hyper_prior: gaps.hyper_prior, difference };
            corollary(&uniform, terms, kl, sizes, &gap).unwrap()
        });

        let subset = Observation::draw(scenario, TARGET_SIZE, &mut generator);
        let averaged = subset.settings(target.averaged_psi());
        let worst = subset.hyper_posteriors(&[&target.risks]);
        fourth.add(&subset, &worst, &target.risks, |_, terms, kl| {
            let tasks: Vec<SubsampledTask> =
                terms.iter().map(|&terms| SubsampledTask { terms, adapt_size: TARGET_SIZE }).collect();
            theorem_4(&averaged, &tasks, kl).unwrap()
        });
    }
    vec![
        ("Theorem 2", second),
        ("Theorem 3", third),
        ("corollary, difference", difference),
        ("corollary, smaller", smaller),
        ("Theorem 4", fourth),
    ]
}
