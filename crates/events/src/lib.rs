//! perf_event_open and its mmap rings, as types that own the kernel's resources.
