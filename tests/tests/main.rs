//! Tests on real programs: one program of tests, so that it is linked once, and so that none runs
//! beside those that have the machine to themselves.
//!
//! `cargo test -p prof-tests waits::` runs those of one file.
#![forbid(unsafe_code)]

mod allocations;
mod alone;
mod annotate;
mod archive;
mod async_tasks;
mod bad_input;
mod cargo_prof;
mod command;
mod containers;
mod control;
mod doctor;
mod dotnet;
mod downloads;
mod events;
mod everyday_programs;
mod fake_jvms;
mod filters;
mod first_five_minutes;
mod flamegraph;
mod foreign_recordings;
mod formats_in;
mod generate;
mod guide;
mod hostile_programs;
mod inlined_functions;
mod javascript;
mod main_thread_ended;
mod moved_text;
mod no_permission;
mod odd_surroundings;
mod page;
mod page_names;
mod pairs;
mod perf_agrees;
mod php;
mod pipe;
mod plain_user;
mod probes;
mod progress;
mod python;
mod remedies;
mod rotation;
mod ruby;
mod runtimes;
mod second_opinion;
mod security;
mod shared_tmp;
mod storage;
mod symbolization;
mod targets;
mod terminal;
mod top;
mod views;
mod waits;
mod whole_files;
mod whole_stacks;
