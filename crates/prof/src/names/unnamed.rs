//! What has no names, and why.

use prof_report::symbolized::ModuleNaming;

/// A line for each module that matters and has no names, with reason and remedy; and what could
/// have been had.
pub(crate) fn unnamed(all: &[ModuleNaming]) -> Vec<String> {
    const MOST: usize = 5;
    let samples: u64 = all.iter().map(|naming| naming.samples).sum();
    let lacking = || all.iter().filter(|naming| naming.unnamed_samples > 0);
    let matters = |naming: &&ModuleNaming| naming.unnamed_samples.saturating_mul(100) >= samples;
    let mut lines: Vec<String> = lacking()
        .filter(matters)
        .take(MOST)
        .map(|naming| format!("no names for {naming}"))
        .collect();
    let others = lacking().count() - lines.len();
    if others > 0 {
        let modules = if others == 1 { "module" } else { "modules" };
        lines.push(format!(
            "some addresses in {others} other {modules} have no names"
        ));
    }
    let missed = all.iter().filter_map(|naming| {
        // Where there are no names at all, this is part of the reason.
        let problem = naming.downloads.as_ref()?;
        let named = naming.status.is_named();
        named.then(|| format!("no inlined functions for {}: {problem}", naming.module))
    });
    lines.extend(missed.take(MOST));
    lines
}
