//! The texts that name code: a method's symbols, and the names of blobs.

use super::layout::{HotspotLayout, NameLayout};
use crate::Memory;
use crate::read::word;

/// The longest name of a class or a method, or signature.
const SYMBOL: usize = 4096;

/// The names of a method: the addresses of `Symbol`s, of which there is one for each text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MethodSymbols {
    class: u64,
    name: u64,
    signature: u64,
}

impl MethodSymbols {
    /// Those of the method at this address.
    pub(super) fn read(
        layout: &HotspotLayout,
        fields: &NameLayout,
        memory: &mut impl Memory,
        method: u64,
    ) -> Option<Self> {
        let at = |address: u64, offset: u16| address.checked_add(offset.into());
        let const_method = word(memory, at(method, layout.method.const_method)?)?;
        let constants = word(memory, at(const_method, fields.constants)?)?;
        let mut constant = |index: u16| {
            let index = word(memory, at(const_method, index)?)? & 0xffff;
            let pool = at(constants, fields.constants_size)?;
            word(memory, pool.checked_add(8 * index)?)
        };
        let name = constant(fields.name_index)?;
        let signature = constant(fields.signature_index)?;
        let class = word(memory, at(constants, fields.holder)?)?;
        Some(Self {
            class: word(memory, at(class, fields.class_name)?)?,
            name,
            signature,
        })
    }

    /// The name with class and signature, such as `int Hot.heavy(int, long[])`.
    pub(super) fn method_name(
        &self,
        fields: &NameLayout,
        memory: &mut impl Memory,
    ) -> Option<String> {
        let mut text = |address| symbol(fields, memory, address);
        // A hidden class: `Hot$$Lambda+0x7f00`.
        let class = text(self.class)?.replace('/', ".").replace('+', "/");
        let name = text(self.name)?;
        let (result, parameters) = types(&text(self.signature)?)?;
        Some(format!("{result} {class}.{name}({parameters})"))
    }
}

/// The text of the `Symbol` at this address.
fn symbol(fields: &NameLayout, memory: &mut impl Memory, address: u64) -> Option<String> {
    let length = word(memory, address.checked_add(fields.symbol_length.into())?)? & 0xffff;
    let mut bytes = vec![0; usize::try_from(length).ok().filter(|it| *it <= SYMBOL)?];
    let start = address.checked_add(fields.symbol_body.into())?;
    let is_read = memory.read(start, &mut bytes) == bytes.len();
    printable(is_read.then_some(bytes)?)
}

/// The name of a blob: the text at an address, ended by a zero.
pub(super) fn blob_name(memory: &mut impl Memory, address: u64) -> Option<String> {
    /// The longest one.
    const LONGEST: usize = 64;
    let mut bytes = vec![0; LONGEST];
    let count = memory.read(address, &mut bytes);
    bytes.truncate(count);
    let end = bytes.iter().position(|&byte| byte == 0)?;
    bytes.truncate(end);
    printable(bytes)
}

fn printable(bytes: Vec<u8>) -> Option<String> {
    let text = String::from_utf8(bytes).ok()?;
    (!text.is_empty() && !text.contains(char::is_control)).then_some(text)
}

/// The types of a method's signature as they stand in source code: of its result, and of its
/// parameters.
fn types(signature: &str) -> Option<(String, String)> {
    let (mut rest, result) = signature.strip_prefix('(')?.split_once(')')?;
    let mut parameters = Vec::new();
    while !rest.is_empty() {
        let (name, after) = type_name(rest)?;
        parameters.push(name);
        rest = after;
    }
    let (result, after) = type_name(result)?;
    after.is_empty().then(|| (result, parameters.join(", ")))
}

/// The first type in this text, and what follows it.
fn type_name(text: &str) -> Option<(String, &str)> {
    let element = text.trim_start_matches('[');
    let dimensions = text.len() - element.len();
    let (name, rest) = match element.strip_prefix('L') {
        Some(class) => {
            let (class, rest) = class.split_once(';')?;
            (class.replace('/', "."), rest)
        }
        None => {
            let mut rest = element.chars();
            let name = match rest.next()? {
                'B' => "byte",
                'C' => "char",
                'D' => "double",
                'F' => "float",
                'I' => "int",
                'J' => "long",
                'S' => "short",
                'V' => "void",
                'Z' => "boolean",
                _ => return None,
            };
            (name.to_owned(), rest.as_str())
        }
    };
    Some((name + &"[]".repeat(dimensions), rest))
}

#[cfg(test)]
mod tests {
    use super::types;

    #[test]
    fn signatures_are_those_of_source_code() {
        let check = |signature, result: &str, parameters: &str| {
            let expected = Some((result.to_owned(), parameters.to_owned()));
            assert_eq!(types(signature), expected);
        };
        check("()V", "void", "");
        check(
            "(I[J[[Ljava/lang/String;Z)[B",
            "byte[]",
            "int, long[], java.lang.String[][], boolean",
        );
        check(
            "(Ljava/util/List;)Ljava/util/Map;",
            "java.util.Map",
            "java.util.List",
        );
        for wrong in ["", "I", "(", "(I", "()", "(Q)V", "(Ljava)V", "()VV", "([)V"] {
            assert_eq!(types(wrong), None, "{wrong}");
        }
    }
}
