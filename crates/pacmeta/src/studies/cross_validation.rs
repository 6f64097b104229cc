//! Choosing settings by cross-validation over target tasks.
//!
//! The tasks are split into K folds. For each fold the setting with the lowest mean error on the *other* folds is
//! chosen (its validation error) and scored on the fold itself (its test error), so no task has a say in the choice
//! of the setting that it is scored with. The test error of the study is the mean over tasks, each under the choice of
//! its fold; the validation error that of each task under the choices of the folds it was not in.
//!
//! A setting with an error that is not finite on the tasks that choose is not chosen; ties go to the earlier setting.
//! The standard errors of the validation error are descriptive only: it was minimised over settings.

use pacmeta_tensor::Key;
use serde::{Deserialize, Serialize};

use super::summary::{Summary, mean};
use crate::error::{Error, Result};

/// Which fold each task is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Folds {
    folds: usize,
    of_task: Vec<usize>,
}

impl Folds {
    /// Consecutive tasks in one fold; sizes differ by at most one, the larger folds first.
    ///
    /// # Errors
    ///
    /// Fewer than two folds, or more folds than tasks.
    pub fn in_order(tasks: usize, folds: usize) -> Result<Self> {
        if folds < 2 {
            return Err(Error::input(
                "cross-validation",
                format!("{folds} folds, expected at least 2: one to choose on and one to score"),
            ));
        }
        if folds > tasks {
            return Err(Error::input(
                "cross-validation",
                format!("{folds} folds of {tasks} tasks, expected at most one fold for each task"),
            ));
        }
        let (small, larger) = (tasks / folds, tasks % folds);
        let of_task = (0..folds)
            .flat_map(|fold| std::iter::repeat_n(fold, small + usize::from(fold < larger)))
            .collect();
        Ok(Self { folds, of_task })
    }

    /// Folds of tasks in random order, for tasks whose order means something (sorted by size, say).
    ///
    /// # Errors
    ///
    /// As for [`Folds::in_order`].
    pub fn shuffled(tasks: usize, folds: usize, key: Key) -> Result<Self> {
        let mut result = Self::in_order(tasks, folds)?;
        key.generator().shuffle(&mut result.of_task);
        Ok(result)
    }

    /// The number of folds.
    pub fn count(&self) -> usize {
        self.folds
    }

    /// The fold of each task.
    pub fn of_tasks(&self) -> &[usize] {
        &self.of_task
    }

    /// The values of the tasks in a fold.
    fn inside(&self, fold: usize, errors: &[f64]) -> Vec<f64> {
        self.split(errors, |own| own == fold)
    }

    /// The values of the tasks in all other folds.
    fn outside(&self, fold: usize, errors: &[f64]) -> Vec<f64> {
        self.split(errors, |own| own != fold)
    }

    fn split(&self, errors: &[f64], keep: impl Fn(usize) -> bool) -> Vec<f64> {
        errors.iter().zip(&self.of_task).filter(|(_, own)| keep(**own)).map(|(error, _)| *error).collect()
    }
}

/// What one fold chose.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FoldChoice {
    /// The setting with the lowest error on the other folds.
    pub chosen: usize,
    /// Its mean error on the other folds.
    pub validation_error: f64,
    /// Its mean error on this fold; none if some error there is not finite.
    pub test_error: Option<f64>,
}

/// The result of a cross-validation. From [`choose`] or [`choose_over_models`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrossValidated {
    /// What each fold chose.
    pub per_fold: Vec<FoldChoice>,
    /// The setting with the lowest validation error, averaged over folds: the one to name, and to use hereafter.
    pub chosen: usize,
    /// The test error over tasks, each scored with the setting that the other folds chose.
    pub test: Summary,
    /// The validation error over tasks.
    pub validation: Summary,
}

/// A cross-validation with the errors of every model under the choices made on their averages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelsCrossValidated {
    /// The choices, and the errors averaged over models.
    pub choices: CrossValidated,
    /// `held_out[model][task]`: the test error of a model on a task, with the setting that the other folds chose.
    /// Not finite where the model failed. Left out when written: the records of the models hold these numbers.
    #[serde(skip)]
    pub held_out: Vec<Vec<f64>>,
    /// The validation error of each model.
    #[serde(skip)]
    pub validation: Vec<f64>,
    /// The test error over models: each model's mean over tasks is one value.
    pub test_over_models: Summary,
    /// The validation error over models.
    pub validation_over_models: Summary,
}

