//! What PACOH and PACMAML minimise, task by task, for a prior and a set of tasks.
//!
//! ```text
//! total   = mean_i W + xi hyper_kl,   hyper_kl = |theta|^2/(2 sigma0^2),   xi = 1/(N beta) [+ 1/lambda]
//! PACOH     W = W_1 = -log Z_beta(S)/beta
//! PACMAML   W = W_2 = -log Z_alpha(S')/beta + L^(Q_alpha, S) - (alpha/beta) L^(Q_alpha, S')
//! ```
//!
//! The hyper-posterior is the Dirac at theta, so the total lacks an infinite constant and bounds nothing: see
//! [`theorem`](super::theorem) for numbers that do. Losses are in standardised units where the model has a
//! standardisation, in those of the tasks otherwise. A task of a single example is fine.

use pacmeta_bounds::{Objective, PacmamlTask, PacohTask, pacmaml_objective, pacoh_objective};
use pacmeta_tensor::Parameters;
use rayon::prelude::*;
use serde::Serialize;

use super::{gaussian_process, option_error, positive_option};
use crate::error::Result;
use crate::methods::{Batch, GpMethod, Member, Method, Pacmaml, Pacoh, TaskObjective};
use crate::model::Model;
use crate::priors::GaussianProcessSpec;
use crate::task::Task;

/// Tasks whose networks are evaluated together. Fixed, so that sums do not depend on the number of threads.
const CHUNK: usize = 16;

/// The tensor of the prior that no objective of the data depends on.
const FEATURE_BIAS: &str = "features.output.bias";

/// What the total leaves out of Theorem 2 (PACOH) or Theorem 4 (PACMAML).
const LEFT_OUT: &str = "an objective, not a bound: the infinite constant of the Dirac hyper-posterior, the confidence \
                        term xi log(2/delta), the cumulant terms psi1 and psi2, and any environment gap are left out \
                        of `total`";

/// Whose objective, at which temperatures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ObjectiveKind {
    /// W_1: the base learner sees all of S.
    Pacoh {
        /// The temperature beta.
        beta: f64,
    },
    /// W_2: the base learner sees S', the task's `adapt`.
    Pacmaml {
        /// The base learner's temperature alpha.
        alpha: f64,
        /// The bound's temperature beta.
        beta: f64,
    },
}

impl ObjectiveKind {
    /// The name in reports: `pacoh` or `pacmaml`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pacoh { .. } => "pacoh",
            Self::Pacmaml { .. } => "pacmaml",
        }
    }

    /// The bound's temperature.
    pub fn beta(self) -> f64 {
        match self {
            Self::Pacoh { beta } | Self::Pacmaml { beta, .. } => beta,
        }
    }

    /// The base learner's own temperature, where it differs from beta.
    pub fn alpha(self) -> Option<f64> {
        match self {
            Self::Pacoh { .. } => None,
            Self::Pacmaml { alpha, .. } => Some(alpha),
        }
    }

    /// Refuses temperatures out of range, by the option that sets them.
    pub(super) fn check(self) -> Result<()> {
        positive_option("--beta", self.beta())?;
        self.alpha().map_or(Ok(()), |alpha| positive_option("--alpha", alpha))
    }

    pub(super) fn method(self, spec: &GaussianProcessSpec) -> GpMethod {
        match self {
            Self::Pacoh { beta } => Pacoh { beta }.on(spec),
            Self::Pacmaml { alpha, beta } => Pacmaml { alpha, beta }.on(spec),
        }
    }

    /// The members of a batch that holds every task once.
    ///
    /// # Errors
    /// When a task states no S' and the objective needs one.
    pub(super) fn members(self, tasks: &[Task]) -> Result<Vec<Member>> {
        tasks
            .iter()
            .enumerate()
            .map(|(index, task)| {
                let adapt = match self {
                    Self::Pacoh { .. } => Vec::new(),
                    Self::Pacmaml { .. } => super::adapt_of(task)?.to_vec(),
                };
                Ok(Member { task: index, adapt, judged: Vec::new() })
            })
            .collect()
    }
}

/// An objective to be computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ObjectiveRequest {
    /// Whose, at which temperatures.
    pub kind: ObjectiveKind,
    /// N, the number of observed tasks behind xi; the number of given tasks if unknown.
    pub observed_tasks: Option<usize>,
    /// The environment level's temperature; without it xi is 1/(N beta), as in the paper's experiments.
    pub lambda: Option<f64>,
    /// The variance of the hyper-prior N(0, sigma0^2 I).
    pub sigma0_squared: f64,
    /// The probability of failure for the confidence term, which is reported beside the total.
    pub delta: Option<f64>,
}

