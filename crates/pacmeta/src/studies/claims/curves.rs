//! Claims about a curve: one quantity at successive points, each a table of the same sets and tasks.

use super::{Comparison, LEVEL, Measured, Outcome, Verdict, every, failures, holm, most, probability};
use crate::error::{Error, Result};

/// Whether the last point is above the lowest earlier one.
///
/// That is, whether it is above *some* earlier point, and which one is lowest has to be found in the same data. Choosing
/// it there and testing as if it had been known finds rises in flat curves. Choosing it for each set on the other sets
/// still does (in about 10% of flat curves of five points, 8 sets and 20 tasks, instead of 5%): the choices of all sets
/// share most of their sets, and all their tasks. So the last point is compared with every earlier one: supported if
/// some difference is above 0 after Bonferroni's correction for their number, which holds whatever their dependence;
/// not supported if every difference is below 0 at 5% (intersection-union).
///
/// # Errors
///
/// Fewer than two points; tables of different shapes, or without values.
pub fn rises_again(points: &[Measured]) -> Result<Outcome> {
    let (last, earlier) = ends(points, 2)?;
    let rises: Vec<Comparison> =
        earlier.iter().map(|point| Comparison::new(last, point)).collect::<Result<_>>()?;
    let clearest = most(&rises, |rise| -rise.p_above())?;
    let weakest = most(&rises, Comparison::p_below)?;
    let corrected = (clearest.p_above() * rises.len() as f64).min(1.0);
    let (deciding, verdict) = if rises.iter().any(Comparison::failed) {
        (clearest, Verdict::Undecided)
    } else if corrected < LEVEL {
        (clearest, Verdict::Supported)
    } else if weakest.p_below() < LEVEL {
        (weakest, Verdict::NotSupported)
    } else {
        (clearest, Verdict::Undecided)
    };
    let detail = format!(
        "{}; {} for a rise over some earlier point, corrected for {} of them{}",
        deciding.describe(),
        probability(corrected),
        rises.len(),
        failures(&rises)
    );
    Ok(deciding.outcome(
        "last point minus each earlier one, one-sided at 5%: supported if some is above 0 (Bonferroni), not supported if \
         every one is below 0",
        verdict,
        detail,
    ))
}

/// Whether the curve first falls and then rises: some interior point is below both ends.
///
/// Supported if, for some interior point, both ends are above it, each at 5% divided by the number of interior points.
/// Not supported if every interior point is above one of the ends, at 2.5% each as there are two ends. The effect is the
/// weaker side at the clearest interior point: an end minus that point.
///
/// # Errors
///
/// Fewer than three points; tables of different shapes, or without values.
pub fn u_shaped(points: &[Measured]) -> Result<Outcome> {
    let (last, earlier) = ends(points, 3)?;
    let (first, interior) = (&points[0], &earlier[1..]);
    let mut sides = Vec::with_capacity(interior.len());
    for point in interior {
        sides.push([Comparison::new(first, point)?, Comparison::new(last, point)?]);
    }
    // The weaker side of each interior point: both ends must be above it.
    let weaker: Vec<Comparison> =
        sides.iter().map(|both| most(both, Comparison::p_above).cloned()).collect::<Result<_>>()?;
    let clearest = most(&weaker, |side| -side.p_above())?;
    let corrected = (clearest.p_above() * interior.len() as f64).min(1.0);
    let never_below_both = sides.iter().all(|both| both.iter().any(|side| side.p_below() < LEVEL / 2.0));
    let all = sides.concat();
    let verdict = if all.iter().any(Comparison::failed) {
        Verdict::Undecided
    } else if corrected < LEVEL {
        Verdict::Supported
    } else if never_below_both {
        Verdict::NotSupported
    } else {
        Verdict::Undecided
    };
    let detail = format!(
        "weaker side at the clearest interior point: {}; {} for an interior point below both ends, \
         corrected for {} of them{}",
        clearest.describe(),
        probability(corrected),
        interior.len(),
        failures(&all)
    );
    Ok(clearest.outcome(
        "both ends minus each interior point: supported if both are above 0 at some point (Bonferroni over points), not \
         supported if one is below 0 at every point",
        verdict,
        detail,
    ))
}

/// Whether the curve falls from each point to the next.
///
/// Supported if every step falls at 5%, and the whole does (intersection-union: a claim about every step needs evidence
/// for every step); not supported if some step, or the whole, rises (Holm's correction over all of them). A curve that
/// flattens out is undecided; the detail gives the fall from first to last and says how many steps fall visibly.
///
/// # Errors
///
/// Fewer than two points; tables of different shapes, or without values.
pub fn keeps_falling(points: &[Measured]) -> Result<Outcome> {
    let (last, _) = ends(points, 2)?;
    let whole = Comparison::new(last, &points[0])?;
    monotone(points, whole, Direction::Falling, "fall from the first point to the last")
}

/// Whether the curve has a rising trend and every step rises.
///
/// The trend is the least-squares slope over the order of the points (0, 1, 2, ...), computed within each set and task.
/// Supported if it and every step are above 0 at 5%; not supported if some step, or the trend, falls (Holm).
///
/// # Errors
///
/// Fewer than two points; tables of different shapes, or without values.
pub fn grows(points: &[Measured]) -> Result<Outcome> {
    monotone(points, slope(points)?, Direction::Rising, "slope over the order of the points")
}

/// Whether the curve has a falling trend and every step falls: [`grows`] upside down.
///
/// # Errors
///
/// As for [`grows`].
pub fn falls(points: &[Measured]) -> Result<Outcome> {
    monotone(points, slope(points)?, Direction::Falling, "slope over the order of the points")
}

