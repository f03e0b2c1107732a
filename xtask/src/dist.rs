//! `cargo xtask dist`: static archives, their checksums, and Debian packages.
//!
//! ```text
//! target/packages/prof-VERSION-TRIPLE.tgz      prof, cargo-prof, manual pages, completions
//!                 prof-fleet-VERSION-TRIPLE.tgz   and sql/, queries for other engines
//!                 prof_VERSION-1_amd64.deb     with cargo-deb
//!                 prof-fleet_VERSION-1_amd64.deb
//!                 SHA256SUMS
//! ```

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::{process, workspace};

#[derive(Args)]
pub(crate) struct Options {
    /// Builds the archives a second time, in another directory, packs the Debian packages again,
    /// and compares the bytes.
    #[arg(long)]
    verify: bool,
    /// Leaves out the Debian packages (`cargo install cargo-deb`).
    #[arg(long, conflicts_with = "install")]
    no_deb: bool,
    /// Installs the Debian packages in a bare root file system, uses them as a plain user would,
    /// and purges them (packaging/check-deb: root, debootstrap).
    #[arg(long)]
    install: bool,
}

/// The targets of the archives, and the linkers of their programs.
const TARGETS: [(&str, &str); 2] = [
    ("x86_64-unknown-linux-musl", "musl-gcc"),
    ("aarch64-unknown-linux-musl", "aarch64-linux-musl-gcc"),
];

/// A crate and its programs, to be packed. The program with the crate's name prints the documents.
struct Package {
    name: &'static str,
    programs: &'static [&'static str],
    /// What is packed beside them: a folder of files.
    folder: Option<&'static str>,
}

const PACKAGES: [Package; 2] = [
    Package {
        name: "prof",
        programs: &["prof", "cargo-prof"],
        folder: None,
    },
    Package {
        name: "prof-fleet",
        programs: &["prof-fleet"],
        folder: Some("crates/fleet/sql"),
    },
];

/// The maximum total size of a package's programs.
const MOST_BYTES: u64 = 20_000_000;

/// Builds the packages and says where they are.
pub(crate) fn run(options: &Options) -> Result<()> {
    let target = workspace::target_directory()?;
    let packages = target.join("packages");
    let mut files = archives(&target, &packages)?;
    if options.verify {
        let again = target.join("dist-again");
        ensure!(!files.is_empty(), "there is no archive to verify");
        compare(&files, &archives(&again, &again.join("packages"))?)?;
        println!("archives built twice: the same bytes");
    }
    if !options.no_deb {
        // The archives' programs were built to the same bytes; so are these.
        let programs = build(&target, None)?;
        let packed = debian(&programs, &target, &packages)?;
        if options.verify {
            let again = target.join("dist-again/packages");
            compare(&packed, &debian(&programs, &target, &again)?)?;
            println!("Debian packages packed twice: the same bytes");
        }
        files.extend(packed);
    }
    let mut sums = Command::new("sha256sum");
    sums.current_dir(&packages);
    sums.args(files.iter().filter_map(|file| file.file_name()));
    let sums = process::output(&mut sums)?;
    fs::write(packages.join("SHA256SUMS"), &sums)?;
    print!("{sums}");
    println!("in {}", packages.display());
    files.retain(|file| file.extension() == Some("deb".as_ref()));
    match files.is_empty() {
        true => Ok(()),
        false => check_debian(&files, options.install),
    }
}

/// Checks Debian's rules for packages, and that they install on a bare system.
fn check_debian(packages: &[PathBuf], install: bool) -> Result<()> {
    match process::find("lintian") {
        Some(lintian) => {
            let mut lintian = Command::new(lintian);
            lintian.args(["--allow-root", "--fail-on", "error,warning"]);
            // That is for Debian's own archive.
            lintian.args(["--suppress-tags", "initial-upload-closes-no-bugs"]);
            process::run(lintian.args(packages))?;
        }
        None => println!("not checked by lintian, which is missing"),
    }
    if install {
        let script = workspace::root().join("packaging/check-deb");
        process::run(Command::new(script).args(packages))?;
    }
    Ok(())
}

fn compare(files: &[PathBuf], others: &[PathBuf]) -> Result<()> {
    for (first, second) in files.iter().zip(others) {
        ensure!(
            fs::read(first)? == fs::read(second)?,
            "{} and {} differ: the build is not reproducible",
            first.display(),
            second.display()
        );
    }
    Ok(())
}

