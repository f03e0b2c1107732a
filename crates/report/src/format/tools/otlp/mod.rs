//! OTLP's profiles signal (alpha; opentelemetry-proto v1.10.0): a request to store one profile.
//!
//! It has pprof's tables again: the id N there is entry N of a table here, whose entry 0 is empty.

mod message;

use std::collections::BTreeMap;

use prost::Message;
use rustc_hash::FxHashMap;

use super::pprof::{self, message as pb};
use crate::error::Error;
use crate::filter::Filter;
use crate::filter::filtered_samples::FilteredSamples;
use crate::symbolize::SymbolizedProfile;
use message::{
    AnyValue, Attribute, Dictionary, Function, KeyValue, Line, Link, Location, Mapping, Profile,
    Request, Resource, ResourceProfiles, Response, Sample, Scope, ScopeProfiles, Stack, Value,
    ValueType,
};

/// The identity of a profile for a receiver.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// Equal for the same profile.
    pub id: [u8; 16],
    /// The attributes of the recorded service, by OpenTelemetry's conventions: `service.name` and
    /// so on.
    pub attributes: &'a BTreeMap<String, String>,
}

/// An `ExportProfilesServiceRequest` with the samples that `filter` lets through, those of one
/// thread and stack as one.
///
/// # Errors
/// [`Error::NoSamples`], [`Error::NoSuchEvent`].
pub fn request(
    symbolized: &SymbolizedProfile,
    filter: &Filter,
    identity: Identity<'_>,
) -> Result<Vec<u8>, Error> {
    let shown = FilteredSamples::new(symbolized, filter)?;
    let (profile, dictionary) = Translation::new(pprof::message(&shown)).finish(identity.id);
    let attribute = |(key, value): (&String, &String)| KeyValue {
        key: key.clone(),
        value: Some(Value::Text(value.clone()).into()),
    };
    let request = Request {
        resource_profiles: vec![ResourceProfiles {
            resource: Some(Resource {
                attributes: identity.attributes.iter().map(attribute).collect(),
            }),
            scope_profiles: vec![ScopeProfiles {
                scope: Some(Scope {
                    name: "prof".into(),
                    version: env!("CARGO_PKG_VERSION").into(),
                }),
                profiles: vec![profile],
            }],
        }],
        dictionary: Some(dictionary),
    };
    Ok(request.encode_to_vec())
}

/// Why a receiver that has answered so stores nothing of it, if it does not.
pub fn rejection(response: &[u8]) -> Option<String> {
    let partial = Response::decode(response).ok()?.partial_success?;
    (partial.rejected_profiles > 0).then_some(partial.error_message)
}

/// The translation of pprof's message.
struct Translation {
    from: pb::Profile,
    strings: FxHashMap<String, i32>,
    attributes: Vec<Attribute>,
    attribute_indices: FxHashMap<(i32, AnyValue), i32>,
    stacks: Vec<Stack>,
    stack_indices: FxHashMap<Stack, i32>,
}

impl Translation {
    /// OpenTelemetry's names of pprof's labels, and which hold numbers.
    const LABELS: [(&str, &str); 4] = [
        ("thread", "thread.name"),
        ("process", "process.executable.name"),
        ("tid", "thread.id"),
        ("pid", "process.pid"),
    ];

    fn new(from: pb::Profile) -> Self {
        let strings = from.string_table.iter().cloned().zip(0..).collect();
        Self {
            from,
            strings,
            attributes: vec![Attribute::default()],
            attribute_indices: FxHashMap::default(),
            stacks: vec![Stack::default()],
            stack_indices: FxHashMap::default(),
        }
    }

