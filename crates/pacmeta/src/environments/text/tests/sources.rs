use std::collections::BTreeSet;

use pacmeta_tensor::Key;

use super::*;
use crate::environments::text::smlmt::{Smlmt, SmlmtOptions, read_sentences, sentences_of};
use crate::environments::text::synthetic::SyntheticOptions;

fn generated(tasks: usize, key: Key) -> Vec<LabelledTexts> {
    synthetic::tasks(&SyntheticOptions { tasks, train: 60, dev: 12, key }).unwrap()
}

const SAMPLER: EpisodeSampler =
    EpisodeSampler { examples: 24, subset: 8, outside: 0, balance: Balance::Balanced };

#[test]
fn generated_tasks_are_varied_and_keyed() {
    let tasks = generated(40, Key::new(1));
    let counts: BTreeSet<usize> = tasks.iter().map(|task| task.classes.len()).collect();
    assert_eq!(counts, BTreeSet::from([2, 3, 4, 5]));
    let pairs = tasks.iter().filter(|task| task.is_paired()).count();
    assert!((3..20).contains(&pairs), "{pairs}");
    for task in &tasks {
        assert!(task.classes.is_sorted());
        let labels: BTreeSet<usize> = task.train[..5].iter().map(|example| example.label).collect();
        assert_eq!(labels.len(), task.classes.len(), "five examples show every class");
        assert_eq!((task.train.len(), task.dev.len()), (60, 12));
        let lines = task.to_json_lines();
        assert_eq!(&parse_texts(&format!("{}.jsonl", task.name), lines.as_bytes()).unwrap(), task);
    }
    assert_eq!(generated(3, Key::new(1))[..], tasks[..3], "more tasks begin with the same");
    assert_ne!(generated(40, Key::new(2)), tasks);
    let few = SyntheticOptions { tasks: 1, train: 4, dev: 0, key: Key::new(1) };
    assert!(synthetic::tasks(&few).unwrap_err().is_input());
}

#[test]
fn the_tiny_model_knows_all_generated_words() {
    let model = synthetic::model(Key::new(3), 48).unwrap();
    let unknown = 1;
    for task in generated(20, Key::new(4)) {
        let tokens = task.tokenise(&model.tokeniser).unwrap();
        assert_eq!(tokens.truncated, 0);
        assert!(
            tokens
                .train
                .ids
                .iter()
                .all(|&id| id != unknown && (id as usize) < model.encoder.shape.vocabulary)
        );
    }
    let letters = model.tokeniser.encode("zyx", None).unwrap();
    assert_eq!(letters.ids.len(), 5, "other words are spelt");
    assert!(!letters.ids.contains(&unknown));
    assert_eq!(model.encoder.parameters, synthetic::model(Key::new(3), 16).unwrap().encoder.parameters);
    assert!(synthetic::model(Key::new(3), 65).unwrap_err().to_string().contains("64 positions"));
    let folder = tempfile::tempdir().unwrap();
    crate::priors::pretrained::save(
        folder.path(),
        &model.encoder.shape,
        &model.encoder.parameters,
        &synthetic::words(),
    )
    .unwrap();
    let again = crate::priors::pretrained::open(folder.path(), 48, None).unwrap();
    assert_eq!(
        (again.encoder.shape, again.encoder.parameters),
        (model.encoder.shape, model.encoder.parameters)
    );
}

#[test]
fn masked_words_are_hidden_and_alone() {
    let tokeniser = synthetic::model(Key::new(3), 32).unwrap().tokeniser;
    let mut sentences = sentences_of(&generated(12, Key::new(5)));
    sentences.push("Rain, RAIN and sunshine: brain, rain!".into());
    let options = SmlmtOptions { classes: 3, least: 10, most: 400 };
    let source = Smlmt::new(sentences.clone(), &tokeniser, options).unwrap();
    assert!(source.words().is_sorted() && source.words().len() > 20);
    source.check(&SAMPLER).unwrap();
    let mask = tokeniser.mask_id().unwrap();
    for index in 0..20 {
        let episode = source.draw(&SAMPLER, Key::new(6).index(index)).unwrap();
        assert_eq!((episode.classes.len(), episode.tokens.len()), (3, 24));
        assert_eq!(
            episode.tokens.labels[..8].iter().collect::<BTreeSet<_>>().len(),
            3,
            "all words are in S'"
        );
        let hidden: Vec<u32> =
            episode.classes.iter().map(|word| tokeniser.encode(word, None).unwrap().ids[1]).collect();
        for sequence in episode.tokens.starts.windows(2) {
            let ids = &episode.tokens.ids[sequence[0]..sequence[1]];
            assert!(ids.contains(&mask) && !ids.iter().any(|id| hidden.contains(id)));
        }
        assert_eq!(episode, source.draw(&SAMPLER, Key::new(6).index(index)).unwrap());
    }
    let band =
        |least, most| Smlmt::new(sentences.clone(), &tokeniser, SmlmtOptions { classes: 2, least, most });
    let message = band(100_000, 200_000).unwrap_err().to_string();
    assert!(
        message.contains("0 words in 100000 to 200000 of") && message.contains("add sentences"),
        "{message}"
    );
    assert!(band(20, 10).unwrap_err().is_input());
    let narrow = band(1, 400).unwrap();
    assert!(narrow.check(&SAMPLER).unwrap_err().to_string().contains("lower `data.support`"));
    let words = ["[UNK]", "[CLS]", "[SEP]", "a"].map(str::to_owned);
    let no_mask = Tokeniser::from_words(&words, 8).unwrap();
    let message = Smlmt::new(sentences, &no_mask, options).unwrap_err().to_string();
    assert!(message.contains("it has no [MASK] token"), "{message}");
}

