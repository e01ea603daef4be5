//! The last hour of this process, a point every ten seconds.

use std::collections::{BTreeMap, VecDeque};

use domain::UnixTime;
use serde::Serialize;
use utoipa::ToSchema;

use super::schema::Overview;
use super::window::per_second;
use super::{CounterSample, lags};

/// From one point to the next.
const STEP_S: u32 = 10;
/// An hour of them.
const POINTS_MAX: usize = 360;
/// The beat need not be exact for a point to be due.
const SLACK_S: f64 = 0.5;

/// The last hour.
#[derive(Serialize, ToSchema)]
pub struct OverviewHistory {
    /// Seconds from one point to the next.
    #[schema(example = 10)]
    step_s: u32,
    /// The oldest first; of the time before this process began there are none.
    #[schema(max_items = 360)]
    points: Vec<HistoryPoint>,
}

/// What was so at one moment. Rates are over the step before it.
#[derive(Clone, Serialize, ToSchema)]
pub struct HistoryPoint {
    /// When, in seconds since 1970.
    at: u32,
    /// People who were here and could be seen; null without a gateway.
    online: Option<u32>,
    /// Peers that had the whole torrent; null without a tracker.
    seeders: Option<u64>,
    /// Peers that had not.
    leechers: Option<u64>,
    /// Announces accepted, a second.
    announces_per_s: Option<f64>,
    /// Bytes uploaded, a second.
    upload_bytes_per_s: Option<f64>,
    /// Bytes downloaded, a second.
    download_bytes_per_s: Option<f64>,
    /// Connections made, a second.
    connects_per_s: Option<f64>,
    /// Connections ended, a second.
    disconnects_per_s: Option<f64>,
    /// Entries that each view did not show yet; empty while the journal did not answer.
    lag: BTreeMap<String, u64>,
}

/// The points, and where the last one was.
#[derive(Default)]
pub(super) struct History {
    points: VecDeque<HistoryPoint>,
    last: Option<(f64, CounterSample)>,
}

impl History {
    pub(super) fn shown(&self) -> OverviewHistory {
        OverviewHistory { step_s: STEP_S, points: self.points.iter().cloned().collect() }
    }

    /// Keeps a point if one is due.
    pub(super) fn record(&mut self, at_s: f64, now: UnixTime, sample: CounterSample, overview: &Overview) {
        let (from_s, before) = self.last.unwrap_or((at_s, sample));
        if self.last.is_some() && at_s - from_s < f64::from(STEP_S) - SLACK_S {
            return;
        }
        self.last = Some((at_s, sample));
        if self.points.len() == POINTS_MAX {
            self.points.pop_front();
        }
        let rate = |counter: fn(&CounterSample) -> u64| {
            per_second(counter(&sample).saturating_sub(counter(&before)), at_s - from_s)
        };
        let (tracker, gateway) = (overview.tracker.as_ref(), overview.gateway.as_ref());
        self.points.push_back(HistoryPoint {
            at: now.0,
            online: overview.people.as_ref().map(|people| people.online),
            seeders: tracker.map(|tracker| tracker.seeders),
            leechers: tracker.map(|tracker| tracker.leechers),
            announces_per_s: tracker.map(|_| rate(|sample| sample.announces)),
            upload_bytes_per_s: tracker.map(|_| rate(|sample| sample.uploaded)),
            download_bytes_per_s: tracker.map(|_| rate(|sample| sample.downloaded)),
            connects_per_s: gateway.map(|_| rate(|sample| sample.connects)),
            disconnects_per_s: gateway.map(|_| rate(|sample| sample.disconnects)),
            lag: lags(overview),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> Overview {
        Overview {
            at_ms: 0,
            version: String::new(),
            node: String::new(),
            started_at: 0,
            people: None,
            gateway: None,
            tracker: None,
            journal: None,
            health: Vec::new(),
            alerts: Vec::new(),
        }
    }

    #[test]
    fn an_hour_is_kept_in_steps_of_ten_seconds() {
        let mut history = History::default();
        let overview = empty();
        for second in 0..4_000_u32 {
            history.record(second.into(), UnixTime(1_000 + second), CounterSample::default(), &overview);
        }
        let shown = history.shown();
        assert_eq!((shown.step_s, shown.points.len()), (10, 360));
        let times: Vec<u32> = shown.points.iter().map(|point| point.at).collect();
        assert_eq!(times.last(), Some(&4_990));
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] == 10), "{times:?}");
        assert_eq!((shown.points[0].online, shown.points[0].seeders), (None, None));
    }
}
