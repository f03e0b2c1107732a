//! Which target `cargo prof` builds: the named one, or the one that `cargo run` would run.

use std::path::PathBuf;

use anyhow::{Result, bail};
use cargo_metadata::{Metadata, MetadataCommand, Package, TargetKind};

use crate::flags::{TargetFlags, UnitKind};

/// A target by package, kind and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// The package, as a package id that `cargo build -p` understands.
    pub(super) package: String,
    /// The kind of target.
    pub(super) kind: Kind,
    /// The target's name.
    pub(super) name: String,
    /// Whether its unit tests or the benchmarks inside it are recorded instead of the target
    /// itself.
    pub(super) unit: Option<Unit>,
}

/// Code that is compiled into a library or binary besides its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Tests,
    Benchmarks,
}

/// The kinds of target that can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Lib,
    Bin,
    Example,
    Test,
    Bench,
}

impl Kind {
    /// Cargo's flag for it, without the dashes.
    pub(super) fn flag(self) -> &'static str {
        match self {
            Self::Lib => "lib",
            Self::Bin => "bin",
            Self::Example => "example",
            Self::Test => "test",
            Self::Bench => "bench",
        }
    }

    fn matches(self, kind: &TargetKind) -> bool {
        match self {
            // Each of these can have unit tests.
            Self::Lib => matches!(
                kind,
                TargetKind::Lib
                    | TargetKind::RLib
                    | TargetKind::DyLib
                    | TargetKind::CDyLib
                    | TargetKind::StaticLib
                    | TargetKind::ProcMacro
            ),
            Self::Bin => *kind == TargetKind::Bin,
            Self::Example => *kind == TargetKind::Example,
            Self::Test => *kind == TargetKind::Test,
            Self::Bench => *kind == TargetKind::Bench,
        }
    }
}

impl Choice {
    fn new(package: &Package, kind: Kind, name: &str) -> Self {
        Self {
            package: package.id.repr.clone(),
            kind,
            name: name.to_owned(),
            unit: None,
        }
    }

    /// The argument that cargo itself would pass before the user's.
    pub(super) fn leading_argument(&self) -> Option<&'static str> {
        self.is_benchmark().then_some("--bench")
    }

    /// Whether cargo would build it with the profile `bench`.
    pub(super) fn is_benchmark(&self) -> bool {
        self.kind == Kind::Bench || self.unit == Some(Unit::Benchmarks)
    }

    /// Whether libtest, criterion or the like calls the user's code.
    pub(super) fn has_harness(&self) -> bool {
        matches!(self.kind, Kind::Test | Kind::Bench) || self.unit.is_some()
    }
}

/// Reads the workspace's targets from cargo and chooses one; also returns cargo's build directory.
pub(super) fn choose(flags: &TargetFlags) -> Result<(Choice, PathBuf)> {
    let mut command = MetadataCommand::new();
    command.no_deps();
    if let Some(path) = &flags.manifest_path {
        command.manifest_path(path);
    }
    let mut options = Vec::new();
    options.extend(flags.locked.then(|| "--locked".to_owned()));
    options.extend(flags.offline.then(|| "--offline".to_owned()));
    command.other_options(options);
    let metadata = command.exec()?;
    let directory = match &flags.target_dir {
        Some(directory) => std::path::absolute(directory)?,
        None => metadata.target_directory.clone().into(),
    };
    Ok((pick(&metadata, flags)?, directory))
}

fn pick(metadata: &Metadata, flags: &TargetFlags) -> Result<Choice> {
    let packages = packages(metadata, flags.package.as_deref())?;
    let units = [
        (Unit::Tests, &flags.unit_test),
        (Unit::Benchmarks, &flags.unit_bench),
    ];
    for (unit, requested) in units {
        if let Some(name) = requested {
            return pick_unit(&packages, unit, name.as_deref(), flags.unit_test_kind);
        }
    }
    match named(flags) {
        Some((kind, name)) => pick_named(&packages, kind, name),
        None => pick_default(&packages),
    }
}

fn named(flags: &TargetFlags) -> Option<(Kind, &str)> {
    let named = [
        (Kind::Bin, &flags.bin),
        (Kind::Example, &flags.example),
        (Kind::Test, &flags.test),
        (Kind::Bench, &flags.bench),
    ];
    named
        .into_iter()
        .find_map(|(kind, name)| Some((kind, name.as_deref()?)))
}

