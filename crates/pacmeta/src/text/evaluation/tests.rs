//! Sentences that supports share are encoded once, and nothing else changes.

use super::*;
use crate::environments::text::Tokeniser;
use crate::environments::text::synthetic::{self, SyntheticOptions};
use crate::text::{TextHeads, TextPrior};

const TUNING: FineTuning = FineTuning { steps: 10, rate: 0.01 };

fn drawn(tokeniser: &Tokeniser) -> NewTask {
    let options = SyntheticOptions { tasks: 1, train: 40, dev: 20, key: Key::new(5) };
    let task = synthetic::tasks(&options).unwrap()[0].tokenise(tokeniser).unwrap();
    NewTask::drawn(&task, &[2, 4], 3, 20, Key::new(1)).unwrap()
}

#[test]
fn a_sequence_is_known_by_its_tokens_and_segments() {
    let mut tokens = TokenSet::new();
    tokens.append(&[2, 7, 3], &[0, 0, 0], 0);
    tokens.append(&[2, 8, 3], &[0, 0, 0], 1);
    tokens.append(&[2, 7, 3], &[0, 0, 1], 1);
    // the first one once more, with another label
    tokens.append(&[2, 7, 3], &[0, 0, 0], 1);
    let supports = BTreeMap::from([
        ((1, 0), tokens.select(&[1, 0])),
        ((1, 1), tokens.select(&[0, 1])),
        ((2, 0), tokens.select(&[0, 1, 2, 3])),
    ]);
    let classes = ["a", "b"].map(str::to_owned).into();
    let task = NewTask { name: "task".to_owned(), classes, supports, queries: TokenSet::new() };
    let (sequences, supports) = different_sequences(&task);
    assert_eq!((sequences.ids, sequences.starts), (vec![2, 8, 3, 2, 7, 3, 2, 7, 3], vec![0, 3, 6, 9]));
    assert_eq!(sequences.segments, [0, 0, 0, 0, 0, 0, 0, 0, 1]);
    let places: Vec<&[usize]> = supports.iter().map(|support| &support.places[..]).collect();
    let expected: [&[usize]; 3] = [&[0, 1], &[1, 0], &[1, 0, 2, 1]];
    assert_eq!(places, expected);
    assert_eq!(supports[2].labels, [0, 1, 1, 1]);
    assert_eq!((supports[1].shots, supports[1].draw), (1, 1));
}

#[test]
fn supports_score_as_if_each_were_encoded_alone() {
    let pretrained = synthetic::model(Key::new(3), 32).unwrap();
    let task = drawn(&pretrained.tokeniser);
    for threshold in [1, pretrained.encoder.shape.layers] {
        let prior = TextPrior::new(pretrained.encoder.shape, threshold, TextHeads::Zero).unwrap();
        let model = FewShot::new(&prior, pretrained.encoder.parameters.values()).unwrap();
        let mut room = EncoderRoom::new();
        let together = EncodedTask::new(&model, &task, &mut room).unwrap();
        // those with 2 shots lie in those with 4
        let examples: usize = task.supports.values().map(TokenSet::len).sum();
        assert!(together.supports.len() == 6 && together.sentences.len() <= examples * 2 / 3);

        let scores = together.score(&model, TUNING, &|| false).unwrap();
        for ((support, tokens), score) in together.supports.iter().zip(task.supports.values()).zip(scores) {
            let (shared, own) =
                (together.sentences.select(&support.places), model.encode(tokens, &mut room).unwrap());
            assert_eq!((&shared.starts, shared.values.len()), (&own.starts, own.values.len()));
            // up to the rounding of products with another number of rows
            for (shared, own) in shared.values.iter().zip(&own.values) {
                assert!((shared - own).abs() < 1e-4, "v = {threshold}: {shared} is not {own}");
            }
            let places = (0..tokens.len()).collect();
            let alone = EncodedTask {
                task: &task,
                queries: model.encode(&task.queries, &mut room).unwrap(),
                sentences: own,
                supports: vec![Support { places, labels: &tokens.labels, ..*support }],
            };
            let expected = alone.score(&model, TUNING, &|| false).unwrap().remove(0);
            let name = (score.task.as_str(), score.shots, score.draw, score.queries);
            assert_eq!(name, (expected.task.as_str(), expected.shots, expected.draw, expected.queries));
            assert!((score.log_likelihood - expected.log_likelihood).abs() < 0.05, "{score:?} {expected:?}");
            assert!((score.accuracy - expected.accuracy).abs() < 0.11, "{score:?} {expected:?}");
        }
    }
}

/// A task of `count` examples a class, all different, and none of its own to score.
fn without_queries(count: u32) -> TextTask {
    let mut train = TokenSet::new();
    for place in 0..2 * count {
        train.append(&[2, 10 + place, 3], &[0, 0, 0], place as usize % 2);
    }
    let classes = ["a", "b"].map(str::to_owned).into();
    TextTask { name: "task".to_owned(), classes, train, dev: TokenSet::new(), truncated: 0 }
}

#[test]
fn draws_of_the_largest_support_differ_where_queries_are_kept_back() {
    for (count, shots, queries) in [(30, 16, 7), (6, 4, 1), (5, 4, 1)] {
        let task = NewTask::drawn(&without_queries(count), &[2, shots], 5, 1000, Key::new(1)).unwrap();
        assert_eq!(task.queries.len(), 2 * queries, "{count} examples a class");
        let sentences = |draw: usize| {
            let mut ids = task.supports[&(shots, draw)].ids.clone();
            ids.sort_unstable();
            ids
        };
        let differ = (1..5).any(|draw| sentences(draw) != sentences(0));
        // with one more example than the shots there is nothing to choose from
        assert_eq!(differ, count > 5, "{count} examples a class");
        // no query is in a support
        let query = |place: usize| task.queries.ids[3 * place + 1];
        for place in 0..task.queries.len() {
            assert!((0..5).all(|draw| !sentences(draw).contains(&query(place))));
        }
    }
}
