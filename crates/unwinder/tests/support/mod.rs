//! Samples with registers and stack bytes, read from files of `perf record --call-graph dwarf` by
//! another project's reader.
#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]

pub mod live;
pub mod programs;

use std::io::BufReader;
use std::path::Path;

use linux_perf_data::linux_perf_event_reader::{
    CpuMode, EventRecord, Mmap2FileId, Mmap2Record, MmapRecord, SampleRecord,
};
use linux_perf_data::{PerfFileReader, PerfFileRecord};
use prof_model::{
    AbsoluteAddress, BuildId, FileIdentity, FileOffset, Mapping, Module, ModuleKind, Modules, Pid,
    Process, Processes, RegisterAbi, StackEnd, StackNote, UserRegisters,
};
use prof_unwinder::{FrameEngine, LocalFiles, StackDump, Target, Unwinder, UserState};

/// One sample, with the process at that time.
pub struct UserSample {
    pub pid: Pid,
    pub tid: i32,
    pub process: Process,
    pub registers: UserRegisters,
    pub stack_start: u64,
    pub stack: Vec<u8>,
    pub full: bool,
}

/// All user samples of a recording.
pub struct Samples {
    pub modules: Modules,
    pub samples: Vec<UserSample>,
}

/// The result of an unwinder for a sample.
pub struct Answer {
    pub unwound: StackNote,
    pub frames: Vec<u64>,
}

impl Samples {
    /// # Errors
    /// perf has left no complete file.
    pub fn load(path: &Path) -> Result<Self, Box<dyn std::error::Error>> {
        let file = BufReader::new(std::fs::File::open(path)?);
        let PerfFileReader {
            mut perf_file,
            mut record_iter,
        } = PerfFileReader::parse_file(file)?;
        let mut processes = Processes::default();
        let mut all = Self {
            modules: Modules::default(),
            samples: Vec::new(),
        };
        while let Some(record) = record_iter.next_record(&mut perf_file)? {
            let PerfFileRecord::EventRecord { record, .. } = record else {
                continue;
            };
            match record.parse()? {
                EventRecord::Sample(sample) => all.samples.extend(user_sample(&sample, &processes)),
                EventRecord::Comm(comm) if comm.is_execve => processes.exec(comm.pid, ""),
                EventRecord::Comm(comm) => processes.rename(comm.pid, comm.tid, ""),
                EventRecord::Fork(f) => processes.fork((f.ppid, f.ptid), (f.pid, f.tid)),
                EventRecord::Exit(exit) => processes.exit(exit.pid, exit.tid),
                EventRecord::Mmap(map) => {
                    let map = mapping(&map, &mut all.modules);
                    map.into_iter()
                        .for_each(|(pid, map)| processes.map(pid, map));
                }
                EventRecord::Mmap2(map) => {
                    let map = mapping2(&map, &mut all.modules);
                    map.into_iter()
                        .for_each(|(pid, map)| processes.map(pid, map));
                }
                _ => {}
            }
        }
        Ok(all)
    }

    /// Unwinds every sample from its dump alone.
    pub fn unwind(&self, engine: &mut impl FrameEngine) -> Vec<Answer> {
        let unwind = |sample| self.unwind_one(engine, sample);
        self.samples.iter().map(unwind).collect()
    }

    pub fn unwind_one(&self, engine: &mut impl FrameEngine, sample: &UserSample) -> Answer {
        let mut frames = Vec::new();
        let unwound = self.unwind_into(engine, sample, &mut frames);
        Answer { unwound, frames }
    }

    /// Appends the frames of a sample to `frames`.
    pub fn unwind_into(
        &self,
        engine: &mut impl FrameEngine,
        sample: &UserSample,
        frames: &mut Vec<u64>,
    ) -> StackNote {
        let (target, dump) = (self.target(sample), sample.dump());
        engine.unwind_dump(
            &target,
            &UserState {
                registers: &sample.registers,
                dump,
            },
            frames,
        )
    }

    pub fn target<'a>(&'a self, sample: &'a UserSample) -> Target<'a> {
        Target {
            pid: sample.pid,
            process: &sample.process,
            modules: &self.modules,
        }
    }

    /// The share of whole stacks, and a line for each other end.
    pub fn summary(&self) -> (f64, String) {
        let answers = self.unwind(&mut Unwinder::new(LocalFiles));
        let counted: Vec<_> = (self.samples.iter().zip(&answers))
            .filter(|(_, answer)| answer.unwound.end.counts())
            .collect();
        let is_whole = |answer: &Answer| answer.unwound.end == StackEnd::Root;
        let whole = counted.iter().filter(|(_, answer)| is_whole(answer));
        let share = whole.count() as f64 / counted.len().max(1) as f64;
        let mut partial: Vec<String> = counted
            .iter()
            .filter(|(_, answer)| !answer.unwound.end.is_whole())
            .map(|(sample, answer)| {
                let last = answer.frames.last().copied().unwrap_or(0);
                let depth = answer.frames.len().min(3);
                format!(
                    "{:?} at {} ({depth}{})",
                    answer.unwound.end,
                    self.place(sample, last),
                    if answer.frames.len() > 3 { "+" } else { "" }
                )
            })
            .collect();
        partial.sort();
        let mut lines = String::new();
        for group in partial.chunk_by(|a, b| a == b) {
            lines += &format!("{:6} {}\n", group.len(), group[0]);
        }
        (share, lines)
    }

