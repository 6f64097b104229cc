//! An iteration of image classification: draw episodes, average their gradients, step ([`Descent`]).

use std::ops::Range;

use pacmeta_tensor::Key;
use pacmeta_tensor::conv::ConvBody;
use rayon::prelude::*;

use super::pass::{AdaptingMethod, Network, Seen, TaskRoom};
use crate::classification::descent::{Centre, DescentSettings, add_share};
use crate::classification::{Descent, MetaLearner, Stop, Terms};
use crate::config::ImageConfig;
use crate::config::images::{HeadStart, NormScale};
use crate::environments::images::{ClassId, Episode, EpisodeSampler, ImageSet};
use crate::error::{Error, Result};

/// From so many pictures on a task alone keeps all threads busy: tasks then run one after another, in one room.
const LARGE_TASK: usize = 40;

/// A training run in memory.
pub struct ImageTrainer<'a> {
    config: &'a ImageConfig,
    set: &'a ImageSet,
    classes: &'a [ClassId],
    sampler: EpisodeSampler,
    body: ConvBody,
    method: AdaptingMethod,
    descent: Descent,
    /// The places of parameters that stay as they are.
    fixed: Vec<Range<usize>>,
    rooms: Vec<TaskRoom>,
}

impl<'a> ImageTrainer<'a> {
    /// A run from fresh parameters on the pictures of the given classes.
    ///
    /// # Errors
    /// When there are too few classes or pictures for a task.
    pub fn new(config: &'a ImageConfig, set: &'a ImageSet, classes: &'a [ClassId]) -> Result<Self> {
        let spec = config.spec();
        let body = spec.body()?;
        let sampler = EpisodeSampler { way: config.data.way, shots: config.data.shots };
        sampler.check(set, classes, "training")?;
        let mut parameters = spec.initialise(Key::new(config.seed).named("initialisation"))?;
        let mut fixed = Vec::new();
        if config.prior.scale == NormScale::One {
            fixed = body.shape().scale_places()?;
            fixed.iter().for_each(|place| parameters.values_mut()[place.clone()].fill(1.0));
        }
        if config.prior.head == HeadStart::Zero {
            let head = body.layout().len()..parameters.values().len();
            parameters.values_mut()[head.clone()].fill(0.0);
            fixed.push(head);
        }
        let examples = config.data.way * config.data.shots;
        let rooms = if examples < LARGE_TASK { config.training.batch } else { 1 };
        let settings = DescentSettings::of(&config.training, Centre::Zero, config.seed);
        Ok(Self {
            set,
            classes,
            sampler,
            method: AdaptingMethod::build(&config.method.settings(), config.method.adapts)?,
            descent: Descent::new(parameters, settings),
            fixed,
            rooms: (0..rooms).map(|_| TaskRoom::new(&body)).collect(),
            body,
            config,
        })
    }

    /// A task of an iteration's batch; iterations count from 0.
    pub fn episode(&self, iteration: u64, task: usize) -> Episode {
        let key = self.descent.task_key_at(iteration, task);
        self.sampler.draw(self.set, self.classes, key.named("episode"))
    }
}

