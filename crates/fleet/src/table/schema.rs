//! Names and types of the columns.

use std::sync::{Arc, LazyLock};

use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor, TypePtr};

/// The version of the tables, in each file's metadata: which columns there are, and what they mean.
pub(super) const VERSION: &str = "1";

/// A table of the data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    /// Weights by time, process and stack.
    Samples,
    /// Frames by stack.
    Stacks,
    /// Recordings.
    Runs,
}

impl Table {
    /// The folder that holds it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Samples => "samples",
            Self::Stacks => "stacks",
            Self::Runs => "runs",
        }
    }

    pub(super) fn schema(self) -> TypePtr {
        self.descriptor().root_schema_ptr()
    }

    pub(super) fn descriptor(self) -> SchemaDescPtr {
        let schemas = &*SCHEMAS;
        Arc::clone(match self {
            Self::Samples => &schemas.samples,
            Self::Stacks => &schemas.stacks,
            Self::Runs => &schemas.runs,
        })
    }
}

struct Schemas {
    samples: SchemaDescPtr,
    stacks: SchemaDescPtr,
    runs: SchemaDescPtr,
}

static SCHEMAS: LazyLock<Schemas> = LazyLock::new(|| Schemas {
    samples: descriptor(SAMPLES),
    stacks: descriptor(STACKS),
    runs: descriptor(RUNS),
});

/// The texts below are right, as the tests show: without them there would be no tables.
fn descriptor(text: &str) -> SchemaDescPtr {
    let parsed = parse_message_type(text);
    Arc::new(SchemaDescriptor::new(Arc::new(parsed.unwrap_or_else(
        |error| unreachable!("a schema of ours is wrong: {error}"),
    ))))
}

const SAMPLES: &str = "
message samples {
  required int64 time (TIMESTAMP(MICROS, true));
  required binary event (STRING);
  required binary unit (STRING);
  required int32 pid;
  required binary comm (STRING);
  required binary thread (STRING);
  required fixed_len_byte_array(16) stack_id;
  required int64 weight;
  required int64 count;
  required binary stack_end (STRING);
  required fixed_len_byte_array(16) run_id;
  required group labels (MAP) {
    repeated group key_value {
      required binary key (STRING);
      required binary value (STRING);
    }
  }
}";

const STACKS: &str = "
message stacks {
  required fixed_len_byte_array(16) stack_id;
  required int32 named;
  required group frames (LIST) {
    repeated group list {
      required group element {
        required binary function (STRING);
        required binary module (STRING);
        required binary kind (STRING);
        required boolean inlined;
        optional binary build_id (STRING);
        optional int64 address;
        optional binary file (STRING);
        optional int32 line;
      }
    }
  }
}";

const RUNS: &str = "
message runs {
  required fixed_len_byte_array(16) run_id;
  required int64 start (TIMESTAMP(MICROS, true));
  required int64 end (TIMESTAMP(MICROS, true));
  required int64 samples;
  required int64 lost;
  optional double coverage;
  required binary verdict (STRING);
  required binary reasons (STRING);
  optional binary kernel (STRING);
  optional binary arch (STRING);
  required binary command (STRING);
  optional int64 rate;
  required binary version (STRING);
  required group labels (MAP) {
    repeated group key_value {
      required binary key (STRING);
      required binary value (STRING);
    }
  }
}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schemas_are_valid() {
        for table in [Table::Samples, Table::Stacks, Table::Runs] {
            assert_eq!(table.schema().name(), table.name());
        }
    }
}
