//! Numbers as people read them.

const SUPERSCRIPTS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];

/// `value` with `decimals` digits after the point, a real minus sign and commas between thousands.
pub(crate) fn fixed(value: f64, decimals: usize) -> String {
    if value.is_nan() {
        return "not a number".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "∞" } else { "−∞" }.to_owned();
    }
    let plain = format!("{:.*}", decimals, value.abs());
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let mut out = String::new();
    // A value that rounds to zero carries no sign.
    if value < 0.0 && plain.bytes().any(|b| (b'1'..=b'9').contains(&b)) {
        out.push('−');
    }
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// A power of ten such as 10⁻³.
pub(crate) fn power_of_ten(exponent: i32) -> String {
    let mut out = String::from("10");
    if exponent < 0 {
        out.push('⁻');
    }
    for digit in exponent.unsigned_abs().to_string().bytes() {
        out.push(SUPERSCRIPTS[usize::from(digit - b'0')]);
    }
    out
}

/// The decimal exponent of a finite non-zero number.
pub(crate) fn exponent(value: f64) -> i32 {
    value.abs().log10().floor() as i32
}

/// `value` with about four significant digits; very large and very small ones as powers of ten.
pub(crate) fn brief(value: f64) -> String {
    if !value.is_finite() {
        return fixed(value, 0);
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    // Rounding first keeps 9.99996 from being printed with one digit too many.
    let rounded: f64 = format!("{value:.3e}").parse().unwrap_or(value);
    let power = exponent(rounded);
    if !(-4..7).contains(&power) {
        let text = format!("{:.2e}", rounded.abs());
        let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
        let sign = if value < 0.0 { "−" } else { "" };
        return format!("{sign}{mantissa}×{}", power_of_ten(power.parse().unwrap_or(0)));
    }
    let decimals = (3 - power).max(0) as usize;
    let text = fixed(rounded, decimals);
    match text.split_once('.') {
        Some((whole, fraction)) => {
            let fraction = fraction.trim_end_matches('0');
            if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
        }
        None => text,
    }
}

/// How many decimals show two significant digits of the usual error, the (lower) median of the positive ones; between 2 and 5.
pub(crate) fn decimals_for(errors: impl Iterator<Item = f64>) -> usize {
    let mut errors: Vec<f64> = errors.filter(|e| e.is_finite() && *e > 0.0).collect();
    errors.sort_by(f64::total_cmp);
    match errors.get(errors.len().saturating_sub(1) / 2) {
        Some(usual) => (1 - exponent(*usual)).clamp(2, 5) as usize,
        None => 3,
    }
}

/// A whole number with commas between thousands.
pub(crate) fn count(value: usize) -> String {
    fixed(value as f64, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_groups_thousands_and_signs() {
        assert_eq!(fixed(8000.0, 0), "8,000");
        assert_eq!(fixed(-1234567.891, 2), "−1,234,567.89");
        assert_eq!(fixed(-0.001, 2), "0.00");
        assert_eq!(fixed(f64::NEG_INFINITY, 2), "−∞");
        assert_eq!(fixed(999.0, 0), "999");
    }

    #[test]
    fn brief_keeps_four_digits() {
        assert_eq!(brief(0.30912), "0.3091");
        assert_eq!(brief(9.99996), "10");
        assert_eq!(brief(-0.25), "−0.25");
        assert_eq!(brief(123456.0), "123,500");
        assert_eq!(brief(1.5e-7), "1.50×10⁻⁷");
        assert_eq!(brief(-2e9), "−2.00×10⁹");
        assert_eq!(brief(0.0), "0");
        assert_eq!(brief(f64::NAN), "not a number");
        assert_eq!(brief(5e-324), "4.94×10⁻³²⁴");
    }

    #[test]
    fn decimals_follow_the_standard_error() {
        assert_eq!(decimals_for([0.012, 0.3].into_iter()), 3);
        assert_eq!(decimals_for([0.3, 0.001, 0.02].into_iter()), 3);
        assert_eq!(decimals_for([4.0].into_iter()), 2);
        assert_eq!(decimals_for([1e-9].into_iter()), 5);
        assert_eq!(decimals_for([f64::NAN].into_iter()), 3);
    }
}
