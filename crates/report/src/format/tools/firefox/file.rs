//! The parts of the file, as its types state them.
//!
//! Source: firefox-devtools/profiler, docs-developer/CHANGELOG-formats.md: version 61 of the
//! processed format. Later versions of the profiler bring older files up to date.

use serde::Serialize;

use super::markers::{Markers, Schema};
use super::tables::{Category, Lib, Tables};

/// The version of the processed format that this is.
pub(super) const VERSION: u32 = 61;

#[derive(Serialize)]
pub(super) struct File<'p> {
    pub(super) meta: Meta,
    pub(super) libs: Vec<Lib>,
    /// The tables that all threads share.
    pub(super) shared: Tables,
    pub(super) threads: Vec<Thread<'p>>,
    pub(super) pages: [(); 0],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Meta {
    /// Milliseconds from one sample to the next.
    pub(super) interval: f64,
    /// Milliseconds since 1970; unknown, so 0.
    pub(super) start_time: f64,
    pub(super) process_type: u32,
    pub(super) categories: Vec<Category>,
    pub(super) product: String,
    pub(super) stackwalk: u32,
    pub(super) debug: bool,
    /// Another format; not read.
    pub(super) version: u32,
    pub(super) preprocessed_profile_version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) abi: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) oscpu: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) arguments: Option<String>,
    pub(super) imported_from: &'static str,
    pub(super) symbolicated: bool,
    pub(super) marker_schema: [Schema; 1],
    pub(super) sample_units: SampleUnits,
    pub(super) uses_only_one_stack_type: bool,
    pub(super) source_code_is_not_on_searchfox: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SampleUnits {
    pub(super) time: &'static str,
    pub(super) event_delay: &'static str,
    #[serde(rename = "threadCPUDelta")]
    pub(super) thread_cpu_delta: &'static str,
}

/// Times are milliseconds since the recording's first sample.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Thread<'p> {
    pub(super) process_type: &'static str,
    pub(super) process_startup_time: f64,
    pub(super) process_shutdown_time: Option<f64>,
    pub(super) register_time: f64,
    pub(super) unregister_time: Option<f64>,
    pub(super) paused_ranges: [(); 0],
    pub(super) name: &'p str,
    pub(super) is_main_thread: bool,
    pub(super) process_name: &'p str,
    pub(super) pid: String,
    pub(super) tid: i32,
    pub(super) samples: Samples,
    pub(super) markers: Markers,
}

/// Columns of one length.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Samples {
    pub(super) length: usize,
    pub(super) stack: Vec<Option<usize>>,
    pub(super) time: Vec<f64>,
    pub(super) weight: Vec<f64>,
    pub(super) weight_type: &'static str,
    /// The thread's CPU time since the previous sample.
    #[serde(rename = "threadCPUDelta", skip_serializing_if = "Option::is_none")]
    pub(super) thread_cpu_delta: Option<Vec<u64>>,
}
