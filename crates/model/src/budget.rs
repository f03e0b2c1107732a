//! Memory for what is kept of other processes, shared fairly by them.
//!
//! A process may keep as much as it leaves to others, so whoever comes later finds room:
//!
//! ```text
//!   one    │ kept                          │ left                          │
//!   two    │ kept                          │ kept          │ left          │
//!          └── over its share, which is a third: loses all, begins anew
//!   two    │ kept               │ kept               │ left               │
//! ```
//! When little is left, the process that keeps most loses that, if it is more than an equal share.
//! One that keeps no more than its share loses nothing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::process::Pid;

/// Bytes of memory for what is kept of all processes together. Clones are the same budget.
#[derive(Clone, Debug)]
pub struct Budget {
    pool: Arc<Pool>,
    accounts: Arc<Mutex<HashMap<Pid, Account>>>,
}

#[derive(Debug)]
struct Pool {
    total: usize,
    used: AtomicUsize,
    /// Whether little is left since somebody looked.
    is_short: AtomicBool,
}

impl Pool {
    /// This part of all is enough to be left.
    const LEFT: usize = 4;
}

/// What is kept of one process. Clones are the same account.
#[derive(Clone, Debug)]
pub struct Account(Arc<AccountState>);

#[derive(Debug)]
struct AccountState {
    pool: Arc<Pool>,
    names: AtomicUsize,
    caches: AtomicUsize,
    lacks_names: AtomicBool,
}

impl AccountState {
    fn used(&self) -> usize {
        self.names.load(Ordering::Relaxed) + self.caches.load(Ordering::Relaxed)
    }
}

/// Bytes that are charged to an account until they are dropped.
#[derive(Debug)]
pub struct Charge {
    account: Account,
    bytes: usize,
    is_cache: bool,
}

impl Budget {
    /// A budget of so many bytes.
    pub fn new(total: usize) -> Self {
        Self {
            pool: Arc::new(Pool {
                total,
                used: AtomicUsize::new(0),
                is_short: AtomicBool::new(false),
            }),
            accounts: Arc::default(),
        }
    }

    /// All of it.
    pub fn total(&self) -> usize {
        self.pool.total
    }

    /// How much of it is used.
    pub fn used(&self) -> usize {
        self.pool.used.load(Ordering::Relaxed)
    }

    /// The account of a process, until that is [forgotten](Self::forget).
    pub fn account(&self, pid: Pid) -> Account {
        let new = || Account::of(Arc::clone(&self.pool));
        self.lock().entry(pid).or_insert_with(new).clone()
    }

    /// A process has ended: another one of its id has an account of its own. What is still kept of
    /// this one remains charged. Returns whether it lacks names.
    pub fn forget(&self, pid: Pid) -> bool {
        let account = self.lock().remove(&pid);
        account.is_some_and(|account| account.0.lacks_names.load(Ordering::Relaxed))
    }

    /// The process that keeps most, if little is left and that is more than its share. Names that
    /// are kept of it must be dropped then. Costs nothing while enough is left.
    pub fn greediest(&self) -> Option<Pid> {
        if !self.pool.is_short.load(Ordering::Relaxed) {
            return None;
        }
        self.pool.is_short.store(false, Ordering::Relaxed);
        let accounts = self.lock();
        let users = (accounts.iter()).map(|(&pid, account)| (account.0.used(), pid));
        let users = users.filter(|&(used, _)| used > 0);
        let share = self.pool.total / (users.clone().count() + 1);
        users
            .max()
            .filter(|&(used, _)| used > share)
            .map(|(_, pid)| pid)
    }

