//! The functions that processes show, and the addresses that stand for them.

use std::collections::HashMap;
use std::sync::Arc;

use prof_model::{
    Account, Budget, Charge, InterpretedFunction, InterpretedLanguage, MissingFrames, Pid,
};
use prof_runtimes::Function;

use super::written_names::WrittenNames;

/// The functions of all processes.
#[derive(Debug)]
pub(super) struct ShownFunctions {
    budget: Budget,
    /// A forked child has those of its parent, until one of them shows another one.
    processes: HashMap<Pid, Arc<ProcessFunctions>>,
    /// How many there were: no number is used twice, because a record may wait to be written.
    count: u64,
    written: WrittenNames,
    /// Addresses and paths that the file does not have yet.
    new: Vec<(u64, String)>,
}

/// The functions of a process, with their numbers.
#[derive(Debug)]
struct ProcessFunctions {
    numbers: HashMap<Shown, u64>,
    charge: Charge,
    /// Bytes of names that were written for this process.
    written: usize,
}

/// What an address stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Shown {
    /// A function.
    Function(InterpretedLanguage, Arc<Function>),
    /// Frames that are unknown.
    Missing(InterpretedLanguage, MissingFrames),
    /// Functions for whose names there is no room.
    LeftOut(InterpretedLanguage),
}

impl ShownFunctions {
    pub(super) fn new(budget: Budget) -> Self {
        Self {
            written: WrittenNames::new(budget.total()),
            budget,
            processes: HashMap::new(),
            count: 0,
            new: Vec::new(),
        }
    }

    /// The address that stands for this in a process, at a time in nanoseconds.
    pub(super) fn address(&mut self, pid: Pid, shown: Shown, now: u64) -> u64 {
        let known = self.processes.get(&pid);
        if let Some(&number) = known.and_then(|known| known.numbers.get(&shown)) {
            return InterpretedFunction::start(number);
        }
        let path = shown.path();
        if let Shown::Function(language, function) = &shown
            && !self.has_room(pid, function, path.len(), now)
        {
            let language = *language;
            return self.address(pid, Shown::LeftOut(language), now);
        }
        let number = self.count;
        self.count += 1;
        self.of(pid).numbers.insert(shown, number);
        let start = InterpretedFunction::start(number);
        self.new.push((start, path));
        start
    }

    /// Whether there is room for a function with a path of this length, in memory and in the file.
    fn has_room(&mut self, pid: Pid, function: &Function, path: usize, now: u64) -> bool {
        let bytes = ProcessFunctions::footprint(function);
        let functions = self.of(pid);
        let (written, is_charged) = (functions.written, functions.charge.add(bytes));
        let has_room = is_charged && self.written.add(written, path, now);
        let functions = self.of(pid);
        match has_room {
            true => functions.written += path,
            false => functions.charge.account().leave_out(),
        }
        if is_charged && !has_room {
            functions.charge.subtract(bytes);
        }
        has_room
    }

    /// Those of a process, to change them.
    fn of(&mut self, pid: Pid) -> &mut ProcessFunctions {
        let account = self.budget.account(pid);
        let new = || Arc::new(ProcessFunctions::new(&account));
        let functions = self.processes.entry(pid).or_insert_with(new);
        let is_shared = Arc::strong_count(functions) > 1;
        let functions = Arc::make_mut(functions);
        if is_shared {
            functions.belong_to(&account);
        }
        functions
    }

    /// Addresses and paths that the file does not have yet.
    pub(super) fn take_new(&mut self) -> Vec<(u64, String)> {
        std::mem::take(&mut self.new)
    }

    /// All of a process: addresses and paths.
    pub(super) fn all(&self, pid: Pid) -> Vec<(u64, String)> {
        let functions = self.processes.get(&pid);
        let numbers = functions.iter().flat_map(|it| &it.numbers);
        let place =
            |(shown, &number): (&Shown, &u64)| (InterpretedFunction::start(number), shown.path());
        let mut all: Vec<_> = numbers.map(place).collect();
        all.sort_unstable();
        all
    }

