//! Pretrained encoders: a `config.json`, a zero byte, then a `model.safetensors`; and the same bytes as tokenisers.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pacmeta::environments::text::Tokeniser;
use pacmeta::priors::pretrained::{self, Encoder};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(tokeniser) = Tokeniser::parse_vocabulary("vocab.txt", bytes, 16) {
        let encoded = tokeniser.encode("a sentence", Some("and another")).expect("text has tokens");
        assert!(encoded.ids.iter().all(|&id| (id as usize) < tokeniser.vocabulary()));
    }
    let Some(middle) = bytes.iter().position(|&byte| byte == 0) else { return };
    let (config, tensors) = (&bytes[..middle], &bytes[middle + 1..]);
    if let Ok(Encoder { shape, parameters, .. }) = pretrained::parse(config, tensors, None) {
        assert_eq!(shape.layout().expect("the shape was checked").len(), parameters.values().len());
        assert!(parameters.values().iter().all(|value| value.is_finite()));
    }
});
