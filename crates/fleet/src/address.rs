//! Which destination a URL names.

use crate::dataset::DataSet;
use crate::destination::Destination;
use crate::error::Error;
use crate::http::is_http;
use crate::otlp::Otlp;
use crate::pyroscope::Pyroscope;
use crate::store::Store;

/// The destination at this address.
///
/// # Errors
/// It is not a destination, or the environment lacks settings for it.
pub(crate) fn open(url: &str) -> Result<Box<dyn Destination + Send>, Error> {
    let none = || Error::NoDestination {
        url: url.to_owned(),
    };
    match url.split_once('+') {
        Some(("pyroscope" | "otlp", base)) if !is_http(base) => Err(none()),
        Some(("pyroscope", base)) => Ok(Box::new(Pyroscope::new(base))),
        Some(("otlp", base)) => Ok(Box::new(Otlp::new(base))),
        _ => Ok(Box::new(DataSet::new(Store::open(url)?.ok_or_else(none)?))),
    }
}
