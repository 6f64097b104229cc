//! Pictures in PNG, JPEG and WebP: an error, or pixels of the asked shape.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pacmeta::environments::images::{Channels, PictureShape, decode_picture};

fuzz_target!(|bytes: &[u8]| {
    for channels in [Channels::Grey, Channels::Colour] {
        let shape = PictureShape { side: 5, channels };
        match decode_picture("fuzz", bytes, shape) {
            Ok((pixels, changes)) => {
                assert_eq!(pixels.len(), shape.bytes());
                assert!(changes.resized <= 1 && changes.converted <= 1);
            }
            Err(error) => assert!(error.is_input() && error.to_string().starts_with("fuzz: ")),
        }
    }
});
