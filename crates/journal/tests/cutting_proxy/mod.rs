//! A proxy that loses answers: what the server did stays done, and the client never hears of it.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Passes everything on, until told to cut.
pub struct CuttingProxy {
    port: u16,
    cuts: Arc<AtomicBool>,
}

impl CuttingProxy {
    /// A proxy in front of a server on this port.
    pub fn start(server_port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let proxy = CuttingProxy { port: listener.local_addr().unwrap().port(), cuts: Arc::default() };
        let cuts = proxy.cuts.clone();
        // Ends with the test's process: it waits for nothing else.
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server_port)) else { continue };
                let requests = (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || pass_on(requests.0, requests.1, &AtomicBool::new(false)));
                let cuts = cuts.clone();
                std::thread::spawn(move || pass_on(server, client, &cuts));
            }
        });
        proxy
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Cuts the next connection on which an answer comes, instead of the answer. Then it passes everything on again.
    pub fn cut_next_answer(&self) {
        self.cuts.store(true, Ordering::SeqCst);
    }

    /// Whether the cut has yet to happen.
    pub fn is_about_to_cut(&self) -> bool {
        self.cuts.load(Ordering::SeqCst)
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, cuts: &AtomicBool) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if cuts.swap(false, Ordering::SeqCst) || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