/// Cross-validates `errors[setting][task]` (averaged over models).
///
/// ```
/// use pacmeta::studies::cross_validation::{Folds, choose};
///
/// let errors = [vec![1.0, 1.0, 3.0, 3.0], vec![2.0, 2.0, 2.0, 2.0]];
/// let result = choose(&errors, &Folds::in_order(4, 2)?)?;
/// // The first two tasks are scored with what the last two prefer, and the other way round.
/// assert_eq!(result.per_fold.iter().map(|fold| fold.chosen).collect::<Vec<_>>(), [1, 0]);
/// assert_eq!(result.test.mean, Some(2.5));
/// # Ok::<(), pacmeta::Error>(())
/// ```
///
/// # Errors
///
/// No settings; a setting without one error for each task of the folds; no setting whose errors are all finite, on
/// the tasks that choose for some fold or on all tasks.
pub fn choose(errors: &[Vec<f64>], folds: &Folds) -> Result<CrossValidated> {
    check_settings(errors, folds.of_task.len())?;
    let mut per_fold = Vec::with_capacity(folds.count());
    let mut totals = vec![0.0; errors.len()];
    for fold in 0..folds.count() {
        let validation: Vec<f64> = errors.iter().map(|errors| mean(&folds.outside(fold, errors))).collect();
        let chosen = lowest(&validation).ok_or_else(|| {
            Error::input(
                "cross-validation",
                format!("no setting has finite errors on all tasks outside fold {fold}, so none can be chosen for it"),
            )
        })?;
        let test_error = Some(mean(&folds.inside(fold, &errors[chosen]))).filter(|error| error.is_finite());
        per_fold.push(FoldChoice { chosen, validation_error: validation[chosen], test_error });
        for (total, error) in totals.iter_mut().zip(validation) {
            *total += error / folds.count() as f64;
        }
    }
    let chosen = lowest(&totals).ok_or_else(|| {
        Error::input("cross-validation", "no setting has finite errors on all tasks, so none can be chosen")
    })?;
    let test = Summary::of(&held_out(errors, &per_fold, folds));
    let validation = Summary::of(&validated(errors, &per_fold, folds));
    Ok(CrossValidated { per_fold, chosen, test, validation })
}

/// Cross-validates `errors[setting][model][task]`: settings are chosen on the means over models, then every model
/// is scored under these choices. A setting with a failed model is not chosen.
///
/// # Errors
///
/// As for [`choose`]; also settings with different numbers of models, or with none.
pub fn choose_over_models(errors: &[Vec<Vec<f64>>], folds: &Folds) -> Result<ModelsCrossValidated> {
    let tasks = folds.of_task.len();
    let models = errors.first().map_or(0, Vec::len);
    for (setting, of_models) in errors.iter().enumerate() {
        let refuse =
            |message| Err(Error::input_at("cross-validation", format!("setting {setting}"), message));
        if of_models.is_empty() || of_models.len() != models {
            return refuse(format!("has {} models, expected {}", of_models.len(), models.max(1)));
        }
        if let Some(model) = of_models.iter().position(|errors| errors.len() != tasks) {
            return refuse(format!("model {model} has {} errors for {tasks} tasks", of_models[model].len()));
        }
    }
    let averages: Vec<Vec<f64>> = errors
        .iter()
        .map(|of_models| {
            (0..tasks)
                .map(|task| of_models.iter().map(|errors| errors[task]).sum::<f64>() / models as f64)
                .collect()
        })
        .collect();
    let choices = choose(&averages, folds)?;
    let of_model =
        |model: usize| -> Vec<&[f64]> { errors.iter().map(|models| models[model].as_slice()).collect() };
    let held_out: Vec<Vec<f64>> =
        (0..models).map(|model| held_out(&of_model(model), &choices.per_fold, folds)).collect();
    let validation: Vec<f64> =
        (0..models).map(|model| mean(&validated(&of_model(model), &choices.per_fold, folds))).collect();
    let test: Vec<f64> = held_out.iter().map(|errors| mean(errors)).collect();
    Ok(ModelsCrossValidated {
        choices,
        held_out,
        test_over_models: Summary::of(&test),
        validation_over_models: Summary::of(&validation),
        validation,
    })
}

/// Each task's error under the choice of its fold.
fn held_out<E: AsRef<[f64]>>(errors: &[E], choices: &[FoldChoice], folds: &Folds) -> Vec<f64> {
    let error = |(task, &fold): (usize, &usize)| errors[choices[fold].chosen].as_ref()[task];
    folds.of_task.iter().enumerate().map(error).collect()
}

/// Each task's mean error under the choices of the folds that it is not in.
fn validated<E: AsRef<[f64]>>(errors: &[E], choices: &[FoldChoice], folds: &Folds) -> Vec<f64> {
    let error = |(task, &own): (usize, &usize)| {
        let others = choices.iter().enumerate().filter(|(fold, _)| *fold != own);
        others.map(|(_, choice)| errors[choice.chosen].as_ref()[task]).sum::<f64>()
            / (choices.len() - 1) as f64
    };
    folds.of_task.iter().enumerate().map(error).collect()
}

/// The index of the lowest finite value, the first of equals.
fn lowest(values: &[f64]) -> Option<usize> {
    let finite = values.iter().enumerate().filter(|(_, value)| value.is_finite());
    finite.min_by(|(_, left), (_, right)| left.total_cmp(right)).map(|(index, _)| index)
}

fn check_settings(errors: &[Vec<f64>], tasks: usize) -> Result<()> {
    if errors.is_empty() {
        return Err(Error::input("cross-validation", "there are no settings to choose from"));
    }
    match errors.iter().position(|errors| errors.len() != tasks) {
        None => Ok(()),
        Some(setting) => Err(Error::input_at(
            "cross-validation",
            format!("setting {setting}"),
            format!("has {} errors, but the folds are of {tasks} tasks", errors[setting].len()),
        )),
    }
}

#[cfg(test)]
mod tests;
