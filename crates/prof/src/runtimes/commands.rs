//! What a command is, from its file and those beside it.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// The file behind a command as the launcher finds it: a path, or the first of this name in `PATH`.
pub(super) fn resolved(command: &OsStr) -> Option<PathBuf> {
    let command = Path::new(command);
    if command.components().count() > 1 {
        return fs::canonicalize(command).ok();
    }
    let path = env::var_os("PATH")?;
    let mut places = env::split_paths(&path).map(|directory| directory.join(command));
    places.find_map(|place| fs::canonicalize(place).ok())
}

/// Whether a file has one of these names.
pub(super) fn is_named(file: &Path, names: &[&str]) -> bool {
    file.file_name()
        .is_some_and(|name| names.iter().any(|&known| name == known))
}

/// The release of Erlang/OTP that `erl` or `escript` belongs to, such as `25`.
pub(super) fn erlang_release(file: &Path) -> Option<u32> {
    // `releases/start_erl.data` beside `bin` contains `13.1.5 25`.
    let root = file.parent()?.parent()?;
    let versions = fs::read_to_string(root.join("releases/start_erl.data")).ok()?;
    versions.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Whether it is the program that runs those of .NET, or such a program as .NET publishes it:
/// beside it is its configuration, or the runtime itself.
pub(super) fn is_dotnet(file: &Path) -> bool {
    let mut configuration = file.as_os_str().to_owned();
    configuration.push(".runtimeconfig.json");
    is_named(file, &["dotnet"])
        || Path::new(&configuration).is_file()
        || file.with_file_name("libcoreclr.so").is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_the_file_that_links_lead_to() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let (file, link) = (folder.join("mono-sgen"), folder.join("mono"));
        fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(resolved(link.as_os_str()), Some(file));
        assert!(resolved(OsStr::new("sh")).unwrap().is_absolute());
        assert_eq!(resolved(OsStr::new("no-such-program-anywhere")), None);
    }

    #[test]
    fn programs_of_dotnet_are_known_by_what_is_beside_them() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        assert!(is_dotnet(&at("dotnet")) && !is_dotnet(&at("app")));
        fs::write(at("app.runtimeconfig.json"), "{}").unwrap();
        assert!(is_dotnet(&at("app")) && !is_dotnet(&at("other")));
        fs::write(at("libcoreclr.so"), "").unwrap();
        assert!(is_dotnet(&at("other")));
    }

    #[test]
    fn the_release_of_erlang_is_read_beside_it() {
        let root = tempfile::tempdir().unwrap();
        let erl = root.path().join("bin/erl");
        fs::create_dir_all(root.path().join("releases")).unwrap();
        assert_eq!(erlang_release(&erl), None);
        fs::write(root.path().join("releases/start_erl.data"), "13.1.5 25\n").unwrap();
        assert_eq!(erlang_release(&erl), Some(25));
    }
}
