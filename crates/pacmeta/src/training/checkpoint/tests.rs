use pacmeta_tensor::Key;
use proptest::prelude::*;
use safetensors::SafeTensors;
use serde_json::json;

use super::*;
use crate::learners::{Learner, TargetTemperature};
use crate::model::{Columns, Model};
use crate::priors::{GaussianProcessSpec, Kernel, PriorSpec};
use crate::standardisation::Standardisation;

fn small() -> Checkpoint {
    Checkpoint {
        // Not in the order of names: the order of the file is kept.
        tensors: vec![
            NamedTensor::new("mean.hidden.2.weight", [2, 3], [0.1, -0.0, 1e-310, 3.0, f64::MAX, -5.5]),
            NamedTensor::new("mean.hidden.10.bias", [2], [0.25, 0.5]),
            NamedTensor::new("scale", [], [1.0 / 3.0]),
            NamedTensor::new("empty", [0, 4], []),
        ],
        precision: Precision::F64,
        metadata: Some(json!({"prior": {"kind": "gaussian_process", "width": 32}, "method": {"beta": 0.1}})),
    }
}

/// The file of a whole prior. Its checksum is called otherwise, so that changes are not noticed by it alone.
fn prior_without_checksum() -> Vec<u8> {
    let spec = PriorSpec::GaussianProcess(GaussianProcessSpec {
        dimension: 1,
        mean_hidden: vec![3],
        feature_hidden: vec![2, 2],
        feature_dimension: 2,
        kernel: Kernel::Learned,
    });
    let parameters = spec.initialise(Key::new(1)).unwrap();
    let learner = Learner::Gibbs { temperature: 50.0, examples: 5.0, rule: TargetTemperature::PerExample };
    let columns = Columns { features: vec!["x".to_owned()], target: "y".to_owned() };
    let model = Model::new(spec, parameters)
        .with_learner(learner)
        .with_standardisation(Standardisation::identity(1).unwrap())
        .with_columns(columns);
    let mut bytes = model.to_checkpoint().to_bytes().unwrap();
    let at = bytes.windows(6).position(|window| window == b"crc32c").unwrap();
    bytes[at..at + 6].copy_from_slice(b"notes_");
    assert!(Model::from_checkpoint("p", &Checkpoint::parse("p", &bytes).unwrap()).is_ok());
    bytes
}

fn state() -> TrainingState {
    TrainingState {
        iteration: 1000,
        parameters: vec![NamedTensor::new("b", [2, 1], [0.1, 0.2]), NamedTensor::new("a", [1], [-7.0])],
        optimiser: vec![("second_moment".into(), vec![1e-20, 0.0, 2.0]), ("first_moment".into(), vec![0.5])],
        counters: [("steps".to_owned(), u64::MAX), ("skipped".to_owned(), 0)].into(),
        instructions: Some("of another machine".to_owned()),
    }
}

/// A file from a header and data.
fn file(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

fn refusal(header: &str, data: &[u8]) -> String {
    let error = Checkpoint::parse("p.safetensors", &file(header, data)).unwrap_err();
    assert!(error.is_input());
    let message = error.to_string();
    assert!(message.starts_with("p.safetensors"), "{message}");
    message
}

fn bits(tensors: &[NamedTensor]) -> Vec<Vec<u64>> {
    tensors.iter().map(|tensor| tensor.values.iter().map(|value| value.to_bits()).collect()).collect()
}

#[test]
fn writing_and_reading_keep_order_shapes_bits_and_metadata() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("prior.safetensors");
    small().write(&path).unwrap();
    let back = Checkpoint::read(&path).unwrap();
    assert_eq!(back.tensors, small().tensors);
    assert_eq!(bits(&back.tensors), bits(&small().tensors));
    assert_eq!(back.precision, Precision::F64);
    let metadata = back.metadata.as_ref().unwrap();
    assert_eq!(metadata["prior"], small().metadata.unwrap()["prior"]);
    assert_eq!(metadata["format"], 1);
    assert_eq!(metadata["written_by"], concat!("pacmeta ", env!("CARGO_PKG_VERSION")));
    assert_eq!(
        back.to_bytes().unwrap(),
        std::fs::read(&path).unwrap(),
        "reading and writing again changes nothing"
    );
    assert_eq!(back.tensor("scale").unwrap().values, [1.0 / 3.0]);
}

#[test]
fn the_bytes_are_golden() {
    let checkpoint = Checkpoint {
        tensors: vec![NamedTensor::new("b", [1], [1.0]), NamedTensor::new("a", [], [-2.0])],
        precision: Precision::F32,
        metadata: None,
    };
    let header = "{\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\
                  \"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[4,8]}}";
    let padded = format!("{header:112}");
    assert_eq!(checkpoint.to_bytes().unwrap(), file(&padded, &[0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]));
}