/// Whether each of several curves has a falling trend, whatever its single steps do.
///
/// Supported if the slope of each is below 0 at 5% (intersection-union); not supported if one rises (Holm).
///
/// # Errors
///
/// No curves, or fewer than two points in one; tables of different shapes, or without values.
pub fn tend_to_fall(curves: &[(String, Vec<Measured>)]) -> Result<Outcome> {
    let named = |(name, points): &(String, Vec<Measured>)| {
        let slope = slope(points)?;
        Ok(Comparison { label: format!("{} at {name}", slope.label), ..slope })
    };
    every(curves.iter().map(named).collect::<Result<_>>()?)
}

/// Whether the curve rises, or rises and then levels off: the last point is above the first, and no step falls.
///
/// Supported if the last point is above the first at 5% and no step is seen to fall; not supported if some step, or the
/// whole, falls (Holm). A flat step is no objection, so that no step falls is believed until one is seen to: small falls
/// in noisy data pass.
///
/// # Errors
///
/// Fewer than two points; tables of different shapes, or without values.
pub fn rises_or_levels_off(points: &[Measured]) -> Result<Outcome> {
    let (last, _) = ends(points, 2)?;
    let whole = Comparison::new(last, &points[0])?;
    let mut changes = steps(points)?;
    changes.push(whole.clone());
    let falling = holm(&changes.iter().map(Comparison::p_below).collect::<Vec<_>>());
    let (deciding, verdict) = if changes.iter().any(Comparison::failed) {
        (&whole, Verdict::Undecided)
    } else if falling.contains(&true) {
        (most(&changes, |change| -change.p_below())?, Verdict::NotSupported)
    } else if whole.p_above() < LEVEL {
        (&whole, Verdict::Supported)
    } else {
        (&whole, Verdict::Undecided)
    };
    let detail = format!(
        "{}; of {} steps {} fall (Holm){}",
        deciding.describe(),
        points.len() - 1,
        falling[..points.len() - 1].iter().filter(|&&falls| falls).count(),
        failures(&changes)
    );
    Ok(deciding.outcome(
        "last point minus the first, and every step: supported if the last is above the first at 5% and no step falls, not \
         supported if one falls (Holm)",
        verdict,
        detail,
    ))
}

#[derive(Debug, Clone, Copy)]
enum Direction {
    Rising,
    Falling,
}

impl Direction {
    /// The p-value for going this way.
    fn p(self, comparison: &Comparison) -> f64 {
        match self {
            Self::Rising => comparison.p_above(),
            Self::Falling => comparison.p_below(),
        }
    }

    fn opposite(self) -> Self {
        match self {
            Self::Rising => Self::Falling,
            Self::Falling => Self::Rising,
        }
    }

    fn verb(self) -> &'static str {
        match self {
            Self::Rising => "rise",
            Self::Falling => "fall",
        }
    }
}

/// The test of a change in one direction, as a whole and at every step.
fn monotone(points: &[Measured], whole: Comparison, direction: Direction, name: &str) -> Result<Outcome> {
    let mut changes = steps(points)?;
    let steps = changes.len();
    let onward = changes.iter().filter(|step| direction.p(step) < LEVEL).count();
    changes.push(whole.clone());
    let back = direction.opposite();
    let against = holm(&changes.iter().map(|change| back.p(change)).collect::<Vec<_>>());
    let (deciding, verdict) = if changes.iter().any(Comparison::failed) {
        (&whole, Verdict::Undecided)
    } else if against.contains(&true) {
        (most(&changes, |change| -back.p(change))?, Verdict::NotSupported)
    } else if changes.iter().all(|change| direction.p(change) < LEVEL) {
        (&whole, Verdict::Supported)
    } else {
        (&whole, Verdict::Undecided)
    };
    let detail = format!(
        "{}; of {steps} steps {onward} {} at 5%, {} {} (Holm){}",
        deciding.describe(),
        direction.verb(),
        against[..steps].iter().filter(|&&against| against).count(),
        back.verb(),
        failures(&changes)
    );
    let test = format!(
        "{name}, and every step: supported if each {}s at 5% (intersection-union), not supported if one {}s (Holm over {} \
         changes)",
        direction.verb(),
        back.verb(),
        changes.len()
    );
    Ok(deciding.outcome(&test, verdict, detail))
}

/// Each point minus the one before.
fn steps(points: &[Measured]) -> Result<Vec<Comparison>> {
    points.windows(2).map(|pair| Comparison::new(&pair[1], &pair[0])).collect()
}

/// The least-squares slope over the order of the points.
fn slope(points: &[Measured]) -> Result<Comparison> {
    ends(points, 2)?;
    let centre = (points.len() - 1) as f64 / 2.0;
    let offsets: Vec<f64> = (0..points.len()).map(|order| order as f64 - centre).collect();
    let squares: f64 = offsets.iter().map(|offset| offset * offset).sum();
    let terms: Vec<(f64, &Measured)> =
        offsets.iter().zip(points).map(|(offset, point)| (offset / squares, point)).collect();
    Comparison::contrast("slope a step".to_owned(), &terms)
}

/// The last point and those before it.
fn ends(points: &[Measured], fewest: usize) -> Result<(&Measured, &[Measured])> {
    match points.split_last() {
        Some(split) if points.len() >= fewest => Ok(split),
        _ => Err(Error::input(
            "a claim about a curve",
            format!("has {} points, expected at least {fewest}", points.len()),
        )),
    }
}
