//! Progress on the terminal: a bar for the current stage, a line for each finished one.

use std::time::Duration;

use domain::clock::Stopwatch;
use indicatif::{ProgressBar, ProgressStyle};

/// Redraw interval; drawing takes time on the load's core.
const REDRAW_EVERY: Duration = Duration::from_millis(250);

/// One stage of the benchmark.
pub struct Stage {
    bar: ProgressBar,
    name: String,
    steps: u64,
    watch: Stopwatch,
    drawn: Duration,
}

impl Stage {
    /// Begins a stage of so many steps.
    pub fn begin(name: impl Into<String>, steps: u64) -> Self {
        let name = name.into();
        let bar = ProgressBar::new(steps);
        let style = ProgressStyle::with_template("{msg:44} {bar:30} {percent:>3} %  {elapsed}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(name.clone());
        bar.tick();
        Stage { bar, name, steps, watch: Stopwatch::start(), drawn: Duration::ZERO }
    }

    /// Cheap: redraws only at intervals.
    pub fn at(&mut self, step: u64) {
        let elapsed = self.watch.elapsed();
        if elapsed >= self.drawn + REDRAW_EVERY {
            self.drawn = elapsed;
            self.bar.set_position(step.min(self.steps));
        }
    }

    /// Ends the stage with this result line.
    pub fn end(self, result: &str) {
        self.bar.finish_and_clear();
        eprintln!("{:44} {result}", self.name);
    }
}
