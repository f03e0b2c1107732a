//! Which destination a URL names.

use crate::dataset::DataSet;
use crate::destination::Destination;
use crate::error::Error;
use crate::http::is_base;
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
        Some(("pyroscope" | "otlp", base)) if !is_base(base) => Err(none()),
        Some(("pyroscope", base)) => Ok(Box::new(Pyroscope::new(base)?)),
        Some(("otlp", base)) => Ok(Box::new(Otlp::new(base)?)),
        _ => Ok(Box::new(DataSet::new(Store::open(url)?.ok_or_else(none)?))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_address_is_no_folder() {
        let check = |url: &str, is_destination: bool| match open(url) {
            Ok(_) => assert!(is_destination, "{url}"),
            Err(Error::NoDestination { .. }) => assert!(!is_destination, "{url}"),
            Err(error) => panic!("{url}: {error}"),
        };
        for url in ["", "localhost:4040", "s3:/x", "file://relative", "file://"] {
            check(url, false);
        }
        for url in ["s3://", "s3:///x", "s3://a b/x", "http://host", "s3:x"] {
            check(url, false);
        }
        for url in ["s3://../x", "s3://a/../x", "s3://a/x//y", "s3://a/x\n"] {
            check(url, false);
        }
        for url in [
            "otlp+http://host/profiles?key=1",
            "pyroscope+http://host/#a",
        ] {
            check(url, false);
        }
        for url in ["pyroscope+http://", "otlp+https://:4318", "otlp+http://a b"] {
            check(url, false);
        }
        for url in ["/a:b", "./a:b", "../a:b", ".", "a/b", "c++", "file:///a"] {
            check(url, true);
        }
        for url in [
            "s3://a.b-c/x y",
            "pyroscope+http://host",
            "otlp+http://[::1]:4318/a",
        ] {
            check(url, true);
        }
    }
}
