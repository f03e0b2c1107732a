//! Waiting for effects of a running program.

use std::io::Read;
use std::process::Child;
use std::time::Duration;

/// Waits until something is so that `child` brings about, without taking the CPU from it.
///
/// # Panics
/// If it ends before.
pub fn wait_until(child: &mut Child, is_so: impl Fn() -> bool) {
    while !is_so() {
        if let Some(status) = child.try_wait().unwrap()
            && !is_so()
        {
            let mut said = String::new();
            if let Some(errors) = &mut child.stderr {
                errors.read_to_string(&mut said).unwrap();
            }
            panic!("it has ended too early: {status}: {said}");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
