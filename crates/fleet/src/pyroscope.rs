//! Pushing to Pyroscope: one pprof profile for each event, to `/ingest`.
//!
//! Its second version takes a profile's time from the profile, and rejects profiles without a
//! period.

use std::env;
use std::fmt::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use prof_report::format::pprof;

use crate::destination::{Destination, Pushed};
use crate::error::Error;
use crate::http::{Client, HttpError};
use crate::run::Run;
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
        for series in run.series() {
            let url = self.base.clone() + &path(run, &series);
            let mut body = Vec::new();
            pprof::write(&run.profile, &series.filter, &mut body)?;
            let headers = [("content-type", "binary/octet-stream")];
            self.client.post(&url, &headers, &body)?;
        }
        Ok(Pushed::Stored)
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
    let mut name = plain(&run.service, |_| true);
    let labels = run.labels.iter().map(|(name, value)| (&**name, &**value));
    let labels = labels.chain([("host", &*run.host)]);
    for (index, (label, value)) in labels.enumerate() {
        let before = if index == 0 { '{' } else { ',' };
        let label = plain(label, |c| c.is_ascii_alphanumeric());
        let _ = write!(name, "{before}{label}={}", plain(value, |_| true));
    }
    name.push('}');
    const SECOND: i128 = 1_000_000_000;
    format!(
        "/ingest?name={}&from={}&until={}&format=pprof&spyName=prof",
        utf8_percent_encode(&name, NON_ALPHANUMERIC),
        series.begin / SECOND,
        series.end / SECOND + 1,
    )
}

/// Replaces characters with a meaning in names and labels, or that are not `allowed`, by `_`.
fn plain(text: &str, allowed: impl Fn(char) -> bool) -> String {
    let is_plain = |c| allowed(c) && !matches!(c, '{' | '}' | '=' | ',' | '"' | '\n');
    let plain = text.chars().map(|c| if is_plain(c) { c } else { '_' });
    plain.collect()
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
        assert_eq!(plain("a{b}=c,d é", |_| true), "a_b__c_d é");
        assert_eq!(plain("k8s.pod", |c| c.is_ascii_alphanumeric()), "k8s_pod");
    }
}
