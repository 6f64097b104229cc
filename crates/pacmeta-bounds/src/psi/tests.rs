//! Closed forms against exact cumulants, averages against direct sums.

use super::*;

/// psi of a Bernoulli(p) 0/1 loss: t p + log(p e^-t + 1 - p).
fn bernoulli(p: f64, t: f64) -> f64 {
    t * p + (p * (-t).exp() + 1.0 - p).ln()
}

#[test]
fn closed_forms_dominate_exact_cumulants() {
    for t in [0.01, 0.3, 1.0, 4.0, 30.0] {
        for p in [0.0, 0.05, 0.3, 0.5, 0.8, 1.0] {
            let exact = bernoulli(p, t);
            assert!(exact <= Psi::Bounded { low: 0.0, high: 1.0 }.at(t).unwrap().value + 1e-12);
            // E l^2 = p for a 0/1 loss
            assert!(exact <= Psi::NonNegative { second_moment: p }.at(t).unwrap().value + 1e-12);
        }
        // Exponential(1): log E exp(t (1 - l)) = t - log(1 + t), second moment 2.
        assert!(t - t.ln_1p() <= Psi::NonNegative { second_moment: 2.0 }.at(t).unwrap().value);
    }
}

#[test]
fn closed_forms_are_attained_where_theory_says() {
    // A Gaussian loss is sub-Gaussian with equality: check t^2 s^2/2 against quadrature of E exp(-t s x).
    let (t, variance): (f64, f64) = (1.3, 0.7);
    let width = 1e-3;
    let moment: f64 = (-20_000..=20_000)
        .map(|k| {
            let x = f64::from(k) * width;
            width * (-x * x / 2.0 - t * variance.sqrt() * x).exp() / (2.0 * std::f64::consts::PI).sqrt()
        })
        .sum();
    assert!((Psi::SubGaussian { variance }.at(t).unwrap().value - moment.ln()).abs() < 1e-9);
    // A fair coin reaches Hoeffding as t -> 0.
    let ratio = bernoulli(0.5, 1e-3) / Psi::Bounded { low: 0.0, high: 1.0 }.at(1e-3).unwrap().value;
    assert!((ratio - 1.0).abs() < 1e-6);
    // A loss -Gamma(shape k, scale c), mean -k c: psi(t) = -k c t - k log(1 - c t) <= k c^2 t^2/(2 (1 - c t)).
    let (shape, scale) = (3.0_f64, 0.4_f64);
    for t in [0.1_f64, 1.0, 2.0, 2.4] {
        let exact = -shape * scale * t - shape * (-scale * t).ln_1p();
        let bound = Psi::SubGamma { variance: shape * scale * scale, scale }.at(t).unwrap().value;
        assert!(exact <= bound, "{exact} > {bound} at {t}");
    }
}

#[test]
fn closed_forms_are_the_formulas() {
    let t = 0.6;
    assert!((Psi::Bounded { low: -1.0, high: 2.0 }.at(t).unwrap().value - 0.36 * 9.0 / 8.0).abs() < 1e-15);
    let sub_gamma = Psi::SubGamma { variance: 2.0, scale: 0.5 }.at(t).unwrap().value;
    assert!((sub_gamma - 0.36 * 2.0 / (2.0 * 0.7)).abs() < 1e-15);
    assert_eq!(
        Psi::SubGamma { variance: 2.0, scale: 0.0 }.at(t).unwrap(),
        Psi::SubGaussian { variance: 2.0 }.at(t).unwrap()
    );
    assert_eq!(Psi::Bounded { low: 1.0, high: 1.0 }.at(t).unwrap().value, 0.0);
}

#[test]
fn what_cannot_hold_is_refused() {
    let sub_gamma = Psi::SubGamma { variance: 1.0, scale: 0.5 };
    assert!(sub_gamma.at(1.99).is_ok());
    assert!(matches!(sub_gamma.at(2.0), Err(BoundError::SubGammaRange { .. })));
    assert!(matches!(Psi::Bounded { low: 1.0, high: 0.0 }.at(1.0), Err(BoundError::Interval { .. })));
    assert!(matches!(
        Psi::Bounded { low: 0.0, high: f64::INFINITY }.at(1.0),
        Err(BoundError::Interval { .. })
    ));
    assert!(matches!(Psi::SubGaussian { variance: -1.0 }.at(1.0), Err(BoundError::Negative { .. })));
    assert!(matches!(Psi::NonNegative { second_moment: f64::NAN }.at(1.0), Err(BoundError::Negative { .. })));
    assert!(matches!(Psi::SubGaussian { variance: 1.0 }.at(0.0), Err(BoundError::NotPositive { .. })));
    let known = Psi::Uniform { temperature: 1.0, value: 0.1 };
    assert_eq!(known.at(1.0).unwrap().value, 0.1);
    assert_eq!(known.at(2.0), Err(BoundError::PsiTemperature { known: 1.0, needed: 2.0 }));
    assert!(matches!(
        AveragedPsi::from_log_moments(1.0, 0, &[0.1, 0.2]),
        Err(BoundError::NotPositive { .. })
    ));
}

#[test]
fn the_power_is_inside_the_average_and_averages_grow_with_it() {
    let values = [0.0, 0.5];
    let direct = |k: f64| ((1.0 + (0.5 * k).exp()) / 2.0).ln() / k;
    let mut last = 0.0;
    for power in [1, 4, 16] {
        let average = AveragedPsi::from_log_moments(1.0, power, &values).unwrap();
        assert!((average.value().value - direct(power as f64)).abs() < 1e-14);
        assert!(average.value().value > last);
        last = average.value().value;
        let exact = AveragedPsi::from_masses(1.0, power, &[0.5, 0.5], &values).unwrap();
        assert!((exact.value().value - last).abs() < 1e-14);
        assert_eq!(exact.value().standard_error, None);
    }
    // exponents of 1e6 and more
    let huge = AveragedPsi::from_log_moments(1.0, 10_000_000, &values).unwrap();
    assert!((huge.value().value - 0.5).abs() < 1e-6);
}

#[test]
fn an_average_below_the_needed_power_is_refused() {
    let psi = Psi::Averaged(AveragedPsi::from_log_moments(0.5, 8, &[0.1, 0.2, 0.1]).unwrap());
    assert_eq!(psi.reach(), Reach::Average { power: 8 });
    assert!(psi.at_power("psi", 0.5, Some(8)).is_ok());
    assert!(psi.at_power("psi", 0.5, Some(9)).is_err());
    assert!(psi.at_power("psi", 0.5, None).is_err());
    assert!(Psi::SubGaussian { variance: 1.0 }.at_power("psi", 0.5, None).is_ok());
}

#[test]
fn log_moments_from_losses_follow_a_coin() {
    // 300 ones and 700 zeros: the plug-in value is psi of Bernoulli(0.3) exactly.
    let losses: Vec<f64> = (0..1000).map(|k| f64::from(u8::from(k < 300))).collect();
    let estimate = log_moment_from_losses(2.0, &losses).unwrap();
    assert!((estimate.value - bernoulli(0.3, 2.0)).abs() < 1e-12);
    // d psi/dp = t + (e^-t - 1)/(p e^-t + 1 - p), times the binomial error sqrt(p (1-p)/(K-1)).
    let slope = 2.0 + ((-2.0_f64).exp() - 1.0) / (0.3 * (-2.0_f64).exp() + 0.7);
    let error = (slope * (0.21_f64 / 999.0).sqrt()).abs();
    assert!((estimate.standard_error.unwrap() - error).abs() < 1e-12);
}
