//! One model of the study: the search for alpha, training, the search for the rate, and scores on the target tasks.

use std::path::Path;

use pacmeta_tensor::Key;
use serde::{Deserialize, Serialize};

use super::plan::{LeopardModel, LeopardPlan};
use super::scores::{AlphaChoice, LeopardScores, RateChoice, best, settings, write_json};
use super::targets::{self, Target};
use crate::classification::{Observer, Watch};
use crate::config::text::SYNTHETIC;
use crate::environments::text::{TokenSet, glue};
use crate::error::{Error, Result};
use crate::priors::pretrained;
use crate::studies::folder::of_model;
use crate::text::evaluation::NewTask;
use crate::text::experiment::TextMaterial;
use crate::text::{FewShot, FineTuning, TextExperiment, TextModel, TextScores};
use crate::training::files::read_bounded;

/// A trial of alpha has this part of the iterations.
const TRIAL: u64 = 10;
const MAX_BYTES: u64 = 1 << 20;

/// A plan with its opened encoder and tasks, which all models share.
pub struct LeopardStudy {
    plan: LeopardPlan,
    material: TextMaterial,
    targets: Vec<Target>,
    remarks: Vec<String>,
}

/// A search for alpha that is finished.
#[derive(Serialize, Deserialize)]
struct StoredSearch {
    settings: String,
    choice: AlphaChoice,
}

impl LeopardStudy {
    /// Opens the encoder and the tasks of a plan, whose paths should be absolute. Nothing is written.
    ///
    /// # Errors
    /// When a folder or a file is missing (the message says how to get it) or does not hold what it should.
    pub fn open(plan: LeopardPlan) -> Result<Self> {
        let Some(&model) = plan.models.first() else {
            return Err(Error::input("the plan of the study", "has no models"));
        };
        if plan.rates.is_empty() || plan.shots.is_empty() {
            return Err(Error::input("the plan of the study", "needs a rate and a number of shots"));
        }
        refuse_absent_folders(&plan)?;
        let material = TextMaterial::open(&mut plan.config(model, None, None)?)?;
        let targets = targets::open(&plan, material.tokeniser())?;
        let mut study = Self { plan, material, targets, remarks: Vec::new() };
        // Tasks that are too small for a model, or a model too large for the memory, are refused before others are trained.
        for &model in &study.plan.models {
            let refused = |error| of_study(error, model);
            let experiment = study.experiment(&study.plan, model, None).map_err(refused)?;
            for Target { task, .. } in &study.targets {
                let supports: usize = task.supports.values().map(TokenSet::token_count).sum();
                let held = task.queries.token_count() + supports;
                experiment.check_states(&task.name, held).map_err(refused)?;
            }
            study.remarks = experiment.remarks_on_tokens(); // of the same tasks for all models
        }
        Ok(study)
    }

    /// What the user should know before the study runs.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// The plan.
    pub fn plan(&self) -> &LeopardPlan {
        &self.plan
    }

    /// The target tasks.
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    fn layers(&self) -> usize {
        self.material.pretrained.encoder.shape.layers
    }

    fn experiment(
        &self,
        plan: &LeopardPlan,
        model: LeopardModel,
        alpha: Option<f64>,
    ) -> Result<TextExperiment> {
        TextExperiment::new(plan.config(model, Some(self.layers()), alpha)?, self.material.clone())
    }