impl ObjectiveRequest {
    /// The paper's choices: sigma0^2 = 3, xi = 1/(n beta) with n the number of given tasks.
    pub fn new(kind: ObjectiveKind) -> Self {
        Self { kind, observed_tasks: None, lambda: None, sigma0_squared: 3.0, delta: None }
    }

    fn check(&self) -> Result<()> {
        self.kind.check()?;
        positive_option("--sigma0-squared", self.sigma0_squared)?;
        if let Some(lambda) = self.lambda {
            positive_option("--lambda", lambda)?;
        }
        if self.observed_tasks == Some(0) {
            return Err(option_error("--observed-tasks", "is 0, expected at least 1"));
        }
        self.delta.map_or(Ok(()), super::check_delta)
    }

    fn xi(&self, count: usize) -> Result<f64> {
        let beta = self.kind.beta();
        Ok(match self.lambda {
            Some(lambda) => pacmeta_bounds::xi(lambda, beta, count)?,
            None => {
                let xi = 1.0 / (count as f64 * beta);
                if !xi.is_finite() {
                    return Err(option_error(
                        "--beta",
                        format!("is {beta}, so small that 1/(N beta) overflows"),
                    ));
                }
                xi
            }
        })
    }
}

/// The numbers of one task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ObjectiveTask {
    /// The task's name.
    pub name: String,
    /// log Z_beta(S) (PACOH) or log Z_alpha(S') (PACMAML).
    pub log_z: f64,
    /// The empirical risk on all of S.
    pub risk: f64,
    /// The empirical risk on what the base learner saw: S' (PACMAML), or all of S (PACOH), where it equals `risk`.
    pub risk_adapt: f64,
    /// The divergence of the posterior from the prior.
    pub kl: f64,
    /// W_1 or W_2.
    pub w: f64,
}

/// An objective, term by term. Not a bound.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ObjectiveReport {
    /// `pacoh` or `pacmaml`.
    pub objective: &'static str,
    /// 1/(N beta), plus 1/lambda where lambda was given.
    pub xi: f64,
    /// |theta|^2/(2 sigma0^2).
    pub hyper_kl: f64,
    /// mean_w + xi hyper_kl.
    pub total: f64,
    /// The tasks, in the order given.
    pub tasks: Vec<ObjectiveTask>,
    /// The mean of W over tasks.
    pub mean_w: f64,
    /// The bound's temperature.
    pub beta: f64,
    /// The base learner's temperature (PACMAML).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// The environment level's temperature, where one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lambda: Option<f64>,
    /// The hyper-prior's variance.
    pub sigma0_squared: f64,
    /// N, the number of tasks behind xi.
    pub observed_tasks: usize,
    /// The probability of failure, where one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// xi log(2/delta), where delta was given. Not part of the total.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Which constants the total leaves out.
    pub left_out: &'static str,
}

/// Computes an objective on tasks (in original units) and, where a place for it is given, writes d total/d theta there.
///
/// # Errors
/// When the prior is not a Gaussian process, an option is out of range, there is no task, a task lacks the S' that
/// PACMAML needs, or a covariance matrix is not positive definite.
pub fn objective(
    model: &Model,
    tasks: &[Task],
    request: &ObjectiveRequest,
    gradient: Option<&mut Parameters<f64>>,
) -> Result<ObjectiveReport> {
    let members = request.kind.members(tasks)?;
    objective_of(model, tasks, &members, request, gradient)
}

