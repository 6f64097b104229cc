use super::*;
use std::collections::HashSet;

#[test]
fn children_differ_and_order_matters() {
    let root = Key::new(1);
    let mut seen = HashSet::from([root, Key::new(0), root.named(""), root.named("\0")]);
    for index in 0..1000 {
        assert!(seen.insert(root.index(index)));
        assert!(seen.insert(root.named(&index.to_string())));
        assert!(seen.insert(root.named("a").index(index)));
        assert!(seen.insert(root.index(index).named("a")));
    }
    // A name with the bytes of an index is another kind of child.
    assert_ne!(root.named("\0\0\0\0\0\0\0\0"), root.index(0));
    assert_ne!(root.named("ab"), root.named("a").named("b"));
}

#[test]
fn neighbouring_keys_share_half_their_bits() {
    let root = Key::new(3);
    let count = 20_000;
    let differing: u32 = (0..count)
        .map(|index| {
            let (a, b) = (root.index(index), root.index(index + 1));
            (a.state[0] ^ b.state[0]).count_ones() + (a.state[1] ^ b.state[1]).count_ones()
        })
        .sum();
    // Each of the differences has mean 64 and variance 32.
    let mean = f64::from(differing) / count as f64;
    assert!((mean - 64.0).abs() < 5.0 * (32.0 / count as f64).sqrt(), "{mean}");
}

/// Mean and variance of numbers, one from each of many keys: the streams themselves must be independent.
fn moments(draw: impl Fn(&mut Generator) -> f64) -> (f64, f64) {
    let count = 200_000;
    let draws: Vec<f64> = (0..count).map(|index| draw(&mut Key::new(5).index(index).generator())).collect();
    let mean = draws.iter().sum::<f64>() / count as f64;
    (mean, draws.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count as f64)
}

#[test]
fn uniform_and_normal_moments() {
    // Five standard errors: sd 0.289 and 1 over 200,000 draws; the variance's sd is 0.0745 and 1.414.
    let (mean, variance) = moments(Generator::uniform);
    assert!((mean - 0.5).abs() < 3.3e-3 && (variance - 1.0 / 12.0).abs() < 8.4e-4, "{mean} {variance}");
    let (mean, variance) = moments(|generator| generator.uniform_in(-2.0, 4.0));
    assert!((mean - 1.0).abs() < 0.02 && (variance - 3.0).abs() < 0.031, "{mean} {variance}");
    let (mean, variance) = moments(Generator::normal);
    assert!(mean.abs() < 1.2e-2 && (variance - 1.0).abs() < 1.6e-2, "{mean} {variance}");
}

#[test]
fn indices_are_uniform() {
    let mut generator = Key::new(6).generator();
    let mut counts = [0usize; 7];
    for _ in 0..70_000 {
        counts[generator.below(7)] += 1;
    }
    assert!(counts.iter().all(|&count| count.abs_diff(10_000) < 500), "{counts:?}");
    assert_eq!(generator.below(1), 0);
    assert_eq!(generator.below(0), 0);
    // Without redrawing, every third of 3/4 of all words would be hit by two words instead of one.
    let multiples = (0..30_000).filter(|_| generator.below(3 << 62).is_multiple_of(3)).count();
    assert!(multiples.abs_diff(10_000) < 500, "{multiples}");
}

#[test]
fn subsets_are_uniform_in_content_and_order() {
    // Pairs out of 4 use the shuffle, pairs out of 5 use Floyd's algorithm.
    for count in [4, 5] {
        let mut generator = Key::new(7).generator();
        let mut counts = vec![0usize; count * count];
        let mut pair = Vec::new();
        let pairs = count * (count - 1);
        for _ in 0..10_000 * pairs {
            generator.subset_into(count, 2, &mut pair);
            counts[pair[0] * count + pair[1]] += 1;
        }
        for (position, &seen) in counts.iter().enumerate() {
            let expected = if position / count == position % count { 0 } else { 10_000 };
            assert!(seen.abs_diff(expected) < 500, "{counts:?}");
        }
    }
}

#[test]
fn subsets_at_the_edges() {
    let mut generator = Key::new(8).generator();
    let mut all = generator.subset(5, 9);
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 3, 4]);
    assert!(generator.subset(0, 3).is_empty());
    assert!(generator.subset(3, 0).is_empty());
    let mut buffer = Vec::with_capacity(100);
    let place = buffer.as_ptr();
    for size in [0, 5, 9, 10, 100] {
        generator.subset_into(100, size, &mut buffer);
        let distinct: HashSet<_> = buffer.iter().copied().collect();
        assert!(distinct.len() == size && buffer.iter().all(|&index| index < 100));
        assert_eq!(buffer.as_ptr(), place);
    }
}

#[test]
fn shuffles_are_uniform() {
    let mut generator = Key::new(9).generator();
    let mut counts = std::collections::HashMap::new();
    for _ in 0..60_000 {
        let mut items = [0, 1, 2];
        generator.shuffle(&mut items);
        *counts.entry(items).or_insert(0usize) += 1;
    }
    assert_eq!(counts.len(), 6);
    assert!(counts.values().all(|count| count.abs_diff(10_000) < 500), "{counts:?}");
}

/// These values may change only together with a new major format of every stored result.
#[test]
fn golden_values() {
    let key = Key::new(42).named("tasks").index(7);
    assert_eq!(key.state, [0x57a3_d62d_2b8b_24d9, 0xed95_7c94_1bbc_e9f2]);
    let mut generator = key.generator();
    assert_eq!(generator.uniform().to_bits(), 0x3fe2_cda4_2fd7_ccaa);
    assert_eq!(generator.normal().to_bits(), 0x3ff1_f728_efbd_27cc);
    assert_eq!(generator.below(1000), 342);
    assert_eq!(generator.subset(100, 5), [95, 40, 85, 35, 98]);
    assert_eq!(generator.subset(5, 5), [0, 4, 1, 3, 2]);
}
