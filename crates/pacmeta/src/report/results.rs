//! What a run left, gathered for tables and for the report: scores beside their floors, the objective on the observed
//! tasks, the metrics.

use std::fmt;
use std::path::Path;

use super::number::brief;
use crate::bounds::{ObjectiveKind, ObjectiveReport, ObjectiveRequest, objective_of};
use crate::config::Config;
use crate::environments::table::counted;
use crate::error::{Error, Result};
use crate::evaluation::{Floor, NORMAL_975, Scores, mean_and_standard_error};
use crate::experiment::{Experiment, RunBound, TemperatureChoice};
use crate::methods::MethodSettings;
use crate::model::Model;
use crate::training::files::read_bounded;
use crate::training::metrics::{MetricsLine, read_metrics};

/// One run with everything that is shown of it.
#[derive(Debug, Clone)]
pub struct RunResults {
    /// The name in tables and legends; the method's unless changed.
    pub name: String,
    /// In front of the names of the run's files in links: empty, or a folder with a slash.
    pub link: String,
    /// The configuration and its tasks.
    pub experiment: Experiment,
    /// The trained model.
    pub model: Model,
    /// Its temperatures.
    pub choice: TemperatureChoice,
    /// The model's scores, then those of the floors; empty when no task was kept out.
    pub scores: Vec<(String, Scores)>,
    /// What PACOH or PACMAML minimise, on the observed tasks; none for other methods.
    pub objective: Option<ObjectiveReport>,
    /// The bound of the theorem that fits, or why there is none; none for other methods than PACOH and PACMAML.
    pub bound: Option<RunBound>,
    /// The training curve.
    pub metrics: Vec<MetricsLine>,
}

impl RunResults {
    /// Scores a model that was trained in `folder`.
    ///
    /// # Errors
    /// When adaptation to a task fails or the metrics cannot be read.
    pub fn new(
        experiment: Experiment,
        model: Model,
        choice: TemperatureChoice,
        folder: impl AsRef<Path>,
    ) -> Result<Self> {
        Ok(Self {
            name: experiment.config().method.kind.name().to_owned(),
            link: String::new(),
            scores: experiment.scores(&model)?,
            objective: observed_objective(&experiment, &model, &choice)?,
            bound: experiment.bound(&model, &choice),
            metrics: read_metrics(folder.as_ref().join("metrics.jsonl"))?,
            experiment,
            model,
            choice,
        })
    }

    /// Reads the folder of a finished run. Its tasks are drawn or read again.
    ///
    /// # Errors
    /// When a file is missing or damaged, or a table that the run learned from is gone.
    pub fn read(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let config = folder.join("config.toml");
        if !folder.is_dir() || !config.exists() {
            return Err(Error::input(
                folder.display(),
                "expected the folder of a run, with its config.toml; `pacmeta train` makes one",
            ));
        }
        let model = Model::read(folder)?;
        let experiment = Experiment::prepare(Config::read(&config, &[])?)?;
        let temperatures = folder.join("temperatures.json");
        let choice = serde_json::from_slice(&read_bounded(&temperatures, 1 << 24)?)
            .map_err(|error| Error::input(temperatures.display(), error.to_string()))?;
        Self::new(experiment, model, choice, folder)
    }

    /// The method with its temperatures.
    ///
    /// # Errors
    /// When a temperature that the method needs is not known.
    pub fn settings(&self) -> Result<MethodSettings> {
        settings(&self.experiment, &self.choice)
    }

    /// The scores of the model itself.
    pub fn own_scores(&self) -> Option<&Scores> {
        self.scores.first().map(|(_, scores)| scores)
    }

    /// The scores of a floor.
    pub fn floor(&self, floor: Floor) -> Option<&Scores> {
        self.scores.iter().find(|(name, _)| name == floor.name()).map(|(_, scores)| scores)
    }

    /// The names of features that have one value in all observed tasks.
    pub fn constant_features(&self) -> Vec<String> {
        let constant = self.experiment.standardisation().map(|s| s.constant_features()).unwrap_or_default();
        let names = self.model.columns().features;
        constant.into_iter().filter_map(|index| names.get(index).cloned()).collect()
    }