    fn finish(mut self, id: [u8; 16]) -> (Profile, Dictionary) {
        let mappings = std::mem::take(&mut self.from.mapping);
        let mapping_table = mappings.iter().map(|mapping| self.mapping(mapping));
        let mapping_table = after_empty(mapping_table.collect());
        let samples = std::mem::take(&mut self.from.sample);
        let samples = samples.iter().map(|sample| self.sample(sample)).collect();
        let weighed = self.from.sample_type.last().map(value_type);
        let profile = Profile {
            sample_type: weighed,
            samples,
            time_unix_nano: self.from.time_nanos.try_into().unwrap_or(0),
            duration_nano: self.from.duration_nanos.try_into().unwrap_or(0),
            period_type: self.from.period_type.as_ref().map(value_type),
            period: self.from.period,
            profile_id: id.to_vec(),
        };
        let dictionary = Dictionary {
            mapping_table,
            location_table: after_empty(self.from.location.iter().map(location).collect()),
            function_table: after_empty(self.from.function.iter().map(function).collect()),
            link_table: vec![Link {}],
            string_table: self.from.string_table,
            attribute_table: self.attributes,
            stack_table: self.stacks,
        };
        (profile, dictionary)
    }

    fn sample(&mut self, sample: &pb::Sample) -> Sample {
        let stack = Stack {
            location_indices: sample.location_id.iter().map(|&id| index(id)).collect(),
        };
        let next = index(self.stacks.len());
        let stack_index = *self.stack_indices.entry(stack.clone()).or_insert_with(|| {
            self.stacks.push(stack);
            next
        });
        let labels = sample.label.iter();
        Sample {
            stack_index,
            attribute_indices: labels.filter_map(|label| self.label(label)).collect(),
            values: sample.value.last().copied().into_iter().collect(),
        }
    }

    fn label(&mut self, label: &pb::Label) -> Option<i32> {
        let name = self.text(label.key);
        let (_, key) = Self::LABELS.into_iter().find(|(known, _)| *known == name)?;
        let value = match label.str {
            0 => Value::Number(label.num),
            text => Value::Text(self.text(text).to_owned()),
        };
        Some(self.attribute(key, value))
    }

    fn mapping(&mut self, mapping: &pb::Mapping) -> Mapping {
        let build_id = match mapping.build_id {
            0 => None,
            id => Some(Value::Text(self.text(id).to_owned())),
        };
        let build_id = build_id.map(|id| self.attribute("process.executable.build_id.gnu", id));
        Mapping {
            memory_start: mapping.memory_start,
            memory_limit: mapping.memory_limit,
            file_offset: mapping.file_offset,
            filename_strindex: index(mapping.filename),
            attribute_indices: build_id.into_iter().collect(),
        }
    }

    fn attribute(&mut self, key: &str, value: Value) -> i32 {
        let (key_strindex, value) = (self.string(key), AnyValue::from(value));
        let next = index(self.attributes.len());
        let known = self.attribute_indices.entry((key_strindex, value.clone()));
        *known.or_insert_with(|| {
            self.attributes.push(Attribute {
                key_strindex,
                value: Some(value),
            });
            next
        })
    }

    fn text(&self, string: i64) -> &str {
        let string = usize::try_from(string).ok();
        let string = string.and_then(|string| self.from.string_table.get(string));
        string.map_or("", String::as_str)
    }

    /// The index of a string, which is added if it is new.
    fn string(&mut self, text: &str) -> i32 {
        if let Some(&known) = self.strings.get(text) {
            return known;
        }
        let added = index(self.from.string_table.len());
        self.from.string_table.push(text.to_owned());
        self.strings.insert(text.to_owned(), added);
        added
    }
}

fn value_type(from: &pb::ValueType) -> ValueType {
    ValueType {
        type_strindex: index(from.kind),
        unit_strindex: index(from.unit),
    }
}

fn location(from: &pb::Location) -> Location {
    let line = |line: &pb::Line| Line {
        function_index: index(line.function_id),
        line: line.line,
    };
    Location {
        mapping_index: index(from.mapping_id),
        address: from.address,
        lines: from.line.iter().map(line).collect(),
    }
}

fn function(from: &pb::Function) -> Function {
    Function {
        name_strindex: index(from.name),
        system_name_strindex: index(from.system_name),
        filename_strindex: index(from.filename),
    }
}

/// A table with its empty entry.
fn after_empty<T: Default>(mut entries: Vec<T>) -> Vec<T> {
    entries.insert(0, T::default());
    entries
}

/// Tables of more entries than the format can count do not fit in memory.
fn index(from: impl TryInto<i32>) -> i32 {
    from.try_into().unwrap_or(0)
}