#[test]
fn the_reference_reader_agrees() {
    for precision in [Precision::F32, Precision::F64] {
        let mut checkpoint = Checkpoint { precision, ..small() };
        checkpoint.tensors[0].values[4] = 7.0; // f64::MAX is no f32
        let bytes = checkpoint.to_bytes().unwrap();
        let view = SafeTensors::deserialize(&bytes).unwrap();
        assert_eq!(view.len(), 4);
        assert_eq!(view.tensor("mean.hidden.2.weight").unwrap().shape(), [2, 3]);
        let theirs = safetensors::serialize(view.tensors(), None).unwrap();
        let back = Checkpoint::parse("theirs", &theirs).unwrap();
        let ours = Checkpoint::parse("ours", &bytes).unwrap();
        for tensor in &ours.tensors {
            assert_eq!(back.tensor(&tensor.name), Some(tensor));
        }
        assert_eq!((back.precision, back.metadata), (precision, None));
    }
}

#[test]
fn f32_is_widened_and_files_may_mix() {
    let header = r#"{"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[1],"data_offsets":[8,12]},
                     "v":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}"#;
    let data = [&0.1_f64.to_le_bytes()[..], &0.1_f32.to_le_bytes()].concat();
    let mixed = Checkpoint::parse("p", &file(header, &data)).unwrap();
    assert_eq!(
        mixed.tensors,
        [NamedTensor::new("v", [1], [0.1]), NamedTensor::new("w", [1], [f64::from(0.1_f32)])]
    );
    assert_eq!((mixed.precision, mixed.metadata), (Precision::F64, None));
}

#[test]
fn headers_that_lie_are_refused_with_the_tensor_and_the_reason() {
    let entry = |name: &str, dtype: &str, shape: &str, start: u64, end: u64| {
        format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{start},{end}]}}"#)
    };
    let one = |dtype, shape, start, end| format!("{{{}}}", entry("w", dtype, shape, start, end));
    let cases: [(String, usize, &[&str]); 15] = [
        (one("F32", "[2]", 0, 8), 7, &["tensor `w`", "0..8", "7 bytes of data", "cut off"]),
        (one("F32", "[2]", 0, 8), 9, &["cover 8 bytes", "has 9"]),
        (one("F32", "[2]", 1, 9), 9, &["tensor `w`", "leave a gap", "start at 0"]),
        (one("F32", "[2]", 8, 0), 8, &["tensor `w`", "8..0 end before they start"]),
        (one("F32", "[3]", 0, 8), 8, &["tensor `w`", "shape [3] of F32 needs 12 bytes", "gives 8"]),
        (one("F32", "[4611686018427387904,4]", 0, 8), 8, &["tensor `w`", "beyond this machine"]),
        (one("F64", "[2305843009213693952]", 0, 8), 8, &["tensor `w`", "beyond this machine"]),
        (one("BF16", "[4]", 0, 8), 8, &["tensor `w`", "type BF16", "F32 and F64"]),
        (one("Q7", "[4]", 0, 8), 8, &["tensor `w`", "Q7"]),
        (one("F32", "[-1]", 0, 8), 8, &["tensor `w`", "-1", "expected a whole number from 0 on"]),
        (
            format!("{{{},{}}}", entry("w", "F32", "[2]", 0, 8), entry("v", "F32", "[2]", 4, 12)),
            12,
            &["tensor `v`", "overlap", "start at 8"],
        ),
        (
            format!("{{{},{}}}", entry("w", "F32", "[1]", 0, 4), entry("w", "F32", "[1]", 4, 8)),
            8,
            &["tensor `w` occurs twice"],
        ),
        ("{\"w\":".into(), 0, &["header is not usable"]),
        ("not json".into(), 0, &["header is not usable"]),
        (r#"{"__metadata__":{"pacmeta":1}}"#.into(), 0, &["__metadata__", "strings"]),
    ];
    for (header, data, expected) in cases {
        let message = refusal(&header, &vec![0; data]);
        for part in expected {
            assert!(message.contains(part), "{header}: {message}");
        }
    }
}

#[test]
fn header_lengths_that_lie_are_refused() {
    let message = |bytes: &[u8]| Checkpoint::parse("p", bytes).unwrap_err().to_string();
    assert!(message(b"").contains("0 bytes are too few"));
    assert!(message(b"1234567").contains("7 bytes are too few"));
    assert!(
        message(&[&100_u64.to_le_bytes()[..], b"{}"].concat()).contains("100 bytes, the file ends after 2")
    );
    assert!(message(&[&u64::MAX.to_le_bytes()[..], b"{}"].concat()).contains("not a safetensors file"));
    assert!(message(b"PK\x03\x04 this is a zip file").contains("not a safetensors file"));
}

