//! The packages that have the debug symbols of the distribution's files.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// Where dpkg lists the files of packages, `NAME.list` or `NAME:ARCHITECTURE.list`.
const DPKG: &str = "/var/lib/dpkg/info";

/// How to get the debug symbols of each of these files, as far as it is known.
pub(super) fn remedies(files: &[PathBuf]) -> HashMap<PathBuf, String> {
    let distribution = fs::read_to_string("/etc/os-release").unwrap_or_default();
    remedies_of(files, &distribution, Path::new(DPKG))
}

fn remedies_of(files: &[PathBuf], distribution: &str, dpkg: &Path) -> HashMap<PathBuf, String> {
    if files.is_empty() {
        return HashMap::new();
    }
    let is = |name: &str| {
        let mut lines = distribution.lines().filter_map(|line| line.split_once('='));
        lines.any(|(key, value)| {
            let mut words = value.trim_matches('"').split(' ');
            ["ID", "ID_LIKE"].contains(&key) && words.any(|word| word == name)
        })
    };
    if is("debian") || is("ubuntu") {
        return debian(files, dpkg);
    }
    let of_system = files.iter().filter(|file| file.starts_with("/usr"));
    let remedy = |file: &Path| match (is("fedora"), is("arch")) {
        (true, _) => Some(format!(
            "run `sudo dnf debuginfo-install $(rpm -qf {})`",
            file.display()
        )),
        (_, true) => Some("set DEBUGINFOD_URLS=https://debuginfod.archlinux.org".to_owned()),
        _ => None,
    };
    of_system
        .filter_map(|file| Some((file.clone(), remedy(file)?)))
        .collect()
}

/// By the database of installed packages.
fn debian(files: &[PathBuf], dpkg: &Path) -> HashMap<PathBuf, String> {
    // Lists of old packages have paths as before /lib became a link to /usr/lib.
    let wanted: HashMap<PathBuf, &PathBuf> = (files.iter())
        .flat_map(|file| {
            let without = file
                .strip_prefix("/usr")
                .map(|rest| Path::new("/").join(rest));
            let with = file
                .strip_prefix("/")
                .map(|rest| Path::new("/usr").join(rest));
            let names = [Some(file.clone()), without.ok(), with.ok()];
            names.into_iter().flatten().map(move |name| (name, file))
        })
        .collect();
    let mut found = HashMap::new();
    for entry in fs::read_dir(dpkg).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(name) = name.and_then(|name| name.strip_suffix(".list")) else {
            continue;
        };
        let Ok(list) = fs::File::open(&path) else {
            continue;
        };
        for line in BufReader::new(list).lines().map_while(Result::ok) {
            if let Some(&file) = wanted.get(Path::new(&line)) {
                let package = name.split(':').next().unwrap_or(name);
                found.insert(file.clone(), format!("install {}", symbols_of(package)));
            }
        }
    }
    found
}

/// Debian's automatic packages have a name of their own; the C library's is older than those.
fn symbols_of(package: &str) -> String {
    match package {
        "libc6" | "libc6-dev" => "libc6-dbg".to_owned(),
        _ => format!("{package}-dbgsym"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_distribution_has_its_own_way() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("xz-utils.list", "/.\n/usr/bin/xz\n");
        write("libc6:amd64.list", "/lib/x86_64-linux-gnu/libc.so.6\n");
        write("xz-utils.md5sums", "/usr/bin/other\n");
        let check = |distribution: &str, file: &str, expected: Option<&str>| {
            let files = [PathBuf::from(file)];
            let found = remedies_of(&files, distribution, folder.path());
            assert_eq!(found.get(&files[0]).map(String::as_str), expected, "{file}");
        };
        let debian = "PRETTY_NAME=\"Debian\"\nID=debian\n";
        check(debian, "/usr/bin/xz", Some("install xz-utils-dbgsym"));
        let libc = "/usr/lib/x86_64-linux-gnu/libc.so.6";
        check(
            "ID=mint\nID_LIKE=\"ubuntu debian\"\n",
            libc,
            Some("install libc6-dbg"),
        );
        check(debian, "/usr/bin/other", None);
        let fedora = "run `sudo dnf debuginfo-install $(rpm -qf /usr/bin/xz)`";
        check("ID=fedora\n", "/usr/bin/xz", Some(fedora));
        check("ID=fedora\n", "/home/a/xz", None);
        let arch = "set DEBUGINFOD_URLS=https://debuginfod.archlinux.org";
        check("ID=arch\n", "/usr/bin/xz", Some(arch));
        check("", "/usr/bin/xz", None);
    }
}
