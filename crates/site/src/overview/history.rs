//! The last hour of this process, one point per ten seconds.

use std::collections::{BTreeMap, VecDeque};

use domain::UnixTime;
use serde::Serialize;
use utoipa::ToSchema;

use super::schema::Overview;
use super::window::per_second;
use super::{CounterSample, lags};

/// Seconds between points.
pub(super) const STEP_S: u32 = 10;
/// One hour.
const POINTS_MAX: usize = 360;
/// Tolerance for the timing of the collector.
const SLACK_S: f64 = 0.5;

#[derive(Serialize, ToSchema)]
pub struct OverviewHistory {
    /// Seconds between points.
    #[schema(example = 10)]
    step_s: u32,
    /// Oldest first, since the start of this process.
    #[schema(max_items = 360)]
    points: Vec<HistoryPoint>,
}

/// State at one time. Rates are averages over the step before it.
#[derive(Clone, Serialize, ToSchema)]
pub struct HistoryPoint {
    /// Unix seconds.
    at: u32,
    /// Online users that are not invisible; null without a gateway.
    online: Option<u32>,
    /// Null without a tracker.
    seeders: Option<u64>,
    leechers: Option<u64>,
    /// Accepted announces.
    announces_per_s: Option<f64>,
    upload_bytes_per_s: Option<f64>,
    download_bytes_per_s: Option<f64>,
    /// New sessions at the gateway.
    connects_per_s: Option<f64>,
    /// Ended sessions at the gateway.
    disconnects_per_s: Option<f64>,
    /// Lag of each view in entries; empty while the journal is unavailable.
    lag: BTreeMap<String, u64>,
}

#[derive(Default)]
pub(super) struct History {
    points: VecDeque<HistoryPoint>,
    last: Option<(f64, CounterSample)>,
}

impl History {
    pub(super) fn to_json(&self) -> OverviewHistory {
        OverviewHistory { step_s: STEP_S, points: self.points.iter().cloned().collect() }
    }

    /// Adds a point if one is due.
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
            online: overview.presence.as_ref().map(|presence| presence.online),
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

    #[test]
    fn an_hour_is_kept_in_steps_of_ten_seconds() {
        let mut history = History::default();
        let overview = Overview::default();
        for second in 0..4_000_u32 {
            history.record(second.into(), UnixTime(1_000 + second), CounterSample::default(), &overview);
        }
        let json = history.to_json();
        assert_eq!((json.step_s, json.points.len()), (10, 360));
        let times: Vec<u32> = json.points.iter().map(|point| point.at).collect();
        assert_eq!(times.last(), Some(&4_990));
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] == 10), "{times:?}");
        assert_eq!((json.points[0].online, json.points[0].seeders), (None, None));
    }
}
