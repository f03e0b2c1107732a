//! Files of a data set, which may be of anybody, and are held in memory as a whole if they are
//! objects of a bucket.

use bytes::Bytes;
use parquet::errors::ParquetError;

use crate::error::Error;
pub(crate) use crate::store::MOST_BYTES;
use crate::store::{Entry, Store};

/// The bytes of a listed file; `None` if it was removed.
///
/// # Errors
/// The store cannot be reached, or the file is larger than prof writes them.
pub(crate) fn read(store: &Store, entry: &Entry) -> Result<Option<Bytes>, Error> {
    if entry.size > MOST_BYTES {
        let cause = ParquetError::General("it has over 512 MiB, which prof does not write".into());
        return Err(Error::table(&entry.path, cause));
    }
    store.get(&entry.path)
}