/// Builds below `target` and packs archives into `packages`.
fn archives(target: &Path, packages: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    fs::create_dir_all(packages).with_context(|| format!("cannot make {}", packages.display()))?;
    for (triple, linker) in TARGETS {
        let missing = match process::find(linker) {
            None => Some(format!("{linker} is missing")),
            Some(_) if !has_library(triple)? => Some(format!("rustup target add {triple}")),
            Some(_) => None,
        };
        if let Some(missing) = missing {
            println!("no archive for {triple}: {missing}");
            continue;
        }
        let programs = build(target, Some((triple, linker)))?;
        // Programs of another architecture do not run here; those of this one print the same.
        let native = match triple.starts_with(std::env::consts::ARCH) {
            true => programs.clone(),
            false => build(&workspace::target_directory()?, None)?,
        };
        for package in &PACKAGES {
            files.push(archive(package, &programs, &native, triple, packages)?);
        }
    }
    Ok(files)
}

fn has_library(triple: &str) -> Result<bool> {
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", "target-libdir", "--target", triple]);
    Ok(Path::new(process::output(&mut rustc)?.trim()).is_dir())
}

/// Builds the programs of all packages at once, as they share most crates; returns their directory.
/// The programs contain no paths of this machine.
fn build(target: &Path, cross: Option<(&str, &str)>) -> Result<PathBuf> {
    let home = std::env::var("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|_| std::env::var("HOME").map(|home| Path::new(&home).join(".cargo")));
    // The last one that fits is taken: the target directory may be in the checkout.
    let places = [
        (workspace::root().to_owned(), "/prof"),
        (home.context("there is no HOME")?, "/cargo"),
        (target.to_owned(), "/target"),
    ];
    let remap = |option: &str, separator: &str| -> Vec<String> {
        let places = places.iter();
        places
            .map(|(from, to)| format!("{option}{separator}{}={to}", from.display()))
            .collect()
    };
    let mut command = process::cargo();
    command.current_dir(workspace::root());
    command.args(["build", "--locked", "--profile", "dist"]);
    command.args(PACKAGES.map(|package| format!("--package={}", package.name)));
    command.arg("--bins").arg("--target-dir").arg(target);
    command.env(
        "CARGO_ENCODED_RUSTFLAGS",
        remap("--remap-path-prefix", "=").join("\x1f"),
    );
    command.env("CFLAGS", remap("-ffile-prefix-map", "=").join(" "));
    command.env("SOURCE_DATE_EPOCH", date()?);
    let mut programs = target.to_owned();
    if let Some((triple, linker)) = cross {
        command.args(["--target", triple]);
        let triple_name = triple.replace('-', "_");
        command.env(format!("CC_{triple_name}"), linker);
        let variable = format!("CARGO_TARGET_{}_LINKER", triple_name.to_uppercase());
        if !triple.starts_with(std::env::consts::ARCH) {
            command.env(variable, linker);
        }
        programs.push(triple);
    }
    process::run(&mut command)?;
    let programs = programs.join("dist");
    for package in &PACKAGES {
        let mut bytes = 0;
        for program in package.programs {
            bytes += fs::metadata(programs.join(program))?.len();
        }
        let names = package.programs.join(" and ");
        println!("{names} in {}: {bytes} bytes", programs.display());
        ensure!(
            bytes < MOST_BYTES,
            "{names}: {bytes} bytes, more than {MOST_BYTES}"
        );
    }
    Ok(programs)
}

/// The time of the last commit, which all that is packed gets.
fn date() -> Result<String> {
    let mut git = Command::new("git");
    git.current_dir(workspace::root());
    git.args(["log", "-1", "--format=%ct"]);
    Ok(process::output(&mut git)?.trim().to_owned())
}

/// Writes the manual pages and completions into a directory. The package's programs, which are in
/// `programs`, must run here.
fn documents(package: &Package, programs: &Path, directory: &Path) -> Result<()> {
    let name = package.name;
    let generate = |kind: &str| {
        let mut command = Command::new(programs.join(name));
        process::output(command.args(["--generate", kind]))
    };
    let (manual, completions) = (directory.join("man"), directory.join("completions"));
    fs::create_dir_all(&manual)?;
    fs::create_dir_all(&completions)?;
    let kinds = generate("list")?;
    for kind in kinds.lines().filter(|kind| kind.starts_with("man")) {
        let page = match kind.strip_prefix("man-") {
            None => name.to_owned(),
            Some(verb) if verb.starts_with("cargo-") => verb.to_owned(),
            Some(verb) => format!("prof-{verb}"),
        };
        fs::write(manual.join(format!("{page}.1")), generate(kind)?)?;
    }
    let script = |file: String, kind: &str| Ok(fs::write(completions.join(file), generate(kind)?)?);
    script(format!("{name}.bash"), "complete-bash")?;
    script(format!("_{name}"), "complete-zsh")?;
    script(format!("{name}.fish"), "complete-fish")
}

/// Packs the programs and their documents, printed by the programs in `native`; equal files make
/// equal bytes.
fn archive(
    package: &Package,
    programs: &Path,
    native: &Path,
    triple: &str,
    packages: &Path,
) -> Result<PathBuf> {
    let name = format!("{}-{}-{triple}", package.name, env!("CARGO_PKG_VERSION"));
    let folder = packages.join(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    for program in package.programs {
        fs::copy(programs.join(program), folder.join(program))?;
    }
    for file in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        fs::copy(workspace::root().join(file), folder.join(file))?;
    }
    if let Some(from) = package.folder {
        let mut copy = Command::new("cp");
        copy.arg("--recursive").arg(workspace::root().join(from));
        process::run(copy.arg(&folder))?;
    }
    documents(package, native, &folder)?;
    let path = packages.join(format!("{name}.tgz"));
    let mut tar = Command::new("tar");
    tar.arg("--directory").arg(packages);
    tar.args(["--create", "--sort=name", "--format=gnu"]);
    tar.args(["--owner=0", "--group=0", "--numeric-owner", "--mode=go-w"]);
    tar.arg(format!("--mtime=@{}", date()?)).arg(&name);
    let mut tar = tar
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start tar")?;
    let packed = tar.stdout.take().context("tar has no output")?;
    let mut gzip = Command::new("gzip");
    gzip.args(["--no-name", "-9"]);
    process::run(gzip.stdin(packed).stdout(File::create(&path)?))?;
    ensure!(tar.wait()?.success(), "tar failed");
    fs::remove_dir_all(&folder)?;
    Ok(path)
}

/// Packs programs, below `target`, that use the system's C library.
fn debian(programs: &Path, target: &Path, packages: &Path) -> Result<Vec<PathBuf>> {
    let packed = PACKAGES.iter();
    packed
        .map(|package| debian_package(package, programs, target, packages))
        .collect()
}

fn debian_package(
    package: &Package,
    programs: &Path,
    target: &Path,
    packages: &Path,
) -> Result<PathBuf> {
    let name = package.name;
    // The folder that the package's manifest names.
    let folder = workspace::root().join("target/debian-files").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    documents(package, programs, &folder)?;
    let date = date()?;
    let mut written = Command::new("date");
    written
        .args(["--utc", "--rfc-email", "--date"])
        .arg(format!("@{date}"));
    let written = process::output(&mut written)?;
    fs::write(
        folder.join("changelog"),
        format!(
            "{name} ({version}-1) unstable; urgency=medium\n\n  * Version {version}: changelog.gz \
             says what is new.\n\n -- {MAINTAINER}  {written}",
            version = env!("CARGO_PKG_VERSION"),
        ),
    )?;
    let mut command = process::cargo();
    command.current_dir(workspace::root());
    command.args(["deb", "--package", name, "--no-build", "--no-strip"]);
    command.args(["--profile", "dist", "--deb-revision", "1"]);
    command.arg("--output").arg(packages);
    command.env("CARGO_TARGET_DIR", target);
    command.env("SOURCE_DATE_EPOCH", &date);
    let printed = process::output(&mut command)
        .context("cargo-deb makes Debian packages: `cargo install cargo-deb`, or --no-deb")?;
    let path = printed
        .lines()
        .last()
        .context("cargo-deb printed no path")?;
    Ok(PathBuf::from(path))
}

const MAINTAINER: &str = "The prof developers <prof@example.invalid>";