    /// The processes that have lacked names since the last call.
    pub fn take_lacking(&self) -> Vec<Pid> {
        let accounts = self.lock();
        let lacks =
            |(_, account): &(&Pid, &Account)| account.0.lacks_names.swap(false, Ordering::Relaxed);
        let mut lacking: Vec<_> = accounts.iter().filter(lacks).map(|(&pid, _)| pid).collect();
        lacking.sort_unstable();
        lacking
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Pid, Account>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Account {
    /// The caches of a process, which can be filled again, may take this part of what is left.
    const CACHES: usize = 4;

    fn of(pool: Arc<Pool>) -> Self {
        Self(Arc::new(AccountState {
            pool,
            names: AtomicUsize::new(0),
            caches: AtomicUsize::new(0),
            lacks_names: AtomicBool::new(false),
        }))
    }

    /// A charge for names, still without bytes.
    pub fn for_names(&self) -> Charge {
        self.charge(false)
    }

    /// A charge for a cache, still without bytes.
    pub fn for_cache(&self) -> Charge {
        self.charge(true)
    }

    fn charge(&self, is_cache: bool) -> Charge {
        Charge {
            account: self.clone(),
            bytes: 0,
            is_cache,
        }
    }

    /// Something of the process has no name because there was no room for it.
    pub fn leave_out(&self) {
        self.0.lacks_names.store(true, Ordering::Relaxed);
    }
}

/// An account without a limit.
impl Default for Account {
    fn default() -> Self {
        Budget::new(usize::MAX).account(0)
    }
}

impl Charge {
    /// The account that is charged.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Charges so many bytes more, if there is room for them; returns whether there is.
    pub fn add(&mut self, bytes: usize) -> bool {
        self.set(self.bytes.saturating_add(bytes))
    }

    /// Charges so many bytes instead, if there is room for them; returns whether there is.
    pub fn set(&mut self, bytes: usize) -> bool {
        let account = &*self.account.0;
        let pool = &*account.pool;
        let own = match self.is_cache {
            true => &account.caches,
            false => &account.names,
        };
        if let Some(less) = self.bytes.checked_sub(bytes) {
            own.fetch_sub(less, Ordering::Relaxed);
            pool.used.fetch_sub(less, Ordering::Relaxed);
            self.bytes = bytes;
            return true;
        }
        let more = bytes - self.bytes;
        // Threads that charge at the same time may exceed it a little.
        let all = pool.used.load(Ordering::Relaxed).saturating_add(more);
        let left = pool.total.saturating_sub(all);
        if left < pool.total / Pool::LEFT {
            pool.is_short.store(true, Ordering::Relaxed);
        }
        let (used, most) = match self.is_cache {
            true => (own.load(Ordering::Relaxed), left / Account::CACHES),
            false => (account.used(), left),
        };
        if used.saturating_add(more) > most {
            return false;
        }
        own.fetch_add(more, Ordering::Relaxed);
        pool.used.fetch_add(more, Ordering::Relaxed);
        self.bytes = bytes;
        true
    }

    /// Gives so many bytes back.
    pub fn subtract(&mut self, bytes: usize) {
        self.set(self.bytes.saturating_sub(bytes));
    }

    /// Gives all bytes back.
    pub fn clear(&mut self) {
        self.set(0);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds steps of ten bytes while there is room.
    fn fill(charge: &mut Charge) -> usize {
        while charge.add(10) {}
        charge.bytes
    }

    #[test]
    fn each_process_leaves_as_much_as_it_has() {
        let budget = Budget::new(1200);
        let mut all: Vec<_> = (0..3).map(|pid| budget.account(pid).for_names()).collect();
        assert_eq!(fill(&mut all[0]), 600);
        assert_eq!(fill(&mut all[1]), 300);
        assert_eq!(fill(&mut all[2]), 150);
        assert_eq!(budget.used(), 1050);
        // The first one has more than its share now: as soon as there is room, others get it.
        all[0].set(300);
        assert_eq!(fill(&mut all[2]), 300);
        assert_eq!([fill(&mut all[0]), fill(&mut all[1])], [300, 300]);
        drop(all);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn whoever_comes_late_finds_room() {
        const TOTAL: usize = 1 << 20;
        let budget = Budget::new(TOTAL);
        let mut greedy: Vec<_> = (0..24).map(|pid| budget.account(pid).for_names()).collect();
        for _ in 0..100 {
            for number in 0..greedy.len() {
                fill(&mut greedy[number]);
                if let Some(pid) = budget.greediest() {
                    greedy[pid as usize].clear();
                }
            }
        }
        let mut modest = budget.account(99).for_names();
        let mut bytes = 0;
        while bytes < TOTAL / 30 {
            if let Some(pid) = budget.greediest() {
                greedy[pid as usize].clear();
            }
            assert!(modest.add(10), "{bytes}");
            bytes += 10;
        }
    }

    #[test]
    fn caches_leave_room_for_names() {
        let account = Budget::new(1000).account(1);
        let (mut cache, mut names) = (account.for_cache(), account.for_names());
        assert_eq!(fill(&mut cache), 200);
        assert_eq!(fill(&mut names), 300);
        assert!(!cache.add(1));
        cache.clear();
        assert_eq!(fill(&mut names), 500);
        // Without any cache, reading would be slow.
        assert_eq!(fill(&mut cache), 100);
    }

    #[test]
    fn another_process_of_the_same_id_has_its_own_account() {
        let budget = Budget::new(1000);
        let mut charge = budget.account(1).for_names();
        fill(&mut charge);
        charge.account().leave_out();
        assert!(budget.forget(1));
        budget.account(1).leave_out();
        let mut next = budget.account(1).for_names();
        assert_eq!(fill(&mut next), 250);
        assert_eq!(budget.take_lacking(), [1]);
        assert_eq!(budget.take_lacking(), []);
        assert!(!budget.forget(1));
        assert_eq!(budget.used(), 750);
    }
}
