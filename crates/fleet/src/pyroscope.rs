//! Pushing to Pyroscope: one pprof profile for each event, to `/ingest`.
//!
//! Its second version takes a profile's time from the profile, and rejects profiles without a
//! period.

use std::collections::BTreeSet;
use std::env;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use prof_report::format::pprof;

use crate::destination::{Destination, Pushed};
use crate::error::Error;
use crate::http::{Client, HttpError};
use crate::run::{Labels, Run};
use crate::series::Series;

/// A Pyroscope server, or another one with its protocol.
pub(crate) struct Pyroscope {
    client: Client,
    /// The URL before its paths.
    base: String,
}

impl Pyroscope {
    /// The server at `base`. Credentials are those of its agents: PYROSCOPE_BASIC_AUTH_USER and
    /// PYROSCOPE_BASIC_AUTH_PASSWORD, or PYROSCOPE_AUTH_TOKEN, and PYROSCOPE_TENANT_ID.
    ///
    /// # Errors
    /// One of these makes no header.
    pub(crate) fn new(base: &str) -> Result<Self, HttpError> {
        Ok(Self {
            client: Client::new(headers(|name| env::var(name).ok()))?,
            base: base.trim_end_matches('/').to_owned(),
        })
    }
}

impl Destination for Pyroscope {
    fn push(&mut self, run: &Run) -> Result<Pushed, Error> {
        let mut pushed = Pushed::Empty;
        for series in run.series() {
            let url = self.base.clone() + &path(run, &series);
            let mut body = Vec::new();
            pprof::write(&run.profile, &series.filter, &mut body)?;
            let headers = [("content-type", "binary/octet-stream")];
            self.client.post(&url, &headers, &body)?;
            pushed = Pushed::Stored;
        }
        Ok(pushed)
    }
}

fn headers(variable: impl Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    let user = variable("PYROSCOPE_BASIC_AUTH_USER");
    let token = variable("PYROSCOPE_AUTH_TOKEN");
    let authorization = match (user, token) {
        (Some(user), _) => {
            let password = variable("PYROSCOPE_BASIC_AUTH_PASSWORD").unwrap_or_default();
            Some(format!(
                "Basic {}",
                STANDARD.encode(format!("{user}:{password}"))
            ))
        }
        (None, Some(token)) => Some(format!("Bearer {token}")),
        (None, None) => None,
    };
    headers.extend(authorization.map(|value| ("authorization".to_owned(), value)));
    let tenant = variable("PYROSCOPE_TENANT_ID");
    headers.extend(tenant.map(|tenant| ("x-scope-orgid".to_owned(), tenant)));
    headers
}

/// Path and query: whose profile it is, and from when till when.
fn path(run: &Run, series: &Series) -> String {
    let labels = labels(&run.labels, &run.host);
    let labels = labels
        .iter()
        .map(|(label, value)| format!("{label}={}", plain(value)));
    let labels = labels.collect::<Vec<_>>().join(",");
    let name = format!("{}{{{labels}}}", plain(&run.service));
    const SECOND: i128 = 1_000_000_000;
    format!(
        "/ingest?name={}&from={}&until={}&format=pprof&spyName=prof",
        utf8_percent_encode(&name, NON_ALPHANUMERIC),
        series.begin / SECOND,
        series.end / SECOND + 1,
    )
}

/// The labels by Prometheus' names for them, each once. Those of the recording itself win, and then
/// the first one.
fn labels<'a>(labels: &'a Labels, host: &'a str) -> Vec<(String, &'a str)> {
    // Pyroscope has the service under the first two names.
    let mut taken = BTreeSet::from(["__name__", "service_name", "host"].map(str::to_owned));
    let named = labels.iter().map(|(name, value)| (label_name(name), value));
    let mut labels: Vec<_> = named
        .filter(|(name, _)| taken.insert(name.clone()))
        .map(|(name, value)| (name, value.as_str()))
        .collect();
    labels.push(("host".to_owned(), host));
    labels
}

/// A name without the characters that Prometheus' names do not have.
fn label_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let plain: String = name
        .chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect();
    match plain.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("_{plain}"),
        false => plain,
    }
}

/// Replaces characters with a meaning in names of profiles by `_`.
fn plain(text: &str) -> String {
    text.replace(['{', '}', '=', ',', '"', '\n'], "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_those_of_the_agents() {
        let check = |set: &[(&str, &str)], expected: &[(&str, &str)]| {
            let found = headers(|name| {
                let known = set.iter().find(|(key, _)| *key == name);
                known.map(|(_, value)| (*value).to_owned())
            });
            let found: Vec<_> = found
                .iter()
                .map(|(name, value)| (&**name, &**value))
                .collect();
            assert_eq!(found, expected);
        };
        check(&[], &[]);
        check(
            &[
                ("PYROSCOPE_BASIC_AUTH_USER", "ann"),
                ("PYROSCOPE_BASIC_AUTH_PASSWORD", "secret"),
                ("PYROSCOPE_TENANT_ID", "team"),
            ],
            &[
                ("authorization", "Basic YW5uOnNlY3JldA=="),
                ("x-scope-orgid", "team"),
            ],
        );
        check(
            &[("PYROSCOPE_AUTH_TOKEN", "token")],
            &[("authorization", "Bearer token")],
        );
    }

    #[test]
    fn names_and_labels_survive_the_way() {
        assert_eq!(plain("a{b}=c,d é"), "a_b__c_d é");
        assert_eq!(label_name("k8s.pod"), "k8s_pod");
        assert_eq!(label_name("1é"), "_1_");
    }

    #[test]
    fn each_label_is_sent_once() {
        let stated = [
            ("1x", "3"),
            ("a.b", "1"),
            ("a_b", "2"),
            ("host", "x"),
            ("service.name", "other"),
        ];
        let stated = stated.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let stated = Labels::from(stated);
        let found = labels(&stated, "vm");
        let found: Vec<_> = found
            .iter()
            .map(|(name, value)| (&**name, *value))
            .collect();
        assert_eq!(found, [("_1x", "3"), ("a_b", "1"), ("host", "vm")]);
    }
}
