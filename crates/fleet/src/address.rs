//! Which destination a URL names.

use crate::dataset::DataSet;
use crate::destination::Destination;
use crate::error::Error;
use crate::otlp::Otlp;
use crate::pyroscope::Pyroscope;
use crate::store::Store;

/// The destination at this address.
///
/// # Errors
/// It is not a destination, or the environment lacks settings for it.
pub(crate) fn open(url: &str) -> Result<Box<dyn Destination + Send>, Error> {
    if let Some(base) = url.strip_prefix("pyroscope+") {
        return Ok(Box::new(Pyroscope::new(base)));
    }
    if let Some(base) = url.strip_prefix("otlp+") {
        return Ok(Box::new(Otlp::new(base)));
    }
    Ok(Box::new(DataSet::new(Store::open(url)?)))
}
