//! What a run on pictures needs at the least, before it starts.

use crate::classification::free_memory::{ALLOWED, free_memory};
use crate::config::ImageConfig;
use crate::error::{Error, Result};
use crate::priors::convolution::ConvolutionSpec;

/// Bytes of a parameter: position, gradient and two moments in double, two copies in single precision.
const PARAMETER_BYTES: f64 = 40.0;
/// Bytes that a pass keeps of a picture for every place and filter of a block's input: some blocks keep more, none keeps less.
const MAP_BYTES: f64 = 2.0;

/// Refuses a network that cannot fit into the free memory, with one that would.
///
/// # Errors
/// When the least that it needs is above the free memory.
pub(super) fn check(config: &ImageConfig) -> Result<()> {
    free_memory().map_or(Ok(()), |free| check_against(config, free))
}

fn check_against(config: &ImageConfig, free: f64) -> Result<()> {
    let data = &config.data;
    let pictures = (data.way * data.shots.max(data.support + data.query)) as f64;
    let needed = |spec: &ConvolutionSpec| -> Result<[f64; 2]> {
        Ok([PARAMETER_BYTES * spec.layout()?.len() as f64, MAP_BYTES * pictures * places(spec)])
    };
    let fits = |needed: [f64; 2]| needed.iter().sum::<f64>() <= ALLOWED * free;
    let spec = config.spec();
    let [parameters, maps] = needed(&spec)?;
    if fits([parameters, maps]) {
        return Ok(());
    }
    let mut smaller = spec;
    while smaller.filters > 1 && !fits(needed(&smaller)?) {
        smaller.filters /= 2;
    }
    let advice = if fits(needed(&smaller)?) {
        format!("prior.filters = {} would fit (the paper has 64)", smaller.filters)
    } else {
        "lower data.side, data.way, data.shots or data.query".to_owned()
    };
    let message = format!(
        "the run would need at least {:.1} GB (parameters {:.1}, pictures of a task {:.1}) and {:.1} GB are free, of which nine \
         tenths may be taken; {advice}",
        (parameters + maps) / 1e9,
        parameters / 1e9,
        maps / 1e9,
        free / 1e9
    );
    Err(Error::input("memory", message))
}

/// Numbers in the maps of all blocks, of one picture.
fn places(spec: &ConvolutionSpec) -> f64 {
    let sides = (0..spec.blocks).map(|block| (spec.side >> block) as f64);
    sides.map(|side| side * side * spec.filters as f64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(more: &str, free: f64) -> Option<String> {
        let text = format!("[data]\nenvironment = \"images\"\npath = \"-\"\n{more}");
        let config = ImageConfig::parse("memory.toml", &text, &[]).unwrap();
        check_against(&config, free).err().map(|error| error.to_string())
    }

    #[test]
    fn networks_that_cannot_fit_are_refused_with_one_that_would() {
        // Task of 80 pictures took 180 MB on the paper's network, in a process of its own.
        assert_eq!(refusal("way = 5\nshots = 16", 180e6), None);
        let wide = refusal("[prior]\nfilters = 4096", 24e9).unwrap();
        for part in ["parameters 18.1", "24.0 GB are free", "prior.filters = 2048 would fit"] {
            assert!(wide.contains(part), "{wide}");
        }
        let large = refusal("side = 512\nway = 5\nshots = 10000", 1e6).unwrap();
        assert!(large.contains("lower data.side"), "{large}");
    }
}
