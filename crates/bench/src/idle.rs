//! The cost of an idle server: processor time without clients, once the work of the start is done. All roles, all
//! settings at their defaults, one server for each store.

use std::time::Duration;

use domain::clock::Stopwatch;
use serde::Serialize;

use crate::process::threads_of;
use crate::progress::Stage;
use crate::run::{Figure, Run, new_folder};
use crate::server::{Server, ServerPlan};
use crate::store::StoreKind;

/// Threads named in a note.
const THREADS_SHOWN: usize = 4;

/// What one thread used while the server was idle.
#[derive(Clone, Debug, Serialize)]
struct IdleThread {
    name: String,
    /// Share of a core, in percent.
    percent: f64,
    wake_ups_per_s: f64,
}

pub fn measure(run: &mut Run<'_>) -> anyhow::Result<()> {
    for kind in [StoreKind::Embedded, StoreKind::PostgreSql, StoreKind::MariaDb, StoreKind::Redis] {
        measure_on(run, kind)?;
    }
    Ok(())
}

fn measure_on(run: &mut Run<'_>, kind: StoreKind) -> anyhow::Result<()> {
    let Some(binary) = run.binary() else { return Ok(()) };
    let (store, (settle, length)) = (kind.name(), run.sizes.idle);
    let stage = Stage::begin(format!("idle server, {store}"), 1);
    let (started, folder) = (kind.start(run.cores)?, new_folder()?);
    let (data, cores, settings) = (folder.path(), run.cores, started.settings());
    let plan = ServerPlan { binary, data, cores, roles: None, settings };
    let server = Server::start_with_defaults(&plan)?;
    std::thread::sleep(settle);
    let threads = idle_threads(server.process.pid(), length);
    let percent = threads.iter().map(|thread| thread.percent).sum::<f64>();
    let wake_ups = threads.iter().map(|thread| thread.wake_ups_per_s).sum::<f64>();
    stage.end(&format!("{percent:.2} % of a core, {wake_ups:.0} wake-ups/s"));
    let most: Vec<String> = threads
        .iter()
        .take(THREADS_SHOWN)
        .map(|thread| format!("{} {:.2} % and {:.0}/s", thread.name, thread.percent, thread.wake_ups_per_s))
        .collect();
    let note = format!(
        "{store}: the server's own threads over {} s; {wake_ups:.0} wake-ups a second; most by {}",
        length.as_secs(),
        most.join(", ")
    );
    run.add(&format!("idle server, {store}"), Figure::of(percent).noting(note));
    run.detail(&format!("idle threads, {store}"), threads);
    Ok(())
}

/// What each thread uses within this time, most first.
fn idle_threads(pid: u32, length: Duration) -> Vec<IdleThread> {
    let (before, watch) = (threads_of(pid), Stopwatch::start());
    std::thread::sleep(length);
    let (now, elapsed_s) = (threads_of(pid), watch.elapsed().as_secs_f64());
    let mut threads: Vec<IdleThread> = now
        .into_iter()
        .map(|(id, now)| {
            let before = before.get(&id).cloned().unwrap_or_default();
            let on_core = now.on_core.saturating_sub(before.on_core);
            IdleThread {
                name: now.name,
                percent: 100.0 * on_core.as_secs_f64() / elapsed_s,
                wake_ups_per_s: now.waits.saturating_sub(before.waits) as f64 / elapsed_s,
            }
        })
        .collect();
    threads.sort_by(|one, other| other.percent.total_cmp(&one.percent));
    threads
}
