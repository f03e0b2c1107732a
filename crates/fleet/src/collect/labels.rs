//! Labels that a collector finds: those of containers and of Kubernetes pods.

use std::fs;
use std::path::Path;

use prof_procfs::Task;

use crate::otlp;
use crate::run::Labels;

/// The label of the machine, for all of its pods.
pub(super) const NODE: &str = "k8s.node.name";

/// Variables that pods set by the downward API, and the labels that they are.
const VARIABLES: [(&str, &str); 4] = [
    ("NODE_NAME", NODE),
    ("POD_NAMESPACE", "k8s.namespace.name"),
    ("POD_NAME", "k8s.pod.name"),
    ("CONTAINER_NAME", "k8s.container.name"),
];

/// Labels from the environment: the variables of the downward API, and OTEL_RESOURCE_ATTRIBUTES.
pub(super) fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Labels {
    let known = VARIABLES.iter().filter_map(|&(name, label)| {
        let value = variable(name).filter(|value| !value.is_empty());
        Some((label.to_owned(), value?))
    });
    let mut labels: Labels = known.collect();
    let attributes = variable("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    labels.extend(otlp::pairs(&attributes));
    // These have flags of their own.
    labels.remove("service.name");
    labels.remove("host.name");
    labels
}

/// A pod's labels, in the directory where a volume of the downward API has them.
pub(super) fn of_pod(directory: &Path) -> Labels {
    let text = fs::read_to_string(directory.join("labels")).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once('='));
    let labels = lines.filter_map(|(name, quoted)| {
        let value = serde_json::from_str(quoted).ok()?;
        Some((format!("k8s.pod.label.{name}"), value))
    });
    labels.collect()
}

/// The container that processes are in, as far as it is the same.
pub(super) fn of_processes(pids: &[i32]) -> Labels {
    let all = pids.iter().copied().map(of_process);
    all.reduce(common).unwrap_or_default()
}

fn common(mut labels: Labels, others: Labels) -> Labels {
    labels.retain(|name, value| others.get(name) == Some(value));
    labels
}

/// The container that a process is in.
fn of_process(pid: i32) -> Labels {
    // With the first version of cgroups there are several, of which some have more.
    let paths = Task::of(pid).cgroups().into_iter();
    paths
        .map(|path| of_cgroup(&path))
        .max_by_key(Labels::len)
        .unwrap_or_default()
}

/// The container that a cgroup is, by its path.
pub(super) fn of_cgroup(path: &str) -> Labels {
    let mut labels = Labels::new();
    if path != "/" {
        labels.insert("cgroup".into(), path.into());
    }
    for part in path.split('/') {
        let part = part.strip_suffix(".scope").unwrap_or(part);
        let part = part.strip_suffix(".slice").unwrap_or(part);
        let id = part.rsplit(['-', ':']).next().unwrap_or(part);
        if id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            labels.insert("container.id".into(), id.into());
        }
        // systemd replaces hyphens by underscores.
        if let Some((_, pod)) = part.rsplit_once("pod").filter(|(_, pod)| pod.len() == 36) {
            labels.insert("k8s.pod.uid".into(), pod.replace('_', "-"));
        }
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(labels: &Labels, expected: &[(&str, &str)]) {
        let found: Vec<_> = labels
            .iter()
            .map(|(name, value)| (&**name, &**value))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn containers_are_known_by_their_cgroups() {
        let id = "0123456789abcdef".repeat(4);
        let of = |path: String, pod: Option<&str>| {
            let labels = of_cgroup(&path);
            let mut expected = vec![("cgroup", &*path), ("container.id", &*id)];
            expected.extend(pod.map(|pod| ("k8s.pod.uid", pod)));
            check(&labels, &expected);
        };
        of(format!("/system.slice/docker-{id}.scope"), None);
        of(format!("/docker/{id}"), None);
        of(format!("/machine.slice/libpod-{id}.scope/container"), None);
        let pod = "11111111-2222-3333-4444-555555555555";
        let slice = format!("kubepods-burstable-pod{}.slice", pod.replace('-', "_"));
        of(
            format!("/kubepods.slice/{slice}/cri-containerd-{id}.scope"),
            Some(pod),
        );
        of(format!("/kubepods/besteffort/pod{pod}/{id}"), Some(pod));
        check(&of_cgroup("/user.slice"), &[("cgroup", "/user.slice")]);
        check(&of_cgroup("/"), &[]);
    }

    #[test]
    fn processes_have_the_labels_that_they_share() {
        let pod = "11111111-2222-3333-4444-555555555555";
        let of = |digit: &str| of_cgroup(&format!("/kubepods/pod{pod}/{}", digit.repeat(64)));
        check(&common(of("a"), of("b")), &[("k8s.pod.uid", pod)]);
        assert_eq!(common(of("a"), of("a")), of("a"));
        check(&common(of("a"), Labels::new()), &[]);
    }

    #[test]
    fn pods_know_the_labels_of_the_downward_api() {
        let labels = of_environment(|name| match name {
            "POD_NAME" => Some("web-1".into()),
            "NODE_NAME" => Some(String::new()),
            "OTEL_RESOURCE_ATTRIBUTES" => Some("service.name=x,zone=a%2Cb".into()),
            _ => None,
        });
        check(&labels, &[("k8s.pod.name", "web-1"), ("zone", "a,b")]);
        let directory = tempfile::tempdir().expect("a directory");
        let text = "app=\"web\"\nnote=\"a \\\"b\\\"=c\"\nbroken\n";
        fs::write(directory.path().join("labels"), text).expect("written");
        let expected = [
            ("k8s.pod.label.app", "web"),
            ("k8s.pod.label.note", "a \"b\"=c"),
        ];
        check(&of_pod(directory.path()), &expected);
        check(&of_pod(Path::new("/nowhere")), &[]);
    }
}
