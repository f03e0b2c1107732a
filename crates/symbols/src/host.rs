//! The machine that was recorded: what has no build id is taken from ours only if it is the same.

use std::fmt;

use object::{Architecture, Object};

use crate::image::Image;

/// A machine, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Its name.
    pub name: Option<String>,
    /// Its architecture, as `uname -m` has it.
    pub arch: Option<String>,
    /// The release of its kernel.
    pub release: Option<String>,
}

impl Host {
    /// This one.
    pub fn this() -> Self {
        Self {
            name: prof_procfs::kernel::host_name(),
            arch: Some(std::env::consts::ARCH.to_owned()),
            release: prof_procfs::kernel::release(),
        }
    }

    /// Whether nothing is known.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// Whether another machine is meant, or the same with another kernel.
    pub fn differs(&self, other: &Self) -> bool {
        self.is_elsewhere(other) || self.has_other_kernel(other)
    }

    /// Whether another machine is meant.
    pub(crate) fn is_elsewhere(&self, other: &Self) -> bool {
        differ(&self.name, &other.name) || differ(&self.arch, &other.arch)
    }

    /// Whether the kernels are not of one build.
    pub(crate) fn has_other_kernel(&self, other: &Self) -> bool {
        differ(&self.arch, &other.arch) || differ(&self.release, &other.release)
    }

    /// Whether a program could have run there, by its architecture.
    pub(crate) fn runs(&self, program: &Image<'_>) -> bool {
        let architecture = program.object().architecture();
        match self.arch.as_deref() {
            // .NET marks its precompiled code with the system that it is for.
            _ if architecture == Architecture::Unknown => true,
            Some("x86_64") => matches!(
                architecture,
                Architecture::X86_64 | Architecture::X86_64_X32 | Architecture::I386
            ),
            Some("aarch64") => matches!(architecture, Architecture::Aarch64 | Architecture::Arm),
            _ => true,
        }
    }
}

fn differ(one: &Option<String>, other: &Option<String>) -> bool {
    one.as_ref()
        .zip(other.as_ref())
        .is_some_and(|(one, other)| one != other)
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let release = self
            .release
            .as_ref()
            .map(|release| format!("Linux {release}"));
        let known = [self.name.clone(), release, self.arch.clone()];
        let known: Vec<String> = known.into_iter().flatten().collect();
        f.write_str(&known.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, arch: &str, release: &str) -> Host {
        let known = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Host {
            name: known(name),
            arch: known(arch),
            release: known(release),
        }
    }

    #[test]
    fn only_what_is_known_of_both_tells_machines_apart() {
        let here = host("a", "x86_64", "6.1");
        let check = |other: Host, elsewhere, kernel| {
            let found = (other.is_elsewhere(&here), other.has_other_kernel(&here));
            assert_eq!(found, (elsewhere, kernel), "{other}");
        };
        check(here.clone(), false, false);
        check(Host::default(), false, false);
        check(host("b", "", ""), true, false);
        check(host("", "aarch64", ""), true, true);
        check(host("a", "x86_64", "6.5"), false, true);
        assert_eq!(here.to_string(), "a, Linux 6.1, x86_64");
    }
}