    /// Trains and scores a model in the study's folder, or continues it, or reads what is there. Also the iterations made now.
    ///
    /// # Errors
    /// When the folder holds something else, a number is not finite, or the observer stops.
    pub fn run(
        &self,
        model: LeopardModel,
        study: &Path,
        observer: &mut dyn Observer,
    ) -> Result<(LeopardScores, u64)> {
        let folder = study.join(model.folder());
        let alpha = self.alpha(model, study, observer)?;
        let experiment = self.experiment(&self.plan, model, alpha.as_ref().map(|choice| choice.alpha))?;
        let (trained, made) = if model.is_meta_trained() {
            let outcome = experiment.train_in(&folder, observer).map_err(|error| of_model(error, &folder))?;
            (outcome.model, outcome.iterations)
        } else {
            std::fs::create_dir_all(&folder)
                .map_err(|source| Error::io("create the folder", &folder, source))?;
            (experiment.model(experiment.start()?), 0)
        };
        let checksum = trained.rounded().iter().fold(targets::checksum(&self.targets), |sum, value| {
            crc32c::crc32c_append(sum, &value.to_le_bytes())
        });
        if let Ok(Some(scores)) = LeopardScores::read(&folder)
            && scores.is_of_plan(&self.plan, model)
            && scores.checksum == checksum
        {
            return Ok((scores, made));
        }
        let searched = if self.searches_rate(&experiment) { experiment.held_out().len() } else { 0 };
        let total = searched + self.targets.len();
        observer.scoring(total);
        let watching: &dyn Observer = &*observer;
        let stop = || watching.stop();
        let finished = |done: usize| watching.scored(done, total);
        let rate = self.rate(&experiment, &trained, Watch { stop: &stop, finished: &finished })?;
        let single = trained.rounded();
        let few = FewShot::new(trained.prior(), &single)?;
        let tasks: Vec<NewTask> = self.targets.iter().map(|target| target.task.clone()).collect();
        // Heads on features that are there cost little; where layers adapt, the rate that was chosen must do.
        let only_head = self.plan.threshold(model, self.layers()) == self.layers();
        let mut rates = vec![rate.rate];
        rates.extend(self.plan.rates.iter().filter(|&&other| only_head && other != rate.rate));
        let finished = |done: usize| watching.scored(searched + done, total);
        let watch = Watch { stop: &stop, finished: &finished };
        let mut scored = TextScores::of_each(&few, &tasks, &self.tunings(&rates), watch)?.into_iter();
        let scores_at_rate = scored.next().unwrap_or_default();
        let scores = LeopardScores {
            iterations: if model.is_meta_trained() { self.plan.iterations } else { 0 },
            settings: settings(&self.plan, model),
            checksum,
            rate,
            alpha,
            targets: self.targets.iter().map(|target| target.info.clone()).collect(),
            scores: scores_at_rate,
            other_rates: rates[1..].iter().copied().zip(scored).collect(),
            compared_at: None,
        };
        scores.write(&folder)?;
        Ok((scores, made))
    }

    fn tunings(&self, rates: &[f64]) -> Vec<FineTuning> {
        rates.iter().map(|&rate| FineTuning { steps: self.plan.steps, rate }).collect()
    }

    /// Whether there are several rates, and tasks to choose one on.
    fn searches_rate(&self, experiment: &TextExperiment) -> bool {
        self.plan.rates.len() > 1 && !experiment.held_out().is_empty()
    }

    /// The rate that is best on the validation tasks, where there are several to take.
    fn rate(&self, experiment: &TextExperiment, model: &TextModel, watch: Watch<'_>) -> Result<RateChoice> {
        let rates = &self.plan.rates;
        if !self.searches_rate(experiment) {
            return Ok(RateChoice { rate: rates[rates.len() / 2], tried: Vec::new() });
        }
        let key = Key::new(0).named("held-out tasks");
        let drawn = |task| {
            let plan = &self.plan;
            NewTask::drawn(task, &plan.shots, plan.validation_draws, plan.validation_queries, key)
        };
        let tasks: Vec<NewTask> = experiment.held_out().iter().map(drawn).collect::<Result<_>>()?;
        let single = model.rounded();
        let few = FewShot::new(model.prior(), &single)?;
        let scores = TextScores::of_each(&few, &tasks, &self.tunings(rates), watch)?;
        let tried: Vec<(f64, f64)> = rates.iter().copied().zip(scores.iter().map(mean_accuracy)).collect();
        Ok(RateChoice { rate: best(&tried).unwrap_or(rates[0]), tried })
    }

