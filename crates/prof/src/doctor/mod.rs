//! `prof doctor`: what this user can and cannot record on this machine, found by trying, and what
//! changes it.

mod events;
mod limits;
mod machine;
mod symbols;

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};
use prof_console::without_errno;
use prof_events::system::{self, System};
use serde::Serialize;

use crate::flags::DoctorFlags;
use crate::output::write_stdout;
use machine::Machine;

/// One check and its result.
#[derive(Debug, Serialize)]
struct Check {
    /// Its name for scripts: never changes.
    name: &'static str,
    status: Status,
    /// The result of the check.
    found: String,
    /// What is unavailable because of it; `None` if the status is `ok`.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<String>,
    /// The command that changes it, if one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    /// Nothing is missing.
    Ok,
    /// It works, but something is missing.
    Limited,
    /// It is unavailable.
    No,
}

/// Checks that belong together.
#[derive(Debug, Serialize)]
struct Section {
    title: &'static str,
    checks: Vec<Check>,
}

/// The whole output.
#[derive(Debug, Serialize)]
struct Report {
    format: &'static str,
    version: u32,
    hostname: String,
    os_release: String,
    arch: &'static str,
    user: u32,
    /// Whether this user can record anything.
    can_record: bool,
    sections: Vec<Section>,
}

/// Runs all checks and prints the results; fails (status 1) if nothing can be recorded.
///
/// # Errors
///
/// /proc cannot be read, or the output cannot be written.
pub(crate) fn run(flags: &DoctorFlags) -> Result<ExitCode> {
    let system = System::read().context("cannot read the machine's settings")?;
    let machine = Machine::read(system)?;
    let report = Report::of(&machine);
    write_stdout(|out| match flags.json {
        true => {
            serde_json::to_writer(&mut *out, &report)?;
            Ok(writeln!(out)?)
        }
        false => report.print(out),
    })?;
    Ok(match report.can_record {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

impl Report {
    fn of(machine: &Machine) -> Self {
        let own = events::own_programs(machine);
        let can_record = own.status != Status::No;
        let mut what = vec![own];
        what.extend(events::checks(machine));
        let section = |title, checks| Section { title, checks };
        Self {
            format: "prof-doctor",
            version: 1,
            hostname: system::host_name(),
            os_release: system::kernel_release(),
            arch: std::env::consts::ARCH,
            user: machine.privileges.user,
            can_record,
            sections: vec![
                section("What can be recorded", what),
                section("Limits", limits::checks(machine)),
                section("Symbols", symbols::checks(machine)),
                section("Environment", machine.checks()),
            ],
        }
    }

    fn print(&self, out: &mut dyn Write) -> Result<()> {
        let Self {
            hostname,
            os_release,
            arch,
            user,
            ..
        } = self;
        writeln!(out, "{hostname}: Linux {os_release}, {arch}, user {user}")?;
        for section in &self.sections {
            writeln!(out, "\n{}", section.title)?;
            for check in &section.checks {
                check.print(out)?;
            }
        }
        Ok(())
    }
}

impl Check {
    /// Nothing is missing.
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            name,
            status: Status::Ok,
            found: without_errno(&found.into()),
            cost: None,
            fix: None,
        }
    }

    /// It works, with this restriction.
    fn limited(name: &'static str, found: impl Into<String>, cost: impl Into<String>) -> Self {
        Self {
            status: Status::Limited,
            cost: Some(cost.into()),
            ..Self::ok(name, found)
        }
    }

    /// It does not work, which has this effect.
    fn no(name: &'static str, found: impl Into<String>, cost: impl Into<String>) -> Self {
        Self {
            status: Status::No,
            ..Self::limited(name, found, cost)
        }
    }

    fn fix(self, command: impl Into<Option<String>>) -> Self {
        Self {
            fix: command.into(),
            ..self
        }
    }

    fn print(&self, out: &mut dyn Write) -> Result<()> {
        let Self {
            name, found, cost, ..
        } = self;
        let status = match self.status {
            Status::Ok => "ok",
            Status::Limited => "limited",
            Status::No => "no",
        };
        writeln!(out, "  {status:<8} {name:<18} {found}")?;
        if let Some(cost) = cost {
            writeln!(out, "  {:<27} {cost}", "")?;
        }
        if let Some(fix) = &self.fix {
            writeln!(out, "  {:<27} $ {fix}", "")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn causes_are_words_without_numbers() {
        let check = Check::no("counters", format!("refused ({})", Errno::NOENT), "");
        assert_eq!(check.found, "refused (No such file or directory)");
    }
}
