//! Source lines and instructions.

use std::io::{self, Write};

use prof_symbols::SymbolFrame;
use serde::Serialize;

use super::{Document, Event, Weight};
use crate::source::{SourceFile, Sources};
use crate::view::annotate::{self, Annotation, CodeListing};

/// Writes source lines with the text from `sources`, and instructions if `code` is given.
///
/// # Errors
/// Those of `out`.
pub fn annotation(
    annotation: &Annotation<'_>,
    code: Option<&[CodeListing]>,
    sources: &Sources,
    out: impl Write,
) -> io::Result<()> {
    let listings = annotation.listings.iter();
    let body = Body {
        event: annotation.event().into(),
        total: annotation.total.into(),
        listings: listings.map(|l| listing(annotation, l, sources)).collect(),
        code: code.map(|listings| listings.iter().map(listed_code).collect()),
    };
    Document::write(annotation.symbolized(), "annotation", body, out)
}

#[derive(Serialize)]
struct Body<'a> {
    event: Event<'a>,
    total: Weight,
    listings: Vec<Listing<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<Vec<Code<'a>>>,
}

#[derive(Serialize)]
struct Listing<'a> {
    function: Option<&'a str>,
    module: Option<&'a str>,
    file: Option<&'a str>,
    source: Option<String>,
    problem: Option<String>,
    #[serde(rename = "self")]
    own: Weight,
    total: Weight,
    lines: Vec<SourceLineRow>,
}

#[derive(Serialize)]
struct SourceLineRow {
    line: Option<u32>,
    text: Option<String>,
    #[serde(rename = "self")]
    own: Weight,
    total: Weight,
}

#[derive(Serialize)]
struct Code<'a> {
    function: &'a str,
    module: &'a str,
    problem: Option<String>,
    #[serde(rename = "self")]
    own: Weight,
    total: Weight,
    left_out: u64,
    instructions: Vec<Instruction<'a>>,
}

#[derive(Serialize)]
struct Instruction<'a> {
    address: u64,
    text: &'a str,
    places: Vec<At<'a>>,
    #[serde(rename = "self")]
    own: Weight,
    total: Weight,
}

#[derive(Serialize)]
struct At<'a> {
    function: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
    inlined: bool,
}

fn listing<'a>(
    annotation: &Annotation<'a>,
    listing: &'a annotate::Listing,
    sources: &Sources,
) -> Listing<'a> {
    let function = listing.function.map(|id| &annotation.symbolized()[id]);
    let (source, problem) = match listing.file.as_deref().map(|file| sources.find(file)) {
        None => (None, None),
        Some(Ok(source)) => (Some(source), None),
        Some(Err(missing)) => (None, Some(missing.to_string())),
    };
    let line = |line: &annotate::SourceLine| SourceLineRow {
        line: line.number,
        text: text(source.as_ref(), line.number),
        own: line.own.into(),
        total: line.total.into(),
    };
    Listing {
        function: function.map(|function| &*function.name),
        module: function.map(|function| &*function.module),
        file: listing.file.as_deref(),
        problem,
        own: listing.own.into(),
        total: listing.total.into(),
        lines: listing.lines.iter().map(line).collect(),
        source: source.map(|source| source.path.to_string_lossy().into_owned()),
    }
}

fn text(source: Option<&SourceFile>, number: Option<u32>) -> Option<String> {
    source?.line(number?).map(str::to_owned)
}

fn listed_code(listing: &CodeListing) -> Code<'_> {
    let (instructions, problem) = match &listing.instructions {
        Ok(instructions) => (instructions.as_slice(), None),
        Err(why) => (&[][..], Some(why.to_string())),
    };
    Code {
        function: &listing.function,
        module: &listing.module,
        problem,
        own: listing.own.into(),
        total: listing.total.into(),
        left_out: listing.left_out,
        instructions: instructions.iter().map(instruction).collect(),
    }
}

fn instruction(instruction: &annotate::Instruction) -> Instruction<'_> {
    Instruction {
        address: instruction.address,
        text: &instruction.text,
        places: instruction.places.iter().map(at).collect(),
        own: instruction.own.into(),
        total: instruction.total.into(),
    }
}

fn at(place: &SymbolFrame) -> At<'_> {
    At {
        function: &place.function,
        file: place.file.as_deref(),
        line: place.line,
        inlined: place.inlined,
    }
}
