//! The functions of a process that were read from its memory.

use rustc_hash::FxHashMap;

use crate::Memory;
use crate::stack::Function;

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
        size_of::<Self>() + size_of::<Function>() + texts + self.lines_size()
    }
}

/// The functions of a process that were read.
#[derive(Debug)]
pub(crate) struct KnownFunctions<C> {
    known: FxHashMap<u64, C>,
    /// Bytes of memory that they use.
    bytes: usize,
}

impl<C> Default for KnownFunctions<C> {
    fn default() -> Self {
        Self {
            known: FxHashMap::default(),
            bytes: 0,
        }
    }
}

impl<C: ForeignCode> KnownFunctions<C> {
    /// The most bytes of the functions to remember; then it starts over.
    const BYTES: usize = 32 << 20;
    /// The most functions of a stack.
    const OF_STACK: usize = 4096;
    /// Functions to read at once: each is a range of memory, of 1,024 at most.
    const AT_ONCE: usize = 512;

    /// Reads the functions at the addresses that frames have; those that are known are compared
    /// with memory.
    pub(crate) fn read(
        &mut self,
        memory: &mut impl Memory,
        layout: &C::Layout,
        of_frames: impl Iterator<Item = u64>,
    ) -> Option<()> {
        let mut addresses: Vec<_> = of_frames.collect();
        addresses.sort_unstable();
        addresses.dedup();
        (addresses.len() <= Self::OF_STACK).then_some(())?;
        if self.bytes > Self::BYTES {
            *self = Self::default();
        }
        let mut instructions_left = C::INSTRUCTIONS;
        for addresses in addresses.chunks(Self::AT_ONCE) {
            let heads = C::heads(memory, layout, addresses)?;
            for (&address, head) in addresses.iter().zip(heads) {
                if self.get(address).is_some_and(|code| *code.head() == head) {
                    continue;
                }
                self.insert(address, C::read(memory, head, &mut instructions_left)?);
            }
        }
        Some(())
    }

    fn insert(&mut self, address: u64, code: C) {
        self.bytes += code.footprint();
        if let Some(before) = self.known.insert(address, code) {
            self.bytes -= before.footprint();
        }
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
