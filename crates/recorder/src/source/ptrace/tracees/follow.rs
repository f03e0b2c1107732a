//! Which threads are traced: they come, run other programs, and go.

use prof_events::tracing::Errno;
use prof_model::{Pid, Tid};
use prof_procfs::Task;

use super::{Process, TracedThread, Tracees};

impl Tracees {
    /// Traces a command that waits to exec.
    pub(in crate::source::ptrace) fn seize_held(&mut self, pid: Pid) -> Result<(), Errno> {
        self.tracer.seize(pid)?;
        self.add(pid, pid).held = true;
        Ok(())
    }

    /// Traces one thread of a running process.
    pub(in crate::source::ptrace) fn seize_thread(&mut self, tid: Tid) -> Result<(), Errno> {
        let status = Task::of(tid).status();
        let pid = status.ok().and_then(|it| it.pid()).unwrap_or(tid);
        self.tracer.seize(tid)?;
        let thread = self.add(pid, tid);
        thread.accounted = Task::thread(pid, tid).cpu_time().unwrap_or(0);
        thread.before = thread.accounted;
        Ok(())
    }

    /// Traces all threads of a running process.
    pub(in crate::source::ptrace) fn seize_process(&mut self, pid: Pid) -> Result<(), Errno> {
        let mut found = true;
        // Threads may appear meanwhile; those created by traced ones are traced already.
        while std::mem::take(&mut found) {
            for tid in Task::of(pid).threads().unwrap_or_default() {
                if self.threads.contains_key(&tid) {
                    continue;
                }
                match self.tracer.seize(tid) {
                    Ok(()) => {
                        let thread = self.add(pid, tid);
                        thread.accounted = Task::thread(pid, tid).cpu_time().unwrap_or(0);
                        thread.before = thread.accounted;
                        found = true;
                    }
                    // It has ended, or was created by a traced one and is traced by now.
                    Err(_) if !self.threads.is_empty() => {}
                    Err(errno) => return Err(errno),
                }
            }
        }
        let is_traced = self.processes.contains_key(&pid);
        is_traced.then_some(()).ok_or(Errno::SRCH)
    }

    /// A thread that a traced one has created.
    pub(super) fn adopt(&mut self, tid: Tid, parent_thread: Option<Tid>) {
        let Ok(status) = Task::of(tid).status() else {
            return;
        };
        let Some((pid, parent)) = status.pid().zip(status.parent()) else {
            return;
        };
        let known = parent_thread
            .and_then(|parent_thread| Some((self.threads.get(&parent_thread)?.pid, parent_thread)));
        let is_process = pid == tid;
        let parent = known.unwrap_or(match is_process {
            true => (parent, parent),
            false => (pid, pid),
        });
        let parent_thread = self.threads.get(&parent.1);
        let (name, held) = parent_thread.map_or((Vec::new(), false), |parent_thread| {
            (parent_thread.name.clone(), parent_thread.held)
        });
        if is_process && let Some(parent_thread) = self.processes.get(&parent.0) {
            let copy = Process {
                threads: 0,
                memory: (0, 0),
                mapped: parent_thread.mapped.clone(),
            };
            self.processes.insert(pid, copy);
        }
        self.builder.forked(parent, (pid, tid));
        let thread = self.add(pid, tid);
        (thread.name, thread.held) = (name, held);
    }

    /// Another program runs in this process, in its only thread, formerly `former`.
    pub(super) fn exec(&mut self, former: Tid, pid: Pid) {
        let time = Task::thread(pid, pid).cpu_time().unwrap_or(0);
        let before = self.threads.get(&former).filter(|thread| !thread.held);
        let sampled = before.is_some_and(|thread| thread.sampled);
        let begin = before.map_or(time, |thread| thread.before);
        self.unattributed += before.map_or(0, |thread| time.saturating_sub(thread.accounted));
        let gone: Vec<Tid> = (self.threads.iter())
            .filter(|(_, thread)| thread.pid == pid)
            .map(|(&tid, _)| tid)
            .collect();
        for tid in gone {
            self.forget(tid);
        }
        let stat = Task::thread(pid, pid).stat();
        let thread = self.add(pid, pid);
        // It is not a new thread, so it represents no other.
        (thread.accounted, thread.sampled) = (time, sampled);
        thread.before = begin;
        if let Ok(stat) = stat {
            thread.name.clone_from(&stat.name);
            self.builder.named(pid, pid, &stat.name, true);
        }
        self.refresh_mappings(pid);
    }

    /// The thread ends: its CPU time since its last sample must not be lost.
    pub(super) fn apply(&mut self, tid: Tid) {
        if let Some(thread) = self.threads.get_mut(&tid)
            && !thread.held
            && let Some(time) = Task::thread(thread.pid, tid).cpu_time()
        {
            self.unattributed += time.saturating_sub(thread.accounted);
            thread.accounted = time;
            let used = time.saturating_sub(thread.before);
            self.builder.counted(thread.pid, tid, used);
        }
    }

    /// Recording ends: reports the CPU time of threads that have not ended.
    pub(in crate::source::ptrace) fn finish(&mut self) {
        let threads: Vec<Tid> = self.threads.keys().copied().collect();
        for tid in threads {
            self.apply(tid);
        }
    }

    fn add(&mut self, pid: Pid, tid: Tid) -> &mut TracedThread {
        self.processes.entry(pid).or_default().threads += 1;
        self.threads.entry(tid).or_insert(TracedThread {
            pid,
            ..TracedThread::default()
        })
    }

    pub(super) fn remove(&mut self, tid: Tid) {
        if let Some(pid) = self.forget(tid) {
            self.builder.ended(pid, tid);
        }
    }

    fn forget(&mut self, tid: Tid) -> Option<Pid> {
        let pid = self.threads.remove(&tid)?.pid;
        if let Some(process) = self.processes.get_mut(&pid) {
            process.threads -= 1;
            if process.threads == 0 {
                self.processes.remove(&pid);
            }
        }
        Some(pid)
    }
}
