//! Ports of a demo, on loopback: the given ones, or free ones if those are taken.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};

use anyhow::bail;
use simulate::ServerAddresses;

const TRIES: u32 = 50;

#[derive(Debug)]
pub(super) struct Ports {
    site: u16,
    tracker: u16,
    has_v6: bool,
    /// Deviations from the requested ports.
    pub(super) notes: Vec<String>,
}

impl Ports {
    /// Another program may take a chosen port before the start, which then fails.
    pub(super) fn choose(site: u16, tracker: u16) -> anyhow::Result<Ports> {
        let has_v6 = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
        let mut notes = Vec::new();
        let mut choose = |what: &str, wanted: u16, taken: u16, with_udp: bool| {
            let is_free = |port: u16| port != taken && is_free(port, has_v6, with_udp);
            if wanted != 0 && is_free(wanted) {
                return Ok(wanted);
            }
            let Some(port) = (0..TRIES).filter_map(|_| any_port()).find(|port| is_free(*port)) else {
                bail!("there is no free port on loopback");
            };
            if wanted != 0 {
                notes.push(format!("port {wanted} is taken: the {what} is on port {port}"));
            }
            Ok(port)
        };
        let site = choose("site", site, 0, false)?;
        let tracker = choose("tracker", tracker, site, true)?;
        Ok(Ports { site, tracker, has_v6, notes })
    }

    pub(super) fn site_url(&self) -> String {
        format!("http://{}", self.site_addresses()[0])
    }

    pub(super) fn site_addresses(&self) -> Vec<SocketAddr> {
        self.all_at(self.site)
    }

    pub(super) fn tracker_addresses(&self) -> Vec<SocketAddr> {
        self.all_at(self.tracker)
    }

    /// For the simulation.
    pub(super) fn server_addresses(&self) -> ServerAddresses {
        ServerAddresses {
            http: self.tracker_addresses(),
            udp: self.tracker_addresses(),
            site: self.site_addresses().first().copied(),
        }
    }

    fn all_at(&self, port: u16) -> Vec<SocketAddr> {
        hosts(self.has_v6).map(|host| SocketAddr::new(host, port)).collect()
    }
}

fn hosts(has_v6: bool) -> impl Iterator<Item = IpAddr> {
    let v6 = has_v6.then_some(IpAddr::V6(Ipv6Addr::LOCALHOST));
    std::iter::once(IpAddr::V4(Ipv4Addr::LOCALHOST)).chain(v6)
}

fn is_free(port: u16, has_v6: bool, with_udp: bool) -> bool {
    hosts(has_v6).all(|host| {
        TcpListener::bind((host, port)).is_ok() && (!with_udp || UdpSocket::bind((host, port)).is_ok())
    })
}

fn any_port() -> Option<u16> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?.local_addr().ok().map(|address| address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_replaced_and_noted() {
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (site, tracker) = (tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port());
        let ports = Ports::choose(site, tracker).unwrap();
        assert!(ports.site != site && ports.tracker != tracker && ports.site != ports.tracker);
        assert_eq!(ports.notes.len(), 2);
        assert!(ports.notes[0].contains(&site.to_string()), "{:?}", ports.notes);
        let any = Ports::choose(0, 0).unwrap();
        assert_eq!(any.notes, Vec::<String>::new());
    }
}
