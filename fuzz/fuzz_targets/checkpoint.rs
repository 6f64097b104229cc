//! Checkpoints, the priors in them, and training states in safetensors.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pacmeta::Model;
use pacmeta::training::checkpoint::{Checkpoint, TrainingState};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(checkpoint) = Checkpoint::parse("fuzz.safetensors", bytes) {
        let written = checkpoint.to_bytes().expect("what was read can be written");
        let again = Checkpoint::parse("again.safetensors", &written).expect("what was written can be read");
        // Bits, because a file may hold numbers that are not equal to themselves.
        assert_eq!(again.to_bytes().expect("what was read can be written"), written);
        if let Ok(model) = Model::from_checkpoint("fuzz.safetensors", &checkpoint) {
            Model::from_checkpoint("again.safetensors", &model.to_checkpoint())
                .expect("a prior that was read can be written");
        }
    }
    if let Ok(state) = TrainingState::parse("fuzz.safetensors", bytes) {
        let written = state.to_bytes().expect("what was read can be written");
        let again =
            TrainingState::parse("again.safetensors", &written).expect("what was written can be read");
        assert_eq!(again.to_bytes().expect("what was read can be written"), written);
    }
});
