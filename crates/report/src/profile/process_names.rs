//! The names of processes: those of their main threads.

use prof_model::{Pid, Tid};
use rustc_hash::FxHashMap;

use super::{Profile, ThreadNameId, is_unnamed};

impl Profile {
    /// The name of each sampled process: the last one of its main thread. If nothing says that, the
    /// last one of the thread with the lowest id.
    pub fn process_names(&self) -> FxHashMap<Pid, ThreadNameId> {
        let mut sampled: FxHashMap<Pid, ((bool, bool, Tid), ThreadNameId)> = FxHashMap::default();
        for sample in self.samples.iter() {
            if self.main_names.contains_key(&sample.pid) {
                continue;
            }
            let is_unnamed = is_unnamed(&self.names[sample.name], sample.tid);
            let rank = (is_unnamed, sample.tid != sample.pid, sample.tid);
            let known = sampled.entry(sample.pid).or_insert((rank, sample.name));
            if rank <= known.0 {
                *known = (rank, sample.name);
            }
        }
        let sampled = sampled.into_iter().map(|(pid, (_, name))| (pid, name));
        let main = self.main_names.iter().map(|(&pid, &name)| (pid, name));
        main.chain(sampled).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestProfile;

    #[test]
    fn processes_have_the_names_of_their_main_threads() {
        let mut test = TestProfile::new();
        for line in [
            "first/1/1 main 1",
            "worker/1/2 main 1",
            "main/1/1 main 1",
            "late/2/4 main 1",
            "early/2/3 main 1",
            "thread/5/6 main 1",
            ":7/7/7 main 1",
            "named/7/8 main 1",
            ":9/9/9 main 1",
        ] {
            test.line(line);
        }
        let mut profile = test.profile;
        let recorded = profile.names.intern("recorded");
        profile.main_names.insert(5, recorded);
        let names = profile.process_names();
        let names = [1, 2, 5, 7, 9].map(|pid| &profile.names[names[&pid]]);
        assert_eq!(names, ["main", "early", "recorded", "named", ":9"]);
        // The later of two recordings knows the later name.
        let mut other = Profile::default();
        let other_name = other.names.intern("other");
        other.events = profile.events.clone();
        other.main_names.insert(5, other_name);
        let merged = Profile::merged(vec![profile, other]);
        assert_eq!(&merged.names[merged.process_names()[&5]], "other");
    }
}
