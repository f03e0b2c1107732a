//! The tables that all threads share: columns of one length each, which refer to each other by
//! index.

use serde::Serialize;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tables {
    pub(super) stack_table: StackTable,
    pub(super) frame_table: FrameTable,
    pub(super) func_table: FuncTable,
    pub(super) resource_table: ResourceTable,
    pub(super) native_symbols: NativeSymbols,
    pub(super) sources: SourceTable,
    pub(super) string_array: Vec<String>,
}

/// A stack is its callers, an earlier stack, and its innermost frame.
#[derive(Default, Serialize)]
pub(super) struct StackTable {
    length: usize,
    prefix: Vec<Option<usize>>,
    frame: Vec<usize>,
}

impl StackTable {
    pub(super) fn push(&mut self, prefix: Option<usize>, frame: usize) -> usize {
        self.prefix.push(prefix);
        self.frame.push(frame);
        next(&mut self.length)
    }
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FrameTable {
    length: usize,
    address: Vec<i64>,
    inline_depth: Vec<usize>,
    category: Vec<usize>,
    subcategory: Vec<usize>,
    func: Vec<usize>,
    native_symbol: Vec<Option<usize>>,
    #[serde(rename = "innerWindowID")]
    inner_window_id: Vec<Option<u64>>,
    line: Vec<Option<u32>>,
    column: Vec<Option<u32>>,
}

/// The data of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FrameRow {
    pub(super) func: usize,
    pub(super) category: usize,
    pub(super) line: Option<u32>,
    /// How many functions this one is inlined into, 0 if it is not.
    pub(super) inline_depth: usize,
}

impl FrameTable {
    pub(super) fn push(&mut self, row: FrameRow) -> usize {
        // Addresses are for looking names up, which we did.
        self.address.push(-1);
        self.inline_depth.push(row.inline_depth);
        self.category.push(row.category);
        self.subcategory.push(0);
        self.func.push(row.func);
        self.native_symbol.push(None);
        self.inner_window_id.push(None);
        self.line.push(row.line);
        self.column.push(None);
        next(&mut self.length)
    }
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FuncTable {
    length: usize,
    name: Vec<usize>,
    #[serde(rename = "isJS")]
    is_js: Vec<bool>,
    #[serde(rename = "relevantForJS")]
    relevant_for_js: Vec<bool>,
    resource: Vec<i64>,
    source: Vec<Option<usize>>,
    line_number: Vec<Option<u32>>,
    column_number: Vec<Option<u32>>,
}

impl FuncTable {
    /// `name` is a string, `resource` is -1 for none.
    pub(super) fn push(&mut self, name: usize, resource: i64, source: Option<usize>) -> usize {
        self.name.push(name);
        self.is_js.push(false);
        self.relevant_for_js.push(false);
        self.resource.push(resource);
        self.source.push(source);
        self.line_number.push(None);
        self.column_number.push(None);
        next(&mut self.length)
    }
}

/// Resources of functions: libraries.
#[derive(Default, Serialize)]
pub(super) struct ResourceTable {
    length: usize,
    lib: Vec<usize>,
    name: Vec<usize>,
    host: Vec<Option<usize>>,
    #[serde(rename = "type")]
    kind: Vec<u32>,
}

impl ResourceTable {
    /// `name` is a string.
    pub(super) fn push(&mut self, lib: usize, name: usize) -> usize {
        const LIBRARY: u32 = 1;
        self.lib.push(lib);
        self.name.push(name);
        self.host.push(None);
        self.kind.push(LIBRARY);
        next(&mut self.length)
    }
}

/// None: they are for looking at machine code.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NativeSymbols {
    length: usize,
    lib_index: [(); 0],
    address: [(); 0],
    name: [(); 0],
    function_size: [(); 0],
}

/// Source files.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SourceTable {
    length: usize,
    id: Vec<Option<String>>,
    filename: Vec<usize>,
    start_line: Vec<u32>,
    start_column: Vec<u32>,
    #[serde(rename = "sourceMapURL")]
    source_map_url: Vec<Option<usize>>,
}

impl SourceTable {
    /// `filename` is a string.
    pub(super) fn push(&mut self, filename: usize) -> usize {
        self.id.push(None);
        self.filename.push(filename);
        self.start_line.push(1);
        self.start_column.push(1);
        self.source_map_url.push(None);
        next(&mut self.length)
    }
}

fn next(length: &mut usize) -> usize {
    *length += 1;
    *length - 1
}

#[derive(Serialize)]
pub(super) struct Category {
    pub(super) name: &'static str,
    pub(super) color: &'static str,
    pub(super) subcategories: [&'static str; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Lib {
    pub(super) arch: String,
    pub(super) name: String,
    pub(super) path: String,
    pub(super) debug_name: String,
    pub(super) debug_path: String,
    pub(super) breakpad_id: String,
    pub(super) code_id: Option<String>,
}
