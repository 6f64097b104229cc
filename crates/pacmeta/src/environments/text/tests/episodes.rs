use pacmeta_tensor::Key;

use super::*;

/// A task with so many examples of each class.
fn task(counts: &[usize]) -> TextTask {
    let mut train = TokenSet::new();
    for (label, &count) in counts.iter().enumerate() {
        for index in 0..count {
            let ids = vec![label as u32, index as u32];
            train.push(&Encoded { ids, segments: vec![0, 0], truncated: false }, label);
        }
    }
    let classes = (0..counts.len()).map(|class| class.to_string()).collect();
    TextTask { name: "made up".into(), classes, train, dev: TokenSet::new(), truncated: 0 }
}

fn histogram(labels: &[usize], classes: usize) -> Vec<usize> {
    (0..classes).map(|class| labels.iter().filter(|&&label| label == class).count()).collect()
}

#[test]
fn balanced_draws_have_every_class_in_the_subset() {
    let sampler = EpisodeSampler { examples: 30, subset: 7, outside: 0, balance: Balance::Balanced };
    let task = task(&[50, 3, 40, 40]);
    for index in 0..50 {
        let episode = sampler.draw(&task, Key::new(3).index(index)).unwrap();
        assert_eq!((episode.tokens.len(), episode.subset, episode.classes.len()), (30, 7, 4));
        let inside = histogram(&episode.tokens.labels[..7], 4);
        assert!(inside.iter().all(|&count| (1..=2).contains(&count)), "{inside:?}");
        let all = histogram(&episode.tokens.labels, 4);
        assert_eq!((all[1], all.iter().sum::<usize>()), (3, 30), "what a class has not, others give");
        assert!([all[0], all[2], all[3]].iter().all(|&count| count == 9), "{all:?}");
        let mut pairs: Vec<_> = episode.tokens.ids.chunks(2).collect();
        pairs.sort_unstable();
        pairs.dedup();
        assert_eq!(pairs.len(), 30, "no example twice");
        assert!(
            episode
                .tokens
                .ids
                .chunks(2)
                .zip(&episode.tokens.labels)
                .all(|(ids, &label)| ids[0] == label as u32)
        );
    }
}

#[test]
fn draws_are_functions_of_their_keys() {
    let task = task(&[20, 20]);
    for balance in [Balance::Balanced, Balance::Uniform] {
        let sampler = EpisodeSampler { examples: 10, subset: 4, outside: 0, balance };
        let draw = |seed| sampler.draw(&task, Key::new(seed)).unwrap();
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}

#[test]
fn uniform_draws_follow_the_task() {
    let sampler = EpisodeSampler { examples: 40, subset: 8, outside: 0, balance: Balance::Uniform };
    let task = task(&[900, 100]);
    let rare: usize = (0..200)
        .map(|index| histogram(&sampler.draw(&task, Key::new(5).index(index)).unwrap().tokens.labels, 2)[1])
        .sum();
    // 8,000 draws of probability 0.1: 800 with a standard deviation of 26.
    assert!((680..920).contains(&rare), "{rare}");
}

#[test]
fn small_tasks_give_what_they_have() {
    let sampler = EpisodeSampler { examples: 256, subset: 8, outside: 0, balance: Balance::Balanced };
    assert_eq!(sampler.draw(&task(&[5, 4]), Key::new(1)).unwrap().tokens.len(), 9);
    assert_eq!(sampler.draw(&task(&[4, 4]), Key::new(1)).unwrap().tokens.len(), 8, "S' may be all of S");
    let error = sampler.draw(&task(&[4, 3]), Key::new(1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "task `made up`: has 7 examples to learn from, and S' alone takes 8; lower `data.support` (and `data.examples`), \
         add examples, or choose tasks by `data.tasks`"
    );
    let judged_outside = EpisodeSampler { outside: 1, ..sampler };
    let error = judged_outside.draw(&task(&[4, 4]), Key::new(1)).unwrap_err().to_string();
    assert!(error.contains("S' takes 8 and leaves one or more outside"), "{error}");
    for (examples, subset, outside) in [(8, 0, 0), (8, 9, 0), (0, 0, 0), (8, 8, 1)] {
        let sampler = EpisodeSampler { examples, subset, outside, balance: Balance::Uniform };
        let error = sampler.draw(&task(&[50, 50]), Key::new(1)).unwrap_err();
        assert!(error.is_input() && error.to_string().contains("`data.support`"), "{error}");
    }
}

#[test]
fn tasks_are_drawn_by_size_or_not() {
    let sizes = [100, 400, 900];
    let count = |sampling: TaskSampling| {
        let mut counts = [0_i32; 3];
        for index in 0..6000 {
            counts[sampling.draw(&sizes, Key::new(8).index(index))] += 1;
        }
        counts
    };
    // Standard deviations are below 40.
    assert!(count(TaskSampling::Uniform).iter().all(|&count| (1840..2160).contains(&count)));
    let by_root = count(TaskSampling::SquareRoot);
    for (found, expected) in by_root.iter().zip([1000, 2000, 3000]) {
        assert!((found - expected).abs() < 160, "{by_root:?}");
    }
    assert_eq!(TaskSampling::SquareRoot.draw(&[0, 7, 0], Key::new(1)), 1);
}