    /// Whether meta-learning helped; none when nothing was scored.
    pub fn verdict(&self) -> Option<Verdict> {
        Some(Verdict::compare(self.own_scores()?, self.floor(Floor::PlainGp)?))
    }
}

fn settings(experiment: &Experiment, choice: &TemperatureChoice) -> Result<MethodSettings> {
    experiment.config().method_settings(choice.beta.unwrap_or(f64::NAN), choice.alpha)
}

/// The objective of PACOH or PACMAML on all observed tasks, each once, with the S' and S of the training.
fn observed_objective(
    experiment: &Experiment,
    model: &Model,
    choice: &TemperatureChoice,
) -> Result<Option<ObjectiveReport>> {
    let kind = match settings(experiment, choice)? {
        MethodSettings::Pacoh { beta } => ObjectiveKind::Pacoh { beta },
        MethodSettings::Pacmaml { alpha, beta } => ObjectiveKind::Pacmaml { alpha, beta },
        _ => return Ok(None),
    };
    let config = experiment.config();
    let mut request = ObjectiveRequest::new(kind);
    request.delta = Some(config.bound.delta);
    if let Some(hyper_prior) = &config.method.hyper_prior {
        request.lambda = hyper_prior.lambda;
        request.sigma0_squared = hyper_prior.sigma0_squared;
    }
    objective_of(model, experiment.observed(), &experiment.members(), &request, None).map(Some)
}

/// A model against the plain Gaussian process on the same tasks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    /// Mean RMSE of the model.
    pub rmse: f64,
    /// Mean RMSE of the plain Gaussian process.
    pub plain_rmse: f64,
    /// Standard error of the mean difference over tasks (paired).
    pub standard_error: Option<f64>,
    /// Tasks on which the model's RMSE is lower.
    pub better: usize,
    /// All tasks.
    pub tasks: usize,
}

impl Verdict {
    /// Compares two predictors task by task.
    pub fn compare(model: &Scores, plain: &Scores) -> Self {
        let pairs = || model.per_task.iter().zip(&plain.per_task);
        let differences: Vec<f64> = pairs().map(|(model, plain)| plain.rmse - model.rmse).collect();
        Self {
            rmse: model.rmse,
            plain_rmse: plain.rmse,
            standard_error: mean_and_standard_error(&differences).1,
            better: differences.iter().filter(|difference| **difference > 0.0).count(),
            tasks: differences.len(),
        }
    }

    /// How much lower the model's RMSE is.
    pub fn difference(&self) -> f64 {
        self.plain_rmse - self.rmse
    }

    /// Half of the 95% interval of the mean difference: Student's t, since the spread is estimated from these tasks too. None
    /// for fewer than five tasks, which tell nothing reliable of their own spread.
    pub fn margin(&self) -> Option<f64> {
        let enough = self.tasks >= FEWEST_TASKS;
        self.standard_error.filter(|_| enough).map(|error| student_975(self.tasks - 1) * error)
    }

    /// `yes`, `no`, or `unclear` when the 95% interval of the difference contains 0 or there are too few tasks.
    pub fn word(&self) -> &'static str {
        match self.margin() {
            Some(margin) if self.difference() > margin => "yes",
            Some(margin) if self.difference() < -margin => "no",
            _ => "unclear",
        }
    }
}

/// Fewer paired differences say nothing reliable of their own spread.
const FEWEST_TASKS: usize = 5;

