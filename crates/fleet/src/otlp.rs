//! Pushing to any receiver of OTLP's profiles signal (alpha) over HTTP.

use std::collections::BTreeMap;
use std::env;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use percent_encoding::percent_decode_str;
use prof_report::format::otlp::{self, Identity};

use crate::destination::{Destination, Pushed};
use crate::error::Error;
use crate::http::{Client, HttpError, without_password};
use crate::run::Run;

/// A receiver: the OpenTelemetry Collector, Parca, Pyroscope and others.
pub(crate) struct Otlp {
    client: Client,
    url: String,
}

impl Otlp {
    /// The receiver at `base`, which is used unchanged if it ends in `/profiles`. Headers, with
    /// credentials, come from OTEL_EXPORTER_OTLP_HEADERS and OTEL_EXPORTER_OTLP_PROFILES_HEADERS.
    ///
    /// # Errors
    /// One of these makes no header.
    pub(crate) fn new(base: &str) -> Result<Self, HttpError> {
        let base = base.trim_end_matches('/');
        Ok(Self {
            client: Client::new(headers(|name| env::var(name).ok()))?,
            url: match base.ends_with("/profiles") {
                true => base.to_owned(),
                false => format!("{base}/v1development/profiles"),
            },
        })
    }
}

impl Destination for Otlp {
    fn push(&mut self, run: &Run) -> Result<Pushed, Error> {
        let mut attributes = run.labels.clone();
        attributes.insert("service.name".into(), run.service.clone());
        attributes.insert("host.name".into(), run.host.clone());
        let mut pushed = Pushed::Empty;
        for series in run.series() {
            let mut id = run.id.0;
            // Each profile has its own id: the run's id plus the event's index.
            id[15] = id[15].wrapping_add(series.index);
            let identity = Identity {
                id,
                attributes: &attributes,
            };
            let body = otlp::request(&run.profile, &series.filter, identity)?;
            let headers = [
                ("content-type", "application/x-protobuf"),
                ("content-encoding", "gzip"),
            ];
            let answer = self.client.post(&self.url, &headers, &gzipped(&body))?;
            if let Some(message) = otlp::rejection(&answer) {
                return Err(Error::Rejected {
                    url: without_password(&self.url),
                    message,
                });
            }
            pushed = Pushed::Stored;
        }
        Ok(pushed)
    }
}

fn gzipped(body: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory cannot fail.
    let written = packed.write_all(body).and_then(|()| packed.finish());
    written.unwrap_or_default()
}

/// The headers: those for profiles replace those for all signals.
fn headers(variable: impl Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    let names = [
        "OTEL_EXPORTER_OTLP_HEADERS",
        "OTEL_EXPORTER_OTLP_PROFILES_HEADERS",
    ];
    let lists = names.into_iter().filter_map(variable);
    let headers: BTreeMap<String, String> = lists.flat_map(|list| pairs(&list)).collect();
    headers.into_iter().collect()
}

/// Parses `name=value,name=value`, whose values are percent-encoded, as OpenTelemetry's variables
/// have it.
pub(crate) fn pairs(list: &str) -> Vec<(String, String)> {
    let pairs = list.split(',').filter_map(|pair| pair.split_once('='));
    let pairs = pairs.map(|(name, value)| (name.trim().to_owned(), percent_decoded(value.trim())));
    pairs.filter(|(name, _)| !name.is_empty()).collect()
}

fn percent_decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_those_of_the_sdks() {
        let found = headers(|name| match name {
            "OTEL_EXPORTER_OTLP_HEADERS" => Some("a=1, authorization=Basic%20eDp5,broken".into()),
            "OTEL_EXPORTER_OTLP_PROFILES_HEADERS" => Some("a=2".into()),
            _ => None,
        });
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            found,
            [header("a", "2"), header("authorization", "Basic eDp5")]
        );
        assert_eq!(headers(|_| None), []);
    }
}