    /// A process was forked.
    pub(super) fn inherit(&mut self, parent: Pid, child: Pid) {
        match self.processes.get(&parent).cloned() {
            Some(functions) => drop(self.processes.insert(child, functions)),
            None => self.forget(child),
        }
    }

    /// A process has ended or executes another program.
    pub(super) fn forget(&mut self, pid: Pid) {
        self.processes.remove(&pid);
    }
}

impl ProcessFunctions {
    /// An entry of the map, which is never full.
    const ENTRY: usize = 2 * size_of::<(Shown, u64)>();

    fn new(account: &Account) -> Self {
        Self {
            numbers: HashMap::new(),
            charge: account.for_names(),
            written: 0,
        }
    }

    fn footprint(function: &Function) -> usize {
        let texts = function.name.capacity() + function.file.capacity();
        Self::ENTRY + size_of::<Function>() + texts
    }

    /// Charges this account. Without room, functions are written to the file again.
    fn belong_to(&mut self, account: &Account) {
        self.charge = account.for_names();
        if !self.charge.add(self.numbers.len() * Self::ENTRY) {
            self.numbers = HashMap::new();
        }
    }
}

/// The copy is not charged yet.
impl Clone for ProcessFunctions {
    fn clone(&self) -> Self {
        Self {
            numbers: self.numbers.clone(),
            charge: self.charge.account().for_names(),
            written: self.written,
        }
    }
}

impl Shown {
    /// The path of the mapping that stands for it.
    fn path(&self) -> String {
        let function = match self {
            Self::Function(language, function) => InterpretedFunction {
                language: *language,
                name: function.name.clone(),
                file: function.file.clone(),
                first_line: function.first_line,
            },
            Self::Missing(language, reason) => InterpretedFunction::missing(*language, *reason),
            Self::LeftOut(language) => InterpretedFunction::left_out(*language),
        };
        function.path()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn function(number: usize) -> Shown {
        let function = Function {
            name: format!("function{number}"),
            file: "x.py".into(),
            first_line: 1,
        };
        Shown::Function(InterpretedLanguage::Python, Arc::new(function))
    }

    fn left_out(functions: &mut ShownFunctions, pid: Pid) -> u64 {
        functions.address(pid, Shown::LeftOut(InterpretedLanguage::Python), 0)
    }

    #[test]
    fn functions_have_addresses_once() {
        let mut functions = ShownFunctions::new(Budget::new(1 << 20));
        let first = functions.address(1, function(1), 0);
        assert_eq!(functions.address(1, function(1), 0), first);
        let second = functions.address(1, function(2), 0);
        let new = functions.take_new();
        assert_eq!(new, functions.all(1));
        assert_eq!(
            new.iter().map(|it| it.0).collect::<Vec<_>>(),
            [first, second]
        );
        assert_eq!(new[0].1, "[python] function1 (x.py:1)");
    }

    #[test]
    fn children_inherit_functions() {
        let budget = Budget::new(1 << 20);
        let mut functions = ShownFunctions::new(budget.clone());
        let first = functions.address(1, function(1), 0);
        functions.take_new();
        functions.inherit(1, 2);
        assert_eq!(functions.address(2, function(1), 0), first);
        assert_eq!(functions.take_new(), []);
        let [own, other] = [1, 2].map(|pid| functions.address(pid, function(2), 0));
        assert!(own != other && own != first);
        functions.forget(1);
        assert_eq!(functions.all(2).len(), 2);
        assert!(budget.used() > 0);
        functions.forget(2);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_process_with_many_functions_loses_its_own() {
        let budget = Budget::new(1 << 20);
        let mut functions = ShownFunctions::new(budget.clone());
        let greedy = left_out(&mut functions, 1);
        let addresses =
            (0..50_000).map(|it| functions.address(1, function(it), it as u64 * SECOND));
        let kept = addresses.filter(|&it| it != greedy).count();
        assert!((1000..25_000).contains(&kept), "{kept}");
        let before = functions.take_new().len();
        assert_eq!(before, kept + 1);
        let modest = left_out(&mut functions, 2);
        for number in 0..500 {
            assert_ne!(functions.address(2, function(number), u64::MAX), modest);
        }
        assert_eq!(budget.take_lacking(), [1]);
        assert!(budget.used() <= budget.total());
    }
}
