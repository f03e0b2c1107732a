//! Names with `*` and `?` in them.

/// Whether the name fits a pattern of letters, `?` (any one letter) and `*` (any letters).
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n) = (0, 0);
    // Where to resume after the last star, with one letter more for it.
    let mut star = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(&c) if c == b'?' || Some(&c) == name.get(n) => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    (p, n) = (at + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern
        .get(p..)
        .is_none_or(|rest| rest.iter().all(|&c| c == b'*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let check = |pattern: &str, name: &str, expected: bool| {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        };
        check("sched_switch", "sched_switch", true);
        check("sched_switch", "sched_switc", false);
        check("sched_*", "sched_switch", true);
        check("*switch", "sched_switch", true);
        check("*s*t*h", "sched_switch", true);
        check("sched_?witch", "sched_switch", true);
        check("*", "", true);
        check("?", "", false);
        check("", "", true);
        check("", "a", false);
        check("a*b*c", "aXbXbXd", false);
    }
}
