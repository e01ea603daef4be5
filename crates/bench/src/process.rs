//! Servers as child processes on their own core, and their processor time.
//!
//! A child is pinned with `taskset` and asks the kernel (through `setpriv`; both are util-linux) to be killed when this
//! process ends for any reason. It is also killed when its handle is dropped.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use domain::clock::Stopwatch;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::{Pid, SysconfVar, sysconf};
use rustix::process::{Resource, getrlimit, setrlimit};

/// Timeout until a server listens.
const READY_S_MAX: u64 = 60;
/// Log bytes shown when a server exits early.
const LOG_BYTES_SHOWN: usize = 2_000;

/// The cores of server and load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cores {
    pub server: usize,
    /// Equal to the server's on a machine with one core, where throughput means little.
    pub load: usize,
}

impl Cores {
    /// The first two cores that this process may use.
    pub fn of_this_machine() -> anyhow::Result<Self> {
        let allowed = sched_getaffinity(Pid::from_raw(0)).context("asking which cores may be used")?;
        let mut cores = (0..CpuSet::count()).filter(|core| allowed.is_set(*core).unwrap_or(false));
        let server = cores.next().unwrap_or(0);
        Ok(Cores { server, load: cores.next().unwrap_or(server) })
    }

    /// Whether server and load share one core.
    pub fn are_one(self) -> bool {
        self.server == self.load
    }

    /// Pins the calling thread, and threads it starts later, to the load's core.
    pub fn pin_load(self) -> anyhow::Result<()> {
        pin(self.load)
    }

    /// Starts something on the server's core: processes inherit the core of the thread that starts them. Afterwards the
    /// calling thread is on the load's core.
    pub fn on_server<T>(self, start: impl FnOnce() -> T) -> anyhow::Result<T> {
        pin(self.server)?;
        let started = start();
        pin(self.load)?;
        Ok(started)
    }
}

/// Pins the calling thread, and threads it starts later.
pub fn pin(core: usize) -> anyhow::Result<()> {
    let mut set = CpuSet::new();
    set.set(core)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set))
        .with_context(|| format!("pinning to core {core}"))
}

/// Killed when dropped.
pub struct ServerProcess {
    child: Child,
    program: String,
    log: PathBuf,
}

impl ServerProcess {
    /// Starts `program` on `core`, with its output in `log`.
    pub fn start(core: usize, program: &Path, args: &[String], log: &Path) -> anyhow::Result<Self> {
        let out = File::create(log).with_context(|| format!("creating {}", log.display()))?;
        let err = out.try_clone()?;
        let child = Command::new("taskset")
            .args(["-c", &core.to_string(), "setpriv", "--pdeathsig", "KILL"])
            .arg(program)
            .args(args)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .with_context(|| format!("starting {} through taskset", program.display()))?;
        Ok(ServerProcess { child, program: program.display().to_string(), log: log.to_owned() })
    }

    /// Waits until the server accepts TCP connections.
    pub fn wait_for_tcp(&mut self, address: SocketAddr) -> anyhow::Result<()> {
        self.wait_until(address, || TcpStream::connect(address).is_ok())
    }

    /// Waits until the server has bound its UDP port, so that it cannot be bound again.
    pub fn wait_for_udp(&mut self, address: SocketAddr) -> anyhow::Result<()> {
        self.wait_until(address, || UdpSocket::bind(address).is_err())
    }

    fn wait_until(&mut self, address: SocketAddr, ready: impl Fn() -> bool) -> anyhow::Result<()> {
        let watch = Stopwatch::start();
        while watch.elapsed().as_secs() < READY_S_MAX {
            self.must_run()?;
            if ready() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        bail!("{} did not listen on {address} within {READY_S_MAX} s", self.program)
    }

    /// Fails if it has ended, with its log.
    pub fn must_run(&mut self) -> anyhow::Result<()> {
        if let Ok(Some(status)) = self.child.try_wait() {
            bail!("{} ended early ({status}); its log:\n{}", self.program, self.last_log_lines());
        }
        Ok(())
    }

    fn last_log_lines(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&log[log.len().saturating_sub(LOG_BYTES_SHOWN)..]).into_owned()
    }

