//! What the server costs, as `/proc` tells it.

use std::{fs, io, path::Path, process};

/// Clock ticks a second in `/proc`, on every architecture that Rust servers run on.
const TICKS: f64 = 100.0;

/// Why a cost can't be told.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProcError {
    #[error("no process listens on port {0}")]
    NobodyListens(u16),
    #[error("can't read {path}: {source}")]
    Unreadable { path: String, source: io::Error },
    #[error("{0} is not as expected")]
    Unexpected(String),
}

/// Memory, in KiB.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Memory(u64);

impl Memory {
    pub(crate) fn mb(self) -> f64 {
        self.0 as f64 / 1024.0
    }

    /// How much more it is than another, in KiB; less than 0 if less.
    pub(crate) fn kb_above(self, other: Self) -> f64 {
        self.0 as f64 - other.0 as f64
    }
}

/// The server: one process or several.
#[derive(Debug)]
pub(crate) struct Processes(Vec<u32>);

impl Processes {
    pub(crate) fn new(pids: Vec<u32>) -> Self {
        Self(pids)
    }

    /// The processes that listen on a port. A process whose files can't be seen is not found.
    pub(crate) fn listening_on(port: u16) -> Result<Self, ProcError> {
        let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
        // Either may be missing, where the machine has only one kind of address.
        let tables = tables
            .iter()
            .filter_map(|table| fs::read_to_string(table).ok());
        let sockets: Vec<String> = tables.flat_map(|table| listeners(&table, port)).collect();
        let pids: Vec<u32> = read_dir("/proc")?
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|pid| holds_one(*pid, &sockets))
            .collect();
        if pids.is_empty() {
            Err(ProcError::NobodyListens(port))
        } else {
            Ok(Self(pids))
        }
    }

    pub(crate) fn resident(&self) -> Result<Memory, ProcError> {
        self.memory("VmRSS:")
    }

    fn peak(&self) -> Result<Memory, ProcError> {
        self.memory("VmHWM:")
    }

    fn memory(&self, key: &str) -> Result<Memory, ProcError> {
        let mut sum = 0;
        for pid in &self.0 {
            let path = format!("/proc/{pid}/status");
            let text = read(&path)?;
            let line = text.lines().find_map(|line| line.strip_prefix(key));
            let kb = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
            sum += kb.ok_or(ProcError::Unexpected(path))?;
        }
        Ok(Memory(sum))
    }

    fn cpu(&self) -> Result<f64, ProcError> {
        self.0.iter().map(|pid| cpu_of(*pid)).sum()
    }

    fn forget_peak(&self) {
        for pid in &self.0 {
            // Another user's process keeps its peak, which is then that of its whole life.
            let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
        }
    }
}

/// Costs since a moment.
#[derive(Debug)]
pub(crate) struct Meter<'p> {
    processes: &'p Processes,
    server: f64,
    own: f64,
    all: f64,
    resident: Memory,
}

/// CPU in seconds, and memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) server_cpu: f64,
    pub(crate) own_cpu: f64,
    /// Of everything else on the machine: where it is much, the run was disturbed. The kernel's
    /// work for the network that it books on no process is in it too.
    pub(crate) other_cpu: f64,
    pub(crate) resident_before: Memory,
    pub(crate) resident_after: Memory,
    pub(crate) resident_peak: Memory,
}

impl<'p> Meter<'p> {
    pub(crate) fn start(processes: &'p Processes) -> Result<Self, ProcError> {
        processes.forget_peak();
        Ok(Self {
            processes,
            resident: processes.resident()?,
            server: processes.cpu()?,
            own: cpu_of(process::id())?,
            all: cpu_of_all()?,
        })
    }

    pub(crate) fn finish(&self) -> Result<Cost, ProcError> {
        let server_cpu = self.processes.cpu()? - self.server;
        let own_cpu = cpu_of(process::id())? - self.own;
        Ok(Cost {
            server_cpu,
            own_cpu,
            other_cpu: (cpu_of_all()? - self.all - server_cpu - own_cpu).max(0.0),
            resident_before: self.resident,
            resident_after: self.processes.resident()?,
            resident_peak: self.processes.peak()?,
        })
    }
}

/// The sockets that listen on a port, as the links in `/proc/PID/fd` name them.
fn listeners(table: &str, port: u16) -> Vec<String> {
    let socket = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
        let (_, local_port) = local.rsplit_once(':')?;
        let listens = *state == "0A" && u16::from_str_radix(local_port, 16) == Ok(port);
        listens.then(|| format!("socket:[{inode}]"))
    };
    table.lines().skip(1).filter_map(socket).collect()
}

fn holds_one(pid: u32, sockets: &[String]) -> bool {
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    let links = files
        .flatten()
        .filter_map(|file| fs::read_link(file.path()).ok());
    links
        .into_iter()
        .any(|link| sockets.iter().any(|socket| link == Path::new(socket)))
}

/// User and system time of a process.
fn cpu_of(pid: u32) -> Result<f64, ProcError> {
    let path = format!("/proc/{pid}/stat");
    let text = read(&path)?;
    ticks(&text)
        .map(|ticks| ticks / TICKS)
        .ok_or(ProcError::Unexpected(path))
}

fn ticks(stat: &str) -> Option<f64> {
    // The name, in parentheses, may have blanks and parentheses of its own.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// Time that processors were at work: user, nice, system and both kinds of interrupts.
fn cpu_of_all() -> Result<f64, ProcError> {
    let path = "/proc/stat";
    let text = read(path)?;
    let line = text.lines().next().unwrap_or_default();
    let fields: Vec<f64> = line
        .split_whitespace()
        .skip(1)
        .filter_map(|field| field.parse().ok())
        .collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, ..] = fields[..] else {
        return Err(ProcError::Unexpected(path.to_owned()));
    };
    Ok((user + nice + system + irq + softirq) / TICKS)
}

fn read(path: &str) -> Result<String, ProcError> {
    fs::read_to_string(path).map_err(|source| ProcError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

fn read_dir(path: &str) -> Result<impl Iterator<Item = fs::DirEntry>, ProcError> {
    let entries = fs::read_dir(path).map_err(|source| ProcError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    Ok(entries.flatten())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_listener_is_found_by_its_port() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(Processes::listening_on(port).unwrap().0, [process::id()]);
        drop(listener);
        assert!(matches!(
            Processes::listening_on(port),
            Err(ProcError::NobodyListens(_))
        ));
    }

    #[test]
    fn a_name_with_parentheses_does_not_confuse() {
        let stat = "1 (a) b) (c) S 1 1 1 0 -1 4194560 1 0 0 0 250 50 0 0 20 0";
        assert_eq!(ticks(stat), Some(300.0));
        assert_eq!(ticks("1 (a"), None);
    }

    #[test]
    fn a_process_that_is_gone_is_an_error() {
        assert!(Meter::start(&Processes::new(vec![u32::MAX])).is_err());
    }
}