/// The packages to search: the named one, else the one in this directory, else the workspace's
/// default members, else all.
fn packages<'a>(metadata: &'a Metadata, requested: Option<&str>) -> Result<Vec<&'a Package>> {
    let members = metadata.workspace_packages();
    if let Some(requested) = requested {
        let found: Vec<_> = members
            .iter()
            .copied()
            .filter(|p| p.name == requested || p.id.repr == requested)
            .collect();
        if found.is_empty() {
            let names: Vec<_> = members.iter().map(|p| p.name.as_str()).collect();
            bail!(
                "no package '{requested}' in this workspace; it has: {}",
                names.join(", ")
            );
        }
        return Ok(found);
    }
    // Cargo says which: in the folder of a member, that one.
    let defaults: Vec<_> = metadata.workspace_default_packages();
    Ok(if defaults.is_empty() {
        members
    } else {
        defaults
    })
}

fn targets<'a>(
    packages: &[&'a Package],
    kind: Kind,
) -> impl Iterator<Item = (&'a Package, &'a str)> {
    packages.iter().flat_map(move |&package| {
        package
            .targets
            .iter()
            .filter(move |target| target.kind.iter().any(|k| kind.matches(k)))
            .map(move |target| (package, target.name.as_str()))
    })
}

fn pick_named(packages: &[&Package], kind: Kind, name: &str) -> Result<Choice> {
    match targets(packages, kind).find(|(_, target)| *target == name) {
        Some((package, _)) => Ok(Choice::new(package, kind, name)),
        None => {
            let names: Vec<_> = targets(packages, kind).map(|(_, target)| target).collect();
            let flag = kind.flag();
            match names.as_slice() {
                [] => {
                    bail!("there is no {flag} target '{name}': the package has none")
                }
                names => bail!(
                    "there is no {flag} target '{name}'; the others are: {}",
                    names.join(", ")
                ),
            }
        }
    }
}

/// The default target of `cargo run`: the `default-run` binary, or the only one.
fn pick_default(packages: &[&Package]) -> Result<Choice> {
    let default = packages
        .iter()
        .find_map(|p| Some((*p, p.default_run.as_deref()?)));
    let binaries: Vec<_> = targets(packages, Kind::Bin).collect();
    let (package, name) = match (default, binaries.as_slice()) {
        (Some(default), _) => default,
        (None, [only]) => *only,
        (None, []) => bail!(
            "there is no binary to record; name a target with --example, --test or --bench, or a \
             package with -p"
        ),
        (None, several) => {
            let names: Vec<_> = several.iter().map(|(_, name)| *name).collect();
            bail!(
                "there are several binaries; choose one with --bin: {}",
                names.join(", ")
            )
        }
    };
    Ok(Choice::new(package, Kind::Bin, name))
}

/// The binary of this name, else the library of this name. Without a name: the library, else the
/// default binary of `cargo run`.
fn pick_unit(
    packages: &[&Package],
    unit: Unit,
    name: Option<&str>,
    kind: Option<UnitKind>,
) -> Result<Choice> {
    let found = |kind: Kind| {
        let mut targets = targets(packages, kind);
        targets.find(|(_, target)| name.is_none_or(|name| *target == name))
    };
    let library = found(Kind::Lib).filter(|_| kind != Some(UnitKind::Bin));
    let binary = name.and_then(|_| found(Kind::Bin));
    let binary = binary.filter(|_| kind != Some(UnitKind::Lib));
    let choice = match (binary, library, name) {
        (Some((package, name)), _, _) => Choice::new(package, Kind::Bin, name),
        (None, Some((package, name)), _) => Choice::new(package, Kind::Lib, name),
        (None, None, None) if kind != Some(UnitKind::Lib) => pick_default(packages)?,
        (None, None, name) => {
            let all = targets(packages, Kind::Lib).chain(targets(packages, Kind::Bin));
            let all: Vec<_> = all.map(|(_, target)| target).collect();
            bail!(
                "there is no such library or binary{}; there are: {}",
                name.map_or_else(String::new, |name| format!(" '{name}'")),
                all.join(", ")
            );
        }
    };
    Ok(Choice {
        unit: Some(unit),
        ..choice
    })
}
