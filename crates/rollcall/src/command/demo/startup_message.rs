//! Output of a demo.

use std::fmt;

use serde_json::{Value as Json, json};
use simulate::{Plan, SimulationCounters};

use super::folder::Folder;
use super::ports::Ports;

pub(super) struct StartupMessage<'a> {
    pub(super) plan: &'a Plan,
    pub(super) ports: &'a Ports,
    pub(super) key: &'a str,
    pub(super) member_token: &'a str,
    pub(super) folder: &'a Folder,
}

impl StartupMessage<'_> {
    fn sign_in(&self) -> String {
        format!("{}/#/sign-in?key={}", self.ports.site_url(), self.key)
    }

    fn member(&self) -> String {
        format!("{}/me#token={}", self.ports.site_url(), self.member_token)
    }

    fn announce_urls(&self) -> Vec<String> {
        let addresses = self.ports.tracker_addresses();
        let urls = |scheme: &'static str| {
            addresses.iter().map(move |address| format!("{scheme}://{address}/<passkey>/announce"))
        };
        urls("http").chain(urls("udp")).collect()
    }

    pub(super) fn json(&self) -> Json {
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "site": self.ports.site_url(),
            "sign_in": self.sign_in(),
            "key": self.key,
            "member": self.member(),
            "member_id": 1,
            "member_token": self.member_token,
            "http": self.ports.tracker_addresses().iter().map(ToString::to_string).collect::<Vec<_>>(),
            "udp": self.ports.tracker_addresses().iter().map(ToString::to_string).collect::<Vec<_>>(),
            "data": self.folder.path(),
            "is_kept": self.folder.is_kept(),
            "members": self.plan.members,
            "torrents": self.plan.torrents,
            "peers": self.plan.peers,
            "users": self.plan.users(),
            "seed": self.plan.seed,
            "notes": self.ports.notes,
        })
    }
}

impl fmt::Display for StartupMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan { members, torrents, peers, .. } = self.plan;
        writeln!(
            f,
            "\nRollcall {} demo: torrents: {torrents}, peers: {peers}, members: {members}.\n",
            env!("CARGO_PKG_VERSION")
        )?;
        for note in &self.ports.notes {
            writeln!(f, "  note       {note}")?;
        }
        writeln!(f, "  dashboard  {}", self.sign_in())?;
        writeln!(f, "  a member   {}", self.member())?;
        writeln!(f, "  API        {}/docs", self.ports.site_url())?;
        for url in self.announce_urls() {
            writeln!(f, "  announce   {url}")?;
        }
        let lifetime = if self.folder.is_kept() { "kept" } else { "removed at the end" };
        writeln!(f, "  data       {} ({lifetime})\n", self.folder.path().display())?;
        writeln!(f, "All data is simulated, on this machine only. Ctrl-C stops it.\n")
    }
}

/// To standard error, which scripts do not parse.
pub(super) fn print_summary(counters: &SimulationCounters) {
    let SimulationCounters { accepted, refused, connects, .. } = counters;
    eprintln!(
        "the simulation has ended: announces: {accepted}, refused: {refused}, gateway connections: {connects}"
    );
}
