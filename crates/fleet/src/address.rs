//! Which destination a URL names.

use crate::destination::Destination;
use crate::error::Error;
use crate::otlp::Otlp;
use crate::pyroscope::Pyroscope;

/// The destination at this address.
///
/// # Errors
/// It names none.
pub(crate) fn open(url: &str) -> Result<Box<dyn Destination + Send>, Error> {
    if let Some(base) = url.strip_prefix("pyroscope+") {
        return Ok(Box::new(Pyroscope::new(base)));
    }
    if let Some(base) = url.strip_prefix("otlp+") {
        return Ok(Box::new(Otlp::new(base)));
    }
    Err(Error::NoDestination {
        url: url.to_owned(),
    })
}
