//! Why an event cannot be counted.

use prof_events::Trial;
use prof_events::counting::{Prober, RefusalFacts, why_not};
use prof_events::parsing::{Catalog, EventSpec};
use prof_events::system::System;
use rustix::io::Errno;

use crate::error::OpenError;
use crate::target::Target;

/// The error for the kernel's refusal of this event and target.
pub(crate) fn of_event(spec: &EventSpec, errno: Errno, target: &Target) -> OpenError {
    if errno == Errno::SRCH {
        match *target {
            Target::Process(pid) => return OpenError::NoProcess(pid),
            Target::Thread(tid) => return OpenError::NoThread(tid),
            _ => {}
        }
    }
    let system = match System::read() {
        Ok(system) => system,
        Err(source) => {
            return OpenError::System {
                what: "read the machine's settings",
                source,
            };
        }
    };
    let facts = RefusalFacts {
        system_wide: target.is_system_wide(),
        target_refuses: match *target {
            Target::Thread(tid) => Trial::Thread(tid).run().is_err(),
            Target::Process(pid) => Trial::Thread(pid).run().is_err(),
            _ => false,
        },
        ..Prober::new(&Catalog::system(), &system).facts()
    };
    OpenError::Refused {
        event: spec.to_string(),
        errno,
        reason: why_not(spec, errno, facts),
    }
}