    /// An address as module+offset in the file.
    pub fn place(&self, sample: &UserSample, address: u64) -> String {
        let address = AbsoluteAddress(address);
        match sample.process.space().find(address) {
            None => format!("{address:#x}"),
            Some(mapping) => {
                let name = self.modules[mapping.module].short_name();
                format!("{name}+{:#x}", mapping.file_offset_of(address).0)
            }
        }
    }
}

impl UserSample {
    pub fn dump(&self) -> StackDump<'_> {
        StackDump {
            start: self.stack_start,
            bytes: &self.stack,
            full: self.full,
        }
    }
}

/// A sample in the middle of a file's code, on an empty stack; and its address.
pub fn one_module(path: &Path) -> (Samples, u64) {
    use object::{Object, ObjectSection};
    const IP: u32 = 8;
    let bytes = std::fs::read(path).expect("file");
    let file = object::File::parse(&*bytes).expect("ELF");
    let text = file.section_by_name(".text").expect(".text");
    let (offset, size) = text.file_range().expect(".text in the file");
    let start = 0x5000_0000_0000;
    let first = offset & !0xfff;
    let mut modules = Modules::default();
    let mut processes = Processes::default();
    let mapping = Mapping {
        start: AbsoluteAddress(start),
        end: AbsoluteAddress(start + (offset - first) + size),
        file_offset: FileOffset(first),
        module: modules.intern(Module::from_path(path)),
        executable: true,
    };
    processes.map(1, mapping);
    let pc = start + (offset - first) + size / 2;
    let values = (0..=IP).map(|number| if number == IP { pc } else { 0x7000_0000 });
    let sample = UserSample {
        pid: 1,
        tid: 1,
        process: processes.get(1).expect("process").clone(),
        registers: UserRegisters::new(RegisterAbi::Bits64, 0x1ff, values).expect("registers"),
        stack_start: 0x7000_0000,
        stack: vec![0; 64],
        full: false,
    };
    let samples = vec![sample];
    (Samples { modules, samples }, pc)
}

fn user_sample(sample: &SampleRecord<'_>, processes: &Processes) -> Option<UserSample> {
    /// 24 registers in 64-bit mode, without ds, es, fs, gs.
    const X86_MASK: u64 = 0x00ff_0fff;
    const SP: u64 = 7;
    let registers = sample.user_regs.as_ref()?;
    let numbers = (0..64).filter(|number| X86_MASK >> number & 1 != 0);
    let values: Option<Vec<u64>> = numbers.map(|number| registers.get(number)).collect();
    let registers = UserRegisters::new(RegisterAbi::Bits64, X86_MASK, values?)?;
    let (stack, copied) = sample.user_stack.as_ref()?;
    let bytes = stack.as_slice();
    let copied = (*copied as usize).min(bytes.len());
    let pid = sample.pid?;
    Some(UserSample {
        pid,
        tid: sample.tid?,
        process: processes.get(pid)?.clone(),
        registers,
        stack_start: sample.user_regs.as_ref()?.get(SP)?,
        stack: bytes[..copied].to_vec(),
        full: copied == bytes.len(),
    })
}

fn mapping(map: &MmapRecord<'_>, modules: &mut Modules) -> Option<(Pid, Mapping)> {
    let mut module = Module::from_path(path(&map.path.as_slice()));
    if map.cpu_mode != CpuMode::User {
        module.kind = ModuleKind::Kernel;
    }
    Some((
        map.pid,
        Mapping {
            start: AbsoluteAddress(map.address),
            end: AbsoluteAddress(map.address.checked_add(map.length)?),
            file_offset: FileOffset(map.page_offset),
            module: modules.intern(module),
            executable: map.is_executable,
        },
    ))
}

fn mapping2(map: &Mmap2Record<'_>, modules: &mut Modules) -> Option<(Pid, Mapping)> {
    const PROT_EXEC: u32 = 4;
    let mut module = Module::from_path(path(&map.path.as_slice()));
    match &map.file_id {
        Mmap2FileId::BuildId(id) => module.build_id = BuildId::new(id),
        Mmap2FileId::InodeAndVersion(file) => {
            module.identity = Some(FileIdentity {
                device: (file.major, file.minor),
                inode: file.inode,
                generation: file.inode_generation,
            });
        }
    }
    Some((
        map.pid,
        Mapping {
            start: AbsoluteAddress(map.address),
            end: AbsoluteAddress(map.address.checked_add(map.length)?),
            file_offset: FileOffset(map.page_offset),
            module: modules.intern(module),
            executable: map.protection & PROT_EXEC != 0,
        },
    ))
}

fn path(bytes: &[u8]) -> String {
    let bytes = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}
