//! A proxy that drops replies and delays requests.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// Forwards everything by default.
pub struct CuttingProxy {
    port: u16,
    faults: Arc<Faults>,
}

#[derive(Default)]
struct Faults {
    cuts_answer: AtomicBool,
    /// Taken by the connection whose request is held back.
    holds_request: Mutex<Option<Receiver<()>>>,
}

impl CuttingProxy {
    /// A proxy in front of a server on this port.
    pub fn start(server_port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let proxy = CuttingProxy { port, faults: Arc::default() };
        let faults = proxy.faults.clone();
        // Ends with the test's process.
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server_port)) else { continue };
                let (from_client, to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let of_requests = faults.clone();
                std::thread::spawn(move || pass_requests(from_client, to_server, &of_requests));
                let of_answers = faults.clone();
                std::thread::spawn(move || pass_answers(server, client, &of_answers));
            }
        });
        proxy
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Closes the next connection with a reply, instead of forwarding the reply. Then forwards everything again.
    pub fn cut_next_answer(&self) {
        self.faults.cuts_answer.store(true, Ordering::SeqCst);
    }

    /// Whether the cut has yet to happen.
    pub fn is_about_to_cut(&self) -> bool {
        self.faults.cuts_answer.load(Ordering::SeqCst)
    }

    /// Holds the next request back until something is sent to the returned sender, even if the client has disconnected
    /// by then.
    pub fn hold_next_request(&self) -> Sender<()> {
        let (release, held) = channel();
        *self.faults.holds_request.lock().unwrap() = Some(held);
        release
    }
}

fn pass_requests(mut client: TcpStream, mut server: TcpStream, faults: &Faults) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = client.read(&mut buffer) {
        let held = faults.holds_request.lock().unwrap().take();
        if let Some(held) = held {
            let _ = held.recv();
        }
        if server.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    // Requests already sent still get replies, as in a real network.
    let _ = server.shutdown(Shutdown::Write);
}

fn pass_answers(mut server: TcpStream, mut client: TcpStream, faults: &Faults) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = server.read(&mut buffer) {
        if faults.cuts_answer.swap(false, Ordering::SeqCst) {
            let _ = server.shutdown(Shutdown::Both);
            break;
        }
        let _ = client.write_all(&buffer[..count]);
    }
    let _ = client.shutdown(Shutdown::Both);
}
