//! What a bound rests on, in words for its reader.

use super::theorem::{SimulatedPsi, Statement, TheoremRequest};
use crate::config::Assumption;
use crate::model::Model;

/// The assumptions behind a bound, one sentence each.
pub(super) fn in_words(
    model: &Model,
    request: &TheoremRequest,
    simulated: Option<&SimulatedPsi>,
) -> Vec<String> {
    let mut sentences = vec![
        "the observed tasks are independent draws from one environment, and the examples of a task are independent \
         draws from its distribution"
            .to_owned(),
        match request.statement {
            Statement::OneEnvironment => {
                "target tasks come from the environment of the observed ones, with as many examples (in \
                 distribution)"
            }
            Statement::TwoEnvironments { .. } | Statement::Corollary { .. } => {
                "target tasks may have fewer examples than the observed ones; the gap is the number given, or was simulated for \
                 these sizes and this base learner on the named environment, which must be that of the tasks"
            }
            Statement::Subsampling { .. } => {
                "S' of each observed task has as many examples as target tasks (in distribution) and was chosen \
                 without looking at the examples' values"
            }
        }
        .to_owned(),
        "beta, lambda, delta, the hyper-prior's variance and the assumptions about the loss were fixed before the \
         data were seen"
            .to_owned(),
    ];
    let units = match model.standardisation() {
        Some(_) => "standardised units",
        None => "the data's units, squared",
    };
    match simulated {
        Some(simulated) => sentences.push(simulated_psi(simulated, units)),
        None => {
            sentences.extend(assumed_psi(request, units));
            sentences.push(
                "functions of a Gaussian process are unbounded, so the two lines above speak of targets in an interval and of \
                 predictions clipped to it, for which the number holds"
                    .to_owned(),
            );
        }
    }
    if model.standardisation().is_some() {
        sentences.push(
            "the standardisation was fixed before the data were seen; if it was computed from the observed tasks, as \
             training does, the bound holds up to that choice"
                .to_owned(),
        );
    }
    if let Some(draws) = request.statement.gap_effective_draws() {
        let verdict = if draws < FEW_DRAWS {
            "too few: the number is probably too small, and its standard error says nothing"
        } else {
            "the gap is an estimate with the standard error given"
        };
        sentences.push(format!(
            "the gap over the hyper-prior was simulated, and {draws:.1} draws carry its weight; {verdict}"
        ));
    }
    sentences
}

fn assumed_psi(request: &TheoremRequest, units: &str) -> [String; 2] {
    let example = of_loss(
        request.example_assumption,
        "the squared loss of one example, for every hypothesis and task,",
    );
    let subject = "the true risk of the base learner on a random observed task, for every prior,";
    let task = match request.task_assumption {
        Some(assumption) => format!("{} ({units})", of_loss(assumption, subject)),
        None => {
            let why = match request.example_assumption {
                // Means of numbers in [a, b] stay there; (E l)^2 <= E l^2.
                Assumption::Bounded { .. } | Assumption::NonNegative { .. } => "follows from the line above",
                _ => "taken over from examples, and an assumption of its own",
            };
            format!("{} ({units}; {why})", of_loss(request.example_assumption, subject))
        }
    };
    [format!("{example} ({units})"), task]
}

fn simulated_psi(simulated: &SimulatedPsi, units: &str) -> String {
    let draws = simulated.effective_draws().unwrap_or(0.0);
    let verdict = if draws < FEW_DRAWS {
        "too few: the numbers are probably too small, and their standard errors say nothing"
    } else {
        "they are estimates with the standard errors given"
    };
    format!(
        "no assumption about the loss ({units}): Psi1 and Psi2 were simulated on the named environment, which must be that of \
         the tasks, and are no guarantee; {draws:.1} draws carry the weight, {verdict}"
    )
}

/// Fewer draws than this make a logarithm of a mean worthless.
pub(super) const FEW_DRAWS: f64 = 30.0;

fn of_loss(assumption: Assumption, subject: &str) -> String {
    match assumption {
        Assumption::None | Assumption::Simulated => format!("nothing about {subject}"),
        Assumption::Bounded { a, b } => format!("{subject} lies between {a} and {b}"),
        Assumption::SubGaussian { variance } => {
            format!("{subject} has a sub-Gaussian lower tail with variance factor {variance}")
        }
        Assumption::SubGamma { variance, scale } => {
            format!("{subject} has a sub-gamma lower tail with variance factor {variance} and scale {scale}")
        }
        Assumption::NonNegative { second_moment } => {
            format!("{subject} is not negative and its second moment is at most {second_moment}")
        }
    }
}
