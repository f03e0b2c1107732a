//! The settings of a bucket, from the variables that AWS's own tools read.
//!
//! object_store panics on values that make no request, so that they are refused here.

use std::{env, fs};

use http::HeaderValue;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey as Key};
use url::Url;

use crate::error::Error;
use crate::http::{is_base, is_http};

/// The settings that the environment has.
///
/// # Errors
/// A value cannot be used.
pub(super) fn from_environment() -> Result<AmazonS3Builder, Error> {
    let mut settings = AmazonS3Builder::new();
    for (variable, value) in env::vars_os() {
        let (Ok(variable), Ok(value)) = (variable.into_string(), value.into_string()) else {
            continue;
        };
        if !variable.starts_with("AWS_") {
            continue;
        }
        let Ok(key) = variable.to_ascii_lowercase().parse() else {
            continue;
        };
        // An empty variable is an unset one, as for the SDKs. An empty endpoint would be AWS's.
        if value.is_empty() && !matches!(key, Key::Endpoint | Key::S3Endpoint) {
            continue;
        }
        check(&key, &variable, &value)?;
        settings = settings.with_config(key, value);
    }
    Ok(settings)
}

fn check(key: &Key, variable: &str, value: &str) -> Result<(), Error> {
    let setting = |expected| Error::Setting {
        variable: variable.to_owned(),
        value: value.to_owned(),
        expected,
    };
    match key {
        Key::Endpoint | Key::S3Endpoint if !(is_base(value) && is_url(value)) => {
            Err(setting("a URL, such as https://s3.example.org"))
        }
        Key::Region | Key::DefaultRegion if !is_region(value) => {
            Err(setting("the name of a region, such as eu-west-1"))
        }
        Key::MetadataEndpoint | Key::StsEndpoint | Key::ContainerCredentialsFullUri
            if !is_url(value) =>
        {
            Err(setting("a URL"))
        }
        Key::ContainerCredentialsRelativeUri if !is_url(&format!("http://localhost{value}")) => {
            Err(setting("a path, such as /credentials"))
        }
        Key::ContainerAuthorizationTokenFile => match fs::read_to_string(value) {
            Ok(token) if HeaderValue::from_str(&token).is_err() => {
                Err(malformed(&format!("the file of {variable}"), &token))
            }
            _ => Ok(()),
        },
        // They are parts of headers. The secret only signs: it may have any character that people
        // can type.
        Key::AccessKeyId | Key::Token if !value.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Err(malformed(variable, value))
        }
        Key::SecretAccessKey if value.contains(char::is_control) => Err(malformed(variable, value)),
        _ => Ok(()),
    }
}

/// The value is a secret.
fn malformed(variable: &str, value: &str) -> Error {
    Error::Credential {
        variable: variable.to_owned(),
        fault: match value.ends_with(['\r', '\n']) {
            true => "ends with a line end",
            false => "has a character that no key has, such as a space",
        },
    }
}

/// Whether both libraries that read it take it for a URL.
fn is_url(text: &str) -> bool {
    is_http(text) && Url::parse(text).is_ok()
}

fn is_region(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    text.bytes().all(is_plain)
}
