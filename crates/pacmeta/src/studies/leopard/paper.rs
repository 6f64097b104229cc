//! The numbers of the paper's text tables, in percent.

use super::plan::LeopardModel::{self, Bmaml, HSmlmt, Maml, Pacmaml, Pacoh};
use crate::environments::text::leopard::{SHOTS, TARGETS};

/// The columns of the averages.
const MODELS: [LeopardModel; 5] = [HSmlmt, Maml, Bmaml, Pacoh, Pacmaml];

/// Table 2 (top): averages over the twelve tasks, one row a k.
const AVERAGES: [[f64; 5]; 3] = [
    [48.61, 48.21, 47.27, 50.47, 51.58],
    [52.92, 53.52, 52.08, 54.83, 55.68],
    [57.90, 57.38, 56.53, 58.22, 59.18],
];

/// Table 7: accuracy and standard error of MAML, BMAML, PACOH and PACMAML for each k, tasks as in [`TARGETS`].
type OfTask = [[(f64, f64); 4]; 3];
const TASKS: [OfTask; 12] = [
    [
        [(63.0, 1.4), (61.0, 2.3), (62.1, 2.2), (68.8, 1.6)],
        [(74.1, 1.8), (68.0, 1.9), (74.9, 1.2), (79.5, 1.1)],
        [(81.6, 0.6), (77.9, 1.4), (83.0, 0.7), (84.5, 0.6)],
    ],
    [
        [(51.3, 1.8), (47.5, 1.9), (55.9, 1.6), (60.6, 1.0)],
        [(69.1, 2.1), (64.2, 1.3), (71.8, 0.8), (70.9, 1.0)],
        [(78.7, 1.1), (72.2, 1.3), (78.1, 0.6), (80.0, 0.6)],
    ],
    [
        [(60.1, 2.0), (53.0, 2.7), (60.1, 3.1), (60.5, 1.9)],
        [(64.7, 2.7), (67.4, 2.2), (65.0, 1.5), (65.4, 1.7)],
        [(68.4, 2.2), (66.7, 2.6), (69.6, 1.3), (69.9, 1.1)],
    ],
    [
        [(56.3, 0.5), (58.7, 3.1), (58.7, 2.6), (63.3, 1.3)],
        [(61.5, 0.7), (64.1, 2.3), (64.1, 2.4), (63.9, 2.9)],
        [(67.7, 0.4), (69.4, 2.0), (71.3, 1.7), (71.1, 1.6)],
    ],
    [
        [(13.7, 2.1), (13.9, 0.5), (13.8, 0.5), (13.7, 0.7)],
        [(15.8, 1.9), (14.6, 1.1), (15.0, 0.6), (15.8, 0.6)],
        [(16.7, 0.9), (15.6, 0.7), (17.2, 0.7), (16.8, 0.5)],
    ],
    [
        [(58.0, 2.1), (58.0, 2.0), (58.8, 2.6), (59.9, 2.1)],
        [(60.7, 1.9), (61.0, 1.9), (62.1, 1.5), (62.0, 1.9)],
        [(64.6, 0.9), (63.5, 1.2), (63.8, 1.2), (66.0, 1.0)],
    ],
    [
        [(52.2, 0.9), (54.9, 0.7), (53.1, 0.9), (53.4, 1.3)],
        [(56.1, 1.5), (55.9, 1.1), (56.0, 1.3), (56.0, 1.2)],
        [(56.5, 1.2), (56.9, 1.3), (60.0, 0.9), (59.6, 1.0)],
    ],
    [
        [(18.9, 0.8), (17.4, 0.6), (19.2, 0.7), (19.3, 0.6)],
        [(22.3, 0.7), (19.3, 0.8), (22.3, 0.6), (22.6, 0.5)],
        [(24.3, 0.8), (21.6, 0.4), (24.9, 0.4), (25.5, 0.8)],
    ],
    [
        [(58.7, 2.1), (56.2, 2.8), (59.0, 2.3), (56.8, 3.0)],
        [(61.3, 2.7), (55.1, 2.7), (64.2, 2.0), (61.6, 1.5)],
        [(62.0, 1.3), (66.6, 2.1), (63.0, 2.1), (60.4, 2.7)],
    ],
    [
        [(49.5, 3.0), (53.7, 2.7), (53.7, 2.1), (52.4, 1.5)],
        [(53.2, 1.6), (51.8, 2.4), (54.7, 2.0), (56.0, 2.0)],
        [(54.7, 1.2), (57.2, 1.5), (55.4, 1.3), (60.0, 1.4)],
    ],
    [
        [(46.9, 3.1), (44.6, 1.9), (53.3, 1.7), (52.4, 2.0)],
        [(52.5, 1.6), (54.1, 1.6), (55.6, 2.0), (56.1, 1.3)],
        [(54.7, 1.8), (56.6, 1.8), (57.5, 1.5), (58.2, 0.7)],
    ],
    [
        [(49.9, 2.4), (48.3, 2.1), (57.9, 1.3), (57.8, 2.0)],
        [(50.9, 2.8), (49.5, 3.1), (52.3, 2.2), (58.3, 1.5)],
        [(58.7, 1.5), (54.2, 1.8), (54.8, 1.8), (58.1, 2.5)],
    ],
];

fn row(shots: usize) -> Option<usize> {
    SHOTS.iter().position(|&k| k == shots)
}

/// The average over the twelve tasks that the paper states.
pub(super) fn average(model: LeopardModel, shots: usize) -> Option<f64> {
    let column = MODELS.iter().position(|&other| other == model)?;
    Some(AVERAGES[row(shots)?][column])
}

/// The accuracy on a task and its standard error.
pub(super) fn of_task(model: LeopardModel, task: &str, shots: usize) -> Option<(f64, f64)> {
    let place = TARGETS.iter().position(|target| target.name == task)?;
    let column = MODELS[1..].iter().position(|&other| other == model)?;
    Some(TASKS[place][row(shots)?][column])
}

/// The mean of the paper's numbers over some tasks; none if one of them is not in its table.
pub(super) fn average_over(model: LeopardModel, tasks: &[&str], shots: usize) -> Option<f64> {
    let numbers: Vec<f64> =
        tasks.iter().map(|task| Some(of_task(model, task, shots)?.0)).collect::<Option<_>>()?;
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
}
