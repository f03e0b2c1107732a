//! How the recording is written.

use clap::Args;

use super::quantity::parse_bytes;

/// Packing and limits.
#[derive(Debug, Default, Args)]
pub(crate) struct StorageFlags {
    /// Pack the recording with zstd, at a level from 1 (quick, the default) to 22 (small)
    #[arg(short = 'z', long = "compression-level", value_name = "LEVEL", num_args = 0..=1, require_equals = true, default_missing_value = "1", value_parser = clap::value_parser!(i32).range(1..=22))]
    pub compression: Option<i32>,

    /// End the recording when it has so many bytes (with K, M or G)
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub max_size: Option<u64>,
}

fn parse_size(text: &str) -> Result<u64, String> {
    match parse_bytes(text)? {
        0 => Err("the size must be more than zero".into()),
        bytes => Ok(bytes),
    }
}