#[test]
fn not_finite_values_are_refused_by_name_and_index() {
    for (value, shown) in [(f32::NAN, "NaN"), (f32::NEG_INFINITY, "-inf")] {
        let data = [1.0_f32.to_le_bytes(), value.to_le_bytes()].concat();
        let message = refusal(r#"{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#, &data);
        assert!(
            message.contains("tensor `w`") && message.contains(&format!("value 1 is {shown}")),
            "{message}"
        );
    }
}

#[test]
fn metadata_of_another_format_is_refused_with_its_writer() {
    let with = |text: &str| json!({"__metadata__": {"pacmeta": text}}).to_string();
    let newer = refusal(&with(r#"{"format":2,"written_by":"pacmeta 7.0.0"}"#), &[]);
    for part in ["format 2", "written by pacmeta 7.0.0", "reads format 1", "update pacmeta"] {
        assert!(newer.contains(part), "{newer}");
    }
    assert!(refusal(&with(r#"{"prior":{}}"#), &[]).contains("`format` is missing"));
    let text = refusal(&with(r#"{"format":"1"}"#), &[]);
    assert!(text.contains("key `format`: expected the number 1, found \"1\""), "{text}");
    assert!(refusal(&with("{"), &[]).contains("is not JSON"));
    assert!(refusal(&with("[1]"), &[]).contains("expected a JSON object"));
    for none in ["0", "0.5", "-1", "1.5", "null"] {
        let none = refusal(&with(&format!(r#"{{"format":{none}}}"#)), &[]);
        assert!(none.contains("expected the number 1") && !none.contains("update"), "{none}");
    }
    assert!(Checkpoint::parse("p", &file(&with(r#"{"format":1}"#), &[])).is_ok());
    assert!(Checkpoint::parse("p", &file(&with(r#"{"format":1.0}"#), &[])).is_ok());
}

#[test]
fn checkpoints_that_could_not_be_read_back_are_not_written() {
    let with = |tensors: Vec<NamedTensor>, precision| Checkpoint { tensors, precision, metadata: None };
    let message = |checkpoint: Checkpoint| checkpoint.to_bytes().unwrap_err().to_string();
    let tensor = |value| vec![NamedTensor::new("w", [1], [value])];
    assert!(message(with(tensor(f64::NAN), Precision::F64)).contains("tensor `w`: value 0 is NaN"));
    assert!(message(with(tensor(1e300), Precision::F32)).contains("beyond the range of f32"));
    assert!(
        message(with(vec![NamedTensor::new("w", [3], [1.0])], Precision::F64))
            .contains("does not match 1 values")
    );
    let twice = [tensor(1.0), tensor(2.0)].concat();
    assert!(message(with(twice, Precision::F64)).contains("the name is taken"));
    assert!(
        message(with(vec![NamedTensor::new("__metadata__", [1], [1.0])], Precision::F64)).contains("taken")
    );
    assert!(message(Checkpoint { metadata: Some(json!([1])), ..small() }).contains("JSON object"));
}

#[test]
fn folders_are_not_checkpoints() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Checkpoint::read(folder.path()).unwrap_err().is_input());
    assert!(Checkpoint::read(folder.path().join("absent")).unwrap_err().is_input());
}

#[test]
fn a_file_cut_at_any_length_is_refused() {
    for bytes in [small().to_bytes().unwrap(), state().to_bytes().unwrap()] {
        for length in 0..bytes.len() {
            assert!(Checkpoint::parse("p", &bytes[..length]).unwrap_err().is_input(), "{length} bytes");
            assert!(matches!(judge("p", &bytes[..length]), Ok(Verdict::Damaged(_))), "{length} bytes");
        }
    }
}

#[test]
fn a_training_state_round_trips_in_the_narrowest_exact_precision() {
    let bytes = state().to_bytes().unwrap();
    assert_eq!(TrainingState::parse("s", &bytes).unwrap(), state());
    assert_eq!(bytes, state().to_bytes().unwrap());
    assert_eq!(Checkpoint::parse("s", &bytes).unwrap().precision, Precision::F64);
    assert!(Checkpoint::parse("s", &bytes).unwrap().tensor("parameters.a").is_some());

    let mut narrow = state();
    narrow.parameters[0].values = vec![f64::from(0.1_f32), -0.0];
    narrow.optimiser[0].1 = vec![f64::from(f32::MIN_POSITIVE) / 4.0];
    let bytes = narrow.to_bytes().unwrap();
    assert_eq!(Checkpoint::parse("s", &bytes).unwrap().precision, Precision::F32);
    let back = TrainingState::parse("s", &bytes).unwrap();
    assert_eq!(bits(&back.parameters), bits(&narrow.parameters));
    assert_eq!(back, narrow);
}

#[test]
fn one_flipped_bit_anywhere_is_noticed() {
    let bytes = state().to_bytes().unwrap();
    for position in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[position] ^= 1 << bit;
            // Notes beside the state (who wrote it) may change unnoticed; the state may not.
            if let Ok(Verdict::Whole(read)) = judge("s", &damaged) {
                assert_eq!(read, state(), "bit {bit} of byte {position}");
            }
        }
    }
}

#[test]
fn a_flipped_bit_in_the_values_is_damage_even_where_it_parses() {
    let bytes = state().to_bytes().unwrap();
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    for position in 8 + header..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[position] ^= 1;
        assert!(Checkpoint::parse("s", &damaged).is_ok());
        let message = TrainingState::parse("s", &damaged).unwrap_err().to_string();
        assert!(message.contains("checksum") && message.contains("damaged"), "{message}");
    }
}

#[test]
fn a_prior_is_not_a_training_state() {
    let message = TrainingState::parse("p", &small().to_bytes().unwrap()).unwrap_err().to_string();
    assert!(message.contains("not the state of a run"), "{message}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn mutated_files_are_read_or_refused(
        edits in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<proptest::sample::Index>(),
        seed in 0..3,
    ) {
        let mut bytes = match seed {
            0 => small().to_bytes()?,
            1 => state().to_bytes()?,
            _ => prior_without_checksum(),
        };
        for (index, byte) in edits {
            let position = index.index(bytes.len());
            bytes[position] = byte;
        }
        check_any_bytes(&bytes)?;
        check_any_bytes(&bytes[..cut.index(bytes.len())])?;
    }

    #[test]
    fn headers_with_any_numbers_are_read_or_refused(
        shape in proptest::collection::vec(prop_oneof![0..5_u64, any::<u64>()], 0..5),
        start in prop_oneof![Just(0), any::<u64>()],
        end in prop_oneof![0..100_u64, any::<u64>()],
        dtype in prop_oneof![Just("F32"), Just("F64"), Just("F4"), Just("I64")],
        data in 0..100_usize,
    ) {
        let header = json!({"w": {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}}).to_string();
        check_any_bytes(&file(&header, &vec![0; data]))?;
    }

    #[test]
    fn any_bytes_after_any_length_are_read_or_refused(
        length in prop_oneof![0..64_u64, any::<u64>()],
        rest in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        check_any_bytes(&[&length.to_le_bytes()[..], &rest].concat())?;
    }
}

/// What is accepted is finite, no larger than the file, and accepted by the reference reader too. A prior in it survives.
fn check_any_bytes(bytes: &[u8]) -> std::result::Result<(), TestCaseError> {
    let _ = TrainingState::parse("s", bytes);
    if let Ok(checkpoint) = Checkpoint::parse("p", bytes) {
        let count: usize = checkpoint.tensors.iter().map(|tensor| tensor.values.len()).sum();
        prop_assert!(4 * count <= bytes.len());
        prop_assert!(
            checkpoint.tensors.iter().flat_map(|tensor| &tensor.values).all(|value| value.is_finite())
        );
        prop_assert!(SafeTensors::deserialize(bytes).is_ok());
        if let Ok(model) = Model::from_checkpoint("p", &checkpoint) {
            prop_assert_eq!(model.parameters().values().len(), count);
            let again = Model::from_checkpoint("again", &model.to_checkpoint());
            prop_assert!(again.is_ok(), "what was read can be written: {:?}", again);
        }
    }
    Ok(())
}

#[test]
fn a_changed_tensor_is_told_by_its_checksum_and_a_file_without_one_is_read() {
    for precision in [Precision::F32, Precision::F64] {
        let checkpoint = Checkpoint {
            tensors: vec![NamedTensor::new("a", [2], [0.1, 0.2]), NamedTensor::new("b", [1], [3.0])],
            precision,
            metadata: Some(serde_json::json!({})),
        };
        let mut bytes = checkpoint.to_bytes().unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(text.contains("crc32c"), "{text}");
        let back = Checkpoint::parse("file", &bytes).unwrap();
        assert!(back.metadata.as_ref().unwrap().get("crc32c").is_none());
        assert_eq!(back.to_bytes().unwrap(), bytes);
        // One bit of the last number; it stays finite.
        *bytes.last_mut().unwrap() ^= 1;
        let error = Checkpoint::parse("file", &bytes).unwrap_err();
        assert!(error.is_input() && error.to_string().contains("the file is damaged"), "{error}");
        // Files of other programs have no checksum: here its key is overwritten by another of the same length.
        let at = bytes.windows(6).position(|window| window == b"crc32c").unwrap();
        bytes[at..at + 6].copy_from_slice(b"notes_");
        assert_ne!(Checkpoint::parse("file", &bytes).unwrap().tensors, back.tensors);
    }
}
