//! Student's t distribution, for degrees of freedom that need not be whole.
//!
//! With v degrees of freedom and t >= 0,
//!
//! ```text
//! P(T > t) = 1/2 I_x(v/2, 1/2),   x = v / (v + t^2),
//! ```
//!
//! where I_x(a, b) is the regularised incomplete beta function, evaluated by its continued fraction. The quantile
//! inverts the distribution function by bisection: it is called once a printed number, never in an inner loop.

/// P(T <= t) for Student's t with this many degrees of freedom, to about 13 digits.
///
/// Infinite `t` gives 0 or 1; a `t` that is no number, or degrees of freedom that are not above 0, give no number.
pub fn student_probability(t: f64, degrees_of_freedom: f64) -> f64 {
    let v = degrees_of_freedom;
    if t.is_nan() || v.is_nan() || v <= 0.0 {
        return f64::NAN;
    }
    // Divided through by v, so that neither t^2 nor v overflows into no number.
    let ratio = (t / v.sqrt()).powi(2);
    let (x, complement) =
        if ratio.is_infinite() { (0.0, 1.0) } else { (1.0 / (1.0 + ratio), ratio / (1.0 + ratio)) };
    let tail = 0.5 * incomplete_beta(v / 2.0, x, complement);
    if t > 0.0 { 1.0 - tail } else { tail }
}

/// The t with P(T <= t) = `probability`: the factor of a standard error in an interval or a one-sided bound.
///
/// No number unless the probability is above 0 and below 1 and the degrees of freedom are above 0.
///
/// ```
/// use pacmeta::studies::summary::student_quantile;
///
/// assert!((student_quantile(0.975, 7.0) - 2.364624).abs() < 1e-6);
/// ```
pub fn student_quantile(probability: f64, degrees_of_freedom: f64) -> f64 {
    let valid = probability > 0.0 && probability < 1.0 && degrees_of_freedom > 0.0;
    if !valid {
        return f64::NAN;
    }
    if probability == 0.5 {
        return 0.0;
    }
    // The lower tail keeps its relative precision; the upper one follows by symmetry.
    let tail = probability.min(1.0 - probability);
    let mut far = -1.0;
    while student_probability(far, degrees_of_freedom) > tail && far > -f64::MAX / 4.0 {
        far *= 2.0;
    }
    let mut near = 0.0;
    loop {
        let middle = 0.5 * (far + near);
        // Until no number lies between the two ends.
        if middle <= far || middle >= near {
            return if probability < 0.5 { middle } else { -middle };
        }
        if student_probability(middle, degrees_of_freedom) > tail {
            near = middle;
        } else {
            far = middle;
        }
    }
}

/// I_x(a, 1/2), given x and 1 - x.
fn incomplete_beta(a: f64, x: f64, complement: f64) -> f64 {
    let b = 0.5;
    if x <= 0.0 {
        return 0.0;
    }
    if complement <= 0.0 {
        return 1.0;
    }
    // x^a from the complement where x is near 1: its logarithm is lost in x itself.
    let log_x = if complement < 0.5 { libm::log1p(-complement) } else { x.ln() };
    let front = (log_beta_reciprocal(a) + a * log_x + b * complement.ln()).exp();
    // The fraction converges fast on this side of the distribution's mean; the other side by reflection.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * continued_fraction(a, b, x) / a
    } else {
        1.0 - front * continued_fraction(b, a, complement) / b
    }
}

/// log 1/B(a, 1/2) = log Gamma(a + 1/2) - log Gamma(a) - log Gamma(1/2).
fn log_beta_reciprocal(a: f64) -> f64 {
    let log_root_pi = 0.5 * std::f64::consts::PI.ln();
    let ratio = if a > 200.0 {
        // The two logarithms would cancel; their difference has an asymptotic series.
        0.5 * a.ln() - 1.0 / (8.0 * a) + 1.0 / (192.0 * a.powi(3))
    } else {
        libm::lgamma(a + 0.5) - libm::lgamma(a)
    };
    ratio - log_root_pi
}

/// The continued fraction of the incomplete beta function, by Lentz's method.
fn continued_fraction(a: f64, b: f64, x: f64) -> f64 {
    let away_from_zero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for step in 1..10_000 {
        let m = f64::from(step);
        for numerator in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / away_from_zero(1.0 + numerator * d);
            c = away_from_zero(1.0 + numerator / c);
            fraction *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_printed_tables() {
        for (probability, degrees, expected) in [
            (0.95, 1.0, 6.313752),
            (0.975, 1.0, 12.706205),
            (0.975, 2.0, 4.302653),
            (0.95, 7.0, 1.894579),
            (0.975, 7.0, 2.364624),
            (0.99, 7.0, 2.997952),
            (0.975, 19.0, 2.093024),
            (0.95, 30.0, 1.697261),
            (0.995, 120.0, 2.617421),
            (0.975, 1e9, 1.959964),
        ] {
            let found = student_quantile(probability, degrees);
            assert!((found - expected).abs() < 1e-6, "{probability} with {degrees}: {found}, not {expected}");
            assert!((student_quantile(1.0 - probability, degrees) + expected).abs() < 1e-6);
        }
    }

    #[test]
    fn probabilities_are_the_closed_forms_of_one_two_and_four_degrees() {
        for t in [-40.0, -3.0, -0.7, -1e-6, 0.0, 1e-6, 0.2, 1.0, 2.5, 17.0] {
            let cauchy = 0.5 + f64::atan(t) / std::f64::consts::PI;
            let two = 0.5 + t / (2.0 * (2.0 + t * t).sqrt());
            let u = t / (4.0 + t * t).sqrt();
            let four = 0.5 + 0.75 * u - 0.25 * u.powi(3);
            for (degrees, expected) in [(1.0, cauchy), (2.0, two), (4.0, four)] {
                let found = student_probability(t, degrees);
                assert!((found - expected).abs() < 1e-13, "{t} with {degrees}: {found}, not {expected}");
            }
        }
    }

    #[test]
    fn the_quantile_inverts_the_probability_at_broken_degrees_of_freedom() {
        for degrees in [0.6, 3.7, 11.25, 150.5, 399.0, 401.0, 5e4] {
            for probability in [1e-9, 0.003, 0.2, 0.5, 0.77, 0.999] {
                let back = student_probability(student_quantile(probability, degrees), degrees);
                assert!((back / probability - 1.0).abs() < 1e-9, "{probability} with {degrees}: {back}");
            }
        }
    }

    #[test]
    fn the_series_for_many_degrees_joins_the_exact_form() {
        let exact = libm::lgamma(200.5) - libm::lgamma(200.0) - 0.5 * std::f64::consts::PI.ln();
        let series = log_beta_reciprocal(200.0_f64.next_up());
        assert!((exact - series).abs() < 1e-12, "{exact} {series}");
    }

    #[test]
    fn edges_are_numbers_where_they_can_be() {
        assert_eq!(student_probability(f64::INFINITY, 3.0), 1.0);
        assert_eq!(student_probability(f64::NEG_INFINITY, 3.0), 0.0);
        assert_eq!(student_probability(0.0, 3.0), 0.5);
        assert_eq!(student_quantile(0.5, 3.0), 0.0);
        assert!(student_probability(1.0, 0.0).is_nan());
        assert!(student_probability(f64::NAN, 3.0).is_nan());
        for probability in [0.0, 1.0, f64::NAN] {
            assert!(student_quantile(probability, 3.0).is_nan());
        }
    }
}