#[test]
fn masks_that_would_be_cut_are_not_used() {
    let tokeniser = small_tokeniser(8);
    let late = |index: usize| format!("{} rain {}", "very ".repeat(10), "a ".repeat(index));
    let early = |word: &str, index: usize| format!("{word} {}", "b ".repeat(index));
    let sentences = (0..10).flat_map(|index| [late(index), early("rain", index), early("sun", index)]);
    let options = SmlmtOptions { classes: 2, least: 10, most: 20 };
    let source = Smlmt::new(sentences, &tokeniser, options).unwrap();
    let sampler = EpisodeSampler { examples: 40, subset: 4, outside: 0, balance: Balance::Uniform };
    let mut sizes = BTreeSet::new();
    for index in 0..10 {
        let episode = source.draw(&sampler, Key::new(1).index(index)).unwrap();
        if episode.classes.iter().all(|word| ["rain", "sun"].contains(&word.as_str())) {
            sizes.insert(episode.tokens.len());
        }
        assert!(
            episode.tokens.starts.windows(2).all(|pair| episode.tokens.ids[pair[0]..pair[1]].contains(&4))
        );
    }
    assert_eq!(sizes, BTreeSet::from([20]), "the late ones are left out");
    // 10 long sentences of 8 tokens, and 2 times 3, 4, 5, 6, 7, 8 and, cut, four times 8: 210 tokens of 30 sentences
    assert_eq!(source.mean_length().unwrap(), 7.0);
}

#[test]
fn raw_sentences_are_read_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("plain.txt"), "One line.\r\n\r\nAnother.\n").unwrap();
    assert_eq!(read_sentences(&path("plain.txt")).unwrap(), ["One line.", "Another."]);
    std::fs::write(path("own.jsonl"), "{\"sentence1\": \"a\", \"sentence2\": \"b\"}\n").unwrap();
    assert_eq!(read_sentences(&path("own.jsonl")).unwrap(), ["a", "b"]);
    std::fs::write(path("empty.txt"), "\n").unwrap();
    assert!(
        read_sentences(&path("empty.txt")).unwrap_err().to_string().contains("expected one sentence a line")
    );
    std::fs::remove_file(path("empty.txt")).unwrap();
    std::fs::write(path("notes.md"), "No sentence.\n").unwrap();
    assert_eq!(read_sentences(folder.path()).unwrap(), ["a", "b", "One line.", "Another."], "by name");
    std::fs::create_dir(path("none")).unwrap();
    let message = read_sentences(&path("none")).unwrap_err().to_string();
    assert!(message.contains("no file in this folder that ends in .txt"), "{message}");
    let absent = read_sentences(&path("absent.txt")).unwrap_err();
    assert!(absent.is_input() && absent.to_string().contains("there is no such file"), "{absent}");
}

#[test]
fn mixtures_draw_by_weight() {
    let tokeniser = synthetic::model(Key::new(3), 32).unwrap().tokeniser;
    let texts = generated(6, Key::new(7));
    let tasks: Vec<TextTask> = texts.iter().map(|task| task.tokenise(&tokeniser).unwrap()).collect();
    let masked =
        Smlmt::new(sentences_of(&texts), &tokeniser, SmlmtOptions { classes: 2, least: 8, most: 200 })
            .unwrap();
    let pool = TaskPool::new("generated", tasks, TaskSampling::Uniform).unwrap();
    assert_eq!(pool.tasks().len(), 6);
    let mixture = Mixture::new(vec![(3.0, Box::new(pool)), (1.0, Box::new(masked))]).unwrap();
    mixture.check(&SAMPLER).unwrap();
    let mut masked_words = 0;
    let mut names = BTreeSet::new();
    for index in 0..200 {
        let episode = mixture.draw(&SAMPLER, Key::new(9).index(index)).unwrap();
        if episode.task.starts_with("masked words") {
            masked_words += 1;
        } else {
            names.insert(episode.task);
        }
    }
    // 200 draws of probability 1/4: 50 with a standard deviation of 6.
    assert!((25..75).contains(&masked_words), "{masked_words}");
    assert_eq!(names.len(), 6);
    let large = EpisodeSampler { examples: 500, subset: 61, ..SAMPLER };
    assert!(mixture.check(&large).unwrap_err().to_string().contains("task `generated-000`: has 60 examples"));
    assert!(Mixture::new(Vec::new()).is_err());
    assert!(TaskPool::new("none", Vec::new(), TaskSampling::Uniform).unwrap_err().is_input());
    let own = vec![texts[0].tokenise(&tokeniser).unwrap()];
    let own: Box<dyn EpisodeSource> = Box::new(TaskPool::new("own", own, TaskSampling::SquareRoot).unwrap());
    let error = Mixture::new(vec![(f64::NAN, own)]).err().unwrap().to_string();
    assert!(error.contains("the weight of `own` is NaN; expected a positive number"), "{error}");
}