/// The 97.5% quantile of Student's t by its expansion in 1/degrees (Cornish and Fisher), right to 0.003 from 4 degrees on.
fn student_975(degrees: usize) -> f64 {
    let (z, n) = (NORMAL_975, degrees as f64);
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    let fourth = (79.0 * z.powi(9) + 776.0 * z.powi(7) + 1482.0 * z.powi(5) - 1920.0 * z.powi(3) - 945.0 * z)
        / 92160.0;
    z + first / n + second / n.powi(2) + third / n.powi(3) + fourth / n.powi(4)
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rmse, plain_rmse, better, tasks, .. } = self;
        let opening = match self.word() {
            _ if self.tasks < FEWEST_TASKS => "There are too few tasks to tell whether meta-learning helped",
            "yes" => "Meta-learning helped",
            "no" => "Meta-learning did not help but did worse",
            _ => "Whether meta-learning helped is unclear",
        };
        write!(
            f,
            "{opening}; RMSE {} against {} of a plain GP on the support alone ({:+.0}%), lower on {better} of {}",
            brief(*rmse),
            brief(*plain_rmse),
            100.0 * (rmse / plain_rmse - 1.0),
            counted(*tasks, "task")
        )?;
        match self.margin() {
            Some(margin) => write!(
                f,
                "; mean difference over tasks {} ± {} (95%, Student's t).",
                brief(self.difference()),
                brief(margin)
            ),
            None => f.write_str("."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Silent;
    use crate::methods::{Batch, Pacmaml};
    use crate::priors::PriorSpec;
    use crate::task::Task;

    #[test]
    fn the_quantile_is_that_of_the_tables() {
        for (degrees, value) in [(4, 2.7764), (9, 2.2622), (19, 2.0930), (60, 2.0003)] {
            assert!((student_975(degrees) - value).abs() < 3e-3, "{degrees}: {}", student_975(degrees));
        }
    }

    #[test]
    fn a_difference_must_exceed_students_margin_and_needs_five_tasks() {
        let verdict = |tasks, difference: f64| Verdict {
            rmse: 1.0,
            plain_rmse: 1.0 + difference,
            standard_error: Some(0.1),
            better: tasks,
            tasks,
        };
        // More than two standard errors, which would do for many tasks.
        assert_eq!(verdict(5, 0.25).word(), "unclear");
        assert_eq!((verdict(5, 0.29).word(), verdict(5, -0.29).word()), ("yes", "no"));
        assert_eq!(verdict(100, 0.21).word(), "yes");
        assert_eq!(verdict(4, 50.0).word(), "unclear");
        assert!(verdict(4, 50.0).to_string().contains("too few tasks to tell"));
        let small =
            Verdict { rmse: 2.5e-7, plain_rmse: 5e-7, standard_error: Some(1e-8), better: 9, tasks: 9 };
        assert!(small.to_string().contains("2.50×10⁻⁷ against 5.00×10⁻⁷"), "{small}");
    }

    #[test]
    fn the_objective_has_the_subsets_and_the_rule_of_the_training() {
        let text = "[data]\nexamples = 6\ntasks = 4\ntarget_tasks = 2\nquery = 7\n[training]\niterations = 20\n[method]\n\
                    beta = 60\nalpha = 30\nsubset = 2\nresample = \"fixed\"\nsplit = \"disjoint\"\n";
        let folder = tempfile::tempdir().unwrap();
        let experiment = Experiment::prepare(Config::parse("test", text, &[]).unwrap()).unwrap();
        let outcome = experiment.train_in(folder.path().join("run"), &mut Silent).unwrap();
        let run =
            RunResults::new(experiment, outcome.model, outcome.choice, folder.path().join("run")).unwrap();
        let standardised: Vec<Task> =
            run.experiment.observed().iter().map(|task| run.model.standardise(task).unwrap()).collect();
        let PriorSpec::GaussianProcess(spec) = run.model.spec() else { panic!("a Gaussian process") };
        let mut method = Pacmaml { alpha: 30.0, beta: 60.0 }.on(spec);
        let sampler = run.experiment.sampler(pacmeta_tensor::Key::new(0));
        let (mut members, mut seen) = (Vec::new(), std::collections::BTreeSet::new());
        for iteration in 0..20 {
            sampler.draw(&standardised, iteration, &mut members);
            let batch = Batch { tasks: &standardised, members: &members };
            let values = method.tasks(run.model.parameters().values(), &batch).unwrap();
            for (member, values) in members.iter().zip(values) {
                assert_eq!((member.adapt.len(), member.judged.len()), (2, 4));
                let shown = &run.objective.as_ref().unwrap().tasks[member.task];
                assert!((shown.risk - values.risk).abs() < 1e-12 * values.risk, "{shown:?} {values:?}");
                assert!((shown.w - values.w).abs() < 1e-12 * values.w.abs().max(1.0));
                seen.insert(member.task);
            }
        }
        assert_eq!(seen.len(), 4, "training saw every task");
    }
}
