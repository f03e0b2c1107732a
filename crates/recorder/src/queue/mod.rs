//! Between the reader and the session: batches of records, bounded and in order.

pub(crate) mod batch;
pub(crate) mod feedback;
pub(crate) mod message;
pub(crate) mod pending_batches;
pub(crate) mod pressure;
pub(crate) mod record_queue;
pub(crate) mod sorter;
