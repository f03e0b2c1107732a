//! Files of data sets.

/// Any bytes as a Parquet file of each table of a data set.
pub fn tables(bytes: &[u8]) {
    prof_fleet::read_tables(bytes);
}
