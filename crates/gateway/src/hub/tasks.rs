//! The tasks of the hub, and their end.

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;

#[derive(Default)]
pub(super) struct Tasks {
    stop: watch::Sender<bool>,
    running: Mutex<JoinSet<()>>,
}

impl Tasks {
    /// A task that may be dropped at any point where it waits.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut stop = self.stop.subscribe();
        self.running.lock().spawn(async move {
            tokio::select! {
                () = task => {}
                _ = stop.wait_for(|stop| *stop) => {}
            }
        });
    }

    /// A task that ends by itself when it is to stop.
    pub(super) fn spawn_until<T: Future<Output = ()> + Send + 'static>(
        &self,
        task: impl FnOnce(watch::Receiver<bool>) -> T,
    ) {
        self.running.lock().spawn(task(self.stop.subscribe()));
    }

    /// Ends all tasks, and waits for that.
    pub(super) async fn stop(&self) {
        self.stop.send_replace(true);
        let mut running = std::mem::take(&mut *self.running.lock());
        while running.join_next().await.is_some() {}
    }

    /// Drops all tasks.
    pub(super) fn abort(&self) {
        self.running.lock().abort_all();
    }
}