    /// The alpha that is best on the validation tasks after a part of the training, where there are several to take.
    fn alpha(
        &self,
        model: LeopardModel,
        study: &Path,
        observer: &mut dyn Observer,
    ) -> Result<Option<AlphaChoice>> {
        if self.plan.alphas.is_empty() || !model.has_alpha() {
            return Ok(None);
        }
        let folder = study.join("search");
        let path = folder.join(format!("{}.json", model.name()));
        let trial = LeopardPlan { iterations: (self.plan.iterations / TRIAL).max(1), ..self.plan.clone() };
        // Not the iterations: a study that goes on for longer keeps the alpha that its models began with.
        let settings = format!("seed {}; {}", trial.seed, settings(&trial, model));
        if let Some(stored) = read_search(&path)?.filter(|stored| stored.settings == settings) {
            return Ok(Some(stored.choice));
        }
        let mut tried = Vec::new();
        for &alpha in &self.plan.alphas {
            let experiment = self.experiment(&trial, model, Some(alpha))?;
            let place = folder.join(format!("{}-alpha-{alpha:e}", model.name()));
            let outcome = experiment.train_in(&place, observer).map_err(|error| {
                error.advising(format!(
                    "this was a trial of alpha = {alpha:e} for {}; --methods can leave this model out of the study",
                    model.title()
                ))
            })?;
            let watching: &dyn Observer = &*observer;
            let stop = || watching.stop();
            let rates = self.rate(&experiment, &outcome.model, Watch::stopping(&stop))?.tried;
            tried.push((alpha, rates.iter().map(|&(_, accuracy)| accuracy).fold(0.0, f64::max)));
        }
        let alpha = best(&tried).unwrap_or(self.plan.alphas[0]);
        let choice = AlphaChoice { alpha, tried, iterations: trial.iterations };
        write_json(&path, &StoredSearch { settings, choice: choice.clone() })?;
        Ok(Some(choice))
    }
}

/// The mean over tasks and numbers of shots.
fn mean_accuracy(scores: &TextScores) -> f64 {
    let names = scores.tasks();
    let of_shots: Vec<f64> =
        scores.shots().iter().filter_map(|&k| Some(scores.average(&names, k)?.accuracy)).collect();
    of_shots.iter().sum::<f64>() / of_shots.len().max(1) as f64
}

fn read_search(path: &Path) -> Result<Option<StoredSearch>> {
    if !path.exists() {
        return Ok(None);
    }
    serde_json::from_slice(&read_bounded(path, MAX_BYTES)?).map(Some).map_err(|error| {
        Error::input(path.display(), format!("{error}; delete the file, and the search is made anew"))
    })
}

/// What is wrong with a model's settings, which are the study's own.
fn of_study(error: Error, model: LeopardModel) -> Error {
    match error {
        Error::Input(mut problem) => {
            let advice =
                format!("; so it is for {} in this study, which `--methods` can leave out", model.title());
            problem.message.push_str(&advice);
            Error::Input(problem)
        }
        other => other,
    }
}

/// Folders that are not there are refused with how to get them.
fn refuse_absent_folders(plan: &LeopardPlan) -> Result<()> {
    if plan.encoder.as_os_str() != SYNTHETIC {
        pretrained::check_folder(&plan.encoder, "--model")?;
    }
    if !plan.is_comparable() {
        return Ok(());
    }
    let parts = [("glue", "GLUE's tasks to learn from"), ("leopard", "LEOPARD's tasks to be scored on")];
    for (name, what) in parts {
        let path = plan.data.join(name);
        if !path.is_dir() {
            let message = format!(
                "there is no such folder; expected {what}, one <task>.jsonl.gz or .jsonl a task as docs/formats.md describes them \
                 (examples/glue_and_leopard.py makes them from what gluebenchmark.com, nlp.stanford.edu/projects/snli and \
                 github.com/iesl/leopard publish); or take `--data synthetic`, generated sentences"
            );
            return Err(Error::input(path.display(), message));
        }
    }
    // The study is on all of GLUE's tasks.
    glue::check_complete(&plan.data.join("glue"))
}