    /// Anonymous resident memory: heap and stacks, not the program itself.
    pub fn resident_bytes(&self) -> anyhow::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        resident_of(&status).context("no RssAnon")
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The processor time taken so far.
    pub fn cpu_time(&self) -> anyhow::Result<CpuTime> {
        CpuTime::of(self.child.id())
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // It may have exited by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Processor time of a process since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// In user mode, all threads.
    pub user: Duration,
    /// In kernel mode, all threads.
    pub system: Duration,
    /// Ready to run, but waiting for its core; zero where the kernel does not provide it.
    pub waited: Duration,
}

impl CpuTime {
    /// Of a process that runs now.
    pub fn of(pid: u32) -> anyhow::Result<Self> {
        let path = format!("/proc/{pid}/stat");
        let stat = fs::read_to_string(&path).with_context(|| path.clone())?;
        let (user, system) = ticks_of(&stat).context("no user and system time")?;
        let ticks_per_s = sysconf(SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100);
        let time_of = |ticks: u64| Duration::from_secs_f64(ticks as f64 / ticks_per_s as f64);
        Ok(CpuTime { user: time_of(user), system: time_of(system), waited: time_waited(pid) })
    }

    /// In both modes.
    pub fn used(self) -> Duration {
        self.user + self.system
    }

