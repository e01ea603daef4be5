//! Ends a server and removes its folder when the test process dies for any reason.
//!
//! Destructors do not run for statics, nor in a process that is killed. A small shell waits for the end of its input,
//! which only this process holds open, and then cleans up. It receives the server's process id at each start and end,
//! so that it never signals another process.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const SCRIPT: &str = r#"
trap '' INT TERM HUP
pid=
while read -r line; do pid=$line; done
if [ -n "$pid" ]; then
  kill -s "$2" "$pid" 2>/dev/null
  for _ in 1 2 3 4 5 6 7 8 9 10; do kill -0 "$pid" 2>/dev/null || break; sleep 0.2; done
  kill -s KILL "$pid" 2>/dev/null
fi
for _ in 1 2 3 4 5; do rm -rf "$1" 2>/dev/null && break; sleep 0.2; done
"#;

pub(crate) struct Watchdog {
    shell: Child,
}

impl Watchdog {
    /// Watches over `folder` and the server in it, which ends by `signal`.
    pub(crate) fn start(folder: &Path, signal: &str) -> Self {
        let shell = Command::new("sh")
            .args(["-c", SCRIPT, "watchdog"])
            .arg(folder)
            .arg(signal)
            .stdin(Stdio::piped())
            // The test runner waits until every process that could write to its pipes has ended.
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir("/")
            .spawn()
            .expect("there is a shell");
        Watchdog { shell }
    }

    /// The server runs as this process now.
    pub(crate) fn server_started(&mut self, pid: u32) {
        self.write_line(&pid.to_string());
    }

    pub(crate) fn server_ended(&mut self) {
        self.write_line("");
    }

    fn write_line(&mut self, line: &str) {
        let stdin = self.shell.stdin.as_mut().expect("its standard input is a pipe");
        writeln!(stdin, "{line}").expect("the watchdog listens");
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}