impl MetaLearner for ImageTrainer<'_> {
    fn descent(&self) -> &Descent {
        &self.descent
    }

    fn descent_mut(&mut self) -> &mut Descent {
        &mut self.descent
    }

    fn step_unless(&mut self, stop: &Stop<'_>) -> Result<Terms> {
        let hyper_prior = self.descent.begin();
        let descent = &mut self.descent;
        let (way, batch, share) = (self.config.data.way, self.config.training.batch, descent.share());
        let network = Network { body: &self.body, parameters: &descent.single, classes: way };
        let (method, set, classes, sampler) = (&self.method, self.set, self.classes, &self.sampler);
        let seen = Seen {
            subset: way * self.config.data.support,
            normalisation: self.config.training.normalisation,
        };
        let keys: Vec<Key> = (0..batch).map(|task| descent.task_key(task)).collect();
        let done = descent.iteration();
        let pass = |task: usize, room: &mut TaskRoom| {
            if stop() {
                return Err(Error::Interrupted { iteration: done });
            }
            let episode = sampler.draw(set, classes, keys[task].named("episode"));
            network.gradient(method, set, &episode, seen, keys[task].named("method"), room)
        };
        let gradient = &mut descent.gradient;
        let mut terms = Vec::with_capacity(batch);
        if self.rooms.len() < batch {
            for task in 0..batch {
                terms.push(pass(task, &mut self.rooms[0]));
                if terms[task].is_err() {
                    break;
                }
                add_share(gradient, share, self.rooms[0].gradient());
            }
        } else {
            let rooms = self.rooms.par_iter_mut().with_max_len(1).enumerate();
            terms = rooms.map(|(task, room)| pass(task, room)).collect();
            self.rooms.iter().for_each(|room| add_share(gradient, share, room.gradient()));
        }
        self.fixed.iter().for_each(|place| gradient[place.clone()].fill(0.0));
        self.descent.finish(hyper_prior, terms)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::environments::images::{Channels, PictureShape, SplitRecipe, Splits, StrokeOptions, strokes};

    /// Generated characters, and their division.
    fn characters() -> (ImageSet, Splits) {
        let shape = PictureShape { side: 12, channels: Channels::Grey };
        let set = strokes(&StrokeOptions { classes: 20, pictures: 16, shape, seed: 3 }).unwrap();
        let recipe = SplitRecipe { way: 3, ..SplitRecipe::standard(Key::new(0)) };
        let splits = Splits::made(&set, &recipe).unwrap();
        (set, splits)
    }

    /// A configuration with so many pictures of a class in S'; `prior` and `training` are further keys of these sections.
    fn config(filters: usize, support: usize, prior: &str, training: &str) -> ImageConfig {
        let text = format!(
            "[data]\nenvironment = \"images\"\npath = \"synthetic\"\nside = 12\nchannels = \"grey\"\nway = 3\nshots = 3\n\
             support = {support}\nquery = 2\n[prior]\nfilters = {filters}\nblocks = 2\n{prior}\n[training]\nbatch = 2\n{training}\n"
        );
        ImageConfig::parse("test.toml", &text, &[]).unwrap()
    }

    #[test]
    fn an_iteration_that_is_given_up_leaves_nothing_behind() {
        let (set, splits) = characters();
        // a room for each task, and one for all
        for (shots, rooms) in [(3, 2), (LARGE_TASK.div_ceil(3), 1)] {
            let mut config = config(4, 1, "", "");
            config.data.shots = shots;
            let trainer = || ImageTrainer::new(&config, &set, &splits.train).unwrap();
            let (mut whole, mut given_up) = (trainer(), trainer());
            assert_eq!(whole.rooms.len(), rooms);
            let asked = AtomicUsize::new(0);
            let error = given_up.step_unless(&|| asked.fetch_add(1, Ordering::Relaxed) == 1).unwrap_err();
            assert!(error.is_interruption() && asked.into_inner() == 2, "{error}");
            assert_eq!(given_up.descent().iteration(), 0);
            assert_eq!(given_up.step().unwrap(), whole.step().unwrap());
            assert_eq!(given_up.descent().parameters(), whole.descent().parameters());
        }
    }

    #[test]
    fn statistics_of_parts_are_those_of_the_batch_where_they_are_the_batch() {
        let (set, splits) = characters();
        // the plain path and the fast one
        for filters in [4, 64] {
            let of = |support, training: &str| {
                let config = config(filters, support, "", training);
                let mut trainer = ImageTrainer::new(&config, &set, &splits.train).unwrap();
                trainer.step().unwrap();
                trainer.descent().gradient().to_vec()
            };
            assert_eq!(of(1, "normalisation = \"batch\""), of(1, ""));
            let batch = of(1, "");
            for part in ["normalisation = \"support\"", "normalisation = \"separate\""] {
                assert_eq!(of(3, part), of(3, ""), "{part}");
                let distance: f64 = of(1, part).iter().zip(&batch).map(|(a, b)| (a - b).powi(2)).sum();
                let size: f64 = batch.iter().map(|b| b * b).sum();
                assert!(distance > 1e-4 * size, "{part}, {filters} filters: {distance:e} of {size:e}");
            }
        }
    }

    #[test]
    fn what_is_fixed_stays_and_everything_else_is_learned() {
        let (set, splits) = characters();
        for (prior, fixed) in [
            ("", &[][..]),
            ("scale = \"one\"", &["norm.scale"]),
            ("scale = \"one\"\nhead = \"zero\"", &["norm.scale", "head.weight", "head.bias"]),
        ] {
            // the hyper-prior must not move them either; the plain path and the fast one
            for filters in [4, 64] {
                let config = config(filters, 1, prior, "hyper_prior = 0.1");
                let mut trainer = ImageTrainer::new(&config, &set, &splits.train).unwrap();
                let start = trainer.descent().parameters().clone();
                for _ in 0..3 {
                    trainer.step().unwrap();
                }
                let now = trainer.descent().parameters();
                for entry in now.layout().entries() {
                    let name = &entry.name;
                    // batch norm takes the biases of convolutions away again
                    let stays =
                        name.ends_with("conv.bias") || fixed.iter().any(|ending| name.ends_with(ending));
                    assert_eq!(now.tensor(name) == start.tensor(name), stays, "{prior}: {name}");
                    if name.ends_with("norm.scale") && stays {
                        assert!(now.tensor(name).unwrap().iter().all(|&scale| scale == 1.0), "{name}");
                    }
                }
            }
        }
    }
}
