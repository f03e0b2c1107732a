//! PHP's run-time compiler, which writes a perf map if a setting says so. Only files may contain
//! settings for a PHP that a script starts.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use prof_recorder::Program;
use tempfile::TempDir;

use super::releases::on_path;

/// The variable with the directories of further settings. An empty one is that of PHP itself:
/// <https://www.php.net/manual/en/configuration.file.php#configuration.file.scan>
pub(super) const VARIABLE: &str = "PHP_INI_SCAN_DIR";
/// A flag of the setting's bits: `ZEND_JIT_DEBUG_PERF`. Without the compiler it changes nothing.
const SETTINGS: &str = "opcache.jit_debug=16\n";

/// Whether this is the name of PHP's executable, such as `php8.2` or `php-fpm8.2`.
pub(super) fn is_named(executable: &str) -> bool {
    executable.starts_with("php")
}

/// Sets the variable for a program, if there is PHP. Returns the directory that it names, which
/// must exist while the program runs.
///
/// # Errors
///
/// The directory cannot be created.
pub(super) fn set(program: &mut Program) -> io::Result<Option<TempDir>> {
    let start = program.argv.first().map(Path::new);
    let start = start
        .and_then(Path::file_name)
        .and_then(|name| name.to_str());
    if !start.is_some_and(is_named) && on_path("php").is_none() {
        return Ok(None);
    }
    // Others may read it: the command may change its user.
    let directory = tempfile::Builder::new().prefix("prof-php-").tempdir()?;
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755))?;
    let mut file = File::create_new(directory.path().join("prof.ini"))?;
    file.write_all(SETTINGS.as_bytes())?;
    file.set_permissions(Permissions::from_mode(0o644))?;
    let before = env::var_os(VARIABLE);
    let value = scan_directories(before.unwrap_or_default(), directory.path());
    program.environment.push((VARIABLE.into(), value));
    Ok(Some(directory))
}

/// The directories of the user, or that of PHP itself, and then ours.
fn scan_directories(mut before: OsString, ours: &Path) -> OsString {
    before.push(":");
    before.push(ours);
    before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_the_user_come_first() {
        let ours = Path::new("/tmp/ours");
        assert_eq!(scan_directories(OsString::new(), ours), ":/tmp/ours");
        assert_eq!(
            scan_directories("/etc/a:/etc/b".into(), ours),
            "/etc/a:/etc/b:/tmp/ours"
        );
    }
}
