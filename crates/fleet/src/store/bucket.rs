//! A bucket of an object store that speaks S3.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, TryStreamExt};
use object_store::aws::{AmazonS3, S3ConditionalPut};
use object_store::path::Path;
use object_store::{
    BackoffConfig, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, RetryConfig,
};
use tokio::runtime::{Builder, Runtime};

use super::http::{Connector, NoCredentials};
use super::limits::Limits;
use super::{Entry, MOST_BYTES, settings};
use crate::error::{Error, has_cause};

/// A bucket, or a path in it.
#[derive(Debug)]
pub(crate) struct Bucket {
    store: AmazonS3,
    name: String,
    prefix: String,
    /// Requests wait in it: there is one at a time.
    runtime: Runtime,
    limits: Arc<Limits>,
}

/// The most files that are listed, which take about a gigabyte.
const MOST_FILES: usize = 4 << 20;

impl Bucket {
    /// The bucket at `bucket/prefix`; `None` if that is none. Settings come from the environment
    /// variables that AWS's own tools read.
    pub(super) fn open(address: &str) -> Result<Option<Self>, Error> {
        let (bucket, prefix) = address.split_once('/').unwrap_or((address, ""));
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let is_name = bucket.starts_with(|first: char| first.is_ascii_alphanumeric());
        let prefix = prefix.trim_matches('/');
        if !is_name || !bucket.bytes().all(is_plain) || Path::parse(prefix).is_err() {
            return Ok(None);
        }
        let limits = Arc::new(Limits::new(Limits::TIME_OUT));
        let store = settings::from_environment()?
            .with_bucket_name(bucket)
            .with_conditional_put(S3ConditionalPut::ETagMatch)
            .with_http_connector(Connector(Arc::clone(&limits)))
            .with_retry(retries())
            .build()
            .map_err(|source| store_failed(address, source))?;
        let runtime = Builder::new_current_thread().enable_time().build();
        Ok(Some(Self {
            store,
            name: bucket.to_owned(),
            prefix: prefix.to_owned(),
            runtime: runtime.map_err(|source| Error::Read {
                path: address.into(),
                source,
            })?,
            limits,
        }))
    }

    fn path(&self, path: &str) -> Result<Path, Error> {
        let whole = match self.prefix.as_str() {
            "" => path.to_owned(),
            prefix => format!("{prefix}/{path}"),
        };
        // The path is escaped already.
        Path::parse(whole.trim_end_matches('/')).map_err(|source| store_failed(path, source.into()))
    }

    pub(super) fn put_new(&self, path: &str, bytes: Bytes) -> Result<bool, Error> {
        let to = self.path(path)?;
        self.limits.begin(Limits::MOST_ANSWER);
        let options = PutOptions::from(PutMode::Create);
        let put = self.store.put_opts(&to, PutPayload::from(bytes), options);
        match self.runtime.block_on(put) {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
            Err(error) => Err(self.failed(path, error)),
        }
    }

    /// Reads the file: anything that is no store may answer 200, and what it answers shows it.
    pub(super) fn has(&self, path: &str) -> Result<bool, Error> {
        const TABLE: &[u8] = b"PAR1";
        match self.get(path)? {
            None => Ok(false),
            Some(bytes) if bytes.starts_with(TABLE) => Ok(true),
            Some(_) => Err(Error::NoStore { path: path.into() }),
        }
    }

    pub(super) fn list(&self, folder: &str) -> Result<Vec<Entry>, Error> {
        let prefix = self.path(folder)?;
        let skipped = match self.prefix.len() {
            0 => 0,
            length => length + 1,
        };
        self.limits.begin(Limits::MOST_ANSWER);
        let list = first(MOST_FILES, self.store.list(Some(&prefix)));
        let found = self.runtime.block_on(list);
        let found = found.map_err(|error| self.failed(folder, error))?;
        let found = found.ok_or_else(|| Error::TooManyFiles {
            path: folder.to_owned(),
            most: MOST_FILES,
        })?;
        let entry = |object: object_store::ObjectMeta| {
            let path = object.location.as_ref().get(skipped..)?.to_owned();
            Some(Entry {
                path,
                size: object.size,
                written: object.last_modified.into(),
                file: None,
            })
        };
        Ok(found.into_iter().filter_map(entry).collect())
    }

    pub(super) fn get(&self, path: &str) -> Result<Option<Bytes>, Error> {
        let from = self.path(path)?;
        self.limits.begin(MOST_BYTES);
        let get = async { self.store.get(&from).await?.bytes().await };
        match self.runtime.block_on(get) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(path, error)),
        }
    }

    pub(super) fn delete(&self, path: &str) -> Result<(), Error> {
        let at = self.path(path)?;
        self.limits.begin(Limits::MOST_ANSWER);
        match self.runtime.block_on(self.store.delete(&at)) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed(path, error)),
        }
    }

    fn failed(&self, path: &str, source: object_store::Error) -> Error {
        let bucket = self.name.clone();
        if has_cause::<NoCredentials>(&source) {
            Error::NoCredentials { bucket }
        } else if source.to_string().contains("<Code>NoSuchBucket</Code>") {
            Error::NoBucket { bucket }
        } else {
            store_failed(path, source)
        }
    }
}

/// All items of a stream; `None` if there are more than that.
async fn first<T, E>(
    most: usize,
    stream: impl Stream<Item = Result<T, E>>,
) -> Result<Option<Vec<T>>, E> {
    let mut stream = std::pin::pin!(stream);
    let mut found = Vec::new();
    while let Some(item) = stream.try_next().await? {
        if found.len() == most {
            return Ok(None);
        }
        found.push(item);
    }
    Ok(Some(found))
}

/// Waits longer and longer, and tries nothing more after half a minute: scripts should not hang.
fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(5),
            base: 2.0,
        },
        max_retries: 8,
        retry_timeout: Duration::from_secs(30),
    }
}

fn store_failed(path: &str, source: object_store::Error) -> Error {
    Error::Store {
        path: path.to_owned(),
        source: Box::new(source),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;

    use super::*;

    #[test]
    fn a_list_without_end_ends() {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        let endless = stream::repeat_with(|| Ok::<_, Infallible>(0));
        assert_eq!(runtime.block_on(first(1000, endless)), Ok(None));
        let whole = stream::iter([1, 2].map(Ok::<_, Infallible>));
        assert_eq!(runtime.block_on(first(2, whole)), Ok(Some(vec![1, 2])));
    }
}
