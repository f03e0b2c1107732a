//! The functions of a process that were read from its memory.

use prof_model::{Account, Charge};
use rustc_hash::FxHashMap;

use crate::Memory;
use crate::bounded_map::entry;
use crate::stack::{Function, Unknown};

/// What is read of a language's function.
pub(crate) trait ForeignCode: Sized {
    /// Where the fields of functions are.
    type Layout;
    /// Distinguishes a function from another one at the same address.
    type Head: PartialEq;

    /// The most instructions whose lines are read for a stack.
    const INSTRUCTIONS: usize;

    /// The heads of the functions at these addresses, by a few reads for all of them: each alone
    /// would take most of the time of a stack.
    fn heads(
        memory: &mut impl Memory,
        layout: &Self::Layout,
        addresses: &[u64],
    ) -> Option<Vec<Self::Head>>;

    /// Reads the function with this head, and lines of no more instructions than are left.
    fn read(
        memory: &mut impl Memory,
        head: Self::Head,
        instructions_left: &mut usize,
    ) -> Option<Self>;

    /// Its head.
    fn head(&self) -> &Self::Head;

    /// What frames show of it.
    fn function(&self) -> &Function;

    /// The bytes of memory that its lines use.
    fn lines_size(&self) -> usize;

    /// The bytes of memory that it uses.
    fn footprint(&self) -> usize {
        let function = self.function();
        let texts = function.name.capacity() + function.file.capacity();
        entry::<u64, Self>() + size_of::<Function>() + texts + self.lines_size()
    }
}

/// The most bytes of functions that are read for a stack because they were unknown: a stack of a
/// program has a few such functions. The next stack goes on from there.
pub(crate) const MOST_NEW: usize = 1 << 20;

/// The functions of a process that were read. When there is no room for more, it starts over with
/// the next stack.
#[derive(Debug)]
pub(crate) struct KnownFunctions<C> {
    known: FxHashMap<u64, C>,
    charge: Charge,
    is_full: bool,
}

impl<C> KnownFunctions<C> {
    pub(crate) fn new(account: &Account) -> Self {
        Self {
            known: FxHashMap::default(),
            charge: account.for_cache(),
            is_full: false,
        }
    }
}

impl<C> Default for KnownFunctions<C> {
    fn default() -> Self {
        Self::new(&Account::default())
    }
}

impl<C: ForeignCode> KnownFunctions<C> {
    /// The most functions of a stack.
    const OF_STACK: usize = 4096;
    /// Functions to read at once: each is a range of memory, of 1,024 at most.
    const AT_ONCE: usize = 512;

    /// Reads the functions at the addresses that frames have; those that are known are compared
    /// with memory. Returns the bytes of those that are not.
    pub(crate) fn read(
        &mut self,
        memory: &mut impl Memory,
        layout: &C::Layout,
        of_frames: impl Iterator<Item = u64>,
    ) -> Result<usize, Unknown> {
        let mut addresses: Vec<_> = of_frames.collect();
        addresses.sort_unstable();
        addresses.dedup();
        let consistent = Unknown::Inconsistent;
        if addresses.len() > Self::OF_STACK {
            return Err(consistent);
        }
        if std::mem::take(&mut self.is_full) {
            // An empty map would keep its memory.
            self.known = FxHashMap::default();
            self.charge.clear();
        }
        let (mut instructions_left, mut new_bytes) = (C::INSTRUCTIONS, 0);
        for addresses in addresses.chunks(Self::AT_ONCE) {
            let heads = C::heads(memory, layout, addresses).ok_or(consistent)?;
            for (&address, head) in addresses.iter().zip(heads) {
                if self.get(address).is_some_and(|code| *code.head() == head) {
                    continue;
                }
                if new_bytes > MOST_NEW {
                    return Err(Unknown::TooManyNew);
                }
                let code = C::read(memory, head, &mut instructions_left).ok_or(consistent)?;
                new_bytes += code.footprint();
                self.insert(address, code);
            }
        }
        Ok(new_bytes)
    }

    fn insert(&mut self, address: u64, code: C) {
        let before = self.known.get(&address).map_or(0, C::footprint);
        let bytes = code.footprint();
        self.is_full |= match bytes.checked_sub(before) {
            Some(more) => !self.charge.add(more),
            None => false,
        };
        self.known.insert(address, code);
    }

    /// A function that was read.
    pub(crate) fn get(&self, address: u64) -> Option<&C> {
        self.known.get(&address)
    }
}

/// How many bytes of texts in foreign memory are shown, at most.
pub(crate) mod texts {
    /// Of a name.
    pub(crate) const NAME: usize = 256;
    /// Of a path.
    pub(crate) const FILE: usize = 1024;
    /// Of any; longer ones are invalid.
    pub(crate) const LENGTH: u64 = 1 << 20;
}