    /// What was used and waited since `earlier`.
    pub fn since(self, earlier: CpuTime) -> CpuTime {
        CpuTime {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
            waited: self.waited.saturating_sub(earlier.waited),
        }
    }
}

/// The line `RssAnon:     1234 kB`.
fn resident_of(status: &str) -> Option<u64> {
    let kib = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?.trim().strip_suffix("kB")?;
    kib.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// utime and stime, the 14th and 15th fields. The second is the program's name in brackets, which may contain anything.
fn ticks_of(stat: &str) -> Option<(u64, u64)> {
    let behind_the_name = &stat[stat.rfind(')')? + 1..];
    let mut fields = behind_the_name.split_ascii_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Time that all threads were on a run queue.
fn time_waited(pid: u32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    threads.filter_map(|thread| Some(schedule_of(&thread.path())?[1])).sum()
}

/// A thread's `schedstat`: time on a core, and on a run queue.
fn schedule_of(thread: &Path) -> Option<[Duration; 2]> {
    let line = fs::read_to_string(thread.join("schedstat")).ok()?;
    let mut times = line.split_ascii_whitespace().map(|ns| Some(Duration::from_nanos(ns.parse().ok()?)));
    Some([times.next()??, times.next()??])
}

/// What one thread of a process has used.
#[derive(Clone, Debug, Default)]
pub struct ThreadUse {
    pub name: String,
    pub on_core: Duration,
    /// How often it waited for something.
    pub waits: u64,
}

/// All threads of a process, by id.
pub fn threads_of(pid: u32) -> BTreeMap<u32, ThreadUse> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    threads
        .filter_map(|thread| {
            let status = fs::read_to_string(thread.path().join("status")).ok()?;
            let field = |name: &str| status.lines().find_map(|line| Some(line.strip_prefix(name)?.trim()));
            let on_core = schedule_of(&thread.path())?[0];
            let name = field("Name:")?.to_owned();
            let waits = field("voluntary_ctxt_switches:")?.parse().ok()?;
            Some((thread.file_name().to_str()?.parse().ok()?, ThreadUse { name, on_core, waits }))
        })
        .collect()
}

/// Processor time of processes and their descendants, thread by thread.
pub struct ThreadTimes {
    processes: Vec<(u32, Option<&'static str>)>,
    threads: BTreeMap<u32, (String, Duration)>,
}

impl ThreadTimes {
    /// Each process with the name of its part, or none for the names of its threads.
    pub fn of(processes: &[(u32, Option<&'static str>)]) -> ThreadTimes {
        let parents = parents();
        let mut threads = BTreeMap::new();
        for (root, part) in processes {
            let mut family = vec![*root];
            while let Some(pid) = family.pop() {
                family.extend(parents.iter().filter(|(_, parent)| *parent == pid).map(|(child, _)| *child));
                for (id, thread) in threads_of(pid) {
                    let name = match (part, thread.name.as_str()) {
                        (Some(part), _) => (*part).to_owned(),
                        (None, "tokio-rt-worker") => "tasks".to_owned(),
                        (None, name) => name.to_owned(),
                    };
                    threads.insert(id, (name, thread.on_core));
                }
            }
        }
        ThreadTimes { processes: processes.to_vec(), threads }
    }

    /// The time since then, by part. What threads that have ended since used is lost.
    pub fn since(&self) -> BTreeMap<String, Duration> {
        let mut parts: BTreeMap<String, Duration> = BTreeMap::new();
        for (id, (part, now)) in ThreadTimes::of(&self.processes).threads {
            let before = self.threads.get(&id).map_or(Duration::ZERO, |(_, before)| *before);
            *parts.entry(part).or_default() += now.saturating_sub(before);
        }
        parts
    }
}

/// Every process of this machine with its parent.
fn parents() -> Vec<(u32, u32)> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let parent_of = |folder: fs::DirEntry| {
        let pid = folder.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(folder.path().join("stat")).ok()?;
        let behind_the_name = &stat[stat.rfind(')')? + 1..];
        Some((pid, behind_the_name.split_ascii_whitespace().nth(1)?.parse().ok()?))
    };
    processes.filter_map(parent_of).collect()
}

/// Raises the limit of open files of this process and its children to the system's maximum. Every connection is one.
pub fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If refused, the old limit holds, and errors name it.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// A loopback address whose port was just free for TCP and UDP.
pub fn free_address() -> anyhow::Result<SocketAddr> {
    for _ in 0..100 {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        if UdpSocket::bind(address).is_ok() {
            return Ok(address);
        }
    }
    bail!("none of 100 ports was free for TCP and UDP")
}

/// Fails unless a program is installed, in `folders` or on the path.
pub fn need(program: &str, package: &str, folders: &[PathBuf]) -> anyhow::Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = folders.iter().cloned().chain(std::env::split_paths(&path));
    if places.any(|folder| folder.join(program).is_file()) {
        return Ok(());
    }
    bail!("{program} is not installed: apt-get install {package}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_ticks_are_found_behind_any_program_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 102 0 0 0 250 50 0 0 20 0 1 0 121060 3133440 394";
        assert_eq!(ticks_of(stat), Some((250, 50)));
        assert_eq!(ticks_of("7 (a"), None);
    }

    #[test]
    fn a_dropped_server_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let server =
            ServerProcess::start(0, Path::new("sleep"), &["600".to_owned()], &folder.path().join("log"))
                .unwrap();
        let process = PathBuf::from(format!("/proc/{}", server.child.id()));
        assert!(process.exists());
        drop(server);
        assert!(!process.exists());
    }

    #[test]
    fn what_is_missing_is_named_with_its_package() {
        let error = need("no-such-server", "a-package", &[]).unwrap_err().to_string();
        assert!(error.contains("no-such-server") && error.contains("apt-get install a-package"), "{error}");
        need("sh", "dash", &[]).unwrap();
    }

    #[test]
    fn the_threads_of_this_process_are_found() {
        let threads = threads_of(std::process::id());
        assert!(threads.values().any(|thread| thread.on_core > Duration::ZERO), "{threads:?}");
    }

    #[test]
    fn the_time_of_a_child_counts_for_its_parent() {
        let times = ThreadTimes::of(&[(std::process::id(), Some("tests"))]);
        let busy =
            ["-c".to_owned(), "sh -c 'i=0; while [ $i -lt 3000000 ]; do i=$((i+1)); done'; true".to_owned()];
        let folder = tempfile::tempdir().unwrap();
        let _server = ServerProcess::start(0, Path::new("sh"), &busy, &folder.path().join("log")).unwrap();
        testkit::eventually("the grandchild to use time", Duration::from_secs(20), || {
            let parts = times.since();
            assert_eq!(parts.keys().collect::<Vec<_>>(), ["tests"]);
            (parts["tests"] > Duration::from_millis(50)).then_some(())
        });
    }

    #[test]
    fn memory_is_read_from_what_the_kernel_tells() {
        assert_eq!(
            resident_of("VmRSS:\t  99 kB\nRssAnon:\t    1234 kB\nRssFile:\t 5 kB\n"),
            Some(1234 * 1024)
        );
        assert_eq!(resident_of("Name:\tx\n"), None);
    }

    #[test]
    fn a_server_that_ends_early_is_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let args = ["-c".to_owned(), "echo no such port; exit 3".to_owned()];
        let mut server = ServerProcess::start(0, Path::new("sh"), &args, &folder.path().join("log")).unwrap();
        let error = server.wait_for_tcp(free_address().unwrap()).unwrap_err().to_string();
        assert!(error.contains("no such port"), "{error}");
    }
}
