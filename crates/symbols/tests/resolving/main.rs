//! Functions and lines of real programs: one program of tests, so that it is linked once.

mod assembly;
mod common;
mod compare;
mod damaged;
mod debuginfod;
mod embedded;
mod go;
mod honest;
mod incomplete;
mod jit;
mod kernel;
mod rust;
mod separate;
