use proptest::prelude::*;
use tokenizers::utils::truncation::{TruncationDirection, TruncationParams, TruncationStrategy};

use super::*;

#[test]
fn sentences_are_framed() {
    let tokeniser = small_tokeniser(16);
    let single = tokeniser.encode("Good, sunny!", None).unwrap();
    assert_eq!(single.ids, [2, 11, 19, 1, 21, 3], "`sunny` is `sun` and `##ny`, which is not there");
    assert_eq!((single.segments, single.truncated), (vec![0; 6], false));
    let pair = tokeniser.encode("rainy", Some("very BAD")).unwrap();
    assert_eq!(pair.ids, [2, 15, 17, 3, 14, 12, 3]);
    assert_eq!(pair.segments, [0, 0, 0, 0, 1, 1, 1]);
    for (segments, second) in [(0, 1), (1, 0), (2, 1)] {
        let pair = tokeniser.clone().with_segments(segments).encode("rainy", Some("very BAD")).unwrap();
        assert_eq!(
            pair.segments,
            [0, 0, 0, 0, second, second, second],
            "of an encoder with {segments} segments"
        );
    }
    assert_eq!(
        (tokeniser.vocabulary(), tokeniser.mask_id(), tokeniser.mask_word()),
        (22, Some(4), Some("[MASK]"))
    );
    assert_eq!(tokeniser.encode("a [MASK] c", None).unwrap().ids, [2, 5, 4, 7, 3]);
    assert_eq!(tokeniser.token(17).as_deref(), Some("##y"));
}

#[test]
fn unknown_words_are_counted_without_the_frame() {
    let tokeniser = small_tokeniser(16);
    let part = |text: &str| tokeniser.unknown_part(&tokeniser.encode(text, Some("good")).unwrap().ids);
    assert_eq!([part("good bad rain"), part("xylophone bad zebra"), part("qqq www zzz")], [0.0, 0.5, 0.75]);
    assert_eq!(tokeniser.unknown_part(&[]), 0.0);
}

#[test]
fn long_sentences_lose_their_end() {
    let tokeniser = small_tokeniser(8);
    let single = tokeniser.encode("a b c d e f a b", None).unwrap();
    assert_eq!((single.ids, single.truncated), (vec![2, 5, 6, 7, 8, 9, 10, 3], true));
    let short_second = tokeniser.encode("a b c d e f", Some("good")).unwrap();
    assert_eq!(short_second.ids, [2, 5, 6, 7, 8, 3, 11, 3], "the short sentence stays whole");
    let fits = tokeniser.encode("a b c d e f", None).unwrap();
    assert_eq!((fits.ids.len(), fits.truncated), (8, false));
    let error = Tokeniser::from_words(&["[UNK]".into(), "[CLS]".into(), "[SEP]".into()], 4).unwrap_err();
    assert!(error.to_string().contains("expected at least 5"), "{error}");
}

/// A definition as other programs write it, with padding and truncation that must not leak.
fn definition() -> serde_json::Value {
    serde_json::json!({
        "version": "1.0",
        "truncation": {"max_length": 6, "strategy": "LongestFirst", "stride": 0},
        "padding": {"strategy": {"Fixed": 32}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0,
                    "pad_type_id": 0, "pad_token": "[PAD]"},
        "added_tokens": [],
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                       "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
        "decoder": null,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100,
                  "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "a": 4, "b": 9}},
    })
}

#[test]
fn settings_for_padding_and_truncation_do_not_leak() {
    let bytes = definition().to_string();
    let tokeniser = Tokeniser::parse("tokenizer.json", bytes.as_bytes(), 12).unwrap();
    let encoded = tokeniser.encode("a b a b a b a", None).unwrap();
    assert_eq!((encoded.ids, encoded.truncated), (vec![2, 4, 9, 4, 9, 4, 9, 4, 3], false));
    assert_eq!(tokeniser.vocabulary(), 10, "rows of the embedding table, not entries");
    assert_eq!(tokeniser.mask_id(), None);
}

#[test]
fn other_frames_are_refused() {
    let mut other = definition();
    other["post_processor"] = serde_json::json!({"type": "RobertaProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2],
        "trim_offsets": true, "add_prefix_space": true});
    let error = Tokeniser::parse("tokenizer.json", other.to_string().as_bytes(), 12).unwrap_err();
    assert!(
        error.to_string().contains("the frame around two sentences is not [CLS] first [SEP] second [SEP]"),
        "{error}"
    );
    other["post_processor"] = serde_json::Value::Null;
    assert!(Tokeniser::parse("tokenizer.json", other.to_string().as_bytes(), 12).is_err());
    let error = Tokeniser::parse("tokenizer.json", b"{\"version\": \"1.0\"}", 12).unwrap_err();
    assert!(error.is_input() && error.to_string().contains("is not a usable tokeniser"), "{error}");
}

