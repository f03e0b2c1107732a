//! PHP's functions: names, files and lines.

use std::ops::Range;
use std::sync::Arc;

use prof_model::Account;

use super::layout::{CODE_SIZE, CodeLayout, class, function, instruction, string};
use crate::Memory;
use crate::known_functions::{ForeignCode, KnownFunctions, texts};
use crate::read::{word, word_at};
use crate::stack::Function;

/// The functions of a process that were read.
#[derive(Debug, Default)]
pub struct Functions(pub(super) KnownFunctions<Code>);

impl Functions {
    pub(crate) fn new(account: &Account) -> Self {
        Self(KnownFunctions::new(account))
    }
}

/// A function.
#[derive(Clone, Debug)]
pub(super) struct Code {
    head: Head,
    pub(super) function: Arc<Function>,
    /// The line of each instruction; empty for functions of C.
    lines: Arc<[u32]>,
}

/// Distinguishes a function from another one at the same address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    name: u64,
    text: TextId,
    scope: u64,
    /// `None` for functions of C.
    body: Option<Body>,
}

/// The hash and the length of a name's text.
type TextId = [u8; 16];

/// The instructions of a function in PHP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Body {
    opcodes: u64,
    count: u32,
    filename: u64,
    first_line: u32,
}

impl Head {
    /// Without what is known of the text of the name.
    fn of(bytes: &[u8], layout: &CodeLayout) -> Option<Self> {
        Some(Self {
            name: word_at(bytes, function::NAME)?,
            text: TextId::default(),
            scope: word_at(bytes, function::SCOPE)?,
            body: match *bytes.first()? {
                function::INTERNAL => None,
                function::USER | function::EVAL => Some(Body {
                    opcodes: word_at(bytes, layout.opcodes)?,
                    count: word_at(bytes, layout.last)? as u32,
                    filename: word_at(bytes, layout.filename)?,
                    first_line: word_at(bytes, layout.line_start)? as u32,
                }),
                _ => return None,
            },
        })
    }
}

impl ForeignCode for Code {
    type Layout = CodeLayout;
    type Head = Head;

    const INSTRUCTIONS: usize = 1 << 17;

    fn heads(
        memory: &mut impl Memory,
        layout: &CodeLayout,
        addresses: &[u64],
    ) -> Option<Vec<Head>> {
        let range = |&address: &u64| Some(address..address.checked_add(CODE_SIZE as u64)?);
        let ranges = addresses.iter().map(range).collect::<Option<Vec<_>>>()?;
        let mut bytes = vec![0; addresses.len() * CODE_SIZE];
        let all_read = memory.read_ranges(&ranges, &mut bytes) == bytes.len();
        let functions = bytes.chunks_exact_mut(CODE_SIZE).zip(addresses);
        let heads = functions.map(|(bytes, &address)| {
            // Those of C are shorter, and what follows them may not be readable.
            let count = match all_read {
                true => CODE_SIZE,
                false => memory.read(address, bytes),
            };
            Head::of(bytes.get(..count)?, layout)
        });
        let mut heads = heads.collect::<Option<Vec<_>>>()?;
        let named = || heads.iter().filter(|head| head.name != 0);
        let text = |head: &Head| {
            let start = head.name.checked_add(string::HASH)?;
            Some(start..start.checked_add(size_of::<TextId>() as u64)?)
        };
        let texts = named().map(text).collect::<Option<Vec<_>>>()?;
        let mut bytes = vec![0; texts.len() * size_of::<TextId>()];
        (memory.read_ranges(&texts, &mut bytes) == bytes.len()).then_some(())?;
        let (texts, _) = bytes.as_chunks();
        let named = heads.iter_mut().filter(|head| head.name != 0);
        for (head, text) in named.zip(texts) {
            head.text = *text;
        }
        Some(heads)
    }

    fn read(memory: &mut impl Memory, head: Head, instructions_left: &mut usize) -> Option<Self> {
        let name = match head.name {
            // The code of a file.
            0 => "<main>".to_owned(),
            name => text(memory, name, texts::NAME)?,
        };
        let name = match head.scope {
            0 => name,
            scope => {
                let class = word(memory, scope.checked_add(class::NAME)?)?;
                format!("{}::{name}", text(memory, class, texts::NAME)?)
            }
        };
        let (file, first_line, lines) = match head.body {
            None => ("<internal>".to_owned(), 0, Arc::default()),
            Some(body) => {
                let file = text(memory, body.filename, texts::FILE)?;
                (file, body.first_line, body.lines(memory, instructions_left))
            }
        };
        let function = Arc::new(Function {
            name,
            file,
            first_line,
        });
        Some(Self {
            head,
            function,
            lines,
        })
    }

    fn head(&self) -> &Head {
        &self.head
    }

    fn function(&self) -> &Function {
        &self.function
    }

    fn lines_size(&self) -> usize {
        size_of_val(&*self.lines)
    }
}

impl Code {
    /// Whether it is in PHP, and not in C.
    pub(super) fn is_php(&self) -> bool {
        self.head.body.is_some()
    }

    /// Whether it stands for the start of a fiber's native stack: `zend_fiber_function`. Other
    /// functions of C without a name do nothing.
    pub(super) fn is_fiber(&self) -> bool {
        !self.is_php() && self.head.name == 0
    }

    /// The addresses of its instructions; empty if it is in C.
    pub(super) fn instructions(&self) -> Range<u64> {
        let Some(body) = self.head.body else {
            return 0..0;
        };
        let size = u64::from(body.count) * instruction::SIZE as u64;
        body.opcodes..body.opcodes.saturating_add(size)
    }

    /// The line of the instruction at this address, if it is one of the function's.
    pub(super) fn line(&self, address: u64) -> Option<u32> {
        let offset = address.checked_sub(self.instructions().start)?;
        let number = usize::try_from(offset).ok()? / instruction::SIZE;
        self.lines.get(number).copied()
    }
}

impl Body {
    /// The line of each instruction, of as many as could be read.
    fn lines(&self, memory: &mut impl Memory, instructions_left: &mut usize) -> Arc<[u32]> {
        let count = (self.count as usize).min(*instructions_left);
        *instructions_left -= count;
        let mut bytes = vec![0; count * instruction::SIZE];
        let read = memory.read(self.opcodes, &mut bytes);
        let (instructions, _) = bytes[..read.min(bytes.len())].as_chunks::<{ instruction::SIZE }>();
        let line = |bytes: &[u8; instruction::SIZE]| {
            let line = bytes[instruction::LINE..].first_chunk();
            line.map_or(0, |&line| u32::from_le_bytes(line))
        };
        instructions.iter().map(line).collect()
    }
}

/// The bytes of a `zend_string`, up to a limit, or to the NUL byte before what makes the name of an
/// anonymous class unique.
fn text(memory: &mut impl Memory, address: u64, limit: usize) -> Option<String> {
    let length = word(memory, address.checked_add(string::HASH)?.checked_add(8)?)?;
    (length <= texts::LENGTH).then_some(())?;
    let mut bytes = vec![0; (length as usize).min(limit)];
    let count = memory.read(address.checked_add(string::BYTES)?, &mut bytes);
    (count == bytes.len()).then_some(())?;
    let shown = bytes.split(|&byte| byte == 0).next();
    Some(String::from_utf8_lossy(shown.unwrap_or_default()).into_owned())
}
