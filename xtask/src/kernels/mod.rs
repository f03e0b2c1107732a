//! `cargo xtask kernels`: prof on other kernels and on 64-bit ARM, in qemu (tests/kernels).

mod chains;
mod page;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};
use clap::Args;

use crate::{process, workspace};
use chains::Judgement;

#[derive(Args)]
pub(crate) struct Options {
    /// The kernels to boot, such as `arm64-6.12`; all, if there are none. The page has the results
    /// of others, too, as far as they are in target/kernels.
    kernels: Vec<String>,
    /// Takes prof and the recorded programs as they were built the last time.
    #[arg(long)]
    no_build: bool,
    /// Only writes the page, of the results that are there.
    #[arg(long, conflicts_with_all = ["kernels", "no_build"])]
    page: bool,
}

/// Names of kernels begin with Debian's name of the processor; its target.
const PROCESSORS: [(&str, &str); 2] = [
    ("amd64", "x86_64-unknown-linux-musl"),
    ("arm64", "aarch64-unknown-linux-musl"),
];
const VERSIONS: [&str; 4] = ["5.10", "6.1", "6.12", "7.2"];
/// Seconds that a kernel has for all trials.
const LIMIT: &str = "1800";

/// What became of a trial.
struct Trial {
    name: String,
    /// Whether prof succeeded.
    done: bool,
    /// In percent.
    whole: Option<f64>,
    /// What prof says was in the way.
    reason: String,
    /// The stacks beside the program's real chains.
    stacks: Judgement,
}

/// A kernel, and the trials on it.
struct Kernel {
    name: String,
    /// As `uname -r` has it.
    release: String,
    trials: Vec<Trial>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let all = PROCESSORS.iter().flat_map(|(arch, _)| {
        let name = move |version| format!("{arch}-{version}");
        VERSIONS.into_iter().map(name)
    });
    let all: Vec<String> = all.collect();
    let names = match options.kernels.is_empty() {
        true => &all,
        false => &options.kernels,
    };
    let lab = Lab::new()?;
    for (arch, target) in PROCESSORS {
        if !(options.no_build || options.page) && names.iter().any(|name| name.starts_with(arch)) {
            lab.build(arch, target)?;
        }
    }
    for name in names.iter().filter(|_| !options.page) {
        println!("== {name}");
        lab.boot(name)?;
    }
    let known = all.into_iter().filter(|name| lab.results(name).exists());
    let kernels: Vec<Kernel> = known.map(|name| lab.read(name)).collect::<Result<_>>()?;
    let page = page::page(&kernels);
    fs::write(workspace::root().join("docs/results/kernels.md"), &page)?;
    println!("{page}");
    let wrong = kernels.iter().flat_map(|kernel| {
        // Names of interpreted functions are read after the sample: some are of a later moment.
        let is_native = |trial: &&Trial| !["python", "ruby", "php"].contains(&&*trial.name);
        let trials = kernel.trials.iter().filter(is_native);
        let wrong = trials.filter(|trial| trial.stacks.wrong > 0);
        wrong.map(|trial| format!("{} {}: {}", kernel.name, trial.name, trial.stacks.example))
    });
    let wrong: Vec<String> = wrong.collect();
    ensure!(
        wrong.is_empty(),
        "stacks that count as whole, and are not: {}",
        wrong.join("; ")
    );
    Ok(())
}

/// The folder of kernels, root file systems and results, and the scripts.
struct Lab {
    folder: PathBuf,
    scripts: PathBuf,
}

impl Lab {
    fn new() -> Result<Self> {
        let lab = Self {
            folder: workspace::target_directory()?.join("kernels"),
            scripts: workspace::root().join("tests/kernels"),
        };
        // The last that is made.
        if !lab.folder.join("images/root-arm64.img").exists() {
            process::run(&mut lab.script("setup.sh"))?;
        }
        Ok(lab)
    }

    fn script(&self, name: &str) -> Command {
        let mut command = Command::new(self.scripts.join(name));
        command.env("LAB", &self.folder);
        command
    }

    /// Builds prof, and the programs for it to record.
    fn build(&self, arch: &str, target: &str) -> Result<()> {
        let mut cargo = process::cargo();
        cargo.current_dir(workspace::root());
        cargo.args(["build", "--locked", "--release", "--package", "prof"]);
        cargo.args(["--bin", "prof", "--target", target]);
        if arch == "arm64" {
            cross_compile(&mut cargo);
        }
        process::run(&mut cargo)?;
        let prof = workspace::target_directory()?
            .join(target)
            .join("release/prof");
        process::run(self.script("programs.sh").arg(arch).arg(prof))
    }

    /// What a kernel's trials have printed.
    fn results(&self, name: &str) -> PathBuf {
        self.folder.join("out").join(name).join("results")
    }

    /// Boots a kernel and tries everything.
    fn boot(&self, name: &str) -> Result<()> {
        let results = self.results(name);
        if results.exists() {
            fs::remove_file(&results)?;
        }
        let mut boot = self.script("run.sh");
        // Debian's 6.12 fails under several threads of emulation.
        boot.env("TCG", "single").env("LIMIT", LIMIT);
        process::run(boot.args([name, "suite"]))?;
        ensure!(
            results.exists(),
            "{name} has not booted, or took longer than {LIMIT} s"
        );
        Ok(())
    }

    /// The results of a kernel.
    fn read(&self, name: String) -> Result<Kernel> {
        let results = self.results(&name);
        let lines = fs::read_to_string(&results)?;
        let folder = results.parent().unwrap_or(&results);
        let trials = lines.lines().filter_map(|line| trial(line, folder));
        let release = self.folder.join("kernels").join(&name).join("release");
        Ok(Kernel {
            release: fs::read_to_string(release)?.trim().to_owned(),
            trials: trials.collect(),
            name,
        })
    }
}

/// Has Debian's cross compiler compile C, and Rust's linker link: static programs need no other.
fn cross_compile(cargo: &mut Command) {
    let target = "aarch64_unknown_linux_musl";
    cargo.env(format!("CC_{target}"), "aarch64-linux-gnu-gcc");
    cargo.env(format!("AR_{target}"), "aarch64-linux-gnu-ar");
    // Its headers are glibc's: none of the functions that only glibc has.
    let without = "-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=0 -fno-stack-protector";
    cargo.env(format!("CFLAGS_{target}"), without);
    let linker = format!("CARGO_TARGET_{}_LINKER", target.to_uppercase());
    cargo.env(linker, "rust-lld");
}

/// The trial of a line of guest/suite.
fn trial(line: &str, results: &Path) -> Option<Trial> {
    let mut fields = line.split('\t');
    let (name, status) = (fields.next()?, fields.next()?);
    let (whole, reason) = (fields.next()?, fields.next().unwrap_or_default());
    let folded = fs::read_to_string(results.join(format!("{name}.folded")));
    Some(Trial {
        name: name.to_owned(),
        done: status == "0",
        whole: whole.parse().ok(),
        reason: reason.to_owned(),
        stacks: chains::judge(name, &folded.unwrap_or_default()),
    })
}