#[test]
fn folders_of_models_are_opened() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Tokeniser::open(folder.path(), 16);
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    assert!(open().unwrap_err().to_string().contains("there is neither tokenizer.json nor vocab.txt"));
    write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nRain\nrain\nété\nete\n");
    let ids = |text: &str| open().unwrap().encode(text, None).unwrap().ids;
    assert_eq!(ids("Rain été"), [2, 6, 8, 3], "capitals and accents are ignored by default");
    write("tokenizer_config.json", r#"{"do_lower_case": false, "mask_token": {"content": "[MASK]"}}"#);
    assert_eq!(ids("Rain été"), [2, 5, 7, 3]);
    assert_eq!(open().unwrap().mask_id(), Some(4));
    write("tokenizer_config.json", "[");
    assert!(open().unwrap_err().to_string().contains("tokenizer_config.json: is not JSON"));
    write("tokenizer_config.json", "{}");
    write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nrain\nrain\n");
    let error = open().unwrap_err().to_string();
    assert!(error.contains("line 6: the word piece `rain` is already on line 5"), "{error}");
    write("vocab.txt", "[UNK]\n[CLS]\nrain\n");
    assert!(open().unwrap_err().to_string().contains("the token `[SEP]` is not among its 3 word pieces"));
    write("tokenizer.json", &definition().to_string());
    assert_eq!(ids("b"), [2, 9, 3], "tokenizer.json comes first");
}

#[test]
fn sets_are_packed_and_selected() {
    let tokeniser = small_tokeniser(8);
    let mut set = TokenSet::new();
    for (label, text) in ["a", "b c", "d e f"].into_iter().enumerate() {
        set.push(&tokeniser.encode(text, None).unwrap(), label);
    }
    assert_eq!((set.len(), set.starts.as_slice(), set.longest()), (3, &[0, 3, 7, 12][..], 5));
    let tail = set.tokens(1..3);
    assert_eq!((tail.starts, tail.ids.len(), tail.ids[0]), (&[3, 7, 12][..], 9, 2));
    let selected = set.select(&[2, 0, 2]);
    assert_eq!((selected.labels, selected.starts), (vec![2, 0, 2], vec![0, 5, 8, 13]));
    assert_eq!(selected.ids[5..8], set.ids[0..3]);
    assert_eq!(set.tokens(1..1).ids, [0; 0]);
    assert_eq!(TokenSet::new().all_tokens().starts, [0]);
}

proptest! {
    /// The crate's own truncation keeps the same tokens.
    #[test]
    fn truncation_is_that_of_the_crate(first in 1..20usize, second in prop::option::of(1..20usize), limit in 5..24usize) {
        let words = |count: usize| ["a", "b", "c", "d"].iter().cycle().take(count).copied().collect::<Vec<_>>().join(" ");
        let (first, second) = (words(first), second.map(words));
        let bytes = definition().to_string();
        let ours = Tokeniser::parse("t", bytes.as_bytes(), limit).unwrap().encode(&first, second.as_deref()).unwrap();
        let mut theirs = tokenizers::Tokenizer::from_bytes(&bytes).unwrap();
        theirs.with_padding(None);
        theirs.with_truncation(Some(TruncationParams {
            direction: TruncationDirection::Right,
            max_length: limit,
            strategy: TruncationStrategy::LongestFirst,
            stride: 0,
        })).unwrap();
        let encoding = match second {
            Some(second) => theirs.encode((first, second), true).unwrap(),
            None => theirs.encode(first, true).unwrap(),
        };
        prop_assert_eq!(&ours.ids[..], encoding.get_ids());
        let kinds: Vec<u8> = encoding.get_type_ids().iter().map(|&kind| kind as u8).collect();
        prop_assert_eq!(ours.segments, kinds);
        prop_assert_eq!(ours.truncated, !encoding.get_overflowing().is_empty());
    }

    #[test]
    fn any_text_has_tokens(first in "\\PC{0,40}", second in "\\PC{0,40}", limit in 5..12usize) {
        let encoded = small_tokeniser(limit).encode(&first, Some(&second)).unwrap();
        prop_assert!((3..=limit).contains(&encoded.ids.len()));
        prop_assert_eq!(encoded.ids.len(), encoded.segments.len());
        prop_assert!(encoded.ids.iter().all(|&id| id < 22));
    }
}