/// The same with S' and S of each task given, instead of the task's `adapt` and all of its examples: a training run's own,
/// for instance ([`BatchSampler::each_once`](crate::methods::BatchSampler::each_once)). One member a task, in order.
///
/// # Errors
/// As for [`objective`].
pub fn objective_of(
    model: &Model,
    tasks: &[Task],
    members: &[Member],
    request: &ObjectiveRequest,
    gradient: Option<&mut Parameters<f64>>,
) -> Result<ObjectiveReport> {
    request.check()?;
    let spec = gaussian_process(model.spec())?;
    let tasks = super::standardised(model, tasks)?;
    if !members.iter().map(|member| member.task).eq(0..tasks.len()) {
        return Err(crate::error::Error::input("the members", "expected every task once, in order"));
    }
    super::check_norm(model)?;
    let parameters = model.parameters();
    let chunks = chunks(request.kind, spec, parameters.values(), &tasks, members, gradient.is_some())?;

    let values: Vec<TaskObjective> = chunks.iter().flat_map(|chunk| chunk.tasks.iter().copied()).collect();
    for (task, TaskObjective { log_partition, risk, kl, w, .. }) in tasks.iter().zip(&values) {
        super::check_finite(task, &[*log_partition, *risk, *kl, *w])?;
    }
    let observed_tasks = request.observed_tasks.unwrap_or(tasks.len());
    let xi = request.xi(observed_tasks)?;
    let terms = summed(request, xi, &values, parameters.squared_norm())?;
    if let Some(gradient) = gradient {
        gradient.layout().check_same(parameters.layout())?;
        let sum = gradient.values_mut();
        let pull = xi / request.sigma0_squared;
        sum.iter_mut().zip(parameters.values()).for_each(|(sum, theta)| *sum = pull * theta);
        for chunk in &chunks {
            let weight = chunk.tasks.len() as f64 / tasks.len() as f64;
            sum.iter_mut().zip(&chunk.gradient).for_each(|(sum, value)| *sum += weight * value);
        }
        // Kernels depend on differences of features only, in which this bias cancels: the data say nothing of it. The sum
        // over pairs of examples leaves roundings instead, which at high temperatures outweigh the hyper-prior's pull.
        for place in parameters.layout().range(FEATURE_BIAS).into_iter().flatten() {
            sum[place] = pull * parameters.values()[place];
        }
    }
    Ok(ObjectiveReport {
        objective: request.kind.name(),
        xi,
        hyper_kl: parameters.squared_norm() / (2.0 * request.sigma0_squared),
        total: terms.total(),
        mean_w: terms.mean_task(),
        tasks: report_tasks(request.kind, &tasks, &values)?,
        beta: request.kind.beta(),
        alpha: request.kind.alpha(),
        lambda: request.lambda,
        sigma0_squared: request.sigma0_squared,
        observed_tasks,
        delta: request.delta,
        confidence: request.delta.map(|delta| xi * (std::f64::consts::LN_2 - delta.ln())),
        left_out: LEFT_OUT,
    })
}

/// What was computed on a few tasks together.
struct Chunk {
    tasks: Vec<TaskObjective>,
    /// The derivative of the mean of W over these tasks; empty unless wanted.
    gradient: Vec<f64>,
}

fn chunks(
    kind: ObjectiveKind,
    spec: &GaussianProcessSpec,
    parameters: &[f64],
    tasks: &[Task],
    members: &[Member],
    with_gradient: bool,
) -> Result<Vec<Chunk>> {
    members
        .par_chunks(CHUNK)
        .map(|members| {
            let mut method = kind.method(spec);
            let batch = Batch { tasks, members };
            let values = method.tasks(parameters, &batch)?;
            let mut gradient = Vec::new();
            if with_gradient {
                gradient.resize(parameters.len(), 0.0);
                method.meta_gradient(parameters, &batch, &mut gradient)?;
            }
            Ok(Chunk { tasks: values, gradient })
        })
        .collect()
}

fn pacmaml_task(values: &TaskObjective) -> PacmamlTask {
    let TaskObjective { log_partition, risk, risk_adapt, .. } = *values;
    PacmamlTask { log_partition, risk, adapt_risk: risk_adapt.unwrap_or(risk) }
}

fn summed(
    request: &ObjectiveRequest,
    xi: f64,
    values: &[TaskObjective],
    squared_norm: f64,
) -> Result<Objective> {
    Ok(match request.kind {
        ObjectiveKind::Pacoh { beta } => {
            let tasks: Vec<_> =
                values.iter().map(|task| PacohTask { log_partition: task.log_partition }).collect();
            pacoh_objective(beta, xi, &tasks, squared_norm, request.sigma0_squared)?
        }
        ObjectiveKind::Pacmaml { alpha, beta } => {
            let tasks: Vec<_> = values.iter().map(pacmaml_task).collect();
            pacmaml_objective(alpha, beta, xi, &tasks, squared_norm, request.sigma0_squared)?
        }
    })
}

fn report_tasks(kind: ObjectiveKind, tasks: &[Task], values: &[TaskObjective]) -> Result<Vec<ObjectiveTask>> {
    tasks
        .iter()
        .zip(values)
        .map(|(task, values)| {
            let w = match kind {
                ObjectiveKind::Pacoh { beta } => {
                    PacohTask { log_partition: values.log_partition }.w1(beta)?
                }
                ObjectiveKind::Pacmaml { alpha, beta } => pacmaml_task(values).w2(alpha, beta)?,
            };
            Ok(ObjectiveTask {
                name: task.name().to_owned(),
                log_z: values.log_partition,
                risk: values.risk,
                risk_adapt: values.risk_adapt.unwrap_or(values.risk),
                kl: values.kl,
                w,
            })
        })
        .collect()
}
