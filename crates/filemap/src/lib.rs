//! Read-only memory maps of files.
