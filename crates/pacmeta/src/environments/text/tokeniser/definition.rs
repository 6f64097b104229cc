//! The tokeniser that `vocab.txt` and `tokenizer_config.json` describe: BERT's word pieces.

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::environments::table::{quoted, text};
use crate::error::{Error, Result};

/// The tokens that frame sentences, fill gaps and mask words, by their keys in `tokenizer_config.json`.
const SPECIAL: [(&str, &str); 5] = [
    ("pad_token", "[PAD]"),
    ("unk_token", "[UNK]"),
    ("cls_token", "[CLS]"),
    ("sep_token", "[SEP]"),
    ("mask_token", "[MASK]"),
];

/// Words longer than this are unknown, as in BERT.
const LONGEST_WORD: usize = 100;

/// What `tokenizer_config.json` says, as far as it matters; defaults are BERT's.
#[derive(Debug, Clone, Default)]
pub(super) struct TokeniserConfig {
    fields: Map<String, Value>,
}

impl TokeniserConfig {
    /// Reads the file, if there is one.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(Error::io("read", path, source)),
        };
        match serde_json::from_slice(&bytes) {
            Ok(Value::Object(fields)) => Ok(Self { fields }),
            Ok(_) => Err(Error::input(path.display(), "expected a JSON object")),
            Err(error) => Err(Error::input(path.display(), format!("is not JSON: {error}; copy it again"))),
        }
    }

    /// A config that only says whether capitals matter.
    pub(super) fn of_case(lowercase: bool) -> Self {
        let mut fields = Map::new();
        fields.insert("do_lower_case".into(), lowercase.into());
        Self { fields }
    }

    fn flag(&self, name: &str) -> Option<bool> {
        self.fields.get(name).and_then(Value::as_bool)
    }

    /// The special token of this key: a text, or an object with the text under `content`.
    pub(super) fn special(&self, key: &str) -> String {
        let default = SPECIAL.iter().find(|(name, _)| *name == key).map_or("", |(_, token)| *token);
        let stated = self.fields.get(key).and_then(|value| value.get("content").unwrap_or(value).as_str());
        stated.unwrap_or(default).to_owned()
    }
}

/// The words of a `vocab.txt`, one a line; the number of a word is that of its line, from 0.
pub(super) fn parse_vocabulary(origin: &str, bytes: &[u8]) -> Result<Vec<String>> {
    let text = text(origin, bytes)?;
    // Not `lines`, which would also take a carriage return inside the file for nothing.
    let mut words: Vec<String> =
        text.split('\n').map(|line| line.trim_end_matches('\r').to_owned()).collect();
    while words.last().is_some_and(String::is_empty) {
        words.pop();
    }
    if words.is_empty() {
        return Err(Error::input(origin, "is empty; expected a word piece a line"));
    }
    let mut lines = HashMap::with_capacity(words.len());
    for (index, word) in words.iter().enumerate() {
        if let Some(before) = lines.insert(word.as_str(), index) {
            let message = format!(
                "the word piece {} is already on line {}; numbers of words would be ambiguous",
                quoted(word),
                before + 1
            );
            return Err(Error::input_at(origin, format!("line {}", index + 1), message));
        }
    }
    Ok(words)
}

/// The same as a `tokenizer.json`.
pub(super) fn definition(origin: &str, words: &[String], config: &TokeniserConfig) -> Result<Value> {
    let numbers: HashMap<&str, usize> =
        words.iter().enumerate().map(|(number, word)| (word.as_str(), number)).collect();
    let mut added = Vec::new();
    for (key, _) in SPECIAL {
        let token = config.special(key);
        match numbers.get(token.as_str()) {
            Some(number) => added.push(json!({
                "id": number, "content": token, "special": true, "single_word": false, "lstrip": false,
                "rstrip": false, "normalized": false,
            })),
            // Padding and masks are not needed to encode sentences.
            None if key == "pad_token" || key == "mask_token" => {}
            None => {
                let message = format!(
                    "the token {} is not among its {} word pieces; is this the vocabulary of a BERT model?",
                    quoted(&token),
                    words.len()
                );
                return Err(Error::input(origin, message));
            }
        }
    }
    added.sort_by_key(|token| token["id"].as_u64());
    let (first, last) = (config.special("cls_token"), config.special("sep_token"));
    let lowercase = config.flag("do_lower_case").unwrap_or(true);
    Ok(json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added,
        "normalizer": {
            "type": "BertNormalizer", "clean_text": true,
            "handle_chinese_chars": config.flag("tokenize_chinese_chars").unwrap_or(true),
            "strip_accents": config.flag("strip_accents"), "lowercase": lowercase,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "BertProcessing",
            "sep": [last, numbers.get(last.as_str())], "cls": [first, numbers.get(first.as_str())],
        },
        "decoder": null,
        "model": {
            "type": "WordPiece", "unk_token": config.special("unk_token"), "continuing_subword_prefix": "##",
            "max_input_chars_per_word": LONGEST_WORD, "vocab": numbers,
        },
    }))
}
