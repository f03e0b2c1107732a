//! The kernel's events of CPUs that go offline or come online.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SocketFlags, SocketType, bind, netlink, recv, socket_with,
};

/// The kernel's reports about CPUs (uevents, lib/kobject_uevent.c).
#[derive(Debug)]
pub struct HotplugEvents(OwnedFd);

impl HotplugEvents {
    /// Receives reports from now on.
    ///
    /// # Errors
    ///
    /// When the process has no more file descriptors, or a sandbox has no such sockets.
    pub fn listen() -> io::Result<Self> {
        /// The group that the kernel itself speaks to.
        const KERNEL: u32 = 1;
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            Some(netlink::KOBJECT_UEVENT),
        )?;
        bind(&socket, &netlink::SocketAddrNetlink::new(0, KERNEL))?;
        Ok(Self(socket))
    }

    /// The next CPU that went offline or came online, if there is one. Never waits.
    pub fn next(&self) -> Option<u32> {
        // Longer messages are cut, after the words that matter.
        let mut buffer = [0; 512];
        loop {
            match recv(&self.0, &mut buffer, RecvFlags::empty()) {
                Ok((length, _)) => {
                    if let Some(cpu) = buffer.get(..length).and_then(changed_cpu) {
                        return Some(cpu);
                    }
                }
                // More events came than the socket holds, and some are lost.
                Err(Errno::NOBUFS | Errno::INTR) => {}
                Err(_) => return None,
            }
        }
    }
}

/// The CPU of a message that one went offline or came online: `offline@/devices/system/cpu/cpu1`, a
/// zero, and more details.
fn changed_cpu(message: &[u8]) -> Option<u32> {
    let event = message.split(|&byte| byte == 0).next()?;
    let (what, device) = std::str::from_utf8(event).ok()?.split_once('@')?;
    let cpu = device.strip_prefix("/devices/system/cpu/cpu")?;
    let changed = matches!(what, "offline" | "online");
    cpu.parse().ok().filter(|_| changed)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn events_of_cpus() {
        let check = |message: &[u8], expected| assert_eq!(changed_cpu(message), expected);
        check(
            b"offline@/devices/system/cpu/cpu1\0ACTION=offline\0",
            Some(1),
        );
        check(
            b"online@/devices/system/cpu/cpu255\0ACTION=online\0",
            Some(255),
        );
        check(b"change@/devices/system/cpu/cpu1\0ACTION=change\0", None);
        check(b"online@/devices/system/cpu/cpufreq\0", None);
        check(b"offline@/devices/system/memory/memory1\0", None);
        check(b"offline@/devices/system/cpu/cpu99999999999\0", None);
        check(b"libudev\0\xfe\xed", None);
        check(b"\xff\0", None);
        check(b"", None);
    }

    /// The kernel repeats an event of a device on request. The recordings beside this test ignore
    /// this one.
    #[test]
    fn uevents_of_the_kernel_arrive() {
        let events = HotplugEvents::listen().expect("a socket");
        let requested = fs::write("/sys/devices/system/cpu/cpu0/uevent", "change");
        if let Err(error) = requested {
            eprintln!("NOT TESTED: /sys/devices/system/cpu/cpu0/uevent: {error}");
            assert!(std::env::var_os("CI").is_none(), "CI's machines can");
            return;
        }
        let mut buffer = [0; 512];
        let mut receive = || {
            recv(&events.0, &mut buffer, RecvFlags::empty())
                .map(|(length, _)| buffer[..length].to_vec())
        };
        let expected = b"change@/devices/system/cpu/cpu0\0";
        while !receive()
            .expect("the event of the CPU")
            .starts_with(expected)
        {}
        assert_eq!(events.next(), None);
    }
}
